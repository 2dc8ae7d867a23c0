"""Tables of other programs in each format: rows, numbers, limits and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import DataError, InputError
from memantics.core.tables import TableBounds, check_size, read_rows, write_cell

ROWS = [(1, {"id": "a", "text": "x"}), (2, {"id": "b", "text": 'y "z", 1'})]


def test_each_format_gives_the_same_rows(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = [row for _, row in ROWS]
    files = {
        "a.csv": '\ufeffid,text\na,x\nb,"y ""z"", 1"\n',
        "a.tsv": 'id\ttext\na\tx\nb\t"y ""z"", 1"\n',
        "a.jsonl": '{"id": "a", "text": "x"}\n\n{"id": "b", "text": "y \\"z\\", 1"}\n',
        "a.json": '[{"id": "a", "text": "x"}, {"id": "b", "text": "y \\"z\\", 1"}]',
    }
    for name, body in files.items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(values), tmp_path / "a.parquet")
    for name in ("a.csv", "a.tsv", "a.json", "a.parquet"):
        assert list(read_rows(tmp_path / name)) == ROWS, name
    # The lines of a file are numbered with its blank ones.
    assert list(read_rows(tmp_path / "a.jsonl")) == [ROWS[0], (3, ROWS[1][1])]
    (tmp_path / "other.json").write_text(files["a.jsonl"])
    assert len(list(read_rows(tmp_path / "other.json", ending=".jsonl"))) == 2
    (tmp_path / "A.CSV").write_text(files["a.csv"], encoding="utf-8")
    assert list(read_rows(tmp_path / "A.CSV")) == ROWS


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("a.csv", "id,text\na,x\nb\n", "a.csv: row 2: has more or fewer cells than the header"),
        ("a.csv", "id,text\na,x\nb,c,d\n", "a.csv: row 2: has more or fewer cells"),
        ("a.csv", 'id,text\na,"x\n', "a.csv: row 1: unexpected end of data; repair that row"),
        ("a.csv", b"id,text\na,x\nb,\xff\n", "row .: 'utf-8' codec .*; save it as UTF-8"),
        ("a.jsonl", '{"id": "a"}\n[1]\n', "a.jsonl: row 2: is not a JSON object"),
        ("a.json", '[{"id": "a"}, 7]', "a.json: row 2: is not a JSON object"),
        ("a.json", '{"id": "a"}', "a.json: does not contain a list of records"),
        ("a.parquet", "no Parquet", "a.parquet: is not a valid Parquet file"),
        ("a.xlsx", "no archive", "a.xlsx: is not a complete archive"),
    ],
)
def test_an_error_names_the_file_and_the_row(
    name: str, body: str | bytes, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    with pytest.raises(DataError, match=problem):
        list(read_rows(path))


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"x")
    with pytest.raises(InputError, match=r"a\.pkl is not a readable table; use one of \.csv"):
        read_rows(tmp_path / "a.pkl")
    with pytest.raises(DataError, match="cannot be read: No such file or directory; check the"):
        read_rows(tmp_path / "missing.csv")
    with pytest.raises(DataError, match="Is a directory; give a file of at most"):
        check_size(tmp_path)


def test_sizes_and_cells_on_both_sides_of_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id\nabcdef\n")
    assert len(list(read_rows(path, TableBounds(file=10, cell=6)))) == 1
    with pytest.raises(DataError, match="10 bytes are more than the limit of 9; give a file of"):
        read_rows(path, TableBounds(file=9))
    with pytest.raises(DataError, match="row 1: field larger than field limit"):
        list(read_rows(path, TableBounds(cell=5)))
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"id": "abcdef"}\n')
    assert len(list(read_rows(lines, TableBounds(cell=6)))) == 1
    with pytest.raises(DataError, match="row 1: a cell has 6 characters; shorten it"):
        list(read_rows(lines, TableBounds(cell=5)))


def test_a_limit_of_cells_does_not_outlive_its_table(tmp_path: Path) -> None:
    import csv

    before = csv.field_size_limit()
    (tmp_path / "a.csv").write_text("id\n" + "x" * 200_000)
    assert len(list(read_rows(tmp_path / "a.csv"))) == 1
    assert csv.field_size_limit() == before


def test_values_of_cells(tmp_path: Path) -> None:
    given = [3, 3.0, 0.5, True, None, float("nan"), [1, "a"], {"b": 2}, "\ud800x", ""]
    assert [write_cell(value) for value in given] == [
        "3", "3", "0.5", "true", "", "", '[1,"a"]', '{"b":2}', "\ufffdx", "",
    ]  # fmt: skip


def test_embedded_images_are_reduced_to_their_names(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"id": 1, "image": {"bytes": b"x" * 99, "path": "a.png"}}, {"id": 2, "image": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    first, second = read_rows(tmp_path / "a.parquet")
    assert first == (1, {"id": "1", "image": "a.png"})
    assert second[1]["id"] == "2"
