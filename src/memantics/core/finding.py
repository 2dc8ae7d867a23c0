"""Audit findings about a benchmark, each with a score and a verdict, and checks that were not run.

A benchmark adds its own findings through ``AuditHooks`` (:mod:`memantics.benchmarks.plugin`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypedDict, Unpack, get_args

from memantics.core.data import toml_beside
from memantics.core.records import Score
from memantics.core.translatable import Translatable

FindingVerdict = Literal["broken", "worth knowing", "sound"]
VERDICTS: tuple[FindingVerdict, ...] = get_args(FindingVerdict)
_NO_ACTION = Translatable("No action needed.", "无需处理。")
_NONE: Mapping[str, object] = MappingProxyType({})


def rank(worth: bool, broken: bool = False) -> FindingVerdict:
    """Return the verdict on a benchmark's flaw: broken, worth knowing, or sound.

    >>> rank(True), rank(False), rank(False, broken=True)
    ('worth knowing', 'sound', 'broken')
    """
    return "broken" if broken else "worth knowing" if worth else "sound"


@dataclass(frozen=True, slots=True)
class Finding:
    """One audit finding.

    ``score`` is the measured value, with its interval and the number of items. ``expected`` is the
    value for a benchmark without the flaw, and ``reference`` describes that value. ``meaning``
    explains the finding in plain words; ``advice`` is the recommended action. ``rows`` break the
    score down. ``details`` are sentences, such as the inconsistent rows of a table. ``p`` is the
    p-value of the test behind the verdict, Holm-corrected for all tests; None if the verdict rests
    on the interval.
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
    """Optional fields of an audit finding; they override the sentences of ``findings.toml``."""

    key: str
    expected: float | None
    reference: str
    task: str
    model: str
    rows: tuple[Score, ...]
    details: tuple[str, ...]


class FindingWords:
    """The sentences of audit findings, by key, from the file ``findings.toml`` beside a module.

    A sentence is one text, or one text per verdict (``found`` is the default). The advice of a
    sound finding is "No action needed.", unless the file gives one per verdict. A table ``zh``
    in an entry has the Chinese sentences, with the same placeholders.
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
        """Build a finding from its entry in ``findings.toml``; ``values`` fill the placeholders."""
        entry = {"reference": "", **self._entries[name]}
        expected, chinese = entry.pop("expected", None), entry.pop("zh", {})
        filled: dict[str, Any] = {
            part: Translatable(
                _choose(told, verdict), _choose(chinese.get(part, ""), verdict), **values
            )
            for part, told in entry.items()
        }
        if verdict == "sound" and isinstance(entry["advice"], str):
            filled["advice"] = _NO_ACTION
        told = {"key": name, "expected": expected, **filled, **fields}
        return Finding(score=score, verdict=verdict, **told)


def _choose(told: str | Mapping[str, str], verdict: FindingVerdict) -> str:
    """Return the text for a verdict; ``found`` is the default."""
    return told if isinstance(told, str) else told.get(verdict, told.get("found", ""))


@dataclass(frozen=True, slots=True)
class Gap:
    """A check that was not run, the reason, and how to make it possible."""

    task: str
    check: str
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Maker:
    """A language model that wrote a part of the data: its name, affected tasks and the source."""

    what: str
    model: str
    tasks: tuple[str, ...]
    source: str
