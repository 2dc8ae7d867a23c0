"""Calibration and selective prediction from stated probabilities, and confident learning.

The calibration functions take the probability of the chosen answer (``confidence``) or of every
option, and whether the answer was correct. Confident learning finds likely label errors from
held-out predictions (Northcutt, Jiang and Chuang 2021, JAIR 70). It counts a class as confidently
predicted if the probability of that class reaches the class threshold. The threshold is the mean
probability of that class among items with that label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log2
from statistics import fmean

import numpy as np

from memantics.metrics.rounding import Floats, Ints, settle


def normalise(masses: Mapping[str, float], keys: Sequence[str]) -> dict[str, float]:
    """Normalise option scores to probabilities; an option without a token gets 0.

    >>> normalise({"A": 0.25, "B": 0.25}, ["A", "B", "C"])
    {'A': 0.5, 'B': 0.5, 'C': 0.0}
    """
    total = sum(masses.get(key, 0.0) for key in keys)
    return {key: masses.get(key, 0.0) / total if total else 1 / len(keys) for key in keys}


def brier_score(probabilities: Sequence[Mapping[str, float]], golds: Sequence[str]) -> float | None:
    """Brier score: mean squared distance to the correct answer over all options (best 0, worst 2).

    >>> brier_score([{"A": 1.0, "B": 0.0}, {"A": 0.5, "B": 0.5}], ["A", "A"])
    0.25
    """
    if not golds:
        return None
    return fmean(
        sum((p - (key == gold)) ** 2 for key, p in predicted.items())
        for predicted, gold in zip(probabilities, golds, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of answers of similar confidence: their mean confidence and proportion correct."""

    low: float
    high: float
    confidence: float
    right: float
    n: int


def fill_bins(confidence: Sequence[float], right: Sequence[bool], count: int = 10) -> list[Bin]:
    """Sort answers into bins of equal width over 0 to 1; skip empty bins; 1.0 is in the last bin.

    >>> [(point.low, point.n) for point in fill_bins([0.05, 0.1, 1.0], [True, False, True])]
    [(0.0, 1), (0.1, 1), (0.9, 1)]
    """
    found: dict[int, list[tuple[float, bool]]] = {}
    for sure, hit in zip(confidence, right, strict=True):
        place = min(count - 1, int(sure * count + 1e-9))
        found.setdefault(place, []).append((sure, hit))
    return [
        Bin(
            place / count,
            (place + 1) / count,
            fmean(s for s, _ in pairs),
            fmean(h for _, h in pairs),
            len(pairs),
        )
        for place, pairs in sorted(found.items())
    ]


def calibration_error(
    confidence: Sequence[float], right: Sequence[bool], count: int = 10
) -> float | None:
    """Expected calibration error: mean gap between confidence and accuracy, weighted by bin size.

    >>> calibration_error([0.9, 0.9], [True, False])
    0.4
    """
    if not confidence:
        return None
    gaps = (
        fill_bin.n * abs(fill_bin.confidence - fill_bin.right)
        for fill_bin in fill_bins(confidence, right, count)
    )
    return sum(gaps) / len(confidence)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Answers with a confidence of at least ``threshold``: their proportion and error rate."""

    threshold: float
    coverage: float
    risk: float
    n: int


def risk_coverage(confidence: Sequence[float], right: Sequence[bool]) -> list[CurvePoint]:
    """Risk-coverage curve: error rate among the most confident answers, for each coverage.

    >>> [(at.coverage, at.risk) for at in risk_coverage([0.9, 0.6, 0.6], [True, False, True])]
    [(0.3333333333333333, 0.0), (1.0, 0.3333333333333333)]
    """
    order = sorted(zip(confidence, right, strict=True), key=lambda pair: -pair[0])
    points, wrong = [], 0
    for place, (sure, hit) in enumerate(order, start=1):
        wrong += not hit
        if place == len(order) or order[place][0] != sure:
            points.append(CurvePoint(sure, place / len(order), wrong / place, place))
    return points


def area_under_risk(confidence: Sequence[float], right: Sequence[bool]) -> float | None:
    """Area under the risk-coverage curve: mean error rate over all coverages.

    >>> area_under_risk([0.9, 0.1], [True, False])
    0.25
    """
    points = risk_coverage(confidence, right)
    if not points:
        return None
    before, total = 0, 0.0
    for point in points:
        total += point.risk * (point.n - before)
        before = point.n
    return total / before


def find_thresholds(labels: Ints, chances: Floats) -> Floats:
    """Mean probability of each class among items with that label; 1 for a class without items.

    >>> find_thresholds(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]))
    array([0.7, 0.8])
    """
    sums = np.bincount(labels, chances[np.arange(len(labels)), labels], chances.shape[1])
    sizes = np.bincount(labels, minlength=chances.shape[1])
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), 1.0)


def name_confidently(labels: Ints, chances: Floats) -> Ints:
    """Most probable class among the classes that reach their threshold; -1 if none does."""
    reached = settle(chances) >= settle(find_thresholds(labels, chances))
    said: Ints = np.asarray(np.where(reached, settle(chances), -1.0).argmax(axis=1), np.int64)
    said[~reached.any(axis=1)] = -1
    return said


def count_confidently(labels: Ints, chances: Floats) -> Ints:
    """Confident joint: number of items by given label (rows) and confident class (columns).

    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
    >>> count_confidently(np.array([0, 0, 0, 1]), chances).tolist()
    [[2, 1], [0, 1]]
    """
    count, said = chances.shape[1], name_confidently(labels, chances)
    known = said >= 0
    cells = np.bincount(labels[known] * count + said[known], minlength=count * count)
    return np.asarray(cells.reshape(count, count), np.int64)


def estimate_joint(labels: Ints, chances: Floats) -> Floats:
    """Estimate proportions of items by given label and true class, scaled to the label counts.

    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
    >>> estimate_joint(np.array([0, 0, 0, 1]), chances).round(2).tolist()
    [[0.5, 0.25], [0.0, 0.25]]
    """
    joint = count_confidently(labels, chances).astype(float)
    sizes = np.bincount(labels, minlength=len(joint)).astype(float)
    empty = joint.sum(axis=1) == 0
    joint[empty, empty] = 1.0  # Without confident predictions the given labels are kept.
    scaled = joint / joint.sum(axis=1, keepdims=True) * sizes[:, None]
    return np.asarray(scaled / scaled.sum())


def rank_margins(labels: Ints, chances: Floats) -> Floats:
    """Normalised margin of each item: probability of its label minus the best other class.

    >>> rank_margins(np.array([0, 1]), np.array([[0.9, 0.1], [0.7, 0.3]])).round(1).tolist()
    [0.8, -0.4]
    """
    places = np.arange(len(labels))
    others = chances.copy()
    others[places, labels] = -1.0
    return np.asarray(chances[places, labels] - others.max(axis=1))


def find_doubtful(labels: Ints, chances: Floats) -> Ints:
    """Indices of likely label errors, most certain first: items off the diagonal of the joint.

    An item whose label is also its most probable class is not an error, as in cleanlab.

    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
    >>> find_doubtful(np.array([0, 0, 0, 1]), chances).tolist()
    [2]
    """
    said = name_confidently(labels, chances)
    likely = settle(chances).argmax(axis=1)
    flagged = np.flatnonzero((said >= 0) & (said != labels) & (likely != labels))
    margins = settle(rank_margins(labels, chances)[flagged])
    return np.asarray(flagged[np.argsort(margins, kind="stable")], np.int64)


def conditional_entropy(samples: Sequence[Sequence[Hashable]]) -> float | None:
    """Mean entropy of sampled decisions in bits, one row of samples per explanation.

    ExPO-HM measures with it whether an explanation decides: 0 if every sample of an explanation
    gives the same decision. Rows without samples are left out; None if no row has a sample.

    >>> conditional_entropy([["yes", "yes"], ["yes", "no"]]), conditional_entropy([[]])
    (0.5, None)
    """
    rows = [Counter(row) for row in samples if row]
    if not rows:
        return None
    return settle(fmean(_entropy(list(row.values())) for row in rows))


def _entropy(counts: Sequence[int]) -> float:
    total = sum(counts)
    return fsum(n / total * log2(total / n) for n in counts)
