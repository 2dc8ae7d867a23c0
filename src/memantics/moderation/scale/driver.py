"""The driver of sharded work: split a source into shards, skip finished ones, record results.

Finished shards are recorded in an append-only manifest that survives a kill at any moment.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from memantics.core.errors import InputError, StoreError, first_fault
from memantics.core.files import AppendOnlyFile, lock_folder, read_whole_lines
from memantics.moderation.scale.engines import ShardEngine, ShardOrder
from memantics.moderation.scale.records import (
    Ref,
    Shard,
    ShardPart,
    Work,
    cut_shards,
    part_path,
    write_refs,
)

MANIFEST = "manifest.jsonl"
FORMAT = 1
_PART = TypeAdapter(ShardPart)


class _Head(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: int
    settings: dict[str, JsonValue]
    sources: list[str] = []


@dataclass(frozen=True, slots=True)
class ShardStanding:
    """The state of a shard after an earlier call: finished, not finished, or with failed rows."""

    part: ShardPart | None

    @property
    def failed(self) -> int:
        """Number of failed rows."""
        return self.part.statuses.get("failed", 0) if self.part else 0


def find_shard_size(folder: Path) -> int:
    """Return the shard size of an existing output folder; 0 if it is new."""
    head, _ = _read(folder)
    size = None if head is None else head.settings.get("shard_size")
    return size if isinstance(size, int) else 0


class ShardManifest:
    """The manifest of finished parts in an output folder; one process writes at a time.

    Raises InputError if the folder was started with other settings or other ``sources``.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, JsonValue], sources: Sequence[str] = ()
    ) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be created: {error.strerror}", hint="choose another --out"
            ) from error
        self.folder = folder
        self._lock = lock_folder(folder)
        try:
            head, self._parts = _read(folder)
            known = None if head is None else head.settings
            if known is not None and known != settings:
                changed = sorted(
                    key for key in {*known, *settings} if known.get(key) != settings.get(key)
                )
                raise InputError(
                    f"{folder} was started with other settings: {', '.join(changed)}",
                    hint="choose another --out, or use the same settings to resume",
                )
            gone = sorted({*head.sources} - {*sources}) if head and sources else []
            if gone and self._parts:
                raise InputError(
                    f"{folder} has results of the source {gone[0]}, which would be lost",
                    hint="choose another --out, or also give that source to resume",
                )
            self._sweep()
            self._call_log = AppendOnlyFile(folder / MANIFEST, folder / MANIFEST)
            if head is None:
                first = _Head(format=FORMAT, settings=dict(settings), sources=list(sources))
                self._begin(first)
        except BaseException:
            self._lock.close()
            raise

    def _begin(self, head: _Head) -> None:
        try:
            self._call_log.append(_line(head.model_dump()))
        except StoreError:
            self._call_log.close()
            raise

    def find(self, shard: Shard) -> ShardStanding:
        """Find the finished part of a shard, if its file exists and is complete."""
        part = self._parts.get(shard.number)
        if part is None or part.key != shard.key or not check_part(self.folder, shard, part):
            return ShardStanding(None)
        return ShardStanding(part)

    def add(self, part: ShardPart) -> None:
        """Record a finished part."""
        self._call_log.append(_line(_PART.dump_python(part)))
        self._parts[part.shard] = part

    @property
    def parts(self) -> list[ShardPart]:
        """List all finished parts, in the order of their shards."""
        return [self._parts[number] for number in sorted(self._parts)]

    def forget_beyond(self, count: int) -> None:
        """Remove parts of shards that the source no longer has."""
        for number in [number for number in self._parts if number >= count]:
            (self.folder / "parts" / self._parts.pop(number).file).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove temporary files of workers that were killed while writing."""
        for left in (self.folder / "parts").glob(".part-*.partial"):
            left.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock on the folder."""
        self._sweep()
        self._call_log.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_part(folder: Path, shard: Shard, part: ShardPart) -> bool:
    """Check whether the file of a part matches its record in the manifest."""
    path = part_path(folder, shard)
    try:
        body = path.read_bytes()
    except OSError:
        return False
    return len(body) == part.size and hashlib.sha256(body).hexdigest() == part.sha256


def read_manifest(folder: Path) -> tuple[dict[str, JsonValue] | None, dict[int, ShardPart]]:
    """Read the settings and finished parts of a folder; of several lines on a shard, the last."""
    head, parts = _read(folder)
    return None if head is None else head.settings, parts


def _read(folder: Path) -> tuple[_Head | None, dict[int, ShardPart]]:
    head: _Head | None = None
    parts: dict[int, ShardPart] = {}
    for number, line in read_whole_lines(folder / MANIFEST):
        try:
            if head is None:
                head = _Head.model_validate_json(line)
                if head.format != FORMAT:
                    raise StoreError(
                        f"{folder / MANIFEST} has format {head.format}, not {FORMAT}",
                        hint="use the version of Memantics that wrote it, or another --out",
                    )
            else:
                part = _PART.validate_json(line)
                parts[part.shard] = part
        except ValidationError as error:
            raise StoreError(
                f"{folder / MANIFEST}, line {number}: {first_fault(error)}",
                hint="choose another --out; the parts themselves can still be read",
            ) from error
    return head, parts


def _line(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS)


@dataclass(frozen=True, slots=True)
class ScaleProgress:
    """Progress of sharded work. ``rows`` includes earlier calls; ``rate`` is of this call.

    ``total`` is None until the source is counted, and always for standard input.
    """

    rows: int
    statuses: Mapping[str, int]
    shards: int
    seconds: float
    rate: float
    cpu: float = 0.0
    total: int | None = None

    @property
    def left(self) -> float | None:
        """Estimated seconds left at the current rate."""
        if self.total is None or not self.rate:
            return None
        return max(0, self.total - self.rows) / self.rate


@dataclass(frozen=True, slots=True)
class ScaleSettings:
    """Settings of sharded work.

    ``identity`` are the settings that determine the rows; a folder with another identity is not
    resumed. Sources can be added to a folder but not removed from it.
    """

    out: Path
    identity: Mapping[str, JsonValue]
    shard_size: int = 1000
    retry_failed: bool = False
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """Row counts of the output folder and of this call; ``repeated`` counts skipped duplicates."""

    rows: int
    statuses: Mapping[str, int]
    parts: tuple[ShardPart, ...]
    done_now: int
    repeated: int
    seconds: float
    cpu: float


def run_shards(
    refs: Iterable[Ref],
    work: Work,
    settings: ScaleSettings,
    engine: ShardEngine,
    watch: Callable[[ScaleProgress], None] = lambda _: None,
    count: Callable[[], int | None] = lambda: None,
) -> ScaleResult:
    """Process every meme once; a second call processes only unfinished shards.

    ``count`` returns the total number of memes, or None while it is unknown.
    """
    started = time.monotonic()
    identity = {**settings.identity, "shard_size": settings.shard_size}
    with (
        ShardManifest(settings.out, identity, settings.sources) as manifest,
        _Once(settings.out) as once,
    ):
        shards = 0

        def expect() -> int | None:
            known = count()
            return None if known is None else known - once.repeated

        tally = _ShardTally(started, watch, expect)

        def list_orders() -> Iterator[ShardOrder]:
            nonlocal shards
            for shard in cut_shards(once.filter(refs), settings.shard_size):
                shards = shard.number + 1
                standing = manifest.find(shard)
                retry = settings.retry_failed and standing.failed > 0
                if standing.part is None or retry:
                    yield ShardOrder(shard, only_failed=retry)
                else:
                    tally.add(standing.part, now=False)

        for part in engine.run(list_orders(), work, settings.out):
            manifest.add(part)
            tally.add(part, now=True)
        manifest.forget_beyond(shards)
        parts = tuple(manifest.parts)
        seconds = time.monotonic() - started
        statuses = dict(tally.statuses)
        return ScaleResult(
            tally.rows, statuses, parts, tally.now, once.repeated, seconds, tally.cpu
        )


class _ShardTally:
    def __init__(
        self,
        started: float,
        watch: Callable[[ScaleProgress], None],
        expect: Callable[[], int | None],
    ) -> None:
        self._started, self._watch, self._expect = started, watch, expect
        self.rows = self.now = self.shards = 0
        self.cpu = 0.0
        self.statuses: Counter[str] = Counter()

    def add(self, part: ShardPart, *, now: bool) -> None:
        self.rows += part.rows
        self.shards += 1
        self.statuses.update(part.statuses)
        if now:
            self.now += part.rows
            self.cpu += part.cpu
        seconds = time.monotonic() - self._started
        rate = self.now / seconds if seconds else 0.0
        so_far = (self.rows, dict(self.statuses), self.shards)
        self._watch(ScaleProgress(*so_far, seconds, rate, self.cpu, self._expect()))


class _Once:
    """Filters duplicate ids with an on-disk table, to save memory."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".ids.sqlite"
        self._path.unlink(missing_ok=True)
        self._base = sqlite3.connect(self._path, isolation_level=None)
        table = "CREATE TABLE seen (id BLOB PRIMARY KEY, what BLOB) WITHOUT ROWID"
        try:
            with self._explain():
                for sql in (
                    "PRAGMA journal_mode = OFF",
                    "PRAGMA synchronous = OFF",
                    table,
                    "BEGIN",
                ):
                    self._base.execute(sql)
        except StoreError:
            self.close()
            raise
        self.repeated = 0

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self._path} cannot be written: {error}",
                hint="free disk space, then run the command again",
            ) from error

    def filter(self, refs: Iterable[Ref]) -> Iterator[Ref]:
        """Yield new memes; count duplicates, and mark a different meme with a used id as faulty."""
        for ref in refs:
            what = _digest(write_refs((replace(ref, id="", apart=""),)))
            known = self._add(ref.id, what)
            if known not in (None, what) and ref.apart:
                ref = replace(ref, id=ref.apart)  # noqa: PLW2901 - the same meme by another name
                known = self._add(ref.id, what)
            if known is None:
                yield ref
            elif known == what:
                self.repeated += 1
            else:
                yield replace(ref, fault=f"the id {ref.id!r} is already used by another meme")

    def _add(self, key_text: str, what: bytes) -> bytes | None:
        """Store the content of a meme id; return the stored content if the id is already known."""
        key = _digest(key_text.encode("utf-8", "surrogateescape"))
        sql = "INSERT OR IGNORE INTO seen VALUES (?, ?)"
        with self._explain():
            added = self._base.execute(sql, (key, what)).rowcount
        if added:
            return None
        ((known,),) = self._base.execute("SELECT what FROM seen WHERE id = ?", (key,))
        return bytes(known)

    def __enter__(self) -> _Once:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the on-disk table of ids."""
        with closing(self._base):
            self._path.unlink(missing_ok=True)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
