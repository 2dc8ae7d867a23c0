"""Split files: which meme is in which part, so that no group is in two, with a checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

from memantics.core.closed import Closed
from memantics.core.data import conform, dump_json, read_json
from memantics.core.errors import DataError, InputError, require_known
from memantics.core.journal import replace_file

GroupKind = Literal["template", "time", "source", "author", "text"]
GROUP_KINDS: tuple[GroupKind, ...] = get_args(GroupKind)
Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = get_args(Part)


class SplitRow(Closed):
    """One meme: its part, its fold for cross-validation, and the group that is never parted."""

    id: str
    part: Part
    fold: int
    group: str


class SplitFile(Closed):
    """A split of a data set. ``checksum`` pins ids and parts, ``data_checksum`` the data.

    ``data`` is NAME/LABEL, ``by`` what a group is.
    """

    kind: Literal["memantics split"] = "memantics split"
    version: Literal[1] = 1
    data: str
    data_checksum: str
    by: GroupKind
    checksum: str
    rows: list[SplitRow]

    def list_ids(self, part: str) -> list[str]:
        """The memes of a part, or of ``all``."""
        require_known("part of a split", part, (*PARTS, "all"))
        return [row.id for row in self.rows if part in (row.part, "all")]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many memes each part has."""
        return {part: len(self.list_ids(part)) for part in PARTS}

    def save(self, path: Path) -> Path:
        """Write it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        body = dump_json(self.model_dump(mode="json"))
        replace_file(path, body.encode(), "split")
        return path


def sum_split(parts: Iterable[tuple[str, str]]) -> str:
    """SHA-256 of ids and parts: lines ``ID<TAB>PART``, sorted, each with a line feed.

    >>> sum_split([("b", "test"), ("a", "train")]) == sum_split([("a", "train"), ("b", "test")])
    True
    """
    lines = sorted(f"{name}\t{part}\n" for name, part in parts)
    return hashlib.sha256("".join(lines).encode(errors="replace")).hexdigest()


def read_split(path: Path) -> SplitFile:
    """Read a split; one whose checksum does not fit its rows is refused."""
    if not path.is_file():
        raise InputError(f"no such file: {path}", hint="memantics audit NAME --resplit text")
    found = conform(SplitFile, read_json(path), path.name)
    if sum_split((row.id, row.part) for row in found.rows) != found.checksum:
        raise DataError(path, "its checksum does not fit its rows", hint="make the split again")
    return found


def cut_split(split: str) -> tuple[tuple[SplitFile, str] | None, str]:
    """A wish for a part: of a split file (``FILE.json:PART``, then all is read), else as it is.

    >>> cut_split("train")
    (None, 'train')
    """
    place, colon, part = split.rpartition(":")
    if not colon or not place.endswith(".json"):
        return None, split
    found = read_split(Path(place))
    found.list_ids(part)
    return (found, part), "all"
