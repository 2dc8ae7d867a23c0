"""Figures of a classifier from gold and predicted labels. A prediction may be None: no answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from memantics.metrics.interval import Floats, bootstrap, clustered_wilson, sum_by_cluster


@dataclass(frozen=True, slots=True)
class BinaryCounts:
    """The four cells. An invalid answer is a miss of its class, never a hit of the other."""

    tp: int
    fn: int
    tn: int
    fp: int


def count_binary(
    gold: Sequence[Hashable], predicted: Sequence[Hashable | None], positive: Hashable
) -> BinaryCounts:
    """Count the cells; no answer counts against the classifier on both sides.

    >>> count_binary(["p", "p", "n", "n"], ["p", None, "n", None], "p")
    BinaryCounts(tp=1, fn=1, tn=1, fp=1)
    """
    rows = _cells(gold, predicted, positive).sum(axis=0).astype(int)
    return BinaryCounts(*(int(cell) for cell in rows))


def tpr(counts: BinaryCounts) -> float | None:
    """Recall of the positive class.

    >>> tpr(BinaryCounts(tp=3, fn=1, tn=0, fp=0))
    0.75
    """
    return _ratio(counts.tp, counts.tp + counts.fn)


def tnr(counts: BinaryCounts) -> float | None:
    """Recall of the negative class.

    >>> tnr(BinaryCounts(tp=0, fn=0, tn=1, fp=3))
    0.25
    """
    return _ratio(counts.tn, counts.tn + counts.fp)


def precision(counts: BinaryCounts) -> float | None:
    """Share of positive predictions that are right.

    >>> precision(BinaryCounts(tp=1, fn=0, tn=0, fp=1))
    0.5
    """
    return _ratio(counts.tp, counts.tp + counts.fp)


def f1(counts: BinaryCounts) -> float | None:
    """Plain F1 of the positive class: 2 TP / (2 TP + FP + FN).

    >>> f1(BinaryCounts(tp=652, fn=0, tn=0, fp=1304))
    0.5
    """
    return _ratio(2 * counts.tp, 2 * counts.tp + counts.fp + counts.fn)


def macro_f1(counts: BinaryCounts) -> float | None:
    """Mean of the F1 of both classes.

    >>> macro_f1(BinaryCounts(tp=1, fn=1, tn=1, fp=1))
    0.5
    """
    other = f1(BinaryCounts(tp=counts.tn, fn=counts.fp, tn=counts.tp, fp=counts.fn))
    own = f1(counts)
    return None if own is None or other is None else (own + other) / 2


def balanced_accuracy(counts: BinaryCounts) -> float | None:
    """Mean of both recalls: 0.5 for every constant answer.

    >>> balanced_accuracy(BinaryCounts(tp=5, fn=0, tn=0, fp=9))
    0.5
    """
    first, second = tpr(counts), tnr(counts)
    return None if first is None or second is None else (first + second) / 2


@dataclass(frozen=True, slots=True)
class BinaryIntervals:
    """95 % intervals: rates by Wilson at the effective sample size, the rest by bootstrap."""

    tpr: tuple[float, float] | None
    tnr: tuple[float, float] | None
    precision: tuple[float, float] | None
    f1: tuple[float, float] | None
    macro_f1: tuple[float, float] | None
    balanced_accuracy: tuple[float, float] | None


def binary_intervals(
    gold: Sequence[Hashable],
    predicted: Sequence[Hashable | None],
    positive: Hashable,
    clusters: Sequence[Hashable],
) -> BinaryIntervals:
    """Intervals that keep the items of a cluster together.

    >>> found = binary_intervals(["p", "n"] * 20, ["p", "n"] * 20, "p", list(range(40)))
    >>> found.f1
    (1.0, 1.0)
    """
    sums = sum_by_cluster(_cells(gold, predicted, positive), clusters)

    def recall(s: Floats) -> Floats:
        return s[:, 0] / (s[:, 0] + s[:, 1])

    def specificity(s: Floats) -> Floats:
        return s[:, 2] / (s[:, 2] + s[:, 3])

    def f_positive(s: Floats) -> Floats:
        return 2 * s[:, 0] / (2 * s[:, 0] + s[:, 1] + s[:, 3])

    def f_negative(s: Floats) -> Floats:
        return 2 * s[:, 2] / (2 * s[:, 2] + s[:, 1] + s[:, 3])

    return BinaryIntervals(
        tpr=_rate_interval(gold, predicted, clusters, lambda truth: truth == positive),
        tnr=_rate_interval(gold, predicted, clusters, lambda truth: truth != positive),
        precision=bootstrap(sums, lambda s: s[:, 0] / (s[:, 0] + s[:, 3])),
        f1=bootstrap(sums, f_positive),
        macro_f1=bootstrap(sums, lambda s: (f_positive(s) + f_negative(s)) / 2),
        balanced_accuracy=bootstrap(sums, lambda s: (recall(s) + specificity(s)) / 2),
    )


def _rate_interval(
    gold: Sequence[Hashable],
    predicted: Sequence[Hashable | None],
    clusters: Sequence[Hashable],
    keep: Callable[[Hashable], bool],
) -> tuple[float, float] | None:
    rows = [
        (truth == guess, cluster)
        for truth, guess, cluster in zip(gold, predicted, clusters, strict=True)
        if keep(truth)
    ]
    return clustered_wilson([hit for hit, _ in rows], [cluster for _, cluster in rows])


def _cells(
    gold: Sequence[Hashable], predicted: Sequence[Hashable | None], positive: Hashable
) -> Floats:
    """One row per item: tp, fn, tn, fp."""
    rows = np.zeros((len(gold), 4))
    for row, truth, guess in zip(rows, gold, predicted, strict=True):
        right = guess == truth
        row[(0 if right else 1) if truth == positive else (2 if right else 3)] = 1
    return rows


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
