"""Files of answers that mean harm: bounded before they are unpacked, never run, never believed."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.core import tables
from memantics.core.errors import DataError, InputError
from memantics.core.tables import TableBounds, check_archive, read_rows

NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def write_book(path: Path, rows: list[list[object]]) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def change_sheet(path: Path, change: Callable[[str], str]) -> Path:
    """Rewrite the sheet of a book."""
    name = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    parts[name] = change(parts[name].decode()).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    return path


def test_a_formula_is_the_text_that_was_written(tmp_path: Path) -> None:
    path = write_book(tmp_path / "a.xlsx", [["id", "prediction"], ["x", '=HYPERLINK("http://x")']])
    assert [row["prediction"] for _, row in read_rows(path)] == ['=HYPERLINK("http://x")']


def test_an_archive_that_would_unpack_to_too_much_is_refused(tmp_path: Path) -> None:
    book = write_book(tmp_path / "bomb.xlsx", [["id", "prediction"], ["x", "A"]])
    change_sheet(book, lambda text: text + " " * 3_000_000)
    assert book.stat().st_size < 20_000
    fits = sum(part.file_size for part in zipfile.ZipFile(book).infolist())
    largest = max(part.file_size for part in zipfile.ZipFile(book).infolist())
    check_archive(book, TableBounds(part=largest, parts=fits))
    for bounds in (TableBounds(part=largest - 1), TableBounds(part=largest, parts=fits - 1)):
        with pytest.raises(DataError, match="would unpack to"):
            list(read_rows(book, bounds))


def test_a_log_that_would_unpack_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", " " * 2_000_000)
    monkeypatch.setattr(tables.check_archive, "__defaults__", (TableBounds(part=1_000_000),))
    with pytest.raises(DataError, match="would unpack to"):
        mm.import_answers(path, task="mquest/qa", model="m")


def test_xml_with_entities_is_refused(tmp_path: Path) -> None:
    book = write_book(tmp_path / "a.xlsx", [["id", "prediction"], ["x", "A"]])
    head = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]>'
    change_sheet(book, lambda text: head + text.replace("<?xml version='1.0'?>", ""))
    with pytest.raises(DataError, match="not a valid Excel file"):
        list(read_rows(book))


def test_a_row_number_beyond_every_sheet_takes_no_time(tmp_path: Path) -> None:
    book = write_book(tmp_path / "a.xlsx", [["id", "prediction"], ["x", "A"]])
    change_sheet(book, lambda text: text.replace('<row r="2"', '<row r="999999999999"'))
    assert list(read_rows(book)) == []


@pytest.mark.parametrize("ending", ["csv", "jsonl", "xlsx"])
def test_a_huge_cell_is_refused_with_its_row(ending: str, tmp_path: Path) -> None:
    path, bounds = tmp_path / f"a.{ending}", TableBounds(cell=1000)
    for length, fits in ((1000, True), (1001, False)):
        text = "x" * length
        if ending == "csv":
            path.write_text(f"id,prediction\na,A\nb,{text}\n", encoding="utf-8")
        elif ending == "jsonl":
            lines = [{"id": "a", "prediction": "A"}, {"id": "b", "prediction": text}]
            path.write_bytes(b"\n".join(map(orjson.dumps, lines)))
        else:
            write_book(path, [["id", "prediction"], ["a", "A"], ["b", text]])
        if fits:
            assert len(list(read_rows(path, bounds))) == 2
        else:
            with pytest.raises(DataError, match="row 2"):
                list(read_rows(path, bounds))


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"index": [1]}))
    with pytest.raises(InputError, match="pickles are not supported"):
        mm.import_answers(path, task="mquest/qa", model="m")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b"id,prediction\nx,A,B\n"),
        ("a.csv", b"id,prediction\nx\n"),
        ("a.csv", b'id,prediction\nx,"A\n'),
        ("a.csv", b"id,prediction\nx,\xff\xfe\n"),
        ("a.jsonl", b'{"id": "x"\n'),
        ("a.jsonl", b"[1]\n"),
        ("a.json", b'[{"id": 1, "prediction": "A"}, 2]'),
        ("a.json", b'{"version": 2, "samples": 3}'),
        ("a.xlsx", b"not a book"),
        ("a.eval", b"not a log"),
        ("b.jsonl", b'{"custom_id": 3, "response": {}}\n'),
        ("b.jsonl", b'{"doc_id": 1, "filtered_resps": []}\n{"doc": 1}\n'),
    ],
)
def test_broken_files_are_one_error_that_names_them(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError, match=rf"^{name}"):
        mm.import_answers(path, task="mquest/qa", model="m")
