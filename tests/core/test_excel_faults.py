"""Excel files: every kind of cell is read as text, and a damaged file is one error."""

from __future__ import annotations

import datetime
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from memantics.core.errors import DataError
from memantics.core.tables import read_rows


def write_book(path: Path, rows: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_every_kind_of_cell_is_text(tmp_path: Path) -> None:
    cells = {
        "whole": (7, "7"),
        "float": (7.0, "7"),
        "half": (0.5, "0.5"),
        "yes": (True, "true"),
        "date": (datetime.date(2026, 1, 2), "2026-01-02 00:00:00"),
        "time": (datetime.time(3, 4), "03:04:00"),
        "nothing": (None, ""),
        "fault": ("#REF!", "#REF!"),
        "formula": ("=1+1", "=1+1"),
        "digits": ("007", "007"),
        "zh": ("表情包\n二", "表情包\n二"),
    }
    path = write_book(tmp_path / "a.xlsx", [list(cells), [value for value, _ in cells.values()]])
    assert list(read_rows(path)) == [(1, {name: text for name, (_, text) in cells.items()})]


def test_odd_sheets(tmp_path: Path) -> None:
    assert list(read_rows(write_book(tmp_path / "empty.xlsx", []))) == []
    assert list(read_rows(write_book(tmp_path / "head.xlsx", [["id", "text"]]))) == []
    path = write_book(tmp_path / "a.xlsx", [["id", None, "text"], ["x", "y", "z"], [], ["u"]])
    # A column without a name is left out; an empty row is skipped, and the numbers stay.
    assert list(read_rows(path)) == [(1, {"id": "x", "text": "z"}), (3, {"id": "u", "text": ""})]
    book = openpyxl.Workbook()
    book.active.append(["id"])
    book.active.append(["first"])
    book.active.sheet_state = "hidden"
    book.create_sheet("second").append(["other"])
    book.active = 1
    book.save(tmp_path / "two.xlsx")
    assert list(read_rows(tmp_path / "two.xlsx")) == [(1, {"id": "first"})]


@pytest.mark.parametrize(("gap", "rows"), [(999, 2), (1000, 2), (1001, 1)])
def test_the_rows_end_after_a_thousand_empty_ones(gap: int, rows: int, tmp_path: Path) -> None:
    path = write_book(tmp_path / "a.xlsx", [["id"], ["x"], *([[]] * gap), ["y"]])
    assert len(list(read_rows(path))) == rows


def test_a_pipe_and_a_device_are_not_opened(tmp_path: Path) -> None:
    for ending in ("xlsx", "csv", "json", "jsonl", "parquet"):
        os.mkfifo(tmp_path / f"pipe.{ending}")
        (tmp_path / f"zero.{ending}").symlink_to("/dev/zero")
        for name in ("pipe", "zero"):
            with pytest.raises(DataError, match="cannot be read: not a regular file"):
                list(read_rows(tmp_path / f"{name}.{ending}"))


def _is_refused(path: Path) -> bool:
    """Read a file; the only error is one that names it."""
    try:
        list(read_rows(path))
    except DataError as error:
        return path.name in str(error) or pytest.fail(str(error))
    return False


@pytest.mark.filterwarnings("ignore::UserWarning")  # openpyxl replaces what is missing
def test_a_damaged_file_is_one_error(tmp_path: Path) -> None:
    """Bytes are changed or cut off: rows are read, or there is an error that names the file."""
    path = write_book(
        tmp_path / "a.xlsx", [["id", "text"], *([[n, f"text {n}"] for n in range(9)])]
    )
    whole, chance = path.read_bytes(), random.Random(48)
    refused = 0
    for trial in range(120):
        data = bytearray(whole)
        if trial % 3 == 0:
            del data[chance.randrange(len(data)) :]
        else:
            for _ in range(chance.randint(1, 8)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        refused += _is_refused(path)
    assert refused > 60


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml"])
@pytest.mark.parametrize("body", [b"", b"<a/>", b"<" * 5000, b"\xff\xfe", b"<a>" * 20_000])
def test_a_damaged_part_is_one_error(part: str, body: bytes, tmp_path: Path) -> None:
    path = write_book(tmp_path / "a.xlsx", [["id"], ["x"]])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[part] = body
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    _is_refused(path)
