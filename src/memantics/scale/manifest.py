"""Which shards are finished: an append-only file that survives a kill at any moment."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from memantics.core.errors import InputError, StoreError, first_fault
from memantics.core.journal import Journal, lock_folder, read_whole_lines
from memantics.scale.records import Shard, ShardPart, part_path

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
    """What an earlier call left: nothing to do, all to do, or only the rows that failed."""

    part: ShardPart | None

    @property
    def failed(self) -> int:
        """Rows that failed."""
        return self.part.statuses.get("failed", 0) if self.part else 0


def find_shard_size(folder: Path) -> int:
    """The size of the shards that a folder was begun with; 0 where it was not begun."""
    head, _ = _read(folder)
    size = None if head is None else head.settings.get("shard_size")
    return size if isinstance(size, int) else 0


class ShardManifest:
    """The finished parts of a folder. One process writes at a time.

    A folder that was begun with other settings, or of other ``sources``, is refused.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, JsonValue], sources: Sequence[str] = ()
    ) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be made: {error.strerror}", hint="choose another --out"
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
                    f"{folder} was begun with other settings: {', '.join(changed)}",
                    hint="choose another --out, or give the same settings to go on",
                )
            gone = sorted({*head.sources} - {*sources}) if head and sources else []
            if gone and self._parts:
                raise InputError(
                    f"{folder} holds what was made of {gone[0]}, which would be lost",
                    hint="choose another --out, or name that source, too, to go on",
                )
            self._sweep()
            self._journal = Journal(folder / MANIFEST, folder / MANIFEST)
            if head is None:
                first = _Head(format=FORMAT, settings=dict(settings), sources=list(sources))
                self._begin(first)
        except BaseException:
            self._lock.close()
            raise

    def _begin(self, head: _Head) -> None:
        try:
            self._journal.append(_line(head.model_dump()))
        except StoreError:
            self._journal.close()
            raise

    def find(self, shard: Shard) -> ShardStanding:
        """The finished part of a shard, if its file is there and whole."""
        part = self._parts.get(shard.number)
        if part is None or part.key != shard.key or not check_part(self.folder, shard, part):
            return ShardStanding(None)
        return ShardStanding(part)

    def add(self, part: ShardPart) -> None:
        """Write a finished part down."""
        self._journal.append(_line(_PART.dump_python(part)))
        self._parts[part.shard] = part

    @property
    def parts(self) -> list[ShardPart]:
        """All finished parts, in the order of their shards."""
        return [self._parts[number] for number in sorted(self._parts)]

    def forget_beyond(self, count: int) -> None:
        """Remove parts of shards that the source no longer has."""
        for number in [number for number in self._parts if number >= count]:
            (self.folder / "parts" / self._parts.pop(number).file).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what workers left that were killed while writing."""
        for left in (self.folder / "parts").glob(".part-*.partial"):
            left.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the folder, in which no worker writes any more."""
        self._sweep()
        self._journal.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_part(folder: Path, shard: Shard, part: ShardPart) -> bool:
    """Whether the file of a part is the one that was written down."""
    path = part_path(folder, shard)
    try:
        body = path.read_bytes()
    except OSError:
        return False
    return len(body) == part.size and hashlib.sha256(body).hexdigest() == part.sha256


def read_manifest(folder: Path) -> tuple[dict[str, JsonValue] | None, dict[int, ShardPart]]:
    """Settings and parts of a folder; a later line of a shard takes the place of an earlier one."""
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
