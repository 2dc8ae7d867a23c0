"""Bring the bytes of a meme to the worker that looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memantics.core.data import inside
from memantics.core.errors import ImageError
from memantics.core.images import DEFAULT_BOUNDS, read_bytes
from memantics.scale.records import Ref

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 16  # of images in a table: a whole row group may take gigabytes


class Fetcher:
    """Reads references. A row group of a Parquet file is read on from the last row asked for."""

    def __init__(self) -> None:
        self._table = ("", "", "")
        self._cells: Iterator[tuple[int, Any]] = iter(())
        self._left = range(0)  # rows of the group that were not yet passed

    def fetch(self, ref: Ref) -> bytes | None:
        """The bytes of the image, or None for a text without one, also where its cell is empty."""
        if ref.kind == "text":
            return None
        if ref.kind == "file":
            return read_bytes(Path(ref.place))
        if ref.kind == "member":
            return _check(ref, _read_part(ref))
        data = self._read_cell(ref)
        if data is None and ref.text is None:
            raise ImageError(ref.id, "missing", "the table holds no bytes here", hint="fill it in")
        return None if data is None else _check(ref, data)

    def _read_cell(self, ref: Ref) -> bytes | None:
        table = (ref.place, ref.column, ref.stamp)
        if self._table != table or ref.index not in self._left:
            self._left, self._cells = _open_group(ref)
        self._table, self._left = table, range(ref.index + 1, self._left.stop)
        try:
            found = next((cell for place, cell in self._cells if place == ref.index), None)
            value = None if found is None else found.as_py()
        except Exception:
            self._left = range(0)  # what iterates has ended
            raise
        data = value.get("bytes") if isinstance(value, dict) else value
        if data is None and isinstance(value, dict) and value.get("path"):
            return read_bytes(inside(Path(ref.place).parent, value["path"]))
        return data if isinstance(data, bytes) and data else None


def _open_group(ref: Ref) -> tuple[range, Iterator[tuple[int, Any]]]:
    """The places of the row group that holds a reference, and its cells with their places."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(ref.place)
    start = 0
    for group in range(file.num_row_groups):
        rows = range(start, start + file.metadata.row_group(group).num_rows)
        if ref.index in rows:
            return rows, _read_cells(file, group, ref.column, start)
        start = rows.stop
    file.close()
    return range(0), iter(())


def _read_cells(
    file: pq.ParquetFile, group: int, column: str, start: int
) -> Iterator[tuple[int, Any]]:
    with file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=[column]):
            yield from enumerate(batch.column(0), start)
            start += batch.num_rows


def _check(ref: Ref, data: bytes) -> bytes:
    most = DEFAULT_BOUNDS.max_bytes
    if len(data) > most:
        raise ImageError(ref.id, "too many bytes", f"more than {most:,}", hint="save it smaller")
    return data


def _read_part(ref: Ref) -> bytes:
    """A member of an archive, of which no more than the limit is read."""
    with Path(ref.place).open("rb") as file:
        file.seek(ref.index)
        data = file.read(min(ref.size, DEFAULT_BOUNDS.max_bytes + 1))
    if len(data) < min(ref.size, DEFAULT_BOUNDS.max_bytes + 1):
        raise ImageError(ref.id, "truncated", "the archive ends before it", hint="copy it again")
    return data
