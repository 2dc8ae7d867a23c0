"""What repeating a run says: spread between repeats, and what several tries together can do.

Every function takes a table: a row for each item, a mark for each repeat (1 right, 0 wrong).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean, stdev, variance

Marks = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """Variance of a single mark: what items share, and what differs when one is asked again.

    ``items`` is the variance of the items' own means in the long run, ``repeats`` the mean
    variance within an item. ``share`` is the part that repeating explains.
    """

    items: float
    repeats: float

    @property
    def share(self) -> float | None:
        """The part of the variance that is between repeats; None where nothing varies."""
        total = self.items + self.repeats
        return self.repeats / total if total else None


def split_variance(marks: Marks) -> VarianceSplit | None:
    """One-way random-effects analysis of variance; None for fewer than two items or repeats.

    >>> split_variance([[1, 1], [0, 0]])
    VarianceSplit(items=0.5, repeats=0.0)
    >>> split_variance([[1, 0], [0, 1]]).items
    0.0
    """
    if len(marks) < 2 or len(marks[0]) < 2:
        return None
    within = fmean(variance(row) for row in marks)
    between = variance([fmean(row) for row in marks])
    # The mean of k marks still holds a k-th of the variance within.
    return VarianceSplit(max(0.0, between - within / len(marks[0])), within)


def repeat_deviation(marks: Marks) -> float | None:
    """The standard deviation of the mean over items between repeats; None for one repeat.

    >>> repeat_deviation([[1, 0], [1, 1]])
    0.3535533905932738
    """
    if not marks or len(marks[0]) < 2:
        return None
    return stdev([fmean(column) for column in zip(*marks, strict=True)])


def pass_at_k(marks: Marks, k: int) -> float | None:
    """The chance that one of ``k`` tries is right, without bias from ``n`` tries of each item.

    >>> pass_at_k([[1, 0], [0, 0]], 2)
    0.5
    """
    if not marks or not 1 <= k <= len(marks[0]):
        return None
    return fmean(_pass(len(row), sum(mark >= 1 for mark in row), k) for row in marks)


def _pass(n: int, right: int, k: int) -> float:
    return 1.0 - comb(n - right, k) / comb(n, k)


def majority(answers: Sequence[Hashable | None]) -> Hashable | None:
    """The commonest answer; the earliest of those that are equally common. None does not vote.

    >>> majority(["A", "B", "B"]), majority(["A", "B"]), majority([None, None])
    ('B', 'A', None)
    """
    votes = Counter(answer for answer in answers if answer is not None)
    return votes.most_common(1)[0][0] if votes else None
