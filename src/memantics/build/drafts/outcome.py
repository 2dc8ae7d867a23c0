"""How the steps of a build ended, counted: an answer that did not come is said, not hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from memantics.core.records import STATUSES, Status
from memantics.core.step import Taken


@dataclass(frozen=True, slots=True)
class Miss:
    """A step without a value: which, how it ended, and why."""

    step: str
    status: Status
    reason: str


@dataclass(slots=True)
class Tally:
    """The steps of one command: their four counts, and every miss."""

    statuses: Counter[Status] = field(default_factory=Counter)
    misses: list[Miss] = field(default_factory=list)
    repaired: int = 0

    def add(self, taken: Taken[Any]) -> None:
        """Count one step."""
        self.statuses[taken.status] += 1
        if taken.status == "answered":
            self.repaired += taken.attempts > 1
        else:
            self.misses.append(Miss(taken.id, taken.status, taken.reason))


def count_statuses(tallies: Iterable[Tally]) -> dict[Status, int]:
    """The four counts of several tallies together."""
    total: Counter[Status] = Counter()
    for tally in tallies:
        total.update(tally.statuses)
    return {status: total[status] for status in STATUSES}
