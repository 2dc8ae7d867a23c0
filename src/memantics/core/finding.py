"""What an audit says about a benchmark: findings with figures, and what could not be measured.

A benchmark adds findings of its own through ``AuditHooks`` (:mod:`memantics.tasks.plugin`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from memantics.core.records import Score

FindingVerdict = Literal["broken", "worth knowing", "sound"]
VERDICTS: tuple[FindingVerdict, ...] = get_args(FindingVerdict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was measured.

    ``figure`` is what came out, with its interval and the number of items; ``expected`` what a
    benchmark without the flaw would give, and ``reference`` what that number is. ``meaning`` says
    in plain words what follows, ``advice`` what to do about it. ``rows`` break the figure down;
    ``details`` are sentences, such as the rows of a table that cannot be true. ``p`` is that of
    the test behind the verdict, corrected for all that were made (Holm); None where the verdict
    rests on the interval.
    """

    key: str
    title: str
    measured: str
    figure: Score
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
