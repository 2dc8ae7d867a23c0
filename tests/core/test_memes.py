"""A folder of memes: bare images, or images with a list."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from memantics.core.errors import DataError
from memantics.core.memes import read_memes


def write_list(folder: Path, *lines: object) -> Path:
    (folder / "memes.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return folder


def test_bare_images_are_named_by_their_stems(tmp_path: Path) -> None:
    for name in ("b.png", "a.JPG", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert [(meme.id, meme.image.name) for meme in read_memes(tmp_path)] == [
        ("a", "a.JPG"),
        ("b", "b.png"),
    ]


def test_a_list_says_more_and_drops_what_was_not_kept(tmp_path: Path) -> None:
    write_list(
        tmp_path,
        {"id": "one", "image": "x/1.png", "text": "hi", "notes": {"meaning": "hello"}, "phash": 1},
        {"id": "two", "image": "2.png", "kept": False},
    )
    (meme,) = read_memes(tmp_path)
    assert (meme.id, meme.text, dict(meme.notes)) == ("one", "hi", {"meaning": "hello"})
    assert meme.image == tmp_path / "x" / "1.png"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"id": "one", "image": "../1.png"}], "outside"),
        ([{"id": "../one", "image": "1.png"}], "row 1"),
        ([{"id": "one"}], "missing field 'image'"),
        ([{"id": "one", "image": "1.png"}] * 2, "two memes"),
        ([], "contains no memes"),
    ],
)
def test_a_bad_list_is_named(tmp_path: Path, lines: list[object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_memes(write_list(tmp_path, *lines))


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        read_memes(tmp_path / "none")
