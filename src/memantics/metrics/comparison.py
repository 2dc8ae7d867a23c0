"""Significance tests, intervals of differences, effect sizes, corrections and power.

A difference is always the value of the second system minus that of the first. Items of one meme are
not independent, so they are summed or averaged per meme before resampling or testing. Samples of
categories are compared by Pearson's chi-square test and the total variation distance.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import fsum
from statistics import NormalDist
from typing import Literal

import numpy as np

from memantics.metrics.interval import sum_by_cluster

Correction = Literal["holm", "bh"]
REST = "other categories, each too rare to test"
_FEWEST = 5.0  # Minimum expected count of a category in either sample.


@dataclass(frozen=True, slots=True)
class Significance:
    """The result of a two-sided test: its statistic (None for an exact test) and its p-value."""

    statistic: float | None
    p: float


def correct_known(
    values: Sequence[float | None], correction: Correction = "holm"
) -> list[float | None]:
    """Apply a correction to the p-values that are not None.

    >>> correct_known([0.01, None, 0.04]), correct_known([0.01, None, 0.01], "bh")
    ([0.02, None, 0.04], [0.01, None, 0.01])
    """
    known = [value for value in values if value is not None]
    corrected = iter(holm(known) if correction == "holm" else benjamini_hochberg(known))
    return [None if value is None else next(corrected) for value in values]


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> Significance | None:
    """Student's two-sided test of paired values; None if undefined.

    >>> found = paired_t_test([1.0, 2.0, 3.0], [2.0, 4.0, 3.0])
    >>> round(found.statistic, 4), round(found.p, 4)
    (1.7321, 0.2254)
    """
    differences = np.asarray(second, float) - np.asarray(first, float)
    n = len(differences)
    if n < 2:
        return None
    deviation = float(differences.std(ddof=1))
    # If all differences are equal, rounding gives a tiny variance instead of zero.
    if deviation <= 1e-12 * max(1.0, float(np.abs(differences).max())):
        return None
    statistic = float(differences.mean()) / (deviation / math.sqrt(n))
    return Significance(statistic, student_tails(statistic, n - 1))


def welch_t_test(first: Sequence[float], second: Sequence[float]) -> Significance | None:
    """Welch's two-sided test of unpaired values; None if undefined.

    >>> found = welch_t_test([1.0, 2.0, 3.0], [2.0, 4.0, 6.0, 8.0])
    >>> round(found.statistic, 4), round(found.p, 4)
    (2.1213, 0.0999)
    """
    if min(len(first), len(second)) < 2:
        return None
    ours, theirs = np.asarray(first, float), np.asarray(second, float)
    shares = [float(sample.var(ddof=1)) / len(sample) for sample in (ours, theirs)]
    spread = math.sqrt(sum(shares))
    if spread <= 1e-12 * max(1.0, float(np.abs(ours).max()), float(np.abs(theirs).max())):
        return None
    statistic = float(theirs.mean() - ours.mean()) / spread
    below = shares[0] ** 2 / (len(ours) - 1) + shares[1] ** 2 / (len(theirs) - 1)
    return Significance(statistic, student_tails(statistic, sum(shares) ** 2 / below))


def student_tails(statistic: float, freedom: float) -> float:
    """Probability of both tails of Student's t distribution.

    >>> round(student_tails(2.228138852, 10), 6)
    0.05
    """
    square = statistic * statistic
    # The tails are at most outside ** (n / 2), which is here below the smallest float.
    if freedom / 2 * math.log1p(square / freedom) > 746:
        return 0.0
    if not square:
        return 1.0
    # Each part is computed from its own quotient, because 1 - x loses the digits of a small value.
    outside, inside = freedom / (freedom + square), square / (freedom + square)
    half = freedom / 2
    scale = math.exp(-half * math.log1p(square / freedom)) * math.sqrt(inside)
    scale *= _half_step(half) / math.sqrt(math.pi)
    # The continued fraction converges fast only on this side of the distribution's mean.
    if outside < (half + 1) / (half + 2.5):
        return scale / (half * _beta_fraction(half, 0.5, outside))
    return 1 - scale / (0.5 * _beta_fraction(0.5, half, inside))


def _half_step(value: float) -> float:
    """Ratio Gamma(value + 1/2) / Gamma(value).

    >>> round(_half_step(0.5) * math.sqrt(math.pi), 12), round(_half_step(1e6), 6)
    (1.0, 999.999875)
    """
    if value < 100:
        return math.gamma(value + 0.5) / math.gamma(value)
    # The gamma function overflows from 171 on; from 100 on, six terms of the series are exact.
    small = 1 / (8 * value)
    terms = (1, -1, 1 / 2, 5 / 2, -21 / 8, -399 / 8, 869 / 16)
    return math.sqrt(value) * fsum(term * small**power for power, term in enumerate(terms))


def _beta_fraction(first: float, second: float, share: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    above, below, value = 1.0, 0.0, 1.0
    for step in range(1, 100_000):
        place, end = step // 2, first + step
        odd, even = -(first + place) * (first + second + place), place * (second - place)
        term = (odd if step % 2 else even) * share / (end * (end - 1))
        above, below = 1 + term / above, 1 / (1 + term * below)
        value *= above * below
        if abs(above * below - 1) < 1e-16:
            break
    return value


@cache
def student_bound(freedom: int, level: float = 0.95) -> float:
    """Symmetric bound that contains the given proportion of Student's t distribution.

    >>> round(student_bound(10), 4)
    2.2281
    """
    scale = math.sqrt(freedom * math.pi) / _half_step(freedom / 2)
    bound = NormalDist().inv_cdf((1 + level) / 2)
    # Newton's method: the tails are convex and the start value is below the bound, so the iteration
    # only increases.
    for _ in range(50):
        slope = 2 * (1 + bound**2 / freedom) ** (-(freedom + 1) / 2) / scale
        step = (student_tails(bound, freedom) - (1 - level)) / slope
        bound += step
        if abs(step) <= 1e-14 * bound:
            break
    return bound


def mean_by_cluster(values: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """One mean per cluster, in the order in which clusters first appear.

    >>> mean_by_cluster([1.0, 3.0, 5.0], ["a", "a", "b"])
    [2.0, 5.0]
    """
    if not values:
        return []
    sums = sum_by_cluster(np.column_stack([values, np.ones(len(values))]), clusters)
    means: list[float] = (sums[:, 0] / sums[:, 1]).tolist()
    return means


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Upper tail probability of the chi-square distribution.

    >>> round(chi_square_tail(3.841459, 1), 6)
    0.05
    """
    half = statistic / 2
    if not half:
        return 1.0
    # The tail is a sum of positive terms: of Poisson's series for even degrees of freedom, of a
    # half-integer series for odd ones.
    start = 0.0 if freedom % 2 == 0 else 0.5
    powers = [start + step for step in range(freedom // 2)]
    terms = (math.exp(p * math.log(half) - half - math.lgamma(p + 1)) for p in powers)
    return min(1.0, fsum(terms) + (math.erfc(math.sqrt(half)) if freedom % 2 else 0.0))


def cohen_d_z(differences: Sequence[float]) -> float | None:
    """Cohen's d_z: mean difference divided by the SD of the differences; None if they do not vary.

    >>> cohen_d_z([1.0, 2.0, 0.0])
    1.0
    """
    if len(differences) < 2:
        return None
    values = np.asarray(differences, float)
    deviation = float(values.std(ddof=1))
    if deviation <= 1e-12 * max(1.0, float(np.abs(values).max())):
        return None
    return float(values.mean()) / deviation


def odds_ratio(only_first: int, only_second: int) -> float | None:
    """Ratio of items that only the second system solves to those that only the first does.

    >>> odds_ratio(2, 8)
    4.0
    """
    return only_second / only_first if only_first else None


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for multiple tests (Holm's step-down method).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """P-values corrected to bound the false discovery rate (Benjamini and Hochberg).

    >>> [round(p, 3) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    count = len(p_values)
    corrected, lowest = [0.0] * count, 1.0
    order = sorted(range(count), key=lambda place: p_values[place])
    for rank in range(count, 0, -1):
        place = order[rank - 1]
        lowest = min(lowest, p_values[place] * count / rank)
        corrected[place] = lowest
    return corrected


def clusters_needed(
    error: float, clusters: int, effect: float, *, power: float = 0.8, level: float = 0.95
) -> int:
    """Number of clusters that detect ``effect`` with this power (normal approximation).

    ``error`` is the standard error of a paired difference that was measured on ``clusters``
    clusters.

    >>> clusters_needed(0.02, 100, 0.03), clusters_needed(0.02, 100, 0.06)
    (349, 88)
    """
    return max(2, math.ceil(clusters * (_reach(power, level) * error / effect) ** 2))


def effect_seen(
    error: float, clusters: int, wanted: int, *, power: float = 0.8, level: float = 0.95
) -> float:
    """Smallest difference between two systems that ``wanted`` clusters detect with this power.

    ``error`` is the standard error that a pilot with ``clusters`` clusters had.

    >>> round(effect_seen(0.02, 100, 349), 3)
    0.03
    """
    return _reach(power, level) * error * math.sqrt(clusters / wanted)


def _reach(power: float, level: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)


@dataclass(frozen=True, slots=True)
class Shift:
    """Difference between two distributions; ``distance`` is the total variation distance (0 to 1).

    ``p`` is None if there is nothing to test: an empty sample, or a single category.
    """

    p: float | None
    distance: float
    categories: int


def pool_rare(now: Mapping[str, int], then: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """Counts of both samples by category; categories too rare for the test are pooled.

    >>> pool_rare({"en": 90, "zh": 8, "fr": 1}, {"en": 80, "zh": 20, "de": 2})
    [('en', 90, 80), ('zh', 8, 20), ('other categories, each too rare to test', 1, 2)]
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
