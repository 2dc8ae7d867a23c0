"""Bring the bytes of a meme to the worker that looks at it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from memantics.core.data import inside
from memantics.core.errors import ImageError
from memantics.core.images import DEFAULT_BOUNDS, read_bytes
from memantics.scale.records import Ref

if TYPE_CHECKING:
    import pyarrow as pa


class Fetcher:
    """Reads references. A Parquet file stays open, its last row group in memory."""

    def __init__(self) -> None:
        self._open: tuple[str, object] | None = None
        self._group: tuple[str, str, int, pa.ChunkedArray] | None = None
        self._starts: list[int] = []

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
        import pyarrow.parquet as pq

        if self._open is None or self._open[0] != ref.place:
            file = pq.ParquetFile(ref.place)
            counts = [
                file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)
            ]
            self._starts = [0, *accumulate(counts[:-1])]
            self._open = (ref.place, file)
        group = bisect_right(self._starts, ref.index) - 1
        if self._group is None or self._group[:3] != (ref.place, ref.column, group):
            opened: pq.ParquetFile = self._open[1]
            cells = opened.read_row_group(group, columns=[ref.column]).column(0)
            self._group = (ref.place, ref.column, group, cells)
        value = self._group[3][ref.index - self._starts[group]].as_py()
        data = value.get("bytes") if isinstance(value, dict) else value
        if data is None and isinstance(value, dict) and value.get("path"):
            return read_bytes(inside(Path(ref.place).parent, value["path"]))
        return data if isinstance(data, bytes) and data else None


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
