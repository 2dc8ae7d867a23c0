"""Records between the driver and its workers: references to memes, shards and finished parts.

Workers fetch the bytes of a meme themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import orjson

from memantics.core.data import inside
from memantics.core.errors import ImageError
from memantics.core.images import DEFAULT_BOUNDS, read_bytes
from memantics.core.text import escape_surrogates

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ShardRow = dict[str, Any]
Process = Callable[[Sequence["Ref"]], list[ShardRow]]


@dataclass(frozen=True, slots=True)
class Ref:
    """Where one meme is. Workers fetch its bytes, so that the driver never holds an image.

    ``place`` is an image file (``file``), a Parquet table (``table``: row ``index``, column
    ``column``) or a tar archive (``member``: ``size`` bytes from ``index``); a ``text`` has none.
    ``stamp`` is the size and time of that file: one that changed is another meme. ``apart`` is a
    longer id where ``id`` was made from a name that another meme may have, too. ``fault`` says why
    a row of the source cannot be used; it still becomes a row of the result.
    """

    id: str
    kind: Literal["file", "table", "member", "text"] = "text"
    place: str = ""
    index: int = 0
    size: int = 0
    column: str = ""
    text: str | None = None
    language: str = ""
    fault: str = ""
    stamp: str = ""
    apart: str = ""


def write_refs(refs: Sequence[Ref]) -> bytes:
    """As JSON, also where ids and places are names of files that are not UTF-8."""
    try:
        return orjson.dumps(refs)
    except TypeError:
        return orjson.dumps([escape_all(asdict(ref)) for ref in refs])


def escape_all(row: ShardRow) -> ShardRow:
    """The same row, whose texts all can be written as UTF-8."""
    return {name: _escape(value) for name, value in row.items()}


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, list):
        return [_escape(each) for each in value]
    return escape_all(value) if isinstance(value, dict) else value


@dataclass(frozen=True)
class Shard:
    """Some consecutive memes of a source: the unit of work, of retries and of resuming."""

    number: int
    refs: tuple[Ref, ...]

    @cached_property
    def key(self) -> str:
        """Digest of the references: a part belongs to a shard only while these are the same."""
        return hashlib.sha256(write_refs(self.refs)).hexdigest()

    @property
    def name(self) -> str:
        """The file of its part."""
        return f"part-{self.number:06d}.parquet"


@dataclass(frozen=True, slots=True)
class ShardPart:
    """A finished shard: a Parquet file, and how its rows ended."""

    shard: int
    key: str
    file: str
    rows: int
    size: int
    sha256: str
    statuses: dict[str, int]
    cpu: float = 0.0


class Work(Protocol):
    """What is done to each meme. Picklable; ``open`` loads models once per worker."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result; ``id``, ``status`` and ``reason`` are among them."""
        ...

    def open(self) -> Process:
        """Load what is needed and return the function from references to rows."""
        ...

    def fail(self, ref: Ref, reason: str) -> ShardRow:
        """The row of a meme that could not be processed."""
        ...


def cut_shards(refs: Iterable[Ref], size: int) -> Iterator[Shard]:
    """Consecutive shards of ``size`` references; the last may be smaller.

    >>> [len(shard.refs) for shard in cut_shards([Ref(str(n)) for n in range(5)], 2)]
    [2, 2, 1]
    """
    stream = iter(refs)
    number = 0
    while block := tuple(islice(stream, size)):
        yield Shard(number, block)
        number += 1


def part_path(folder: Path, shard: Shard) -> Path:
    """Where the part of a shard lies."""
    return folder / "parts" / shard.name


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
