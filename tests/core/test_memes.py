"""A folder of memes: bare images, or images with a list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from memantics.core.errors import DataError
from memantics.core.memes import (
    Meme,
    image_key,
    image_keys,
    item_images,
    name_apart,
    question_key,
    read_captions,
    read_memes,
    with_captions,
)
from memantics.core.records import Form, Image, Item


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


def test_a_list_gives_every_field_and_foreign_fields_are_ignored(tmp_path: Path) -> None:
    write_list(
        tmp_path,
        {
            "id": "m",
            "image": "m.png",
            "text": "hi",
            "language": "en",
            "notes": {"meaning": "a greeting"},
            "template_cluster": "t1",
            "other": [1],
        },
        {"id": "n", "image": "n.png", "template_cluster": 7, "kept": True},
    )
    assert read_memes(tmp_path) == (
        Meme("m", tmp_path / "m.png", "hi", "en", {"meaning": "a greeting"}, "t1"),
        Meme("n", tmp_path / "n.png"),
    )


def test_ids_on_both_sides_of_the_longest(tmp_path: Path) -> None:
    assert len(read_memes(write_list(tmp_path, {"id": "x" * 200, "image": "a.png"}))) == 1
    with pytest.raises(DataError, match=r"memes\.jsonl: row 1: field 'id'"):
        read_memes(write_list(tmp_path, {"id": "x" * 201, "image": "a.png"}))
    with pytest.raises(DataError, match=r"two memes have the id 'a'; rename one$"):
        read_memes(write_list(tmp_path, *[{"id": name, "image": "x"} for name in "aba"]))


def test_names_of_folders_are_distinct_and_plain() -> None:
    given = ["a/b", "a_b", "a b", "..", "", "_x.", "é-1.0", "y" * 101]
    named = name_apart(Meme(one, Path(f"{n}.png"), str(n)) for n, one in enumerate(given))
    assert [meme.id for meme in named] == [
        "a_b", "a_b-2", "a_b-3", "meme", "meme-2", "x", "é-1.0", "y" * 100,
    ]  # fmt: skip
    assert [meme.text for meme in named] == [str(n) for n in range(len(given))]


def test_captions_become_notes(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    lines = [
        {"id": "a", "text_caption": "a greeting", "image_caption": "a dog", "model": "x"},
        {"id": " b ", "text_caption": "  ", "image_caption": "a cat"},
        {"id": "c"},
    ]
    path.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    found = read_captions(path)
    assert found == {
        "a": {"meaning": "a greeting", "description": "a dog"},
        "b": {"description": "a cat"},
        "c": {},
    }
    memes = [
        Meme("a", Path("a"), notes={"meaning": "known", "template": "t"}),
        Meme("b", Path("b")),
        Meme("z", Path("z"), notes={"template": "t"}),
    ]
    assert [meme.notes for meme in with_captions(memes, found)] == [
        {"meaning": "known", "description": "a dog", "template": "t"},
        {"description": "a cat"},
        {"template": "t"},
    ]
    path.write_bytes(b'{"id": "a"}\n\n{"id": "a"}\n')
    with pytest.raises(DataError, match=r"captions\.jsonl: row 3: id 'a' occurs twice$"):
        read_captions(path)
    path.write_bytes(b'{"id": 7}\n')
    with pytest.raises(DataError, match=r"captions\.jsonl: row 1: field 'id'"):
        read_captions(path)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("img/01235.png", "1235"),
        ("C:\\img\\Cat.JPG", "cat"),
        (" a.png ", "a"),
        ("a.jpeg", "a"),
        ("a.v2.x", "a.v2"),
        ("a.jpegs", "a.jpegs"),
        ("a.b-c", "a.b-c"),
        (".png", ".png"),
        ("a.", "a."),
        ("000.png", "0"),
        ("00a.png", "00a"),
        ("STRASSE.png", "strasse"),
        ("straße", "strasse"),
    ],
)
def test_images_are_joined_by_their_names(name: str, key: str) -> None:
    assert image_key(name) == key


def test_keys_of_an_item_are_those_of_its_images_and_its_meme() -> None:
    images = (Image(Path("x/01.png")), Image(Path("B.jpg")))
    item = Item("i", "B.png", None, Form("?", ()), images)
    assert image_keys(images) == ["1", "b"]
    assert item_images(item) == ("1", "b")
    assert item_images(replace(item, group="other")) == ("1", "b", "other")
    assert question_key(" What\tDOES  it ") == "what does it"
