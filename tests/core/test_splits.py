"""Split files: their ids and parts are checked with a hash, and a part is named on the way in."""

from __future__ import annotations

import hashlib
from pathlib import Path

import orjson
import pytest

from memantics.core.data import SplitFile, SplitRow, cut_split, read_split, sum_split
from memantics.core.errors import DataError, InputError, UnknownName


def make_split() -> SplitFile:
    rows = [
        SplitRow(id="a", part="train", fold=0, group="g"),
        SplitRow(id="b", part="test", fold=1, group="h"),
        SplitRow(id="表", part="train", fold=1, group="g"),
    ]
    return SplitFile(
        data="own/label",
        data_checksum="0" * 64,
        by="text",
        checksum=sum_split((row.id, row.part) for row in rows),
        rows=rows,
    )


def test_the_hash_is_over_sorted_lines() -> None:
    expected = hashlib.sha256(b"a\ttrain\nb\ttest\n").hexdigest()
    assert sum_split([("b", "test"), ("a", "train")]) == expected
    assert sum_split([]) == hashlib.sha256(b"").hexdigest()
    # An id with half a character is hashed, too.
    assert sum_split([("\ud800", "dev")]) == hashlib.sha256(b"?\tdev\n").hexdigest()


def test_ids_and_counts_of_parts() -> None:
    split = make_split()
    assert split.list_ids("train") == ["a", "表"]
    assert split.list_ids("dev") == []
    assert split.list_ids("all") == ["a", "b", "表"]
    assert split.counts == {"train": 2, "dev": 0, "test": 1}
    with pytest.raises(UnknownName, match="unknown part of a split 'tset'; did you mean test"):
        split.list_ids("tset")


def test_a_saved_split_is_read_again(tmp_path: Path) -> None:
    split = make_split()
    path = split.save(tmp_path / "new" / "split.json")
    assert path == tmp_path / "new" / "split.json"
    assert split.save(path) == path, "a split may be replaced"
    assert read_split(path) == split
    assert '\n  "kind": "memantics split",\n' in path.read_text(encoding="utf-8")
    assert "表" in path.read_text(encoding="utf-8")


def test_a_changed_split_is_rejected(tmp_path: Path) -> None:
    path = make_split().save(tmp_path / "split.json")
    whole = orjson.loads(path.read_bytes())
    whole["rows"][0]["part"] = "dev"
    path.write_bytes(orjson.dumps(whole))
    with pytest.raises(DataError) as caught:
        read_split(path)
    problem = "the checksum does not match the rows; create the split again"
    assert str(caught.value) == f"{path}: {problem}"
    # Folds and groups are not part of the hash.
    whole["rows"][0] |= {"part": "train", "fold": 3}
    path.write_bytes(orjson.dumps(whole))
    assert read_split(path).rows[0].fold == 3
    path.write_bytes(orjson.dumps(whole | {"version": 2}))
    with pytest.raises(DataError, match=r"^split\.json: field 'version'"):
        read_split(path)


def test_a_missing_split_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_split(tmp_path / "none.json")
    assert str(caught.value) == (
        f"no such file: {tmp_path / 'none.json'}; "
        "create one with 'memantics audit NAME --resplit text'"
    )


def test_a_part_of_a_split_file_is_chosen_by_a_colon(tmp_path: Path) -> None:
    split = make_split()
    path = split.save(tmp_path / "a:b.json")
    assert cut_split(f"{path}:dev") == ((split, "dev"), "all")
    assert cut_split(f"{path}:all") == ((split, "all"), "all")
    for plain in ("test", "a:b", "a.json", "x.toml:train", ""):
        assert cut_split(plain) == (None, plain)
    with pytest.raises(UnknownName, match="unknown part of a split 'x'"):
        cut_split(f"{path}:x")
    with pytest.raises(InputError, match="no such file: "):
        cut_split(f"{tmp_path / 'none.json'}:dev")
