"""Read memes from tables (JSON Lines, CSV, TSV, Parquet) with image paths, bytes or texts."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from memantics.core.data import inside
from memantics.core.errors import DataError, InputError, MemanticsError
from memantics.core.files import check_regular, open_regular
from memantics.core.ids import find_id_fault, normalise_id
from memantics.core.separated import SAMPLE, detect_delimiter, long_cells
from memantics.core.text import escape_surrogates
from memantics.moderation.columns import TableColumns
from memantics.moderation.scale.records import Ref

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

LINES, SEPARATORS, PARQUET = ".jsonl", {".csv": ",", ".tsv": "\t"}, ".parquet"
TABLES = (LINES, *SEPARATORS, PARQUET)
_UNPACK: Mapping[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# errors that pyarrow raises for invalid values
_UNREADABLE = (ValueError, OverflowError, LookupError)
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
LONGEST_LINE = 16 * 1024 * 1024
LONGEST_ID = 1_000  # characters; annotation queues shorten longer ids than 300
# Limits against files that declare billions of rows or gigabytes of text.
_MOST_ROWS_A_BYTE, _ROWS_AT_ONCE = 100, 64
_BOM = b"\xef\xbb\xbf"


def find_format(path: Path) -> str:
    """Return the table extension of a file name, ignoring compression; empty if it has none.

    >>> find_format(Path("a.jsonl.gz")), find_format(Path("b.CSV")), find_format(Path("c.tar.gz"))
    ('.jsonl', '.csv', '')
    """
    packed = path.suffix.lower() in _UNPACK
    ending = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    return ending if ending in TABLES and not (packed and ending == PARQUET) else ""


def show_name(path: Path | str) -> str:
    r"""Convert a path to text for ids; bytes that are not UTF-8 are escaped.

    >>> show_name("a\udcff.png")
    'a\\udcff.png'
    """
    return escape_surrogates(path if isinstance(path, str) else path.as_posix())


def stamp_file(path: Path | str) -> str:
    """Return size and modification time of a file; empty if it does not exist."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - called for every image; faster than Path.stat
    except (OSError, ValueError):
        return ""
    return f"{facts.st_size:x}-{facts.st_mtime_ns:x}"


def read_table(path: Path, columns: TableColumns) -> Iterator[Ref]:
    """Yield references to the memes of a table; an invalid row has a ``fault``."""
    ending = find_format(path)
    if ending == PARQUET:
        yield from _read_parquet(path, columns)
        return
    mark = _find_delimiter(path)
    with _unpack(path) as file:
        try:
            if ending == LINES:
                yield from read_lines(file, path, columns)
            else:
                text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
                yield from _read_separated(text, path, columns, mark)
        except _DAMAGED as error:
            fault = f"{path.name} is damaged: the rest is skipped; copy it again ({error})"
            yield Ref(show_name(path), fault=fault)


@contextmanager
def _unpack(path: Path) -> Iterator[IO[bytes]]:
    """Open a table, and decompress it if its name says so."""
    try:
        given = open_regular(path)
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}", hint="check the path") from error
    unpack = _UNPACK.get(path.suffix.lower())
    with given, unpack(given, "rb") if unpack else given as file:
        yield file


def _find_delimiter(path: Path) -> str:
    """Return the delimiter of a table of separated values, found in its first rows."""
    usual = SEPARATORS.get(find_format(path), "")
    if not usual:
        return ""
    try:
        with _unpack(path) as file:
            lines = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
            text = lines.read(SAMPLE)
    except (*_DAMAGED, OSError):
        return usual
    return detect_delimiter(text, usual, whole=len(text) < SAMPLE)


def read_header(path: Path) -> list[str]:
    """Return the columns of a table, or the fields of its first line; empty if it is damaged."""
    if find_format(path) == PARQUET:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            check_regular(path)
            return [str(name) for name in pq.read_schema(path).names]
        except (pa.ArrowException, ValueError, OSError):
            return []
    try:
        with _unpack(path) as file:
            first = file.readline(LONGEST_LINE).removeprefix(_BOM)
    except (DataError, *_DAMAGED, OSError):
        return []
    try:
        if find_format(path) == LINES:
            row = orjson.loads(first)
            return [*row] if isinstance(row, dict) else []
        mark = _find_delimiter(path)
        return next(csv.reader([first.decode("utf-8", "replace")], delimiter=mark), [])
    except (ValueError, csv.Error):
        return []


def read_lines(lines: IO[bytes], path: Path, columns: TableColumns) -> Iterator[Ref]:
    """Read JSON Lines; an invalid line becomes a row with a ``fault``."""
    number = 0
    while line := lines.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := lines.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield _fault(path, number, f"line {number} is longer than {LONGEST_LINE:,} bytes")
            continue
        line = line.removeprefix(_BOM) if number == 1 else line
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            yield _fault(path, number, f"line {number} is not valid JSON: {error}")
            continue
        if not isinstance(row, dict):
            yield _fault(path, number, f"line {number} is not a JSON object")
        elif row.get("kept") is not False:  # rejected by ``collect``
            names = find_columns(row, columns, path, strict=False)
            yield _make_ref(row, names, path, number)


def _read_separated(lines: IO[str], path: Path, columns: TableColumns, mark: str) -> Iterator[Ref]:
    taken = _TakenLines(lines)
    rows = csv.DictReader(taken, delimiter=mark, strict=True)
    try:
        with long_cells(LONGEST_LINE):
            header = rows.fieldnames or ()
        names = find_columns(header, columns, path)
    except csv.Error as error:
        raise DataError(
            path, f"its first row is not valid CSV: {error}", hint="repair its quotes"
        ) from error
    number = 1
    while True:
        number += 1
        taken.size = 0
        try:
            # Only while a row is read: the limit is one of the whole process.
            with long_cells(LONGEST_LINE):
                row = next(rows)
            "".join(map(str, row.values())).encode()
        except StopIteration:
            return
        except csv.Error as error:
            yield _fault(path, number, f"row {number} is not valid CSV: {error}; repair its quotes")
        except UnicodeEncodeError:
            yield _fault(path, number, f"row {number} is not UTF-8; save the table as UTF-8")
        else:
            yield _make_ref(row, names, path, number)


class _TakenLines(Iterator[str]):
    """Lines of a CSV table with a bounded row length, in case a quote is not closed."""

    def __init__(self, lines: IO[str]) -> None:
        self._lines, self.size = lines, 0

    def __next__(self) -> str:
        line = self._lines.readline(LONGEST_LINE)
        self.size += len(line)
        if self.size >= LONGEST_LINE:
            while line and not line.endswith(("\n", "\r")):
                line = self._lines.readline(LONGEST_LINE)
            raise csv.Error(f"it is longer than {LONGEST_LINE:,} characters")
        if not line:
            raise StopIteration
        return line


def _fault(path: Path, number: int, fault: str) -> Ref:
    return _number(Ref("", fault=fault), path, number)


def _number(ref: Ref, path: Path, number: int) -> Ref:
    """Give a row without an id its number as id."""
    apart = f"{show_name(path)}:{number}"
    return replace(ref, id=f"{show_name(path.name)}:{number}", apart=apart)


def find_columns(
    known: Iterable[str], columns: TableColumns, path: Path, *, strict: bool = True
) -> TableColumns:
    """Find the columns by the given names, else by those remembered, else by the usual names."""
    names = list(known)
    if strict and (missing := columns.find_missing(names)):
        raise InputError(
            f"{path} has no column {missing!r}", hint=f"it has {', '.join(names)[:300]}"
        )
    found = columns.find(names)
    if strict and not found.keys() & {"image", "text"}:
        raise InputError(
            f"{path} has neither an image nor a text column",
            hint=f"use --image-column or --text-column; columns: {', '.join(names)[:300]}",
        )
    return TableColumns(found.get("id", ""), found.get("image", ""), found.get("text", ""))


def _make_ref(row: Mapping[str, object], names: TableColumns, path: Path, number: int) -> Ref:
    given = row.get(names.id) if names.id else None
    text = row.get(names.text) if names.text else None
    image = row.get(names.image) if names.image else None
    if isinstance(image, dict):  # the column layout that Hugging Face ``datasets`` writes
        image = image.get("path") or image
    language = row.get("language")
    ref = Ref(
        normalise_id(str(given)),
        text=text if isinstance(text, str) else None,
        language=language if isinstance(language, str) else "",
    )
    if given in (None, ""):
        ref = _number(ref, path, number)
        if isinstance(image, str) and image:
            ref = replace(ref, id=show_name(image))
    elif fault := find_id_fault(ref.id, LONGEST_ID):
        return replace(ref, fault=f"the id of row {number} {fault}; change the id")
    if not isinstance(text, str | None):
        return replace(ref, fault=f"the text of row {number} is not a text: {str(text)[:40]!r}")
    if isinstance(image, str) and image:
        return _find_image(ref, image, path)
    if image and not isinstance(image, str):
        return _doubt_image(ref, f"the image of row {number} is neither a path nor bytes")
    if ref.text is None:
        known = ", ".join(map(str, row))[:200]
        return replace(ref, fault=f"row {number} has neither an image nor a text; it has: {known}")
    return ref


def _doubt_image(ref: Ref, fault: str) -> Ref:
    """Record why an image cannot be used; a row with a text is still a meme."""
    has_text = bool((ref.text or "").strip())
    return replace(ref, image_fault=fault) if has_text else replace(ref, fault=fault)


def _find_image(ref: Ref, image: str, path: Path) -> Ref:
    """Resolve an image path relative to the folder of its table."""
    if "://" in image[:20] or image.startswith("data:"):
        return _doubt_image(ref, "the image is a URL, which is not supported; give a file")
    try:
        place = inside(path.parent, image)
    except MemanticsError as error:
        return _doubt_image(ref, str(error))
    return replace(ref, kind="file", place=str(place), stamp=stamp_file(place))


def _read_parquet(path: Path, columns: TableColumns) -> Iterator[Ref]:
    """Yield references to the rows of a Parquet file; workers read embedded images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        check_regular(path)
        file = pq.ParquetFile(path)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise DataError(
            path, f"is not a valid Parquet file: {error}", hint="export it again"
        ) from error
    with file:
        count_rows(file, path)
        names = find_columns(file.schema_arrow.names, columns, path)
        inner = bool(names.image) and _holds_bytes(file.schema_arrow.field(names.image), path)
        plain = [names.id, names.text, "language", "" if inner else names.image]
        wanted = [name for name in plain if name and name in file.schema_arrow.names]
        stamp = stamp_file(path)
        for number, row in enumerate(_list_rows(file, wanted, path)):
            if isinstance(row, str):
                yield _fault(path, number, row)
            elif inner:
                text, given_id = row.get(names.text), row.get(names.id)
                ref = Ref(
                    normalise_id(str(given_id)),
                    "table",
                    str(path),
                    number,
                    column=names.image,
                    text=text if isinstance(text, str) else None,
                    language=str(row.get("language") or ""),
                    stamp=stamp,
                )
                if given_id in (None, ""):
                    ref = _number(ref, path, number)
                elif fault := find_id_fault(ref.id, LONGEST_ID):
                    ref = replace(ref, fault=f"the id of row {number} {fault}; change the id")
                yield ref
            else:
                yield _make_ref(row, names, path, number)


def count_rows(file: pq.ParquetFile, path: Path) -> int:
    """Return the row count of a Parquet file; raise DataError if it is implausible."""
    count, size = int(file.metadata.num_rows), path.stat().st_size
    if not 0 <= count <= max(100_000, _MOST_ROWS_A_BYTE * size):
        raise DataError(path, f"declares {count:,} rows in {size:,} bytes", hint="export it again")
    return count


def _list_rows(
    file: pq.ParquetFile, wanted: list[str], path: Path
) -> Iterator[dict[str, object] | str]:
    """Yield selected columns row by row, or the error of an unreadable row."""
    import pyarrow as pa

    batches = file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, ValueError, OSError) as error:
            yield f"{path.name} is damaged: the rest is skipped; copy it again ({error})"
            return
        if batch is None:
            return
        try:
            rows = batch.to_pylist() if wanted else [{}] * batch.num_rows
        except _UNREADABLE:
            rows = [_read_row(batch, place) for place in range(batch.num_rows)]
        yield from rows


def _read_row(batch: pa.RecordBatch, place: int) -> dict[str, object] | str:
    """Read one row of a batch with invalid values; return an error text if it fails."""
    row: dict[str, object] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            row[name] = column[place].as_py()
        except _UNREADABLE as error:
            return f"its {name} cannot be read: {error}"
    return row


def _holds_bytes(field: pa.Field, path: Path) -> bool:
    """Check whether a column has image bytes; False if it has paths or is empty."""
    import pyarrow as pa

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    is_kind = pa.types
    if is_kind.is_struct(kind) or is_kind.is_binary(kind) or is_kind.is_large_binary(kind):
        return True
    if is_kind.is_binary_view(kind) or is_kind.is_fixed_size_binary(kind):
        return True
    texts = (is_kind.is_string, is_kind.is_large_string, is_kind.is_string_view, is_kind.is_null)
    if any(of_kind(kind) for of_kind in texts):
        return False
    raise InputError(
        f"{path}: the column {field.name!r} has the type {kind}, not paths or bytes",
        hint="choose the image column with --image-column",
    )
