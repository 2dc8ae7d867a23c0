"""95% confidence intervals for clustered items, and the variation between repeated runs.

Items of one meme are not independent, so the interval functions take clusters. The functions for
repeated runs take a table with one row per item and one mark per repeat (1 correct, 0 wrong).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from statistics import fmean, stdev, variance

import numpy as np

from memantics.metrics.rounding import Floats, settle

Span = tuple[float, float]  # lower and upper bound of a confidence interval
Z95 = 1.959963984540054
_MOST_WEIGHTS = 4_000_000
_MANY = 2_000


def wilson(hits: float, n: float, z: float = Z95) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion; None without observations.

    >>> low, high = wilson(45, 50)
    >>> round(low, 4), round(high, 4)
    (0.7864, 0.9565)
    """
    if n <= 0:
        return None
    p = hits / n
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    centre, scale = p + z * z / (2 * n), 1 + z * z / n
    # Rounding must not move a bound past the proportion, such as 2e-17 for 0 of 24.
    low, high = max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
    return min(low, p), max(high, p)


def clustered_wilson(
    hits: Sequence[bool], clusters: Sequence[Hashable]
) -> tuple[float, float] | None:
    """Wilson's interval at the effective sample size of clustered observations.

    The design effect is the variance of the mean between clusters divided by that of independent
    items. It is at least 1, so an interval is never narrower than the plain Wilson interval. If all
    items have the same value, it cannot be estimated, and the number of clusters is used as the
    sample size.

    >>> clustered_wilson([True, False, True], ["a", "b", "c"]) == wilson(2, 3)
    True
    >>> plain, doubled = wilson(2, 4), clustered_wilson([1, 1, 0, 0], ["a", "a", "b", "b"])
    >>> doubled[1] - doubled[0] > plain[1] - plain[0]
    True
    """
    if len(hits) == 0:
        return None
    rows = np.column_stack([np.asarray(hits, bool), np.ones(len(hits))]).astype(float)
    sums = sum_by_cluster(rows, clusters)
    return wilson_of_sums(sums[:, 0], sums[:, 1])


def wilson_of_sums(hits: Floats, sizes: Floats) -> Span | None:
    """Clustered Wilson interval from the hits and the number of items of each cluster.

    >>> wilson_of_sums(np.array([2.0, 0.0, 1.0]), np.array([2.0, 0.0, 2.0])) is not None
    True
    """
    hits, sizes = hits[sizes > 0], sizes[sizes > 0]
    k, n, right = len(sizes), float(sizes.sum()), float(hits.sum())
    if not k:
        return None
    if k == n:
        return wilson(right, n)
    p = right / n
    if k == 1 or p in (0.0, 1.0):
        return wilson(p * k, k)
    variance = float(((hits - sizes * p) ** 2).sum()) / n**2 * k / (k - 1)
    effect = max(1.0, variance / (p * (1 - p) / n))
    return wilson(right / effect, n / effect)


def unvaried_span(value: float, clusters: int, bounds: Span | None) -> Span | None:
    """Interval of a statistic that is the same in every resample, such as 12 correct of 12.

    Wilson's interval of 0 events in ``clusters`` clusters bounds the proportion of memes that could
    differ from those seen, each by at most the distance to a bound of the statistic.

    Args:
        value: The value of the statistic.
        clusters: The number of clusters.
        bounds: The smallest and the largest possible value.

    Returns:
        The interval; None if ``bounds`` is None or excludes the value.

    >>> low, high = unvaried_span(1.0, 12, (0.0, 1.0))
    >>> (low, high) == wilson(12, 12)
    True
    """
    found = wilson(0, clusters)
    if found is None or bounds is None or not bounds[0] - 1e-9 <= value <= bounds[1] + 1e-9:
        return None
    low, high = (value + found[1] * (end - value) for end in bounds)
    return low, high


def include(span: Span, value: float) -> Span:
    """Widen an interval so that it contains the value that it describes.

    >>> include((0.2, 0.4), 0.5), include((0.2, 0.4), 0.3)
    ((0.2, 0.5), (0.2, 0.4))
    """
    return min(span[0], value), max(span[1], value)


def combine_spans(
    values: Sequence[float], spans: Sequence[Span], influences: Floats | None = None
) -> Span:
    """Interval of the mean of several values from their intervals (MOVER, Zou and Donner 2008).

    The distances from each value to its bounds are combined like standard errors. The result keeps
    the asymmetry of the intervals, and is not empty if a value is 0 or 1.

    Args:
        values: The averaged values.
        spans: The interval of each value.
        influences: Influence of each cluster (rows) on each value (columns), for the correlations.
            A column without variation counts as fully correlated. Default: independent values.

    Returns:
        The interval of the mean.

    >>> low, high = combine_spans([0.5, 1.0], [(0.4, 0.6), (0.7, 1.0)])
    >>> round(low, 3), round(high, 3)
    (0.592, 0.8)
    """
    count, mean = len(values), fmean(values)
    weights = np.eye(count) if influences is None else _correlate(influences)
    below = np.array([value - low for value, (low, _) in zip(values, spans, strict=True)])
    above = np.array([high - value for value, (_, high) in zip(values, spans, strict=True)])
    reach = [math.sqrt(max(0.0, float(gap @ weights @ gap))) / count for gap in (below, above)]
    return mean - reach[0], mean + reach[1]


def _correlate(influences: Floats) -> Floats:
    """Correlations of columns; 1 with a column that does not vary, which is the cautious choice."""
    centred = influences - influences.mean(axis=0)
    lengths = np.sqrt((centred**2).sum(axis=0))
    varied = lengths > 1e-12
    scaled = centred / np.where(varied, lengths, 1.0)
    found = np.where(np.outer(varied, varied), scaled.T @ scaled, 1.0)
    return np.asarray(found, float)


def bootstrap(
    sums: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    resamples: int = 2000,
    seed: int = 0,
    bounds: Span | None = (0.0, 1.0),
) -> tuple[float, float] | None:
    """Percentile interval of a statistic of column sums, resampling clusters (rows).

    ``statistic`` maps an array of shape (resamples, columns) to one value per resample; undefined
    values (NaN) are excluded. ``bounds`` are the possible values of the statistic. They are used if
    all resamples have the same value (:func:`unvaried_span`).

    >>> hits_and_items = np.array([[1.0, 1.0], [0.0, 1.0]] * 50)
    >>> low, high = bootstrap(hits_and_items, lambda s: s[:, 0] / s[:, 1])
    >>> 0.38 < low < 0.43 and 0.57 < high < 0.62
    True
    """
    clusters = len(sums)
    if clusters < 2:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.concatenate([statistic(part) for part in resample_sums(sums, resamples, seed)])
        value = float(statistic(sums.sum(axis=0)[None])[0])
    drawn = drawn[~np.isnan(drawn)]
    return settle_span(drawn, value, clusters, bounds) if len(drawn) else None


def settle_span(drawn: Floats, value: float, clusters: int, bounds: Span | None) -> Span | None:
    """Percentile interval that contains the value, and has a width if no resample varies.

    >>> settle_span(np.array([0.4, 0.6]), 0.7, 2, None)
    (0.405, 0.7)
    >>> settle_span(np.ones(9), 1.0, 12, (0.0, 1.0)) == wilson(12, 12)
    True
    """
    low, high = percentile_span(drawn)
    if math.isnan(value):
        return low, high
    if float(np.ptp(drawn)) <= 1e-12 and abs(low - value) <= 1e-9:
        return unvaried_span(value, clusters, bounds)
    return include((low, high), value)


def bootstrap_items(
    clusters: Sequence[Hashable],
    statistic: Callable[[Sequence[int]], float | None],
    *,
    resamples: int = 2000,
    seed: int = 0,
    bounds: Span | None = (0.0, 1.0),
) -> tuple[float, float] | None:
    """Percentile interval of any statistic of items, resampling clusters.

    It is slower than :func:`bootstrap`, which needs a statistic of sums. Up to 2,000 clusters, both
    functions resample the same clusters.

    Args:
        clusters: The cluster of each item.
        statistic: Function from item indices (in order, with repetitions) to a value; resamples
            where the value is None or NaN are ignored.
        resamples: Number of resamples.
        seed: Seed of the resampling.
        bounds: The possible values of the statistic, used if no resample varies.

    Returns:
        The interval; None for fewer than two clusters, or if no resample has a defined value.

    >>> marks = [1, 0] * 50
    >>> low, high = bootstrap_items(range(100), lambda places: fmean(marks[p] for p in places))
    >>> 0.38 < low < 0.43 and 0.57 < high < 0.62
    True
    """
    order: dict[Hashable, int] = {}
    of_item = np.array([order.setdefault(cluster, len(order)) for cluster in clusters], np.int64)
    if len(order) < 2 or resamples < 1:
        return None
    drawn: list[float] = []
    chunk = max(1, _MOST_WEIGHTS // len(order))
    for place, start in enumerate(range(0, resamples, chunk)):
        for weights in _resample_weights(len(order), min(chunk, resamples - start), seed, place):
            items = np.repeat(np.arange(len(of_item)), weights[of_item].astype(np.int64))
            value = statistic(items.tolist())
            if value is not None and not math.isnan(value):
                drawn.append(value)
    if not drawn:
        return None
    value = statistic(list(range(len(of_item))))
    whole = math.nan if value is None else value
    return settle_span(np.array(drawn), whole, len(order), bounds)


def percentile_span(values: Floats) -> tuple[float, float]:
    """Lower and upper bound that contain the central 95 % of the values."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def resample_sums(
    sums: Floats, resamples: int, seed: int = 0, *, by_kind: bool | None = None
) -> Iterator[Floats]:
    """Column sums over resampled clusters, in chunks of bounded size (resamples, columns).

    If many clusters share few distinct rows, the distinct rows are resampled by frequency
    (``by_kind``). The result has the same distribution and takes a fraction of the time.
    """
    clusters, shares = len(sums), None
    if by_kind or (by_kind is None and clusters > _MANY):
        sums, counts = np.unique(settle(sums), axis=0, return_counts=True)
        shares = counts / clusters
    chunk = max(1, _MOST_WEIGHTS // len(sums))
    for place, start in enumerate(range(0, resamples, chunk)):
        size = min(chunk, resamples - start)
        if shares is None:
            yield _resample_weights(clusters, size, seed, place) @ sums
        else:
            rng = np.random.default_rng([seed, place])
            yield rng.multinomial(clusters, shares, size=size) @ sums


@lru_cache(maxsize=2)
def _resample_weights(clusters: int, size: int, seed: int, place: int) -> Floats:
    """How often each resample contains each cluster; cached, as all metrics share clusters."""
    rng = np.random.default_rng([seed, place])
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=size).astype(float)


def sum_by_cluster(rows: Floats, clusters: Sequence[Hashable]) -> Floats:
    """Sum rows that share a cluster, in order of first appearance.

    >>> sum_by_cluster(np.array([[1.0], [2.0], [5.0]]), ["a", "b", "a"]).tolist()
    [[6.0], [2.0]]
    """
    order: dict[Hashable, int] = {}
    places = [order.setdefault(cluster, len(order)) for cluster in clusters]
    total = np.zeros((len(order), rows.shape[1]))
    np.add.at(total, places, rows)
    return total


RepeatedMarks = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """Variance of a single mark, split into the parts between items and between repeated runs.

    ``items`` is the variance of the items' long-run means, ``repeats`` the mean variance within an
    item. ``share`` is the proportion of the variance that is due to repeats.
    """

    items: float
    repeats: float

    @property
    def share(self) -> float | None:
        """Proportion of the variance that is between repeated runs; None if nothing varies."""
        total = self.items + self.repeats
        return self.repeats / total if total else None


def split_variance(marks: RepeatedMarks) -> VarianceSplit | None:
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
    # The mean of k marks contains 1/k of the variance within items.
    return VarianceSplit(max(0.0, between - within / len(marks[0])), within)


def repeat_deviation(marks: RepeatedMarks) -> float | None:
    """SD between repeated runs of the mean over items; None for one run.

    >>> repeat_deviation([[1, 0], [1, 1]])
    0.3535533905932738
    """
    if not marks or len(marks[0]) < 2:
        return None
    return stdev([fmean(column) for column in zip(*marks, strict=True)])


def pass_at_k(marks: RepeatedMarks, k: int) -> float | None:
    """Unbiased estimate of the probability that one of ``k`` attempts is correct.

    >>> pass_at_k([[1, 0], [0, 0]], 2)
    0.5
    """
    if not marks or not 1 <= k <= len(marks[0]):
        return None
    return fmean(_pass(len(row), sum(mark >= 1 for mark in row), k) for row in marks)


def _pass(n: int, right: int, k: int) -> float:
    return 1.0 - comb(n - right, k) / comb(n, k)


def majority(answers: Sequence[Hashable | None]) -> Hashable | None:
    """Majority answer: the most frequent one, the earliest in a tie. None is not counted.

    >>> majority(["A", "B", "B"]), majority(["A", "B"]), majority([None, None])
    ('B', 'A', None)
    """
    votes = Counter(answer for answer in answers if answer is not None)
    return votes.most_common(1)[0][0] if votes else None
