"""Classification and multiple-choice metrics with clustered confidence intervals.

Macro-F1 is defined once, in :func:`macro_f1`, like scikit-learn's with ``labels`` set to the
classes that occur. A missing answer is a false negative of its class and no prediction of another
class, so it lowers recall but not precision. The option ``over`` selects the averaged classes:
``occurring`` (default) are those with gold labels or predictions, so a class that is predicted but
has no gold label counts with 0; ``gold`` are those with gold labels; ``all`` are all given classes,
and an absent one counts with 0.

TPR, TNR, precision and F1 of one positive class follow PunMemeCN's convention instead: a missing
answer is a wrong answer. Otherwise a model that answers no negative item could reach F1 = 1.

Multiple-choice accuracy is computed over items, over groups of items, and over question types.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memantics.metrics import interval
from memantics.metrics.interval import Span, sum_by_cluster, wilson_of_sums
from memantics.metrics.rounding import Floats, Ints


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
    """95% confidence intervals of binary metrics, clustered: Wilson's, or combined from them."""

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

    Rates have Wilson's interval. F1 is a function of a rate (:func:`f1_span`). The intervals of
    both classes are combined for their means (:func:`interval.combine_spans`).

    >>> found = binary_intervals(["p", "n"] * 6, ["p", "n"] * 6, "p", list(range(12)))
    >>> [round(end, 3) for end in found.f1]
    [0.758, 1.0]
    """
    sums = interval.sum_by_cluster(_cells(gold, predicted, positive), clusters)
    tp, fn, tn, fp = sums.T[:4]
    single = len(sums) < 2
    recalls = np.stack((tp, tn), -1), np.stack((tp + fn, tn + fp), -1)
    both = bool((recalls[1].sum(axis=0) > 0).all())
    return BinaryIntervals(
        tpr=wilson_of_sums(tp, tp + fn),
        tnr=wilson_of_sums(tn, tn + fp),
        precision=wilson_of_sums(tp, tp + fp),
        f1=f1_span(tp, tp + fn + fp),
        macro_f1=None if single else _macro_span("f1", *_split_cells(sums)),
        balanced_accuracy=_macro_span("recall", recalls[0], recalls[1], recalls[1])
        if both and not single
        else None,
    )


def f1_span(hits: Floats, union: Floats) -> Span | None:
    """Interval of F1 from the hits and the union of gold and predicted items of each cluster.

    F1 is 2 J / (1 + J), where J is the proportion of hits in the union. So Wilson's interval of J
    gives an interval of F1 that is honest for a perfect score (Lam et al. 2023, "indirect").

    >>> [round(end, 3) for end in f1_span(np.ones(12), np.ones(12))]
    [0.862, 1.0]
    """
    found = wilson_of_sums(hits, union)
    if found is None:
        return None
    low, high = (2 * end / (1 + end) for end in found)
    return low, high


MacroName = Literal["precision", "recall", "f1"]
AveragedClasses = Literal["occurring", "gold", "all"]


def _macro_span(name: MacroName, hits: Floats, claims: Floats, members: Floats) -> Span | None:
    """Interval of a macro metric from counts by cluster (rows) and class (columns)."""
    occurs = _occur(hits, claims, members).any(axis=0)
    if not occurs.any():
        return None
    hits, claims, members = hits[:, occurs], claims[:, occurs], members[:, occurs]
    union = claims + members - hits
    base = {"precision": claims, "recall": members, "f1": union}[name]
    # A class without predictions (or gold items) counts with 0: it misses all its other items.
    base = np.where(base.sum(axis=0) > 0, base, union)
    above, below = (2 * hits, claims + members) if name == "f1" else (hits, base)
    totals = below.sum(axis=0)
    values = above.sum(axis=0) / totals
    measure = f1_span if name == "f1" else wilson_of_sums
    spans = [measure(hits[:, place], base[:, place]) or (0.0, 1.0) for place in range(len(values))]
    influences = (above - values * below) / totals
    low, high = interval.combine_spans(values.tolist(), spans, influences)
    return max(0.0, low), min(1.0, high)


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


def macro_metrics(
    counts: Mapping[str, ClassCounts], over: AveragedClasses = "occurring"
) -> MacroMetrics:
    """Compute macro precision, recall and F1; ``over`` as in :func:`macro_f1`.

    >>> macro_metrics(count_classes(["a", "b"], ["a", "a"], ["a", "b"]))
    MacroMetrics(precision=0.25, recall=0.5, f1=0.3333333333333333)
    """
    if not any(cells.occurs for cells in counts.values()):
        return MacroMetrics(None, None, None)
    tp, fp, fn = np.array([(one.tp, one.fp, one.fn) for one in counts.values()], float).T
    table = (tp, tp + fp, tp + fn)
    return MacroMetrics(
        float(macro_precision(*table, over)),
        float(macro_recall(*table, over)),
        float(macro_f1(*table, over)),
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


def macro_f1(
    hits: Floats, claims: Floats, members: Floats, over: AveragedClasses = "occurring"
) -> Floats:
    """Mean F1 over the classes with predictions (claims) or gold items (members); NaN if none.

    An item without an answer counts among ``members`` but not among ``claims``. The result equals
    scikit-learn's ``f1_score(average="macro", zero_division=0)`` with ``labels`` set to the
    averaged classes.

    Args:
        hits: As in :func:`f1_by_class`.
        claims: As in :func:`f1_by_class`.
        members: As in :func:`f1_by_class`.
        over: The averaged classes: ``occurring`` (gold label or prediction), ``gold`` (gold label)
            or ``all``; an absent class counts with 0.

    Returns:
        The mean over the last axis.

    >>> table = np.array([[1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    >>> macro_f1(*table), macro_f1(*table, "gold"), macro_f1(*table, "all").round(3)
    (array(0.25), array(0.5), np.float64(0.167))
    """
    return _mean_over(f1_by_class(hits, claims, members), hits, claims, members, over)


def macro_precision(
    hits: Floats, claims: Floats, members: Floats, over: AveragedClasses = "occurring"
) -> Floats:
    """Mean precision over the classes that occur; 0 for a class that is never predicted."""
    return _mean_over(hits / np.where(claims > 0, claims, 1), hits, claims, members, over)


def macro_recall(
    hits: Floats, claims: Floats, members: Floats, over: AveragedClasses = "occurring"
) -> Floats:
    """Mean recall over the classes that occur; 0 for a class without gold items."""
    return _mean_over(hits / np.where(members > 0, members, 1), hits, claims, members, over)


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
    return float(macro_f1(*split_confusions(np.asarray(cells, np.int64)), "occurring"))


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
) -> MulticlassIntervals:
    """Compute 95% confidence intervals of multiclass metrics with clustered items.

    Each class has Wilson's interval (:func:`f1_span` for F1). The intervals of all classes that
    occur are combined for the means (:func:`interval.combine_spans`).

    >>> found = multiclass_intervals(["a", "b"] * 6, ["a", "b"] * 6, ["a", "b"], list(range(12)))
    >>> [round(end, 3) for end in found.f1], found.f1_by_class["a"][1]
    ([0.758, 1.0], 1.0)
    """
    sums = interval.sum_by_cluster(_class_cells(gold, predicted, classes), clusters)
    if len(sums) < 2:
        return MulticlassIntervals(None, None, None, dict.fromkeys(classes))
    cells = sums.reshape(-1, 3, len(classes))
    tp, fp, fn = cells[:, 0], cells[:, 1], cells[:, 2]
    table = (tp, tp + fp, tp + fn)
    return MulticlassIntervals(
        precision=_macro_span("precision", *table),
        recall=_macro_span("recall", *table),
        f1=_macro_span("f1", *table),
        f1_by_class={
            name: f1_span(tp[:, place], (tp + fp + fn)[:, place])
            for place, name in enumerate(classes)
        },
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


def _mean_over(
    values: Floats, hits: Floats, claims: Floats, members: Floats, over: AveragedClasses
) -> Floats:
    """Means over the averaged classes; NaN if no class occurs."""
    occurs = _occur(hits, claims, members)
    averaged = {
        "occurring": occurs,
        "gold": members > 0,
        "all": occurs.any(axis=-1, keepdims=True) & np.ones_like(occurs),
    }[over]
    count = averaged.sum(axis=-1)
    total = np.where(averaged & occurs, values, 0.0).sum(axis=-1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan), float)


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
    """95% confidence interval of the macro average, with clustered items.

    Wilson's intervals of the question types are combined (:func:`interval.combine_spans`).

    >>> found = macro_interval([True] * 8, ["x", "y"] * 4, [0, 0, 1, 1, 2, 2, 3, 3])
    >>> [round(end, 3) for end in found]
    [0.51, 1.0]
    """
    names = sorted(set(kinds))
    rows = np.zeros((len(hits), 2 * len(names)))
    for row, hit, kind in zip(rows, hits, kinds, strict=True):
        place = names.index(kind)
        row[place] = bool(hit)
        row[len(names) + place] = 1
    if not names:
        return None
    sums = sum_by_cluster(rows, clusters)
    if len(sums) < 2:
        return None
    right, asked = sums[:, : len(names)], sums[:, len(names) :]
    return _macro_span("recall", right, asked, asked)
