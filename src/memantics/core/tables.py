"""Bounded readers for tables of other programs: CSV, JSON, JSON lines, Excel, Parquet and tar.

Nothing in a file is executed: formulas stay text, and pickles are rejected. Size limits apply
before anything is unpacked, so that a small file cannot fill the memory.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import orjson
from pydantic import JsonValue

from memantics.core.data import read_file, read_json, read_jsonl
from memantics.core.errors import DataError, InputError, MissingExtra, need_packages
from memantics.core.files import check_regular, open_regular
from memantics.core.members import BYTES, list_leaves, name_cell, open_parquet, read_samples
from memantics.core.separated import Separated, detect_form, read_separated, refuse_equal_names
from memantics.core.text import repair_surrogates

if TYPE_CHECKING:
    from _csv import Writer as CsvWriter

    import pyarrow as pa
    import pyarrow.parquet as pq
    from _typeshed import SupportsWrite

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
DATA_BOUNDS = TableBounds(file=1 << 40)  # files of data sets, which are read piece by piece
TABLE_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".xlsx")
DATA_ENDINGS = (*TABLE_ENDINGS, ".parquet", ".tar")


def read_rows(
    path: Path,
    bounds: TableBounds = BOUNDS,
    ending: str = "",
    *,
    detect: bool = False,
    encoding: str = "",
) -> Iterator[tuple[int, TableRow]]:
    """Yield the rows of a table as text by column, numbered from 1 without the header.

    JSON objects in a cell stay JSON. ``ending`` overrides the format of a misleading file name:
    some releases use ``.json`` for JSON lines and ``.csv`` for tab-separated files.

    With ``detect``, as for data sets, delimiter and encoding are detected, JSON may be a dictionary
    of records (its keys become the column ``key``), a tar archive is a table of samples, and
    ``NAME.bytes`` is the place of an embedded image (``core/members.py``).
    """
    check_size(path, bounds if not detect else DATA_BOUNDS)
    given = ending
    ending = ending or path.suffix.lower()
    if ending in (".csv", ".tsv"):
        mark = {".csv": ",", ".tsv": "\t"}[ending]
        form = detect_form(path, mark if given else "", encoding) if detect else Separated(mark)
        return read_separated(path, form, bounds.cell)
    if ending == ".xlsx":
        return _read_sheet(path, bounds)
    if ending == ".jsonl":
        return _read_objects(path, read_jsonl(path), bounds)
    if ending == ".json":
        values = _read_published(path) if detect else enumerate(_read_list(path), 1)
        return _read_objects(path, values, bounds)
    if ending == ".parquet":
        return _read_objects(path, enumerate(_read_parquet(path, detect), 1), bounds)
    if ending == ".tar" and detect:
        return _read_objects(path, read_samples(path), bounds)
    raise InputError(
        f"{path.name} is not a readable table",
        hint=f"use one of {', '.join(TABLE_ENDINGS)}; pickles are not supported",
    )


def check_size(path: Path, bounds: TableBounds = BOUNDS) -> None:
    """Raise a ``DataError`` if a file is missing or larger than the limit."""
    try:
        check_regular(path, bounds.file)
    except OSError as error:
        hint = (
            f"give a file of at most {bounds.file:,} bytes"
            if error.errno in (errno.EFBIG, errno.EISDIR, errno.EINVAL)
            else "check the path"
        )
        raise DataError(path, f"cannot be read: {error.strerror}", hint=hint) from error


def check_archive(path: Path, bounds: TableBounds = BOUNDS) -> None:
    """Raise a ``DataError`` if an archive's unpacked members would exceed the limits.

    The sizes come from the archive's directory; Python never unpacks more bytes than stated there.
    """
    check_size(path, bounds)
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
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


def _read_parquet(path: Path, detect: bool) -> Iterator[JsonValue]:
    """Yield the rows of a Parquet file; embedded images are reduced to their names and places."""
    import pyarrow as pa

    need_parquet()
    file = open_parquet(path)
    leaves = list_leaves(file)
    plain = _list_binary(file) if detect else []
    images = [leaf.removesuffix(BYTES) for leaf in leaves if leaf.endswith(BYTES)]
    kept = [leaf for leaf in leaves if not leaf.endswith(BYTES) and leaf not in plain]
    bare = [*plain, *(name for name in images if f"{name}.path" not in leaves)]
    absent = {name: _find_absent(file, name, leaves) for name in (*images, *plain) if detect}
    number = 0
    try:
        # Without other columns, batches of no columns still count the rows.
        for batch in file.iter_batches(1024, columns=kept, use_threads=False):
            for row in batch.to_pylist():
                made = {
                    k: v["path"] if isinstance(v, dict) and set(v) == {"path"} else v
                    for k, v in row.items()
                }
                for name in bare if detect else ():
                    made[name] = None
                for name, gaps in absent.items():
                    if not gaps[number]:
                        made[name + BYTES] = name_cell(number, name, made.get(name) or "")
                number += 1
                yield made
    except (pa.ArrowException, OSError) as error:
        raise DataError(path.name, f"is not a valid Parquet file: {error}"[:200]) from error


def _list_binary(file: pq.ParquetFile) -> list[str]:
    """Return the columns of a Parquet file that contain bytes, such as images without names."""
    import pyarrow as pa

    kinds = (pa.types.is_binary, pa.types.is_large_binary)
    return [each.name for each in file.schema_arrow if any(kind(each.type) for kind in kinds)]


class _NoGaps:
    """Stands for a column without empty rows."""

    def __getitem__(self, _: int) -> bool:
        return False


def _find_absent(file: pq.ParquetFile, name: str, leaves: list[str]) -> bytearray | _NoGaps:
    """Return for each row whether a column of images is empty, by the statistics if these say so.

    Without statistics the bytes are read once, a few rows at a time.
    """
    leaf = name + BYTES if name + BYTES in leaves else name
    place, meta = leaves.index(leaf), file.metadata
    chunks = [meta.row_group(group).column(place) for group in range(meta.num_row_groups)]
    if all(c.is_stats_set and c.statistics.has_null_count for c in chunks) and not any(
        c.statistics.null_count for c in chunks
    ):
        return _NoGaps()
    gaps = bytearray()
    for batch in file.iter_batches(16, columns=[leaf], use_threads=False):
        column = batch.column(0)
        cells = column.field(0) if leaf != name else column
        gaps.extend(not valid for valid in cells.is_valid().to_pylist())
    return gaps


def _holds_lines(data: bytes) -> bool:
    r"""Whether each of the first two lines is a JSON object.

    >>> _holds_lines(b'{"a": 1}\n{"a": 2}\n'), _holds_lines(b'{"a": 1}'), _holds_lines(b"[{}]")
    (True, False, False)
    """
    lines = data.lstrip().split(b"\n", 2)[:2]
    if len(lines) < 2 or not all(line.lstrip().startswith(b"{") for line in lines):
        return False
    try:
        return all(isinstance(orjson.loads(line), dict) for line in lines)
    except orjson.JSONDecodeError:
        return False


def _read_published(path: Path) -> Iterable[tuple[int, JsonValue]]:
    """Yield the records of a JSON list, of a dictionary of records, or of the only list in one.

    NaN, which pandas writes for nothing, is read as nothing. JSON lines are read, too: some
    releases name them ``.json``.
    """
    data = read_file(path)
    if _holds_lines(data):
        return read_jsonl(path)
    try:
        value: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError:
        if b"NaN" not in data:
            read_json(path)  # raises the error that names the line
        try:
            value = json.loads(data, parse_constant=lambda _: None)
        except (ValueError, RecursionError) as error:
            hint = "repair the file, or download it again"
            raise DataError(path.name, f"not valid JSON: {error}", hint=hint) from error
    if isinstance(value, list):
        return enumerate(value, 1)
    if isinstance(value, dict):
        records = list(value.values())
        if records and all(isinstance(record, dict) for record in records):
            keyed = ({"key": key} | record for key, record in value.items())  # type: ignore[operator]
            return enumerate(keyed, 1)
        lists = [v for v in records if isinstance(v, list) and v and isinstance(v[0], dict)]
        if len(lists) == 1:
            return enumerate(lists[0], 1)
    raise DataError(
        path.name,
        "contains neither a list nor a dictionary of records",
        hint="write a JSON list of objects",
    )


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


# Spreadsheets take a cell that begins with one of these characters for a formula; some of them
# also ignore the white space and the invisible characters before it, and read full-width signs.
_FORMULA = re.compile(r"[\s\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]|[\t\r\n]")


def guard_cell(value: object) -> object:
    """Prefix text that looks like a formula with a quote, so that spreadsheets do not execute it.

    >>> guard_cell("=1+1"), guard_cell("1+1"), guard_cell(-1), guard_cell("＝1+1")
    ("'=1+1", '1+1', -1, "'＝1+1")
    """
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


class _RowsWithLineFeeds:
    """A text file whose CSV rows end with a line feed, without a carriage return."""

    def __init__(self, out: SupportsWrite[str]) -> None:
        self._out = out

    def write(self, row: str) -> None:
        """Write one row of the csv module."""
        self._out.write(row.removesuffix("\r\n") + "\n")


def make_csv_writer(out: SupportsWrite[str], delimiter: str = ",") -> CsvWriter:
    """Return a writer whose rows end with a line feed, and which quotes a carriage return.

    Before Python 3.13, the csv module quotes a carriage return only if rows end with one. Without
    the quotes, the text after it would begin a row.
    """
    return csv.writer(_RowsWithLineFeeds(out), delimiter=delimiter, lineterminator="\r\n")


def dump_csv(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Format rows as CSV that spreadsheets do not execute; the header is guarded, too.

    >>> print(dump_csv(["id", "=x"], [["a,b", "@c"]]), end="")
    id,'=x
    "a,b",'@c
    """
    out = io.StringIO()
    writer = make_csv_writer(out)
    writer.writerow([guard_cell(cell) for cell in head])
    writer.writerows([guard_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def _bound(text: str, path: Path, row: int, bounds: TableBounds) -> str:
    if len(text) > bounds.cell:
        raise DataError(
            path.name, f"a cell has {len(text):,} characters", row=row, hint="shorten it"
        )
    return text


def _read_sheet(path: Path, bounds: TableBounds) -> Iterator[tuple[int, TableRow]]:
    """Yield the rows of the first sheet; formulas are read as text and never computed."""
    check_archive(path, bounds)
    try:
        import defusedxml  # noqa: F401 - without it, openpyxl expands XML entities
        import openpyxl
    except ModuleNotFoundError as error:
        raise MissingExtra("Excel tables", "tables") from error
    try:
        # When openpyxl fails to read a file, it leaves the file open.
        with (
            open_regular(path) as file,
            closing(
                openpyxl.load_workbook(file, read_only=True, data_only=False, keep_links=False)
            ) as book,
        ):
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # The size that the sheet declares may be wrong.
            rows = sheet.iter_rows(max_col=_SHEET_COLUMNS, values_only=True)
            head = [write_cell(value) for value in next(rows, ())]
            refuse_equal_names(path, head)
            last = 0
            for number, values in enumerate(rows, 1):
                cells = [_bound(write_cell(v), path, number, bounds) for v in values]
                if any(cells):
                    last = number
                    named = zip(head, cells, strict=False)
                    yield number, {name: cell for name, cell in named if name}
                elif number - last > _EMPTY_ROWS:
                    break
    except DataError:
        raise
    except Exception as error:  # zip, zlib, XML and openpyxl raise any error for damaged files
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
