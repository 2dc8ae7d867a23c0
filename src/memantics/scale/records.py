"""What travels between the driver and its workers: references to memes, shards, finished parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import orjson

from memantics.core.text import escape_surrogates

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
Process = Callable[[Sequence["Ref"]], list[Row]]


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


def escape_all(row: Row) -> Row:
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

    def fail(self, ref: Ref, reason: str) -> Row:
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
