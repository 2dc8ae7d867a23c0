"""Which of several versions of a meme people chose, one JSON line for each choice.

Nobody's name is in it. A line that repeats the ``id`` of an earlier one takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import orjson
from pydantic import Field

from memantics.core.closed import Closed
from memantics.core.data import read_records
from memantics.core.errors import DataError
from memantics.core.journal import Journal, refuse_unwritable

PREFERENCES = "preferences.jsonl"
_TEXT = 4000


class OfferedVersion(Closed):
    """A version that somebody could choose: its captions, who wrote them, and what checks said.

    ``score`` is that of our ranking, ``kindness`` the classifier's, where they are known.
    """

    captions: list[str] = Field(max_length=40)
    by: str = Field(max_length=200)
    status: Literal["done", "flawed"]
    score: float | None = None
    kindness: float | None = None


class Preference(Closed):
    """A choice: ``chosen`` is a number from 1 (None: taken back), ``undone`` what was before it.

    ``meme`` is the name of the meme, or the beginning of its picture's hash; ``words`` are a
    person's captions, which are the last candidate.
    """

    id: str = Field(min_length=1, max_length=64)
    meme: str = Field(min_length=1, max_length=500)
    candidates: list[OfferedVersion] = Field(min_length=1, max_length=40)
    chosen: int | None = Field(default=None, ge=1)
    undone: list[int] = Field(default=[], max_length=200)
    words: str = Field(default="", max_length=_TEXT)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """The number of the chosen version with that of each other one."""
        for other in range(1, len(self.candidates) + 1 if self.chosen else 1):
            if self.chosen is not None and other != self.chosen:
                yield self.chosen, other


def append_preference(path: Path, preference: Preference) -> None:
    """Add one line to a file of preferences, which may be new."""
    with refuse_unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        journal = Journal(path, path)
    try:
        said = preference.model_dump(mode="json")
        journal.append(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
    finally:
        journal.close()


def read_choices(path: Path) -> dict[str, Preference]:
    """The last word of each choice by its id, those taken back included."""
    found: dict[str, Preference] = {}
    for number, preference in read_records(Preference, path):
        if (preference.chosen or 0) > len(preference.candidates):
            raise DataError(path, f"version {preference.chosen} was not offered", row=number)
        found[preference.id] = preference
    return found
