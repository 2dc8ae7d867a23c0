"""Confident learning: which labels are probably wrong, from chances of held-out predictions.

Northcutt, Jiang and Chuang 2021 (Journal of Artificial Intelligence Research 70). A class is said
with confidence where its chance reaches the mean chance of that class among memes labelled so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memantics.metrics.rounding import settle

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def find_thresholds(labels: Ints, chances: Floats) -> Floats:
    """By class the mean chance of it among items that are labelled so; 1 where there are none.

    >>> find_thresholds(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]))
    array([0.7, 0.8])
    """
    sums = np.bincount(labels, chances[np.arange(len(labels)), labels], chances.shape[1])
    sizes = np.bincount(labels, minlength=chances.shape[1])
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), 1.0)


def name_confidently(labels: Ints, chances: Floats) -> Ints:
    """The likeliest class of those that reach their threshold; -1 where none does."""
    reached = settle(chances) >= settle(find_thresholds(labels, chances))
    said: Ints = np.asarray(np.where(reached, settle(chances), -1.0).argmax(axis=1), np.int64)
    said[~reached.any(axis=1)] = -1
    return said


def count_confidently(labels: Ints, chances: Floats) -> Ints:
    """The confident joint: items by given label (rows) and confident class (columns).

    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
    >>> count_confidently(np.array([0, 0, 0, 1]), chances).tolist()
    [[2, 1], [0, 1]]
    """
    count, said = chances.shape[1], name_confidently(labels, chances)
    known = said >= 0
    cells = np.bincount(labels[known] * count + said[known], minlength=count * count)
    return np.asarray(cells.reshape(count, count), np.int64)


def estimate_joint(labels: Ints, chances: Floats) -> Floats:
    """Shares of items by given label and true class: the joint, its rows scaled to the labels.

    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
    >>> estimate_joint(np.array([0, 0, 0, 1]), chances).round(2).tolist()
    [[0.5, 0.25], [0.0, 0.25]]
    """
    joint = count_confidently(labels, chances).astype(float)
    sizes = np.bincount(labels, minlength=len(joint)).astype(float)
    empty = joint.sum(axis=1) == 0
    joint[empty, empty] = 1.0  # nothing was said with confidence: the labels stand
    scaled = joint / joint.sum(axis=1, keepdims=True) * sizes[:, None]
    return np.asarray(scaled / scaled.sum())


def rank_margins(labels: Ints, chances: Floats) -> Floats:
    """The normalised margin of each item: chance of its label less that of the best other class.

    >>> rank_margins(np.array([0, 1]), np.array([[0.9, 0.1], [0.7, 0.3]])).round(1).tolist()
    [0.8, -0.4]
    """
    places = np.arange(len(labels))
    others = chances.copy()
    others[places, labels] = -1.0
    return np.asarray(chances[places, labels] - others.max(axis=1))


def find_doubtful(labels: Ints, chances: Floats) -> Ints:
    """Places whose label is probably wrong, the surest first: those off the joint's diagonal.

    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
    >>> find_doubtful(np.array([0, 0, 0, 1]), chances).tolist()
    [2]
    """
    said = name_confidently(labels, chances)
    flagged = np.flatnonzero((said >= 0) & (said != labels))
    margins = settle(rank_margins(labels, chances)[flagged])
    return np.asarray(flagged[np.argsort(margins, kind="stable")], np.int64)
