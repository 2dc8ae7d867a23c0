"""Classification and multiple-choice metrics with clustered confidence intervals.

Macro-F1 is defined once, in :func:`macro_f1`, like scikit-learn's with ``labels`` set to the
classes that occur. A missing answer is a false negative of its class and no prediction of another
class, so it lowers recall but not precision. A class without gold labels and predictions is left
out of the means; a class that is predicted but has no gold label counts with 0.

TPR, TNR, precision and F1 of one positive class follow PunMemeCN's convention instead: a missing
answer is a wrong answer. Otherwise a model that answers no negative item could reach F1 = 1.

Multiple-choice accuracy is computed over items, over groups of items, and over question types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from memantics.metrics import interval
from memantics.metrics.interval import Span, bootstrap, sum_by_cluster
from memantics.metrics.rounding import Floats, Ints

_FEWEST = 100


@dataclass(frozen=True, slots=True)
class BinaryCounts:
    """The four cells of a binary confusion matrix; an invalid answer is an error of its class.

    ``silent_positives`` and ``silent_negatives`` count the items without an answer within ``fn``
    and ``fp``.
    """

    tp: int
    fn: int
    tn: int
    fp: int
    silent_positives: int = 0
    silent_negatives: int = 0


def count_binary(
    gold: Sequence[Hashable], predicted: Sequence[Hashable | None], positive: Hashable
) -> BinaryCounts:
    """Count the cells of a binary confusion matrix; a missing answer is an error in both classes.

    >>> count_binary(["p", "p", "n", "n"], ["p", None, "n", None], "p")
    BinaryCounts(tp=1, fn=1, tn=1, fp=1, silent_positives=1, silent_negatives=1)
    """
    return BinaryCounts(*map(int, _cells(gold, predicted, positive).sum(axis=0)))


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
    """Proportion of positive predictions that are correct.

    >>> precision(BinaryCounts(tp=1, fn=0, tn=0, fp=1))
    0.5
    """
    return _ratio(counts.tp, counts.tp + counts.fp)


def f1(counts: BinaryCounts | ClassCounts) -> float | None:
    """F1 of one class (the positive one, or one of several): 2 TP / (2 TP + FP + FN).

    >>> f1(BinaryCounts(tp=652, fn=0, tn=0, fp=1304)), f1(ClassCounts(tp=0, fp=0, fn=0))
    (0.5, None)
    """
    return _ratio(2 * counts.tp, 2 * counts.tp + counts.fp + counts.fn)


def binary_macro_f1(counts: BinaryCounts) -> float | None:
    """Mean F1 over both classes, or F1 of the only class that occurs; None without items.

    >>> binary_macro_f1(BinaryCounts(tp=1, fn=1, tn=1, fp=1))
    0.5
    """
    cells = np.array([astuple(counts)], float)
    value = float(macro_f1(*_split_cells(cells))[0])
    return None if math.isnan(value) else value


def balanced_accuracy(counts: BinaryCounts) -> float | None:
    """Balanced accuracy: mean of both recalls; 0.5 for every constant answer.

    >>> balanced_accuracy(BinaryCounts(tp=5, fn=0, tn=0, fp=9))
    0.5
    """
    first, second = tpr(counts), tnr(counts)
    return None if first is None or second is None else (first + second) / 2


@dataclass(frozen=True, slots=True)
class BinaryIntervals:
    """95% confidence intervals of binary metrics: clustered Wilson for rates, else bootstrap."""

    tpr: Span | None
    tnr: Span | None
    precision: Span | None
    f1: Span | None
    macro_f1: Span | None
    balanced_accuracy: Span | None


def binary_intervals(
    gold: Sequence[Hashable],
    predicted: Sequence[Hashable | None],
    positive: Hashable,
    clusters: Sequence[Hashable],
) -> BinaryIntervals:
    """Compute 95% confidence intervals of binary metrics with clustered items.

    >>> found = binary_intervals(["p", "n"] * 20, ["p", "n"] * 20, "p", list(range(40)))
    >>> found.f1
    (1.0, 1.0)
    """
    sums = interval.sum_by_cluster(_cells(gold, predicted, positive), clusters)

    def recall(s: Floats) -> Floats:
        return s[:, 0] / (s[:, 0] + s[:, 1])

    def specificity(s: Floats) -> Floats:
        return s[:, 2] / (s[:, 2] + s[:, 3])

    def macro(s: Floats) -> Floats:
        by_class = f1_by_class(*_split_cells(s))
        return np.asarray(by_class[:, _occur(*_split_cells(sums.sum(axis=0)[None]))[0]].mean(-1))

    return BinaryIntervals(
        tpr=_rate_interval(gold, predicted, clusters, lambda truth: truth == positive),
        tnr=_rate_interval(gold, predicted, clusters, lambda truth: truth != positive),
        precision=interval.bootstrap(sums, lambda s: s[:, 0] / (s[:, 0] + s[:, 3])),
        f1=interval.bootstrap(sums, lambda s: 2 * s[:, 0] / (2 * s[:, 0] + s[:, 1] + s[:, 3])),
        macro_f1=interval.bootstrap(sums, macro),
        balanced_accuracy=interval.bootstrap(sums, lambda s: (recall(s) + specificity(s)) / 2),
    )


def _rate_interval(
    gold: Sequence[Hashable],
    predicted: Sequence[Hashable | None],
    clusters: Sequence[Hashable],
    keep: Callable[[Hashable], bool],
) -> Span | None:
    rows = [
        (truth == guess, cluster)
        for truth, guess, cluster in zip(gold, predicted, clusters, strict=True)
        if keep(truth)
    ]
    return interval.clustered_wilson([hit for hit, _ in rows], [cluster for _, cluster in rows])


def _cells(
    gold: Sequence[Hashable], predicted: Sequence[Hashable | None], positive: Hashable
) -> Floats:
    """One row per item: tp, fn, tn, fp, and which cells of fn and fp are missing answers."""
    rows = np.zeros((len(gold), 6))
    for row, truth, guess in zip(rows, gold, predicted, strict=True):
        right = guess == truth
        row[(0 if right else 1) if truth == positive else (2 if right else 3)] = 1
        if guess is None:
            row[4 if truth == positive else 5] = 1
    return rows


def _split_cells(cells: Floats) -> tuple[Floats, Floats, Floats]:
    """Correct, predicted and gold counts of both classes, from rows of six confusion cells."""
    tp, fn, tn, fp, silent_positives, silent_negatives = cells.T
    claims = (tp + fp - silent_negatives, tn + fn - silent_positives)
    return np.stack((tp, tn), -1), np.stack(claims, -1), np.stack((tp + fn, tn + fp), -1)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """True positives, false positives and false negatives of one class."""

    tp: int
    fp: int
    fn: int

    @property
    def occurs(self) -> bool:
        """Whether any gold label or prediction belongs to this class."""
        return self.tp + self.fp + self.fn > 0


def count_classes(
    gold: Sequence[str], predicted: Sequence[str | None], classes: Sequence[str]
) -> dict[str, ClassCounts]:
    """Count each class; an unknown gold label is an error, an unknown prediction is wrong.

    >>> count_classes(["a", "b", "b"], ["a", "a", None], ["a", "b"])["b"]
    ClassCounts(tp=0, fp=0, fn=2)
    """
    totals = _class_cells(gold, predicted, classes).sum(axis=0).astype(int).reshape(3, len(classes))
    return {
        name: ClassCounts(*(int(cell) for cell in totals[:, place]))
        for place, name in enumerate(classes)
    }


@dataclass(frozen=True, slots=True)
class MacroMetrics:
    """Unweighted means over the classes that occur; ``f1`` is the mean of the F1 of each class."""

    precision: float | None
    recall: float | None
    f1: float | None


def macro_metrics(counts: Mapping[str, ClassCounts]) -> MacroMetrics:
    """Compute macro precision, recall and F1.

    >>> macro_metrics(count_classes(["a", "b"], ["a", "a"], ["a", "b"]))
    MacroMetrics(precision=0.25, recall=0.5, f1=0.3333333333333333)
    """
    if not any(cells.occurs for cells in counts.values()):
        return MacroMetrics(None, None, None)
    tp, fp, fn = np.array([(one.tp, one.fp, one.fn) for one in counts.values()], float).T
    table = (tp, tp + fp, tp + fn)
    return MacroMetrics(
        float(macro_precision(*table)), float(macro_recall(*table)), float(macro_f1(*table))
    )


# The following functions compute the metrics for many tables at once (bootstrap resamples, seeds or
# thresholds). The last axis holds the classes; counts may be weighted.


def f1_by_class(hits: Floats, claims: Floats, members: Floats) -> Floats:
    """F1 of each class: 2 hits / (claims + members); NaN for a class that does not occur.

    Args:
        hits: Number of items of each class that were predicted correctly.
        claims: Number of items that were predicted to be of each class.
        members: Number of items of each class by gold label.

    Returns:
        An array of the same shape as ``hits``.

    >>> f1_by_class(np.array([1.0, 0.0, 0.0]), np.array([2.0, 1.0, 0.0]), np.array([2.0, 0.0, 0.0]))
    array([0.5, 0. , nan])
    """
    occurs = _occur(hits, claims, members)
    return np.where(occurs, 2 * hits / np.where(occurs, claims + members, 1), np.nan)


def macro_f1(hits: Floats, claims: Floats, members: Floats) -> Floats:
    """Mean F1 over the classes with predictions (claims) or gold items (members); NaN if none.

    The arguments are those of :func:`f1_by_class`. An item without an answer counts among
    ``members`` but not among ``claims``. The result equals scikit-learn's
    ``f1_score(average="macro")`` over the classes that occur.

    >>> macro_f1(np.array([1.0, 0.0, 0.0]), np.array([2.0, 1.0, 0.0]), np.array([2.0, 0.0, 0.0]))
    array(0.25)
    """
    return _mean_over(f1_by_class(hits, claims, members), _occur(hits, claims, members))


def macro_precision(hits: Floats, claims: Floats, members: Floats) -> Floats:
    """Mean precision over the classes that occur; 0 for a class that is never predicted."""
    return _mean_over(hits / np.where(claims > 0, claims, 1), _occur(hits, claims, members))


def macro_recall(hits: Floats, claims: Floats, members: Floats) -> Floats:
    """Mean recall over the classes that occur; 0 for a class without gold items."""
    return _mean_over(hits / np.where(members > 0, members, 1), _occur(hits, claims, members))


def split_confusions(tables: Floats | Ints) -> tuple[Floats, Floats, Floats]:
    """Correct, predicted and gold counts of confusion tables (last two axes: gold, predicted).

    >>> [part.tolist() for part in split_confusions(np.array([[3, 1], [0, 2]]))]
    [[3.0, 2.0], [3.0, 3.0], [4.0, 2.0]]
    """
    hits = np.diagonal(tables, axis1=-2, axis2=-1)
    return np.asarray(hits, float), tables.sum(-2, dtype=float), tables.sum(-1, dtype=float)


def place_macro_f1(gold: Ints, said: Ints, count: int) -> float:
    """Macro-F1 of class indices among ``count`` classes; NaN without items.

    >>> place_macro_f1(np.array([0, 1, 1]), np.array([0, 1, 0]), 2)
    0.6666666666666666
    """
    cells = np.bincount(gold * count + said, minlength=count * count).reshape(count, count)
    return float(macro_f1(*split_confusions(np.asarray(cells, np.int64))))


def _occur(hits: Floats, claims: Floats, members: Floats) -> NDArray[np.bool_]:
    return np.asarray(hits + claims + members > 0, bool)


@dataclass(frozen=True, slots=True)
class MulticlassIntervals:
    """95% bootstrap confidence intervals; ``f1_by_class`` contains every requested class."""

    precision: Span | None
    recall: Span | None
    f1: Span | None
    f1_by_class: Mapping[str, Span | None]


def multiclass_intervals(
    gold: Sequence[str],
    predicted: Sequence[str | None],
    classes: Sequence[str],
    clusters: Sequence[Hashable],
    resamples: int = 2000,
) -> MulticlassIntervals:
    """Compute percentile intervals with clustered items, all from the same resamples.

    A resample in which a class is missing is excluded from the means, because it would average over
    fewer classes. If too few resamples remain, a mean has no interval.

    >>> found = multiclass_intervals(["a", "b"] * 20, ["a", "b"] * 20, ["a", "b"], list(range(40)))
    >>> found.f1, found.f1_by_class["a"]
    ((1.0, 1.0), (1.0, 1.0))
    """
    sums = interval.sum_by_cluster(_class_cells(gold, predicted, classes), clusters)
    if len(sums) < 2:
        return MulticlassIntervals(None, None, None, dict.fromkeys(classes))
    parts = list(interval.resample_sums(sums, resamples, by_kind=True))
    drawn = np.concatenate(parts).reshape(resamples, 3, len(classes))
    tp, fp, fn = drawn[:, 0], drawn[:, 1], drawn[:, 2]
    tables = (tp, tp + fp, tp + fn)
    whole = _occur(*tables)[:, sums.reshape(-1, 3, len(classes)).sum(axis=(0, 1)) > 0]
    kept = whole.all(axis=1)
    by_class = f1_by_class(*tables)
    return MulticlassIntervals(
        precision=_span(macro_precision(*tables)[kept]),
        recall=_span(macro_recall(*tables)[kept]),
        f1=_span(macro_f1(*tables)[kept]),
        f1_by_class={name: _span(by_class[:, place]) for place, name in enumerate(classes)},
    )


def _class_cells(
    gold: Sequence[str], predicted: Sequence[str | None], classes: Sequence[str]
) -> Floats:
    """One row per item: true positives, false positives and false negatives of each class."""
    places = {name: place for place, name in enumerate(classes)}
    size = len(classes)
    rows = np.zeros((len(gold), 3 * size))
    for row, truth, guess in zip(rows, gold, predicted, strict=True):
        truth_column = places[truth]
        if guess == truth:
            row[truth_column] = 1
            continue
        row[2 * size + truth_column] = 1
        if guess in places:
            row[size + places[guess]] = 1
    return rows


def _mean_over(values: Floats, occurs: NDArray[np.bool_]) -> Floats:
    """Means over the classes that occur; NaN if none does."""
    count = occurs.sum(axis=-1)
    total = np.where(occurs, values, 0.0).sum(axis=-1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan), float)


def _span(values: Floats) -> Span | None:
    known = values[~np.isnan(values)]
    if len(known) < _FEWEST:
        return None
    return interval.percentile_span(known)


def accuracy(hits: Sequence[bool]) -> float | None:
    """Proportion of correct answers.

    >>> accuracy([True, True, False, False])
    0.5
    """
    return sum(map(bool, hits)) / len(hits) if hits else None


def group_hits(
    hits: Iterable[bool], groups: Iterable[Hashable], kinds: Iterable[str], needed: frozenset[str]
) -> dict[Hashable, bool]:
    """Whether **all** items of a group are correct, for groups with every needed question type.

    >>> group_hits([True, True, True, False], ["a", "a", "b", "a"], ["T", "R", "T", "R"],
    ...            frozenset("TR"))
    {'a': False}
    """
    all_right: dict[Hashable, bool] = {}
    seen: dict[Hashable, set[str]] = {}
    for hit, group, kind in zip(hits, groups, kinds, strict=True):
        all_right[group] = all_right.get(group, True) and bool(hit)
        seen.setdefault(group, set()).add(kind)
    return {group: right for group, right in all_right.items() if needed <= seen[group]}


def accuracy_by(hits: Sequence[bool], kinds: Sequence[str]) -> dict[str, float]:
    """Accuracy of each question type.

    >>> accuracy_by([True, False, True], ["x", "x", "y"])
    {'x': 0.5, 'y': 1.0}
    """
    split: dict[str, list[bool]] = {}
    for hit, kind in zip(hits, kinds, strict=True):
        split.setdefault(kind, []).append(bool(hit))
    return {kind: sum(part) / len(part) for kind, part in split.items()}


def macro(values: Mapping[str, float]) -> float | None:
    """Unweighted mean over question types.

    >>> macro({"x": 0.5, "y": 1.0})
    0.75
    """
    return sum(values.values()) / len(values) if values else None


def macro_interval(
    hits: Sequence[bool], kinds: Sequence[str], clusters: Sequence[Hashable]
) -> tuple[float, float] | None:
    """Bootstrap confidence interval of the macro average, with clustered items.

    >>> macro_interval([True] * 8, ["x", "y"] * 4, [0, 0, 1, 1, 2, 2, 3, 3])
    (1.0, 1.0)
    """
    names = sorted(set(kinds))
    rows = np.zeros((len(hits), 2 * len(names)))
    for row, hit, kind in zip(rows, hits, kinds, strict=True):
        place = names.index(kind)
        row[place] = bool(hit)
        row[len(names) + place] = 1
    if not names:
        return None

    def statistic(sums: Floats) -> Floats:
        # A rare question type may be absent from a resample, which then averages over the others.
        rates: Floats = sums[:, : len(names)] / sums[:, len(names) :]
        means: Floats = np.nanmean(rates, axis=1)
        return means

    return bootstrap(sum_by_cluster(rows, clusters), statistic)
