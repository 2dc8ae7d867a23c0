"""Inter-annotator agreement beyond chance, and rank correlation, with confidence intervals.

Ratings are rows, one per unit (a meme), with labels by rater in fixed columns; None means "did not
rate". A function returns None if its coefficient is undefined: with too little data, or without any
variation (chance agreement is then total).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from math import fsum
from statistics import fmean
from typing import Any, Literal

import numpy as np

from memantics.metrics.interval import Span, bootstrap, settle_span, sum_by_cluster
from memantics.metrics.rounding import Floats, settle

Label = Hashable
RatingRow = Sequence[Label | None]
MeasurementLevel = Literal["nominal", "ordinal", "interval"]


def pairwise_agreement(rows: Sequence[RatingRow]) -> float | None:
    """Mean proportion of rater pairs that agree, over units with at least two ratings.

    >>> pairwise_agreement([["a", "a", "b"], ["a", "a", None]])
    0.6666666666666666
    """
    shares = [_pair_share(labels) for row in rows if len(labels := _given(row)) > 1]
    return fmean(shares) if shares else None


def complete_agreement(rows: Sequence[RatingRow]) -> float | None:
    """Proportion of units with at least two ratings on which all raters agree.

    >>> complete_agreement([["a", "a", "b"], ["a", "a", None], ["b", None, None]])
    0.5
    """
    units = [labels for row in rows if len(labels := _given(row)) > 1]
    return sum(len(set(labels)) == 1 for labels in units) / len(units) if units else None


def cohen_kappa(first: RatingRow, second: RatingRow) -> float | None:
    """Cohen's kappa of two raters over the units that both rated.

    >>> round(cohen_kappa(list("aabbab"), list("aabbba")), 4)
    0.3333
    """
    pairs = [
        (one, other)
        for one, other in zip(first, second, strict=True)
        if one is not None and other is not None
    ]
    if not pairs:
        return None
    n = len(pairs)
    observed = sum(one == other for one, other in pairs) / n
    ours, theirs = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    expected = sum(ours[label] * theirs[label] for label in ours) / n**2
    return _beyond_chance(observed, expected)


def mean_cohen_kappa(rows: Sequence[RatingRow]) -> float | None:
    """Mean of Cohen's kappa over all pairs of raters for whom it is defined (Light's kappa).

    >>> rows = [["a", "a"], ["a", "a"], ["b", "b"], ["b", "a"]]
    >>> mean_cohen_kappa(rows)
    0.5
    """
    columns = list(zip(*rows, strict=True))
    kappas = [
        kappa
        for first, second in combinations(columns, 2)
        if (kappa := cohen_kappa(first, second)) is not None
    ]
    return fmean(kappas) if kappas else None


def fleiss_kappa(rows: Sequence[RatingRow]) -> float | None:
    """Fleiss' kappa over the units with the most frequent number of ratings.

    Units with another number of ratings (unfinished annotation) are excluded.

    >>> round(fleiss_kappa([["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]]), 4)
    0.55
    """
    units = [labels for row in rows if len(labels := _given(row)) > 1]
    if not units:
        return None
    sizes = Counter(map(len, units))
    size = max(sizes, key=lambda k: (sizes[k], k))
    units = [labels for labels in units if len(labels) == size]
    observed = fmean(map(_pair_share, units))
    totals = Counter(label for labels in units for label in labels)
    expected = sum((count / (size * len(units))) ** 2 for count in totals.values())
    return _beyond_chance(observed, expected)


def krippendorff_alpha(
    rows: Sequence[RatingRow], level: MeasurementLevel = "nominal"
) -> float | None:
    """Krippendorff's alpha; raters may miss units. Ordinal and interval need numbers.

    >>> rows = [[1, 1, None], [2, 2, 3], [3, 3, 3], [3, 3, 3], [2, 2, 2], [1, 2, 3]]
    >>> round(krippendorff_alpha(rows), 4), round(krippendorff_alpha(rows, "interval"), 4)
    (0.5556, 0.6049)
    """
    units = [labels for row in rows if len(labels := _given(row)) > 1]
    totals = Counter(label for labels in units for label in labels)
    n = sum(totals.values())
    if n < 2 or len(totals) < 2:
        return None
    distance = _distance(level, totals)
    observed = fsum(
        distance(one, other) * 2 / (len(labels) - 1)
        for labels in units
        for one, other in combinations(labels, 2)
    )
    expected = fsum(
        2 * totals[one] * totals[other] * distance(one, other)
        for one, other in combinations(totals, 2)
    )
    return 1 - (n - 1) * observed / expected if expected else None


def gwet_ac1(rows: Sequence[RatingRow], labels: int = 0) -> float | None:
    """Gwet's AC1, which stays meaningful if one label is much more frequent than the others.

    ``labels`` is the number of available labels, if there are more than the ratings use.

    >>> rows = [["a", "a"], ["a", "a"], ["a", "b"], ["b", "b"]]
    >>> round(gwet_ac1(rows), 4), gwet_ac1([["a", "a"]], 2)
    (0.5294, 1.0)
    """
    units = [given for row in rows if (given := _given(row))]
    observed = pairwise_agreement(units)
    shares: Counter[Label] = Counter()
    for unit in units:
        for label in unit:
            shares[label] += 1 / (len(unit) * len(units))  # type: ignore[assignment]
    count = max(labels, len(shares))
    if observed is None or count < 2:
        return None
    expected = fsum(share * (1 - share) for share in shares.values()) / (count - 1)
    return _beyond_chance(observed, expected)


def intraclass(rows: Sequence[RatingRow]) -> float | None:
    """The intraclass correlation of single ratings, one-way random: ICC(1) of Shrout and Fleiss.

    Units may have different raters and different numbers of raters.

    >>> rows = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> round(intraclass(rows), 2)
    0.17
    """
    units = [list(map(_number, labels)) for row in rows if len(labels := _given(row)) > 1]
    n = sum(map(len, units))
    if len(units) < 2 or n == len(units):
        return None
    mean = fsum(value for unit in units for value in unit) / n
    between = fsum(len(unit) * (fmean(unit) - mean) ** 2 for unit in units) / (len(units) - 1)
    within = fsum((v - fmean(unit)) ** 2 for unit in units for v in unit) / (n - len(units))
    size = (n - sum(len(unit) ** 2 for unit in units) / n) / (len(units) - 1)
    total = between + (size - 1) * within
    return (between - within) / total if total else None


def label_agreement(rows: Sequence[RatingRow]) -> dict[Label, float]:
    """Specific agreement: how often another rater of the same unit gives the same label, by label.

    >>> label_agreement([["a", "a", "b"], ["a", "a", None]])
    {'a': 0.75, 'b': 0.0}
    """
    hits: Counter[Label] = Counter()
    given: Counter[Label] = Counter()
    for row in rows:
        if len(labels := _given(row)) > 1:
            for label, count in Counter(labels).items():
                hits[label] += count * (count - 1) / (len(labels) - 1)  # type: ignore[assignment]
                given[label] += count
    return {label: hits[label] / count for label, count in given.items()}


def _distance(level: MeasurementLevel, totals: Counter[Label]) -> Callable[[Label, Label], float]:
    """Squared differences between labels: nominal (0 or 1), by rank, or by value."""
    if level == "nominal":
        return lambda one, other: float(one != other)
    values = {label: _number(label) for label in totals}
    if level == "interval":
        return lambda one, other: (values[one] - values[other]) ** 2
    ranked = sorted(totals, key=lambda label: values[label])
    middles: dict[Label, float] = {}
    below = 0
    for label in ranked:
        middles[label] = below + totals[label] / 2
        below += totals[label]
    return lambda one, other: (middles[one] - middles[other]) ** 2


def _number(label: Label) -> float:
    if isinstance(label, int | float):
        return float(label)
    raise TypeError(f"the ordinal and interval levels need numbers, not {label!r}")


def _given(row: RatingRow) -> list[Label]:
    return [label for label in row if label is not None]


def _pair_share(labels: Sequence[Label]) -> float:
    size = len(labels)
    agreeing = sum(count * (count - 1) for count in Counter(labels).values())
    return agreeing / (size * (size - 1))


def _beyond_chance(observed: float, expected: float) -> float | None:
    return (observed - expected) / (1 - expected) if expected < 1 - 1e-12 else None


# 95% confidence intervals of agreement: items are resampled with all their ratings.

_RESAMPLES = 1000
_BOUNDS: Span = (-1.0, 1.0)  # of coefficients of agreement and correlation


def agreement_spans(
    rows: Sequence[RatingRow],
    level: MeasurementLevel = "nominal",
    *,
    clusters: Sequence[Hashable] | None = None,
    labels: int = 0,
) -> dict[str, Span]:
    """Compute 95% confidence intervals of ``fleiss``, ``alpha``, ``ac1`` and, for numbers, ``icc``.

    ``clusters`` names the item of each row, if an item has several rows. All four coefficients are
    functions of sums over items, so a thousand resamples are one matrix product.

    >>> rows = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]] * 20
    >>> low, high = agreement_spans(rows)["alpha"]
    >>> round(low, 2), round(high, 2)
    (0.38, 0.71)
    """
    kept = [place for place, row in enumerate(rows) if sum(one is not None for one in row) > 1]
    units = [[one for one in rows[place] if one is not None] for place in kept]
    if len(units) < 2:
        return {}
    names: list[Any] = sorted({label for unit in units for label in unit}, key=_rank)
    counts = np.array([[Counter(unit)[name] for name in names] for unit in units], float)
    by = [clusters[place] if clusters is not None else place for place in kept]
    found = {
        "fleiss": _fleiss(counts, by),
        "alpha": _alpha(counts, by, names, level),
        "ac1": _ac1(counts, by, max(labels, len(names))),
    }
    if level != "nominal":
        found["icc"] = _icc(units, by)
    return {name: span for name, span in found.items() if span is not None}


def _rank(label: Label) -> tuple[float, str]:
    return (float(label), "") if isinstance(label, int | float) else (0.0, str(label))


def _pairs(counts: Floats) -> tuple[Floats, Floats]:
    sizes = counts.sum(axis=1)
    return sizes, (counts * (counts - 1)).sum(axis=1) / (sizes * (sizes - 1))


def _fleiss(counts: Floats, by: Sequence[Hashable]) -> Span | None:
    sizes, agreeing = _pairs(counts)
    common = Counter(sizes.tolist())
    size = max(common, key=lambda one: (common[one], one))
    mine = sizes == size
    columns = np.column_stack([mine, agreeing * mine, counts * mine[:, None] / size])

    def kappa(sums: Floats) -> Floats:
        expected = ((sums[:, 2:] / sums[:, :1]) ** 2).sum(axis=1)
        return np.asarray((sums[:, 1] / sums[:, 0] - expected) / (1 - expected))

    return bootstrap(sum_by_cluster(columns, by), kappa, resamples=_RESAMPLES, bounds=_BOUNDS)


def _ac1(counts: Floats, by: Sequence[Hashable], labels: int) -> Span | None:
    if labels < 2:
        return None
    sizes, agreeing = _pairs(counts)
    columns = np.column_stack([np.ones(len(counts)), agreeing, counts / sizes[:, None]])

    def beyond(sums: Floats) -> Floats:
        shares = sums[:, 2:] / sums[:, :1]
        expected = (shares * (1 - shares)).sum(axis=1) / (labels - 1)
        return np.asarray((sums[:, 1] / sums[:, 0] - expected) / (1 - expected))

    return bootstrap(sum_by_cluster(columns, by), beyond, resamples=_RESAMPLES, bounds=_BOUNDS)


def _alpha(
    counts: Floats, by: Sequence[Hashable], names: Sequence[Any], level: MeasurementLevel
) -> Span | None:
    sizes = counts.sum(axis=1)
    first, second = np.triu_indices(len(names), 1)
    met = 2 * counts[:, first] * counts[:, second] / (sizes - 1)[:, None]
    if level == "nominal":  # All pairs have the same distance, so the sum of the weights is enough.
        met = met.sum(axis=1, keepdims=True)
    values = np.array(names, float) if level == "interval" else np.zeros(len(names))

    def alpha(sums: Floats) -> Floats:
        totals = sums[:, met.shape[1] :]
        n = totals.sum(axis=1)
        if level == "nominal":
            expected = n**2 - (totals**2).sum(axis=1)
            return np.asarray(1 - (n - 1) * sums[:, 0] / expected)
        places = np.broadcast_to(values, totals.shape)
        if level == "ordinal":
            places = np.cumsum(totals, axis=1) - totals / 2
        apart = (places[:, first] - places[:, second]) ** 2
        expected = 2 * (totals[:, first] * totals[:, second] * apart).sum(axis=1)
        return np.asarray(1 - (n - 1) * (sums[:, : met.shape[1]] * apart).sum(axis=1) / expected)

    return bootstrap(
        sum_by_cluster(np.hstack([met, counts]), by), alpha, resamples=_RESAMPLES, bounds=_BOUNDS
    )


def _icc(units: Sequence[Sequence[Any]], by: Sequence[Hashable]) -> Span | None:
    centre = float(np.mean([value for unit in units for value in unit]))
    columns = np.array(
        [
            (1, len(v), len(v) ** 2, v.sum(), v.sum() ** 2 / len(v), (v**2).sum())
            for v in (np.array(unit, float) - centre for unit in units)
        ]
    )

    def icc(sums: Floats) -> Floats:
        k, n, squares, total, parts, raw = sums.T
        between = (parts - total**2 / n) / (k - 1)
        within = (raw - parts) / (n - k)
        size = (n - squares / n) / (k - 1)
        return np.asarray((between - within) / (between + (size - 1) * within))

    return bootstrap(sum_by_cluster(columns, by), icc, resamples=_RESAMPLES, bounds=_BOUNDS)


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Spearman's rank correlation with mean ranks for ties; None if a side does not vary.

    >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 4), spearman([1, 1, 1], [1, 2, 3])
    (0.8, None)
    """
    if len(first) < 3:
        return None
    ours, theirs = (_rank_values(values) - (len(values) + 1) / 2 for values in (first, second))
    size = float(np.sqrt((ours**2).sum() * (theirs**2).sum()))
    return float((ours * theirs).sum()) / size if size > 0 else None


def _rank_values(values: Sequence[float] | Floats) -> Floats:
    """Ranks from 1; equal values share their mean rank.

    >>> _rank_values([10, 30, 10, 20]).tolist()
    [1.5, 4.0, 1.5, 3.0]
    """
    _, places, counts = np.unique(
        settle(np.asarray(values)), return_inverse=True, return_counts=True
    )
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks


def spearman_span(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    resamples: int = 500,
    seed: int = 0,
) -> tuple[float, float] | None:
    """95% confidence interval of Spearman's correlation, resampling whole clusters (memes).

    >>> values = [float(n % 7) for n in range(40)]
    >>> low, high = spearman_span(values, values, list(range(40)))
    >>> round(low, 3), high
    (0.825, 1.0)
    """
    ours, theirs = np.asarray(first, float), np.asarray(second, float)
    places: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        places.setdefault(cluster, []).append(place)
    groups = [np.array(rows_of_group) for rows_of_group in places.values()]
    if len(groups) < 3:
        return None
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(resamples):
        drawn = np.concatenate(
            [groups[group] for group in rng.integers(0, len(groups), len(groups))]
        )
        value = spearman(ours[drawn], theirs[drawn])
        if value is not None:
            found.append(value)
    whole = spearman(ours, theirs)
    if not found or whole is None:
        return None
    return settle_span(np.array(found), whole, len(groups), _BOUNDS)
