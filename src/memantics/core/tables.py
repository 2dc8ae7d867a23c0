"""Bounded readers for tables of other programs: CSV, TSV, JSON, JSON lines, Excel and Parquet.

Nothing in a file is executed: formulas stay text, and pickles are rejected. Size limits apply
before anything is unpacked, so that a small file cannot fill the memory.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import orjson
from pydantic import JsonValue

from memantics.core.data import read_json, read_jsonl
from memantics.core.errors import DataError, InputError, MissingExtra, need_packages
from memantics.core.text import repair_surrogates

if TYPE_CHECKING:
    import pyarrow as pa

TableRow = Mapping[str, str]
# Maximum number of columns, and of consecutive empty rows; a spreadsheet may declare any number.
_SHEET_COLUMNS, _EMPTY_ROWS = 1024, 1000


@dataclass(frozen=True, slots=True)
class TableBounds:
    """Size limits in bytes (a file, one archive member, all members) and characters per cell."""

    file: int = 2 << 30
    part: int = 256 << 20
    parts: int = 4 << 30
    cell: int = 1_000_000


BOUNDS = TableBounds()
TABLE_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".xlsx")


def read_rows(
    path: Path, bounds: TableBounds = BOUNDS, ending: str = ""
) -> Iterator[tuple[int, TableRow]]:
    """Yield the rows of a table as text by column, numbered from 1 without the header.

    JSON objects in a cell stay JSON. ``ending`` overrides the format of a misleading file name:
    some releases use ``.json`` for JSON lines and ``.csv`` for tab-separated files.
    """
    check_size(path, bounds)
    ending = ending or path.suffix.lower()
    if ending in (".csv", ".tsv"):
        return _read_separated(path, "\t" if ending == ".tsv" else ",", bounds)
    if ending == ".xlsx":
        return _read_sheet(path, bounds)
    if ending == ".jsonl":
        return _read_objects(path, read_jsonl(path), bounds)
    if ending == ".json":
        return _read_objects(path, enumerate(_read_list(path), 1), bounds)
    if ending == ".parquet":
        return _read_objects(path, enumerate(_read_parquet(path), 1), bounds)
    raise InputError(
        f"{path.name} is not a readable table",
        hint=f"use one of {', '.join(TABLE_ENDINGS)}; pickles are not supported",
    )


def check_size(path: Path, bounds: TableBounds = BOUNDS) -> None:
    """Raise a ``DataError`` if a file is missing or larger than the limit."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}", hint="check the path") from error
    if not path.is_file() or size > bounds.file:
        problem = "is not a file" if not path.is_file() else f"has {size:,} bytes"
        raise DataError(path, problem, hint=f"give a file of at most {bounds.file:,} bytes")


def check_archive(path: Path, bounds: TableBounds = BOUNDS) -> None:
    """Raise a ``DataError`` if an archive's unpacked members would exceed the limits.

    The sizes come from the archive's directory; Python never unpacks more bytes than stated there.
    """
    check_size(path, bounds)
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = [part.file_size for part in archive.infolist()]
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise DataError(
            path.name, f"is not a complete archive: {error}", hint="download it again"
        ) from error
    if max(sizes, default=0) > bounds.part or sum(sizes) > bounds.parts:
        raise DataError(
            path.name,
            f"would unpack to {sum(sizes):,} bytes, its largest part to {max(sizes):,}",
            hint=f"split the file: the limits are {bounds.parts:,} and {bounds.part:,} bytes",
        )


def _read_parquet(path: Path) -> Iterator[JsonValue]:
    """Yield the rows of a Parquet file; embedded images are reduced to their names."""
    need_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        leaves = [file.schema.column(place).path for place in range(len(file.schema))]
        kept = [leaf for leaf in leaves if not leaf.endswith(".bytes")]
        for batch in file.iter_batches(1024, columns=kept):
            for row in batch.to_pylist():
                yield {
                    k: v["path"] if isinstance(v, dict) and "path" in v else v
                    for k, v in row.items()
                }
    except (pa.ArrowException, OSError) as error:
        raise DataError(path.name, f"is not a valid Parquet file: {error}"[:200]) from error


def _read_list(path: Path) -> list[JsonValue]:
    value = read_json(path)
    if not isinstance(value, list):
        raise DataError(
            path.name, "does not contain a list of records", hint="write a JSON list of objects"
        )
    return value


def _read_objects(
    path: Path, values: Iterable[tuple[int, JsonValue]], bounds: TableBounds
) -> Iterator[tuple[int, TableRow]]:
    for number, value in values:
        if not isinstance(value, dict):
            raise DataError(path.name, "is not a JSON object", row=number)
        yield number, {k: _bound(write_cell(v), path, number, bounds) for k, v in value.items()}


def write_cell(value: object) -> str:
    """Format a table value as text; None and NaN are empty.

    >>> write_cell(3.0), write_cell(None), write_cell(float("nan")), write_cell({"a": 1})
    ('3', '', '', '{"a":1}')
    """
    if value is None or value != value:  # noqa: PLR0124 - NaN, which pandas writes for nothing
        return ""
    if isinstance(value, str):
        return repair_surrogates(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return orjson.dumps(value).decode() if isinstance(value, list | dict | bool) else str(value)


def guard_cell(value: object) -> object:
    """Prefix text that looks like a formula with a quote, so that spreadsheets do not execute it.

    >>> guard_cell("=1+1"), guard_cell("1+1"), guard_cell(-1)
    ("'=1+1", '1+1', -1)
    """
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value


def dump_csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Format rows as CSV that spreadsheets do not execute."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(map(guard_cell, row) for row in rows)
    return out.getvalue()


def _bound(text: str, path: Path, row: int, bounds: TableBounds) -> str:
    if len(text) > bounds.cell:
        raise DataError(
            path.name, f"a cell has {len(text):,} characters", row=row, hint="shorten it"
        )
    return text


def _read_separated(path: Path, mark: str, bounds: TableBounds) -> Iterator[tuple[int, TableRow]]:
    with _long_cells(bounds.cell), path.open(encoding="utf-8-sig", newline="") as file:
        number = 0
        try:
            reader = csv.DictReader(file, delimiter=mark, strict=True)
            for number, row in enumerate(reader, 1):
                if None in row or None in row.values():
                    raise DataError(
                        path.name, "has more or fewer cells than the header", row=number
                    )
                yield number, row
        except (csv.Error, UnicodeDecodeError) as error:
            hint = (
                "save it as UTF-8" if isinstance(error, UnicodeDecodeError) else "repair that row"
            )
            raise DataError(path.name, str(error), row=number + 1, hint=hint) from error


@contextmanager
def _long_cells(longest: int) -> Iterator[None]:
    """Raise the cell size limit of the csv module, because model replies exceed its default."""
    before = csv.field_size_limit(longest)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_sheet(path: Path, bounds: TableBounds) -> Iterator[tuple[int, TableRow]]:
    """Yield the rows of the first sheet; formulas are read as text and never computed."""
    check_archive(path, bounds)
    try:
        import defusedxml.common
        import openpyxl
    except ModuleNotFoundError as error:
        raise MissingExtra("Excel tables", "tables") from error
    faults = (ValueError, KeyError, TypeError, OSError, EOFError, SyntaxError)
    try:
        # When openpyxl fails to read a file, it leaves the file open.
        with (
            path.open("rb") as file,
            closing(
                openpyxl.load_workbook(file, read_only=True, data_only=False, keep_links=False)
            ) as book,
        ):
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # The size that the sheet declares may be wrong.
            rows = sheet.iter_rows(max_col=_SHEET_COLUMNS, values_only=True)
            head = [write_cell(value) for value in next(rows, ())]
            last = 0
            for number, values in enumerate(rows, 1):
                cells = [_bound(write_cell(v), path, number, bounds) for v in values]
                if any(cells):
                    last = number
                    named = zip(head, cells, strict=False)
                    yield number, {name: cell for name, cell in named if name}
                elif number - last > _EMPTY_ROWS:
                    break
    except (zipfile.BadZipFile, defusedxml.common.DefusedXmlException, IndexError) as error:
        raise DataError(path.name, f"is not a valid Excel file: {error}") from error
    except DataError:
        raise
    except faults as error:
        raise DataError(path.name, f"is not a valid Excel file: {error!r}"[:200]) from error


def need_parquet() -> None:
    """Raise ``MissingExtra`` without the package that reads and writes Parquet."""
    need_packages("Parquet tables", "parquet", "pyarrow")


def make_schema(record: type, columns: Iterable[str]) -> pa.Schema:
    """Return a Parquet schema with the types of a record's fields.

    >>> make_schema(TableBounds, ("file",)).types
    [DataType(int64)]
    """
    import pyarrow as pa

    hints = get_type_hints(record)
    return pa.schema([(name, _choose_type(hints[name])) for name in columns])


def _choose_type(hint: Any) -> pa.DataType:
    """Return the Parquet type of a field: text, number, nested record or list."""
    import pyarrow as pa

    plain = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    if hint in plain:
        return plain[hint]
    if is_dataclass(hint):
        return pa.struct(
            [(name, _choose_type(each)) for name, each in get_type_hints(hint).items()]
        )
    inner = [part for part in get_args(hint) if part not in (NoneType, ...)]
    if get_origin(hint) is Literal:
        return _choose_type(type(inner[0]))
    return pa.list_(_choose_type(inner[0])) if get_origin(hint) is tuple else _choose_type(inner[0])
