"""Whether two samples of categories differ: a chi-square test, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum

from memantics.metrics.comparison import chi_square_tail

REST = "others, each too few to compare"
_FEWEST = 5.0  # memes that a category must lead one to expect in either sample


@dataclass(frozen=True, slots=True)
class Shift:
    """How one distribution moved. ``distance`` is the share that lies elsewhere (0 to 1).

    ``p`` is None where there is nothing to compare: an empty sample, or one category alone.
    """

    p: float | None
    distance: float
    categories: int


def pool_rare(now: Mapping[str, int], then: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """The counts of both samples by category; those too rare for the test are put together.

    >>> pool_rare({"en": 90, "zh": 8, "fr": 1}, {"en": 80, "zh": 20, "de": 2})
    [('en', 90, 80), ('zh', 8, 20), ('others, each too few to compare', 1, 2)]
    """
    totals = sum(now.values()), sum(then.values())
    share = min(totals) / sum(totals) if sum(totals) else 0.0
    rows: list[tuple[str, int, int]] = []
    rare = [0, 0]
    for name in dict.fromkeys((*now, *then)):
        pair = now.get(name, 0), then.get(name, 0)
        if sum(pair) * share >= _FEWEST:
            rows.append((name, *pair))
        else:
            rare = [rare[0] + pair[0], rare[1] + pair[1]]
    return [*rows, (REST, rare[0], rare[1])] if any(rare) else rows


def compare_counts(now: Mapping[str, int], then: Mapping[str, int]) -> Shift:
    """Pearson's chi-square test of homogeneity, and the total variation distance.

    >>> compare_counts({"a": 50, "b": 50}, {"a": 50, "b": 50})
    Shift(p=1.0, distance=0.0, categories=2)
    >>> round(compare_counts({"a": 30, "b": 70}, {"a": 50, "b": 50}).p, 4)
    0.0039
    """
    rows = pool_rare(now, then)
    first, second = sum(now.values()), sum(then.values())
    if not first or not second or len(rows) < 2:
        return Shift(None, 0.0, len(rows))
    terms = []
    for _, new, old in rows:
        for seen, size in ((new, first), (old, second)):
            expected = (new + old) * size / (first + second)
            terms.append((seen - expected) ** 2 / expected)
    distance = fsum(abs(new / first - old / second) for _, new, old in rows) / 2
    return Shift(chi_square_tail(fsum(terms), len(rows) - 1), distance, len(rows))
