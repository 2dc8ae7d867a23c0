"""Multinomial naive Bayes from feature counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable

import numpy as np

from memantics.metrics.rounding import Floats

Features = Counter[str]
_ALPHA = 0.5


def log_rates(counts: Floats, alpha: float) -> Floats:
    """Smoothed log-probabilities of each feature by class.

    Args:
        counts: How often each feature occurs: one row per class, one column per feature.
        alpha: Smoothing constant added to every count.

    Returns:
        An array of the same shape as ``counts``; ``features @ log_rates(...).T`` are
        log-likelihoods.

    >>> np.exp(log_rates(np.array([[3.0, 0.0]]), 0.5)).round(3).tolist()
    [[0.875, 0.125]]
    """
    smooth = counts + alpha
    rates: Floats = np.log(smooth / smooth.sum(axis=1, keepdims=True))
    return rates


class NaiveBayes:
    """Multinomial naive Bayes over named features, trained one example at a time.

    >>> learner = NaiveBayes()
    >>> learner.add(Counter(["cat"]), "a")
    >>> learner.add(Counter(["dog"]), "b")
    >>> learner.classify(Counter(["dog"]))
    'b'
    """

    def __init__(self, alpha: float = _ALPHA) -> None:
        self._alpha = alpha
        self._features: dict[Hashable, Features] = {}
        self._items: Counter[Hashable] = Counter()
        self._rates: dict[Hashable, dict[str, float]] = {}

    def add(self, features: Features, name: Hashable) -> None:
        """Train on one example of the class ``name``."""
        self._rates.clear()
        self._features.setdefault(name, Counter()).update(features)
        self._items[name] += 1

    def odds(self, features: Features, one: Hashable, other: Hashable) -> float:
        """Log-likelihood ratio of two classes, without priors."""
        return self._likelihood(features, one) - self._likelihood(features, other)

    def classify(self, features: Features) -> Hashable:
        """Most probable class, with class priors; in a tie, the alphabetically first class."""
        return max(
            sorted(self._items, key=str),
            key=lambda name: math.log(self._items[name]) + self._likelihood(features, name),
        )

    def _likelihood(self, features: Features, name: Hashable) -> float:
        """Log-likelihood of a class (uniform without examples); unknown features are ignored."""
        if name not in self._rates:
            known = list(dict.fromkeys(key for each in self._features.values() for key in each))
            counts = self._features.get(name, Counter())
            rates = log_rates(np.array([[counts[key] for key in known]], float), self._alpha)
            self._rates[name] = dict(zip(known, rates[0].tolist(), strict=True))
        logs = self._rates[name]
        return sum(count * logs[key] for key, count in features.items() if key in logs)
