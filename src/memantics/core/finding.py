"""What an audit says about a benchmark: findings with figures, and what could not be measured.

A benchmark adds findings of its own through ``AuditHooks`` (:mod:`memantics.benchmarks.plugin`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypedDict, Unpack, get_args

from memantics.core.data import toml_beside
from memantics.core.records import Score

FindingVerdict = Literal["broken", "worth knowing", "sound"]
VERDICTS: tuple[FindingVerdict, ...] = get_args(FindingVerdict)
_NONE: Mapping[str, object] = MappingProxyType({})


def rank(worth: bool, broken: bool = False) -> FindingVerdict:
    """The verdict on a flaw that breaks a score, or is worth knowing, or is none.

    >>> rank(True), rank(False), rank(False, broken=True)
    ('worth knowing', 'sound', 'broken')
    """
    return "broken" if broken else "worth knowing" if worth else "sound"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was measured.

    ``score`` is the result, with its interval and the number of items; ``expected`` what a
    benchmark without the flaw would give, and ``reference`` what that number is. ``meaning`` says
    in plain words what follows, ``advice`` what to do about it. ``rows`` break the figure down;
    ``details`` are sentences, such as the rows of a table that cannot be true. ``p`` is that of
    the test behind the verdict, corrected for all that were made (Holm); None where the verdict
    rests on the interval.
    """

    key: str
    title: str
    measured: str
    score: Score
    verdict: FindingVerdict
    meaning: str
    advice: str
    expected: float | None = None
    reference: str = ""
    task: str = ""
    model: str = ""
    rows: tuple[Score, ...] = ()
    details: tuple[str, ...] = ()
    p: float | None = None


class FindingFields(TypedDict, total=False):
    """What a finding says beside its sentences; in their place where it names one of them."""

    key: str
    expected: float | None
    reference: str
    task: str
    model: str
    rows: tuple[Score, ...]
    details: tuple[str, ...]


class FindingWords:
    """The sentences of findings, by key, in ``findings.toml`` beside a module.

    A sentence is one text, or one for each verdict (``found`` for all that have none). The advice
    of a sound finding is to do nothing, unless the file gives one for each verdict.
    """

    def __init__(self, file: str) -> None:
        self._file = file

    @cached_property
    def _entries(self) -> dict[str, dict[str, Any]]:
        return toml_beside(self._file, "findings.toml")

    def find(
        self,
        name: str,
        score: Score,
        verdict: FindingVerdict,
        values: Mapping[str, object] = _NONE,
        **fields: Unpack[FindingFields],
    ) -> Finding:
        """A finding in the words of its entry, with values in their placeholders."""
        entry = {"reference": "", **self._entries[name]}
        if verdict == "sound" and isinstance(entry["advice"], str):
            entry["advice"] = "Nothing."
        said = {
            part: (told if isinstance(told, str) else told.get(verdict, told.get("found")))
            for part, told in entry.items()
            if part != "expected"
        }
        filled: dict[str, Any] = {part: text.format_map(values) for part, text in said.items()}
        told = {"key": name, "expected": entry.get("expected"), **filled, **fields}
        return Finding(score=score, verdict=verdict, **told)


@dataclass(frozen=True, slots=True)
class Gap:
    """A check that was not made: why, and what would make it possible."""

    task: str
    check: str
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Maker:
    """A model that wrote a part of the data: which, of which tasks, and where that is said."""

    what: str
    model: str
    tasks: tuple[str, ...]
    source: str
