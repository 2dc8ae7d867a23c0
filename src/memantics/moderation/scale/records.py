"""Records that driver and workers exchange: references to memes, shards and finished parts.

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
from memantics.core.files import check_regular, open_regular
from memantics.core.images import DEFAULT_BOUNDS, read_bytes
from memantics.core.text import escape_surrogates

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ShardRow = dict[str, Any]
Process = Callable[[Sequence["Ref"]], list[ShardRow]]


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to one meme; workers read its bytes.

    ``place`` is an image file (``file``), a Parquet table (``table``: row ``index``, column
    ``column``) or a tar archive (``member``: ``size`` bytes from ``index``); empty for a text.
    ``stamp`` is size and time of that file; a changed file is another meme. ``apart`` is a longer
    id, used if another meme has the same ``id``. ``fault`` is the reason why a source row is
    invalid; it still becomes a row of the result. ``image_fault`` is the reason why the image of a
    row with a text cannot be used.
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
    image_fault: str = ""


# An absent image fault is not written, so that references of earlier versions have the same digest.
_NO_IMAGE_FAULT = b',"image_fault":""'


def write_refs(refs: Sequence[Ref]) -> bytes:
    """Serialize references as JSON; file names that are not UTF-8 are escaped."""
    try:
        written = orjson.dumps(refs)
    except TypeError:
        written = orjson.dumps([escape_all(asdict(ref)) for ref in refs])
    return written.replace(_NO_IMAGE_FAULT, b"")  # quotes inside of texts are escaped


def escape_all(row: ShardRow) -> ShardRow:
    """Escape texts of a row that are not valid UTF-8."""
    return {name: _escape(value) for name, value in row.items()}


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, list):
        return [_escape(each) for each in value]
    return escape_all(value) if isinstance(value, dict) else value


@dataclass(frozen=True)
class Shard:
    """Consecutive memes of a source: the unit of work, retries and resuming."""

    number: int
    refs: tuple[Ref, ...]

    @cached_property
    def key(self) -> str:
        """Digest of the shard's references; a finished part is valid only for equal references."""
        return hashlib.sha256(write_refs(self.refs)).hexdigest()

    @property
    def name(self) -> str:
        """File name of the shard's Parquet part."""
        return f"part-{self.number:06d}.parquet"


@dataclass(frozen=True, slots=True)
class ShardPart:
    """A finished shard: its Parquet file, and row counts by status."""

    shard: int
    key: str
    file: str
    rows: int
    size: int
    sha256: str
    statuses: dict[str, int]
    cpu: float = 0.0


class Work(Protocol):
    """The processing of memes; picklable. ``open`` loads models once per worker."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result, including ``id``, ``status`` and ``reason``."""
        ...

    def open(self) -> Process:
        """Load models, and return the function from references to rows."""
        ...

    def fail(self, ref: Ref, reason: str) -> ShardRow:
        """Make the row of a meme that cannot be processed."""
        ...


def cut_shards(refs: Iterable[Ref], size: int) -> Iterator[Shard]:
    """Cut references into consecutive shards of ``size``; the last may be smaller.

    >>> [len(shard.refs) for shard in cut_shards([Ref(str(n)) for n in range(5)], 2)]
    [2, 2, 1]
    """
    stream = iter(refs)
    number = 0
    while block := tuple(islice(stream, size)):
        yield Shard(number, block)
        number += 1


def part_path(folder: Path, shard: Shard) -> Path:
    """Return the path of a shard's Parquet file (part)."""
    return folder / "parts" / shard.name


# number of images read at once from a table, since a row group may have gigabytes
_ROWS_AT_ONCE = 16


class Fetcher:
    """Reads the images that references name; Parquet row groups are read sequentially."""

    def __init__(self) -> None:
        self._table = ("", "", "")
        self._cells: Iterator[tuple[int, Any]] = iter(())
        self._left = range(0)  # rows of the group that are not yet read

    def fetch(self, ref: Ref) -> bytes | None:
        """Read the bytes of an image; None for a text or an empty cell."""
        if ref.kind == "text":
            return None
        if ref.kind == "file":
            return read_bytes(Path(ref.place))
        if ref.kind == "member":
            return _check(ref, _read_part(ref))
        data = self._read_cell(ref)
        if data is None and ref.text is None:
            raise ImageError(ref.id, "missing", "the table cell is empty", hint="add the image")
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
            self._left = range(0)  # the iterator is exhausted
            raise
        data = value.get("bytes") if isinstance(value, dict) else value
        if data is None and isinstance(value, dict) and value.get("path"):
            return read_bytes(inside(Path(ref.place).parent, value["path"]))
        return data if isinstance(data, bytes) and data else None


def _open_group(ref: Ref) -> tuple[range, Iterator[tuple[int, Any]]]:
    """Open the row group of a reference: its row range, and an iterator over its cells."""
    import pyarrow.parquet as pq

    check_regular(ref.place)
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
    """Read a member of an archive, up to the size limit."""
    with open_regular(ref.place) as file:
        file.seek(ref.index)
        data = file.read(min(ref.size, DEFAULT_BOUNDS.max_bytes + 1))
    if len(data) < min(ref.size, DEFAULT_BOUNDS.max_bytes + 1):
        raise ImageError(ref.id, "truncated", "the archive ends before it", hint="copy it again")
    return data
