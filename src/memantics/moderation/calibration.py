"""Calibration and thresholds: raw scores to probabilities and labels, fitted on held-out scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memantics.metrics.classification import macro_f1, place_macro_f1
from memantics.metrics.rounding import Floats, Ints, settle
from memantics.moderation.examples import Example
from memantics.moderation.kernel import list_types

_RIDGE = 10.0
_SMALL = 50
_WIDTH = 0.03


@dataclass(frozen=True, slots=True)
class Softmax:
    """A softmax over weighted scores, each standardised to mean 0 and standard deviation 1."""

    mean: Floats
    deviation: Floats
    weights: Floats
    intercepts: Floats

    def logits(self, scores: Floats) -> Floats:
        """Compute one column of logits per class.

        Sums run row by row, so that the result of a row does not depend on the batch.
        """
        scaled = (scores - self.mean) / self.deviation
        found: Floats = (scaled[:, :, None] * self.weights[None]).sum(axis=1) + self.intercepts
        return found

    def probabilities(self, scores: Floats) -> Floats:
        """Compute one column of probabilities per class; each row sums to 1."""
        return normalise(self.logits(scores))


def normalise(logits: Floats) -> Floats:
    """Compute the softmax of each row.

    >>> normalise(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def fit_softmax(
    scores: Floats, classes: Ints, count: int, importance: Floats | None = None
) -> Softmax:
    """Fit multinomial logistic regression with a small ridge penalty.

    The probabilities are calibrated if no ``importance`` weights are given.
    """
    from scipy.optimize import minimize

    mean = scores.mean(axis=0)
    deviation = np.maximum(scores.std(axis=0), 1e-6)
    scaled = (scores - mean) / deviation
    size, columns = scaled.shape
    heavy = np.ones(size) if importance is None else importance / importance.mean()
    truth = np.zeros((size, count))
    truth[np.arange(size), classes] = 1

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat[: columns * count].reshape(columns, count)
        shares = normalise(scaled @ weights + flat[columns * count :])
        picked = np.maximum(shares[np.arange(size), classes], 1e-300)
        slope = (shares - truth) * heavy[:, None]
        value = -(heavy * np.log(picked)).sum() + _RIDGE / 2 * (weights**2).sum()
        gradient = np.concatenate(
            [(scaled.T @ slope + _RIDGE * weights).ravel(), slope.sum(axis=0)]
        )
        return float(value), gradient

    start = np.zeros((columns + 1) * count)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    weights = found.x[: columns * count].reshape(columns, count)
    return Softmax(mean, deviation, weights, found.x[columns * count :])


def fit_even(scores: Floats, labels: Ints, groups: Ints) -> Softmax:
    """Fit a softmax with classes balanced within each group, then calibrate on unweighted memes.

    Calibration scales and shifts the log-odds: probabilities change, their order does not.
    """
    even = fit_softmax(scores, labels, 2, even_out(labels, groups))
    logits = even.logits(scores)
    odds = (logits[:, 1] - logits[:, 0])[:, None]
    last = fit_softmax(odds, labels, 2)
    slope = (last.weights[0, 1] - last.weights[0, 0]) / last.deviation[0]
    shift = last.intercepts[1] - last.intercepts[0] - slope * last.mean[0]
    weights = slope * (even.weights[:, 1] - even.weights[:, 0])
    constant = slope * (even.intercepts[1] - even.intercepts[0]) + shift
    zeros = np.zeros_like(weights)
    return Softmax(
        even.mean, even.deviation, np.column_stack([zeros, weights]), np.array([0.0, constant])
    )


def fit_types(scores: Floats, classes: Ints, count: int) -> Softmax:
    """Fit a softmax with higher weights for rare classes, then correct for class frequencies."""
    heavy = np.maximum(1, np.bincount(classes, minlength=count)) ** -0.5
    found = fit_softmax(scores, classes, count, heavy[classes])
    return replace(found, intercepts=found.intercepts - np.log(heavy))


def even_out(labels: Ints, groups: Ints, power: float = 1.0) -> Floats:
    """Compute weights that balance the classes within each group, except for very small cells.

    Without balancing, features that identify a group with many harmful memes would be used as
    evidence of harm.

    >>> even_out(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]), 1.0).round(2).tolist()
    [0.99, 0.99, 0.99, 1.03]
    """
    weights = np.ones(len(labels))
    for group in np.unique(groups):
        for label in (0, 1):
            cell = (groups == group) & (labels == label)
            weights[cell] = float(cell.sum() + _SMALL) ** -power
    even: Floats = weights / weights.mean()
    return even


def choose_threshold(chances: Floats, truth: Ints) -> float:
    """Choose the threshold with the best macro-F1 on a smoothed curve.

    Smoothing avoids a threshold that is best only by chance.

    >>> round(choose_threshold(np.array([0.1, 0.2, 0.7, 0.9]), np.array([0, 0, 1, 1])), 2)
    0.45
    """
    chances = settle(chances)
    order = np.argsort(chances, kind="stable")
    positives, total = int(truth.sum()), len(truth)
    # True positives and predicted positives for every cut of the sorted scores at once.
    hits = positives - np.concatenate([[0], np.cumsum(truth[order])])
    calls = total - np.arange(total + 1)
    other = total - positives - (calls - hits)
    members = np.broadcast_to([float(positives), float(total - positives)], (total + 1, 2))
    values = macro_f1(np.stack([hits, other], -1), np.stack([calls, total - calls], -1), members)
    grid = np.linspace(0.02, 0.98, 193)
    curve = values[np.searchsorted(chances[order], grid)]
    pull = np.exp(-0.5 * ((grid[:, None] - grid) / _WIDTH) ** 2)
    smooth = (pull / pull.sum(axis=1, keepdims=True)) @ curve
    high = np.flatnonzero(smooth >= smooth.max() - 1e-9)
    return float(grid[high[len(high) // 2]])


def choose_biases(logits: Floats, truth: Ints, rounds: int = 4) -> Floats:
    """Choose additive biases per class by coordinate ascent on macro-F1; the first stays 0."""
    count = logits.shape[1]
    biases = np.zeros(count)
    best = place_macro_f1(truth, logits.argmax(axis=1), count)
    for turn in range(rounds):
        for label in range(1, count):
            for step in np.linspace(-1.5, 1.5, 31) / (turn + 1):
                tried = biases.copy()
                tried[label] += step
                value = place_macro_f1(truth, (logits + tried).argmax(axis=1), count)
                if value > best + 1e-9:
                    best, kept = value, tried
                    biases = kept
    return biases


def reliability(
    chances: Sequence[float], truth: Sequence[int], bins: int = 10
) -> list[tuple[float, float, int]]:
    """Compute mean probability, proportion of harmful memes and count, in bins of equal size.

    >>> reliability([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], 2)
    [(0.15000000000000002, 0.0, 2), (0.8500000000000001, 1.0, 2)]
    """
    order = np.argsort(settle(np.asarray(chances)), kind="stable")
    found = []
    for places in np.array_split(order, min(bins, len(order))):
        predicted = np.asarray(chances, float)[places]
        found.append(
            (float(predicted.mean()), float(np.asarray(truth)[places].mean()), len(places))
        )
    return found


def calibration_error(points: Sequence[tuple[float, float, int]]) -> float:
    """Compute the expected calibration error: mean gap of probability and proportion per bin.

    >>> calibration_error([(0.2, 0.1, 10), (0.8, 0.9, 10)])
    0.1
    """
    total = sum(count for _, _, count in points)
    return round(sum(abs(a - b) * count for a, b, count in points) / total, 12) if total else 0.0


# Decisions: from head scores to probabilities and labels.

Flags = NDArray[np.bool_]
_NESTED = 5


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """How scores become probabilities and labels.

    For harm: a softmax of harmless and harmful with a ``threshold`` and, if types are known, a
    softmax of types with one bias per type. For other labels: one softmax with one bias per class,
    or with ``several`` (multi-label) a two-class softmax per class and its threshold in ``biases``.
    """

    softmaxes: tuple[Softmax, ...]
    biases: Floats
    threshold: float | None = None
    hierarchical: bool = False
    several: bool = False

    def decide_harm(self, scores: Floats) -> tuple[Floats, Ints, Floats | None, Ints | None]:
        """Return probability of harm, label, type probabilities and type index."""
        harm, *kinds = self.softmaxes
        chances = harm.probabilities(scores)[:, 1]
        labels = (settle(chances) >= settle(self.threshold or 0.0)).astype(np.int64)
        if not kinds:
            return chances, labels, None, None
        logits = kinds[0].logits(scores) + self.biases
        if self.hierarchical:
            logits[:, 0] = np.where(labels == 1, -np.inf, np.inf)
        return chances, labels, kinds[0].probabilities(scores), logits.argmax(axis=1)

    def decide(self, scores: Floats) -> tuple[Floats, list[tuple[int, ...]]]:
        """Return class probabilities, and the indices of the predicted classes."""
        if not self.several:
            (whole,) = self.softmaxes
            best = (whole.logits(scores) + self.biases).argmax(axis=1)
            return whole.probabilities(scores), [(int(place),) for place in best]
        chances = np.column_stack(
            [softmax.probabilities(scores)[:, 1] for softmax in self.softmaxes]
        )
        held = settle(chances) >= settle(
            self.biases
        )  # a probability equal to the threshold counts as predicted
        return chances, [tuple(np.flatnonzero(row).tolist()) for row in held]


class FoldScore(NamedTuple):
    """A metric of held-out predictions, and its standard error over the folds."""

    value: float
    error: float


def rate_folds(metric: Callable[[Flags], float], folds: Ints) -> FoldScore:
    """Compute a metric of all rows, and its standard error by a jackknife over the folds.

    ``metric`` maps a mask of rows to a value. Values without one fold may be undefined (NaN) if a
    class is missing; they are not used.

    >>> marks = np.array([1.0, 1.0, 0.0, 1.0])
    >>> found = rate_folds(lambda rows: float(marks[rows].mean()), np.array([0, 0, 1, 1]))
    >>> found.value, round(found.error, 2)
    (0.75, 0.25)
    """
    every = np.ones(len(folds), bool)
    parts = np.array([metric(folds != fold) for fold in np.unique(folds)])
    parts = parts[~np.isnan(parts)]
    count = len(parts)
    spread = float(((parts - parts.mean()) ** 2).sum()) if count else 0.0
    return FoldScore(metric(every), math.sqrt(spread * (count - 1) / count) if count else 0.0)


def rate_harm(table: Floats, labels: Ints, groups: Ints) -> FoldScore:
    """Compute macro-F1 of held-out scores at their best threshold."""
    chances = fit_even(table, labels, groups).probabilities(table)[:, 1]
    said = (chances >= choose_threshold(chances, labels)).astype(np.int64)
    return rate_folds(lambda rows: place_macro_f1(labels[rows], said[rows], 2), groups)


def fit_harm_decision(
    table: Floats,
    examples: Sequence[Example],
    heads: Sequence[str],
    groups: Ints,
    *,
    hierarchical: bool,
) -> DecisionRule:
    """Fit calibration and thresholds for harm on scores of held-out examples."""
    labels = np.array([int(e.label or 0) for e in examples], np.int64)
    harm = fit_even(table, labels, groups)
    threshold = choose_threshold(harm.probabilities(table)[:, 1], labels)
    types = list_types(heads)
    if not types:
        return DecisionRule((harm,), np.zeros(0), threshold)
    known = [place for place, e in enumerate(examples) if e.type in types]
    truth = np.array([types.index(str(examples[place].type)) for place in known], np.int64)
    kinds = fit_types(table[known], truth, len(types))
    biases = choose_biases(kinds.logits(table[known]), truth)
    return DecisionRule((harm, kinds), biases, threshold, hierarchical)


class Nested(NamedTuple):
    """Decisions on each fold with calibration fitted on the other folds, and their macro-F1.

    ``error`` is the standard error of the macro-F1 over the folds.
    """

    chances: Floats
    places: list[tuple[int, ...]]
    value: float
    error: float
    biased: bool


def decide_nested(table: Floats, signs: Flags, folds: Ints, *, several: bool) -> Nested:
    """Choose between decisions with and without class biases, by nested cross-validation.

    Biases are kept only if they improve macro-F1 on folds that they were not fitted on.
    """
    plain, biased = (
        _decide_nested(table, signs, folds, several=several, biased=biased)
        for biased in (False, True)
    )
    return biased if biased.value > plain.value else plain


def _decide_nested(
    table: Floats, signs: Flags, folds: Ints, *, several: bool, biased: bool
) -> Nested:
    chances = np.zeros(signs.shape)
    places: list[tuple[int, ...]] = [()] * len(signs)
    for fold in range(_NESTED):
        out = folds % _NESTED == fold
        if not out.any() or out.all():
            continue
        decision = fit_decision(table[~out], signs[~out], several=several, biased=biased)
        chances[out], said = decision.decide(table[out])
        for place, labels in zip(np.flatnonzero(out).tolist(), said, strict=True):
            places[place] = labels
    classes = range(signs.shape[1])
    held = np.array([[label in said for label in classes] for said in places])

    def measure(rows: Flags) -> float:
        gold, taken = signs[rows], held[rows]
        if not several:
            return place_macro_f1(gold.argmax(axis=1), taken.argmax(axis=1), signs.shape[1])
        pairs = [(gold[:, n].astype(np.int64), taken[:, n].astype(np.int64)) for n in classes]
        return float(np.mean([place_macro_f1(known, said, 2) for known, said in pairs]))

    value, error = rate_folds(measure, folds)
    return Nested(chances, places, value, error, biased)


def fit_decision(
    table: Floats, signs: Flags, *, several: bool, biased: bool = True
) -> DecisionRule:
    """Fit calibration and biases or thresholds for any labels on scores of held-out examples.

    Without ``biased`` the most probable class is predicted; with several labels per meme, each
    label with a probability of at least one half.
    """
    count = signs.shape[1]
    if not several:
        truth = signs.argmax(axis=1).astype(np.int64)
        whole = fit_types(table, truth, count)
        biases = choose_biases(whole.logits(table), truth) if biased else np.zeros(count)
        return DecisionRule((whole,), biases)
    made, thresholds = [], []
    for place in range(count):
        truth = signs[:, place].astype(np.int64)
        made.append(fit_softmax(table, truth, 2))
        chances = made[-1].probabilities(table)[:, 1]
        thresholds.append(choose_threshold(chances, truth) if biased else 0.5)
    return DecisionRule(tuple(made), np.array(thresholds), several=True)
