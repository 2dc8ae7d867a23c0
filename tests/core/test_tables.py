"""Tables of other programs in each format: rows, numbers, limits and errors."""

from __future__ import annotations

import io
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from memantics.core import errors
from memantics.core.errors import DataError, InputError, MissingExtra
from memantics.core.tables import (
    TableBounds,
    check_archive,
    check_size,
    make_schema,
    need_parquet,
    read_rows,
    write_cell,
)

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


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        ('[{"id": "a"}, {"id": NaN}]', [(1, {"id": "a"}), (2, {"id": ""})]),
        ('{"x": {"id": 1}, "y": {"id": 2, "key": "own"}}',
         [(1, {"key": "x", "id": "1"}), (2, {"key": "own", "id": "2"})]),
        ('{"n": 1, "empty": [], "data": [{"id": 1}], "words": ["a"]}', [(1, {"id": "1"})]),
        (' \n{"id": 1}\n {"id": 2}\n', [(2, {"id": "1"}), (3, {"id": "2"})]),
        ('{"x": {"id": 1},\n"y": {"id": 2}}',
         [(1, {"key": "x", "id": "1"}), (2, {"key": "y", "id": "2"})]),
    ],
)  # fmt: skip
def test_the_records_of_published_json_are_found(
    body: str, rows: list[tuple[int, dict[str, str]]], tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(body)
    assert list(read_rows(path, detect=True)) == rows


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{}", "contains neither a list nor a dictionary of records; write a JSON list of obj"),
        ("7", "contains neither a list"),
        ('{"a": {"id": 1}, "b": 2}', "contains neither a list"),
        ('{"a": [{"id": 1}], "b": [{"id": 1}]}', "contains neither a list"),
        ('{"a": [1]}', "contains neither a list"),
        ('[{"id": NaN]', "not valid JSON: .*; repair the file, or download it again"),
        ("[" * 100_000 + "NaN", "not valid JSON: "),
        ('[{"id": 1]', "not valid JSON: .*; repair the file"),
        ('{"id": 1}\n{"id": \n', "not valid JSON"),
    ],
)
def test_json_without_records_is_refused(body: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(body)
    with pytest.raises(DataError, match=rf"^a\.json: {problem}"):
        list(read_rows(tmp_path / "a.json", detect=True))


def test_delimiters_and_encodings_are_detected_for_data_sets(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id;text\n1;é\n2;x\n".encode("cp1252"))
    rows = [(1, {"id": "1", "text": "é"}), (2, {"id": "2", "text": "x"})]
    assert list(read_rows(path, detect=True)) == rows
    assert list(read_rows(path, detect=True, encoding="latin-1")) == rows
    # The ending that is given decides about the delimiter.
    path.write_text("id\ttext\n1\ta;b\n")
    assert list(read_rows(path, detect=True, ending=".tsv")) == [(1, {"id": "1", "text": "a;b"})]
    assert list(read_rows(path, ending=".tsv")) == [(1, {"id": "1", "text": "a;b"})]
    path.write_text("a;b,c;d\n1;2,3;4\n")
    assert list(read_rows(path, detect=True, ending=".csv")) == [(1, {"a;b": "1;2", "c;d": "3;4"})]
    assert list(read_rows(path)) == [(1, {"a;b": "1;2", "c;d": "3;4"})]


def test_a_tar_archive_is_a_table_of_data_sets_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, body in (("x.json", b'{"label": 1}'), ("x.txt", b" hi "), ("x.png", b"PNG")):
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    (found,) = read_rows(path, detect=True)
    assert found[0] == 1
    row = dict(found[1])
    place = row.pop("image.bytes")
    assert row == {"__key__": "x", "label": "1", "text": "hi", "image": "x.png"}
    assert place.endswith("+3/x.png")
    with pytest.raises(InputError, match=r"a\.tar is not a readable table"):
        read_rows(path)
    # A cell of an archive has a limit, too.
    with pytest.raises(DataError, match="row 1: a cell has"):
        list(read_rows(path, TableBounds(cell=3), detect=True))


def write_parquet(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path


@pytest.mark.parametrize("statistics", [True, False])
def test_images_of_a_data_set_have_places(statistics: bool, tmp_path: Path) -> None:
    """Rows without an image have none, whether the file has statistics or not."""
    image = {"bytes": b"x", "path": "cat.png"}
    rows = [
        {"id": n, "picture": image if n % 20 else None, "raw": b"y" if n % 3 else None}
        for n in range(40)
    ]
    options = {"write_statistics": statistics, "row_group_size": 7}
    path = write_parquet(tmp_path / "a.parquet", rows, **options)
    found = [row for _, row in read_rows(path, detect=True)]
    assert [row["id"] for row in found] == [str(n) for n in range(40)]
    for n, row in enumerate(found):
        assert row["picture"] == ("cat.png" if n % 20 else "")
        assert row.get("picture.bytes") == (f"@{n}/picture/cat.png" if n % 20 else None)
        assert row["raw"] == ""
        assert row.get("raw.bytes") == (f"@{n}/raw/{n}" if n % 3 else None)
    plain = [row for _, row in read_rows(write_parquet(tmp_path / "b.parquet", rows[1:3]))]
    assert plain[0]["picture"] == "cat.png"
    assert "picture.bytes" not in plain[0]
    assert "raw.bytes" not in plain[0]


def test_a_column_of_images_without_gaps(tmp_path: Path) -> None:
    rows = [{"img": {"bytes": b"x"}, "n": {"path": "a", "m": 1}} for _ in range(2)]
    found = [row for _, row in read_rows(write_parquet(tmp_path / "a.parquet", rows), detect=True)]
    assert [row["img.bytes"] for row in found] == ["@0/img/0", "@1/img/1"]
    assert found[0]["n"] == '{"path":"a","m":1}', "only the name of an image stands for it"
    only = [
        row
        for _, row in read_rows(
            write_parquet(tmp_path / "b.parquet", [{"b": b"x"}] * 3), detect=True
        )
    ]
    assert [row["b.bytes"] for row in only] == ["@0/b/0", "@1/b/1", "@2/b/2"]


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", [{"t": "x" * 1000 + str(n)} for n in range(2000)])
    data = bytearray(path.read_bytes())
    data[4:3000] = b"\xff" * 2996
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"^a\.parquet: is not a valid Parquet file: ") as caught:
        list(read_rows(path))
    assert len(str(caught.value)) <= 213


def test_archives_on_both_sides_of_their_limits(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one", b"x" * 1000)
        archive.writestr("two", b"x" * 2000)
    check_archive(path, TableBounds(part=2000, parts=3000))
    for bounds in (TableBounds(part=1999, parts=3000), TableBounds(part=2000, parts=2999)):
        with pytest.raises(DataError) as caught:
            check_archive(path, bounds)
        assert str(caught.value) == (
            "a.zip: would unpack to 3,000 bytes, its largest part to 2,000; "
            f"split the file: the limits are {bounds.parts:,} and {bounds.part:,} bytes"
        )
    with pytest.raises(DataError, match="bytes are more than the limit of 9"):
        check_archive(path, TableBounds(file=9))
    with zipfile.ZipFile(path, "w"):
        pass
    check_archive(path, TableBounds(part=0, parts=0))
    path.write_bytes(b"PK")
    with pytest.raises(
        DataError, match=r"^a\.zip: is not a complete archive: .*; download it again"
    ):
        check_archive(path)


def test_a_folder_or_a_missing_file_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        check_size(tmp_path, TableBounds(file=1234))
    hint = "give a file of at most 1,234 bytes"
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory; {hint}"
    # Data sets are read piece by piece: their limit is another.
    (tmp_path / "a.csv").write_text("id,b\nx,y\n")
    assert len(list(read_rows(tmp_path / "a.csv", TableBounds(file=1), detect=True))) == 1


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra) as caught:
        need_parquet()
    assert "Parquet tables" in str(caught.value)
    assert "memantics[parquet]" in str(caught.value)


@dataclass
class Part:
    size: float


@dataclass
class Record:
    text: str
    share: float | None
    count: int
    sure: bool
    part: Part
    parts: tuple[Part, ...]
    kind: Literal["a", "b"]
    level: Literal[1, 2] | None


def test_the_schema_of_a_record() -> None:
    import pyarrow as pa

    part = pa.struct([("size", pa.float64())])
    kinds = {
        "text": pa.string(), "share": pa.float64(), "count": pa.int64(), "sure": pa.bool_(),
        "part": part, "parts": pa.list_(part), "kind": pa.string(), "level": pa.int64(),
    }  # fmt: skip
    assert make_schema(Record, list(kinds)) == pa.schema(list(kinds.items()))
    assert make_schema(Record, ["kind", "text"]).names == ["kind", "text"]
