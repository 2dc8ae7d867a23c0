"""A line that would fill the memory is an error of its row: sparse files and files of one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memantics.core import files
from memantics.core.data import read_jsonl
from memantics.core.errors import DataError, StoreError
from memantics.core.files import read_whole_lines
from memantics.core.tables import read_rows


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)


def test_a_long_line_of_a_table_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,a\n2," + "x" * 2000 + "\n")
    (tmp_path / "b.csv").write_text("id,text," + "x" * 2000)
    (tmp_path / "c.jsonl").write_text('{"id":1}\n{"id":"' + "x" * 2000 + '"}\n')
    for name, row in (("a.csv", "row 2"), ("b.csv", "row 1")):
        with pytest.raises(DataError, match=f"{row}: a line has more than 1,000 characters"):
            list(read_rows(tmp_path / name, detect=True))
    with pytest.raises(DataError, match="a line has more than 1,000"):
        list(read_jsonl(tmp_path / "c.jsonl"))
    with pytest.raises(StoreError, match="a line has more than 1,000"):
        list(read_whole_lines(tmp_path / "c.jsonl"))


def test_lines_up_to_the_limit_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1," + "é" * 996 + "\n2,\n", encoding="utf-8")
    rows = list(read_rows(tmp_path / "a.csv", detect=True))
    assert [len(row["text"]) for _, row in rows] == [996, 0]


def test_a_sparse_table_is_an_error_at_once(tmp_path: Path) -> None:
    """A file of a terabyte, which takes no space on the disk, was read to its end."""
    with (tmp_path / "a.csv").open("wb") as file:
        file.write(b"id,text\n1,a\n")
        os.truncate(file.fileno(), 1 << 40)
    with pytest.raises(DataError, match="a block of zero bytes"):
        list(read_rows(tmp_path / "a.csv", detect=True))
