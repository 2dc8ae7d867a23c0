"""Distances between a predicted distribution of labels and that of the annotators."""

from __future__ import annotations

import math
from collections.abc import Mapping

_SMOOTH = 0.001


def smooth(row: Mapping[str, float]) -> dict[str, float]:
    """Replace zeros by 0.001 and divide by the sum.

    >>> smooth({"yes": 1.0, "no": 0.0})["no"] == 0.001 / 1.001
    True
    """
    raised = {name: value if value > 0 else _SMOOTH for name, value in row.items()}
    total = sum(raised.values())
    return {name: value / total for name, value in raised.items()}


def cross_entropy(gold: Mapping[str, float], predicted: Mapping[str, float]) -> float:
    """Return the cross-entropy in bits; zeros of both distributions are smoothed.

    >>> round(cross_entropy({"yes": 0.5, "no": 0.5}, {"yes": 0.5, "no": 0.5}), 6)
    1.0
    """
    said = smooth(predicted)
    return -sum(weight * math.log2(said[name]) for name, weight in smooth(gold).items())


def binary_cross_entropy(gold: Mapping[str, float], predicted: Mapping[str, float]) -> float:
    """Return the mean cross-entropy of the labels, each of them given or not given.

    >>> round(binary_cross_entropy({"a": 0.5, "b": 1.0}, {"a": 0.5, "b": 0.5}), 3)
    1.0
    """
    pairs = [
        cross_entropy({"1": weight, "0": 1 - weight}, {"1": said, "0": 1 - said})
        for weight, said in ((gold[name], predicted.get(name, 0.0)) for name in gold)
    ]
    return sum(pairs) / len(pairs)


def jensen_shannon(gold: Mapping[str, float], predicted: Mapping[str, float]) -> float:
    """Return the Jensen–Shannon divergence in bits, from 0 to 1.

    >>> jensen_shannon({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0})
    1.0
    """
    names = {*gold, *predicted}
    first = [gold.get(name, 0.0) for name in sorted(names)]
    second = [predicted.get(name, 0.0) for name in sorted(names)]
    middle = [(one + two) / 2 for one, two in zip(first, second, strict=True)]

    def measure(row: list[float]) -> float:
        return sum(p * math.log2(p / m) for p, m in zip(row, middle, strict=True) if p > 0)

    return max(0.0, (measure(first) + measure(second)) / 2)


def manhattan(gold: Mapping[str, float], predicted: Mapping[str, float]) -> float:
    """Return the sum of absolute differences (Manhattan distance).

    >>> manhattan({"a": 0.75, "b": 0.25}, {"a": 0.25, "b": 0.75})
    1.0
    """
    names = sorted({*gold, *predicted})
    return sum(abs(gold.get(name, 0.0) - predicted.get(name, 0.0)) for name in names)
