"""Fitting the small linear models: logistic regression and choice among candidates.

Plain numpy, Newton's method with a ridge: a few dozen features, exact in a handful of steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memantics.phonetics.ranking import Linear

Matrix = npt.NDArray[np.float64]
_STEPS, _ENOUGH = 50, 1e-8


def _scale(rows: Matrix) -> tuple[Matrix, Matrix]:
    spread = rows.std(axis=0)
    return rows.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)


def fit_logistic(
    rows: Matrix, labels: npt.NDArray[np.bool_], names: Sequence[str], ridge: float = 1.0
) -> Linear:
    """Logistic regression; the ridge acts on standardised features, not on the bias.

    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = fit_logistic(rows, np.array([False, False, True, True]), ["x"])
    >>> model.probability({"x": 0.0}) < 0.5 < model.probability({"x": 3.0})
    True
    """
    middle, spread = _scale(rows)
    design = np.hstack([(rows - middle) / spread, np.ones((len(rows), 1))])
    target = labels.astype(float)
    penalty = np.full(design.shape[1], float(ridge))
    penalty[-1] = 1e-6
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (chance - target) + penalty * weights
        curve = (design * (chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(curve, gradient)
        weights -= step
        if np.abs(step).max() < _ENOUGH:
            break
    raw = weights[:-1] / spread
    bias = float(weights[-1] - raw @ middle)
    return Linear(dict(zip(names, map(float, raw), strict=True)), bias)


def fit_choice(
    groups: Sequence[tuple[Matrix, int]], names: Sequence[str], ridge: float = 1.0
) -> Linear:
    """Weights under which the right one of each group's rows scores highest (softmax).

    >>> groups = [(np.array([[1.0], [0.0]]), 0), (np.array([[0.2], [0.9]]), 1)]
    >>> fit_choice(groups, ["x"]).weights["x"] > 0
    True
    """
    middle, spread = _scale(np.vstack([rows for rows, _ in groups]))
    scaled = [((rows - middle) / spread, right) for rows, right in groups]
    weights = np.zeros(len(names))
    for _ in range(_STEPS):
        gradient = ridge * weights
        curve = np.diag(np.full(len(names), float(ridge)))
        for rows, right in scaled:
            scores = rows @ weights
            chance = np.exp(scores - scores.max())
            chance /= chance.sum()
            mean = chance @ rows
            gradient = gradient - (rows[right] - mean)
            curve += (rows * chance[:, None]).T @ rows - np.outer(mean, mean)
        step = np.linalg.solve(curve, gradient)
        size = np.abs(step).max()
        weights -= step * min(1.0, 2.0 / max(size, 1e-9))  # damped: far from the top it overshoots
        if size < _ENOUGH:
            break
    return Linear(dict(zip(names, map(float, weights / spread), strict=True)))
