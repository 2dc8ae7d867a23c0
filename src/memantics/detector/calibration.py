"""From raw scores to probabilities and decisions, fitted on predictions for held-out memes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memantics.metrics.rounding import settle

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_RIDGE = 10.0
_SMALL = 50
_WIDTH = 0.03


@dataclass(frozen=True, slots=True)
class Softmax:
    """A softmax over weighted scores, after each was brought to mean 0 and deviation 1."""

    mean: Floats
    deviation: Floats
    weights: Floats
    intercepts: Floats

    def logits(self, scores: Floats) -> Floats:
        """One column per class. Sums run row by row, so that rows do not depend on each other."""
        scaled = (scores - self.mean) / self.deviation
        found: Floats = (scaled[:, :, None] * self.weights[None]).sum(axis=1) + self.intercepts
        return found

    def probabilities(self, scores: Floats) -> Floats:
        """One column per class, each row with sum 1."""
        return normalise(self.logits(scores))


def normalise(logits: Floats) -> Floats:
    """Softmax of each row.

    >>> normalise(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def fit_softmax(
    scores: Floats, classes: Ints, count: int, importance: Floats | None = None
) -> Softmax:
    """Multinomial logistic regression with a light ridge; calibrated where nothing is weighted."""
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
    """A combination of scores learnt with groups evened out, then calibrated on memes as they are.

    Calibration stretches and shifts the log-odds: it changes chances, and no order.
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
    """A softmax in whose fit rare classes weigh more; chances are brought back to their shares."""
    heavy = np.maximum(1, np.bincount(classes, minlength=count)) ** -0.5
    found = fit_softmax(scores, classes, count, heavy[classes])
    return replace(found, intercepts=found.intercepts - np.log(heavy))


def even_out(labels: Ints, groups: Ints, power: float = 1.0) -> Floats:
    """Weights under which classes weigh the same in each group, up to very small cells.

    Where groups differ in their share of harmful memes, what tells groups apart would pass for
    what tells harm apart; evened out, it does not.

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


def macro_f1(truth: Ints, said: Ints, count: int) -> float:
    """Mean F1 over the classes that occur; quick, for searches.

    >>> macro_f1(np.array([0, 1, 1]), np.array([0, 1, 0]), 2)
    0.6666666666666666
    """
    cells = np.bincount(truth * count + said, minlength=count * count).reshape(count, count)
    both = cells.sum(axis=0) + cells.sum(axis=1)
    occurs = both > 0
    return float((2 * np.diag(cells)[occurs] / both[occurs]).mean())


def choose_threshold(chances: Floats, truth: Ints) -> float:
    """The threshold with the best macro-F1, once its curve is smoothed.

    The very best point of a jagged curve is luck; the middle of a high stretch carries over.

    >>> round(choose_threshold(np.array([0.1, 0.2, 0.7, 0.9]), np.array([0, 0, 1, 1])), 2)
    0.45
    """
    chances = settle(chances)
    order = np.argsort(chances, kind="stable")
    positives, total = int(truth.sum()), len(truth)
    # Calling all from place i on harmful: hits and calls for each i at once.
    hits = positives - np.concatenate([[0], np.cumsum(truth[order])])
    calls = total - np.arange(total + 1)
    other = total - positives - (calls - hits)
    f_harmful = 2 * hits / np.maximum(1, positives + calls)
    f_harmless = 2 * other / np.maximum(1, 2 * total - positives - calls)
    grid = np.linspace(0.02, 0.98, 193)
    curve = ((f_harmful + f_harmless) / 2)[np.searchsorted(chances[order], grid)]
    pull = np.exp(-0.5 * ((grid[:, None] - grid) / _WIDTH) ** 2)
    smooth = (pull / pull.sum(axis=1, keepdims=True)) @ curve
    high = np.flatnonzero(smooth >= smooth.max() - 1e-9)
    return float(grid[high[len(high) // 2]])


def choose_biases(logits: Floats, truth: Ints, rounds: int = 4) -> Floats:
    """Additive biases per class by coordinate ascent on macro-F1; the first stays 0."""
    count = logits.shape[1]
    biases = np.zeros(count)
    best = macro_f1(truth, logits.argmax(axis=1), count)
    for turn in range(rounds):
        for place in range(1, count):
            for step in np.linspace(-1.5, 1.5, 31) / (turn + 1):
                tried = biases.copy()
                tried[place] += step
                value = macro_f1(truth, (logits + tried).argmax(axis=1), count)
                if value > best + 1e-9:
                    best, kept = value, tried
                    biases = kept
    return biases


def reliability(
    chances: Sequence[float], truth: Sequence[int], bins: int = 10
) -> list[tuple[float, float, int]]:
    """Mean chance, share of harmful memes and count, in bins of equal size.

    >>> reliability([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], 2)
    [(0.15000000000000002, 0.0, 2), (0.8500000000000001, 1.0, 2)]
    """
    order = np.argsort(settle(np.asarray(chances)), kind="stable")
    found = []
    for places in np.array_split(order, min(bins, len(order))):
        values = np.asarray(chances, float)[places]
        found.append((float(values.mean()), float(np.asarray(truth)[places].mean()), len(places)))
    return found


def calibration_error(points: Sequence[tuple[float, float, int]]) -> float:
    """Expected calibration error: mean distance of chance and share, weighted by count.

    >>> calibration_error([(0.2, 0.1, 10), (0.8, 0.9, 10)])
    0.1
    """
    total = sum(count for _, _, count in points)
    return round(sum(abs(a - b) * count for a, b, count in points) / total, 12) if total else 0.0
