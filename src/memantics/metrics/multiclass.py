"""Figures of a classifier over several classes. A prediction may be None: no answer.

No answer is a miss of its class and a claim of no other: it lowers recall, never precision. A
class that neither the gold labels nor the predictions hold has no figures and stays out of the
means; a class that is never predicted has precision 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memantics.metrics.interval import Floats, sum_by_cluster

Span = tuple[float, float]
_FEWEST = 100


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """Hits, false claims and misses of one class."""

    tp: int
    fp: int
    fn: int

    @property
    def occurs(self) -> bool:
        """Whether any gold label or prediction is of this class."""
        return self.tp + self.fp + self.fn > 0


def count_classes(
    gold: Sequence[str], predicted: Sequence[str | None], classes: Sequence[str]
) -> dict[str, ClassCounts]:
    """Count each class; a gold label outside ``classes`` is an error, a prediction is a miss.

    >>> count_classes(["a", "b", "b"], ["a", "a", None], ["a", "b"])["b"]
    ClassCounts(tp=0, fp=0, fn=2)
    """
    totals = _cells(gold, predicted, classes).sum(axis=0).astype(int).reshape(3, len(classes))
    return {
        name: ClassCounts(*(int(cell) for cell in totals[:, place]))
        for place, name in enumerate(classes)
    }


def precision(counts: ClassCounts) -> float | None:
    """Share of claims that are right; 0 for a class that occurs but is never claimed.

    >>> precision(ClassCounts(tp=1, fp=3, fn=0)), precision(ClassCounts(tp=0, fp=0, fn=2))
    (0.25, 0.0)
    """
    return counts.tp / max(1, counts.tp + counts.fp) if counts.occurs else None


def recall(counts: ClassCounts) -> float | None:
    """Share of members that are found; 0 for a class that is claimed but has no member.

    >>> recall(ClassCounts(tp=1, fp=0, fn=3))
    0.25
    """
    return counts.tp / max(1, counts.tp + counts.fn) if counts.occurs else None


def f1(counts: ClassCounts) -> float | None:
    """2 TP / (2 TP + FP + FN).

    >>> f1(ClassCounts(tp=2, fp=1, fn=1)), f1(ClassCounts(tp=0, fp=0, fn=0))
    (0.6666666666666666, None)
    """
    return 2 * counts.tp / (2 * counts.tp + counts.fp + counts.fn) if counts.occurs else None


@dataclass(frozen=True, slots=True)
class MacroFigures:
    """Unweighted means over the classes that occur; F1 is the mean of the classes' F1."""

    precision: float | None
    recall: float | None
    f1: float | None


def macro_figures(counts: Mapping[str, ClassCounts]) -> MacroFigures:
    """Macro precision, recall and F1.

    >>> macro_figures(count_classes(["a", "b"], ["a", "a"], ["a", "b"]))
    MacroFigures(precision=0.25, recall=0.5, f1=0.3333333333333333)
    """
    return MacroFigures(
        *(
            _mean([value for own in counts.values() if (value := figure(own)) is not None])
            for figure in (precision, recall, f1)
        )
    )


@dataclass(frozen=True, slots=True)
class MulticlassIntervals:
    """95 % bootstrap intervals; ``f1_by_class`` has every class that was asked for."""

    precision: Span | None
    recall: Span | None
    f1: Span | None
    f1_by_class: Mapping[str, Span | None]


def multiclass_intervals(
    gold: Sequence[str],
    predicted: Sequence[str | None],
    classes: Sequence[str],
    clusters: Sequence[Hashable],
    draws: int = 2000,
) -> MulticlassIntervals:
    """Percentile intervals that keep the items of a cluster together, all from the same draws.

    Draws in which a class vanishes do not count for the means: they would be means over other
    classes. Where too few draws are left, a mean has no interval.

    >>> found = multiclass_intervals(["a", "b"] * 20, ["a", "b"] * 20, ["a", "b"], list(range(40)))
    >>> found.f1, found.f1_by_class["a"]
    ((1.0, 1.0), (1.0, 1.0))
    """
    sums = sum_by_cluster(_cells(gold, predicted, classes), clusters)
    if len(sums) < 2:
        return MulticlassIntervals(None, None, None, dict.fromkeys(classes))
    drawn = _resample(sums, draws).reshape(draws, 3, len(classes))
    tp, fp, fn = drawn[:, 0], drawn[:, 1], drawn[:, 2]
    occurs = tp + fp + fn > 0
    whole = occurs[:, sums.reshape(-1, 3, len(classes)).sum(axis=(0, 1)) > 0]
    kept = whole.all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_class = np.where(occurs, 2 * tp / (2 * tp + fp + fn), np.nan)
    return MulticlassIntervals(
        precision=_span(_mean_over(tp / np.maximum(1, tp + fp), occurs)[kept]),
        recall=_span(_mean_over(tp / np.maximum(1, tp + fn), occurs)[kept]),
        f1=_span(_mean_over(by_class, occurs)[kept]),
        f1_by_class={name: _span(by_class[:, place]) for place, name in enumerate(classes)},
    )


def _cells(gold: Sequence[str], predicted: Sequence[str | None], classes: Sequence[str]) -> Floats:
    """One row per item: hits, false claims and misses, a column per class each."""
    places = {name: place for place, name in enumerate(classes)}
    size = len(classes)
    rows = np.zeros((len(gold), 3 * size))
    for row, truth, guess in zip(rows, gold, predicted, strict=True):
        own = places[truth]
        if guess == truth:
            row[own] = 1
            continue
        row[2 * size + own] = 1
        if guess in places:
            row[size + places[guess]] = 1
    return rows


def _resample(sums: Floats, draws: int) -> Floats:
    """Sums over resampled clusters.

    Few kinds of clusters differ, so kinds are drawn with their frequencies: the same
    distribution as drawing clusters one by one, in a fraction of the time.
    """
    kinds, frequencies = np.unique(sums, axis=0, return_counts=True)
    rng = np.random.default_rng(0)
    weights = rng.multinomial(len(sums), frequencies / len(sums), size=draws)
    drawn: Floats = weights @ kinds
    return drawn


def _mean_over(values: Floats, occurs: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    """Means over the classes that occur in a draw; there is always one."""
    means: Floats = np.where(occurs, values, 0.0).sum(axis=1) / occurs.sum(axis=1)
    return means


def _span(values: Floats) -> Span | None:
    known = values[~np.isnan(values)]
    if len(known) < _FEWEST:
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
