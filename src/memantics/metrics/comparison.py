"""Two systems on the same items: tests, intervals of the difference, effect sizes, corrections.

Differences are always second minus first. Items of one meme hang together, so they are added up
or averaged by meme before anything is resampled or tested.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memantics.metrics.interval import Floats, sum_by_cluster


@dataclass(frozen=True, slots=True)
class Significance:
    """A two-sided test: its statistic (None for an exact test) and its p-value."""

    statistic: float | None
    p: float


@dataclass(frozen=True, slots=True)
class Resampled:
    """A mean difference with its 95 % interval and two-sided p-value from resampling memes."""

    mean: float
    low: float
    high: float
    p: float


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> Significance | None:
    """Student's two-sided test of paired values; None where it is undefined.

    >>> found = paired_t_test([1.0, 2.0, 3.0], [2.0, 4.0, 3.0])
    >>> round(found.statistic, 4), round(found.p, 4)
    (1.7321, 0.2254)
    """
    differences = np.asarray(second, float) - np.asarray(first, float)
    n = len(differences)
    if n < 2:
        return None
    deviation = float(differences.std(ddof=1))
    # Differences that are all alike leave rounding dust instead of zero.
    if deviation <= 1e-12 * max(1.0, float(np.abs(differences).max())):
        return None
    statistic = float(differences.mean()) / (deviation / math.sqrt(n))
    return Significance(statistic, student_tails(statistic, n - 1))


def student_tails(statistic: float, freedom: int) -> float:
    """Both tails of Student's distribution.

    >>> round(student_tails(2.228138852, 10), 6)
    0.05
    """
    whole = freedom + statistic**2
    return _beta_share(freedom / 2, 0.5, freedom / whole, statistic**2 / whole)


def student_bound(freedom: int, level: float = 0.95) -> float:
    """The bound between which that share of Student's distribution lies.

    >>> round(student_bound(10), 4)
    2.2281
    """
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tails(middle, freedom) > 1 - level else (low, middle)
    return (low + high) / 2


def _beta_share(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function; ``rest`` is 1 - x, given for its precision."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(b, a, rest, x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    scale = math.exp(front + a * math.log(x) + b * math.log(rest)) / a
    return scale * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction by Lentz's method; converges fast below the mean."""
    tiny = 1e-300
    numerator, denominator = 1.0, 1 - (a + b) * x / (a + 1)
    denominator = 1 / (denominator if abs(denominator) > tiny else tiny)
    value = denominator
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            denominator = 1 + step * denominator
            denominator = 1 / (denominator if abs(denominator) > tiny else tiny)
            numerator = 1 + step / numerator
            numerator = numerator if abs(numerator) > tiny else tiny
            factor = numerator * denominator
            value *= factor
        if abs(factor - 1) < 1e-15:
            break
    return value


def mean_by_cluster(values: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """One mean per cluster, in order of first appearance.

    >>> mean_by_cluster([1.0, 3.0, 5.0], ["a", "a", "b"])
    [2.0, 5.0]
    """
    if not values:
        return []
    sums = sum_by_cluster(np.column_stack([values, np.ones(len(values))]), clusters)
    means: list[float] = (sums[:, 0] / sums[:, 1]).tolist()
    return means


def paired_bootstrap(
    differences: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> Resampled | None:
    """Resample memes with their paired differences; None with fewer than two memes.

    The interval is the percentile one. The p-value is the share of draws, from differences
    shifted to mean zero, at least as far from zero as the mean that was seen.

    >>> found = paired_bootstrap([0.1, 0.2, 0.3, 0.2] * 10, list(range(40)))
    >>> round(found.mean, 3), found.low > 0.15, found.p < 0.001
    (0.2, True, True)
    """
    if len(set(clusters)) < 2:
        return None
    rows = np.column_stack([np.asarray(differences, float), np.ones(len(differences))])
    sums = sum_by_cluster(rows, clusters)
    mean = float(sums[:, 0].sum() / sums[:, 1].sum())
    means = _draw_means(sums, draws, seed)
    low, high = np.percentile(means, [2.5, 97.5])
    # Shifting every difference by the mean shifts every drawn mean by it.
    extreme = int((np.abs(means - mean) >= abs(mean) - 1e-12).sum())
    return Resampled(mean, float(low), float(high), (extreme + 1) / (draws + 1))


def _draw_means(sums: Floats, draws: int, seed: int) -> Floats:
    clusters = len(sums)
    chunk = max(1, 4_000_000 // clusters)
    sizes = [min(chunk, draws - start) for start in range(0, draws, chunk)]
    drawn = [_draw_weights(clusters, size, seed, place) @ sums for place, size in enumerate(sizes)]
    total = np.concatenate(drawn)
    means: Floats = total[:, 0] / total[:, 1]
    return means


@lru_cache(maxsize=4)
def _draw_weights(clusters: int, size: int, seed: int, place: int) -> NDArray[np.int64]:
    """How often each cluster is drawn; remembered, since many pairs of runs share their memes."""
    rng = np.random.default_rng([seed, place])
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=size)


def mcnemar(only_first: int, only_second: int) -> Significance:
    """McNemar's exact test from the two counts of items that only one system got right.

    >>> mcnemar(2, 8)
    Significance(statistic=None, p=0.109375)
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    if not n:
        return Significance(None, 1.0)
    # In logarithms: 2 ** n passes every float beyond a thousand items.
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        for k in range(fewer + 1)
    ]
    return Significance(None, min(1.0, 2 * math.fsum(map(math.exp, logs))))


def clustered_mcnemar(
    first: Sequence[bool], second: Sequence[bool], clusters: Sequence[Hashable]
) -> Significance:
    """McNemar's test for memes with several items: gains and losses are added up by meme.

    The squared sum of net gains over the sum of squared net gains, against chi-square with one
    degree of freedom; with one item a meme it is McNemar's own without continuity correction.

    >>> first, second = [True] * 2 + [False] * 8, [False] * 2 + [True] * 8
    >>> found = clustered_mcnemar(first, second, list(range(10)))
    >>> found.statistic, round(found.p, 4)
    (3.6, 0.0578)
    """
    net: dict[Hashable, int] = {}
    for before, after, cluster in zip(first, second, clusters, strict=True):
        net[cluster] = net.get(cluster, 0) + bool(after) - bool(before)
    spread = sum(gain**2 for gain in net.values())
    if not spread:
        return Significance(0.0, 1.0)
    statistic = sum(net.values()) ** 2 / spread
    return Significance(statistic, math.erfc(math.sqrt(statistic / 2)))


def cohen_d_z(differences: Sequence[float]) -> float | None:
    """Mean difference in units of the differences' deviation; None where they do not vary.

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
    """How much oftener the second system alone is right; None where the first never is.

    >>> odds_ratio(2, 8)
    4.0
    """
    return only_second / only_first if only_first else None


def cohen_g(only_first: int, only_second: int) -> float | None:
    """The second system's share of the items that only one got right, less one half.

    >>> cohen_g(2, 8)
    0.30000000000000004
    """
    n = only_first + only_second
    return only_second / n - 0.5 if n else None


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for having tested several differences (Holm's step-down).

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
