"""How far stated probabilities can be believed, and what abstaining would gain.

Every function takes the probability that a model gave to its chosen answer (``confidence``), or to
every option, and whether the answer was right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean


def normalise(masses: Mapping[str, float], keys: Sequence[str]) -> dict[str, float]:
    """Probabilities over the options; an option that no token stood for has none.

    >>> normalise({"A": 0.25, "B": 0.25}, ["A", "B", "C"])
    {'A': 0.5, 'B': 0.5, 'C': 0.0}
    """
    total = sum(masses.get(key, 0.0) for key in keys)
    return {key: masses.get(key, 0.0) / total if total else 1 / len(keys) for key in keys}


def brier_score(probabilities: Sequence[Mapping[str, float]], golds: Sequence[str]) -> float | None:
    """The mean squared distance to the right answer, over all options; 0 is best, 2 worst.

    >>> brier_score([{"A": 1.0, "B": 0.0}, {"A": 0.5, "B": 0.5}], ["A", "A"])
    0.25
    """
    if not golds:
        return None
    return fmean(
        sum((p - (key == gold)) ** 2 for key, p in figures.items())
        for figures, gold in zip(probabilities, golds, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of like confidence: how sure they were, and how many were right."""

    low: float
    high: float
    confidence: float
    right: float
    n: int


def fill_bins(confidence: Sequence[float], right: Sequence[bool], count: int = 10) -> list[Bin]:
    """Bins of equal width over 0 to 1; empty ones are left out, 1.0 is in the last.

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
    """Mean gap between stated probability and observed share over bins, weighted by their size.

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
    """The answers at least as sure as ``threshold``: their share of all, and how many are wrong."""

    threshold: float
    coverage: float
    risk: float
    n: int


def risk_coverage(confidence: Sequence[float], right: Sequence[bool]) -> list[CurvePoint]:
    """The share of wrong answers among the surest, from the surest on; equal ones come together.

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
    """The mean risk over all coverages, one for each answer; equal confidences share theirs.

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
