"""Aggregation of annotations that weighs annotators by their reliability: Dawid–Skene and MACE.

Both give the probability of each label of each item. The results equal those of crowd-kit 1.4.2
(Dawid–Skene; MACE with variational Bayes, if annotators and labels first occur in sorted order).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memantics.metrics.rounding import Floats

_LEAST = 1e-10


@dataclass(frozen=True, slots=True)
class AnnotatedLabel:
    """The label that one annotator gave to one item."""

    item: str
    annotator: str
    label: str


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The probability of each label of each item, and the reliability of each annotator.

    ``reliability`` is the probability of a correct label (Dawid–Skene: the mean over labels; MACE:
    the probability that the annotator does not guess).
    """

    probabilities: dict[str, dict[str, float]]
    reliability: dict[str, float]

    def choose(self, item: str) -> str:
        """Return the most probable label of an item; ties go to the first in sorted order."""
        row = self.probabilities[item]
        return min(row, key=lambda name: (-round(row[name], 9), name))


@dataclass(frozen=True, slots=True)
class _Coded:
    """Votes as numbers of items, annotators and labels."""

    items: list[str]
    annotators: list[str]
    labels: list[str]
    t: np.ndarray[tuple[int], np.dtype[np.intp]]
    w: np.ndarray[tuple[int], np.dtype[np.intp]]
    y: np.ndarray[tuple[int], np.dtype[np.intp]]

    @classmethod
    def of(cls, votes: Sequence[AnnotatedLabel]) -> _Coded:
        items = list(dict.fromkeys(vote.item for vote in votes))
        annotators = sorted({vote.annotator for vote in votes})
        labels = sorted({vote.label for vote in votes})
        places = [{name: n for n, name in enumerate(s)} for s in (items, annotators, labels)]
        return cls(
            items,
            annotators,
            labels,
            np.array([places[0][vote.item] for vote in votes]),
            np.array([places[1][vote.annotator] for vote in votes]),
            np.array([places[2][vote.label] for vote in votes]),
        )

    def name(self, table: Floats, reliability: Floats) -> Aggregated:
        rows = {
            item: dict(zip(self.labels, map(float, row), strict=True))
            for item, row in zip(self.items, table, strict=True)
        }
        return Aggregated(rows, dict(zip(self.annotators, map(float, reliability), strict=True)))


def dawid_skene(
    votes: Sequence[AnnotatedLabel], rounds: int = 100, tolerance: float = 1e-5
) -> Aggregated:
    """Estimate labels and the confusion matrix of each annotator by expectation maximisation.

    >>> votes = [AnnotatedLabel(i, a, l) for i, a, l in (
    ...     ("1", "p", "no"), ("1", "q", "no"), ("1", "r", "yes"),
    ...     ("2", "p", "yes"), ("2", "q", "yes"), ("2", "r", "yes"))]
    >>> found = dawid_skene(votes)
    >>> found.choose("1"), found.choose("2")
    ('no', 'yes')
    """
    if not votes:
        return Aggregated({}, {})
    coded = _Coded.of(votes)
    shape = (len(coded.items), len(coded.labels))
    rates = np.zeros(shape)
    np.add.at(rates, (coded.t, coded.y), 1.0)
    rates /= rates.sum(axis=1, keepdims=True)
    priors, errors = rates.mean(axis=0), _count_errors(coded, rates)
    loss = -np.inf
    for _ in range(rounds):
        logs = np.log2(np.clip(priors, _LEAST, None)) + np.zeros(shape)
        np.add.at(logs, coded.t, np.log2(errors[coded.w, coded.y]))
        rates = np.exp2(logs - logs.max(axis=1, keepdims=True))
        rates /= rates.sum(axis=1, keepdims=True)
        priors, errors = np.clip(rates.mean(axis=0), _LEAST, None), _count_errors(coded, rates)
        new = _bound(coded, rates, priors, errors) / len(votes)
        rates = np.clip(rates, _LEAST, None)
        if new - loss < tolerance:
            break
        loss = new
    places = np.arange(shape[1])
    return coded.name(rates, np.asarray(errors[:, places, places].mean(axis=1)))


def _count_errors(coded: _Coded, rates: Floats) -> Floats:
    """Return the probability that each annotator gives each label for each true label."""
    size = len(coded.labels)
    errors = np.zeros((len(coded.annotators), size, size))
    np.add.at(errors, (coded.w, coded.y), rates[coded.t])
    given = np.zeros(errors.shape[:2], bool)
    given[coded.w, coded.y] = True
    errors = np.where(given[:, :, None], np.clip(errors, _LEAST, None), 0.0)
    return np.asarray(errors / errors.sum(axis=1, keepdims=True))


def _bound(coded: _Coded, rates: Floats, priors: Floats, errors: Floats) -> float:
    """Return the evidence lower bound that decides when to stop."""
    joint = np.log(errors[coded.w, coded.y]) + np.log(priors)
    clipped = np.clip(rates, _LEAST, None)
    return float((rates[coded.t] * joint).sum() - (np.log(clipped) * clipped).sum())


def mace(votes: Sequence[AnnotatedLabel], rounds: int = 50, noise: float = 0.5) -> Aggregated:
    """Estimate labels and how often each annotator guesses (Hovy et al. 2013), deterministically.

    >>> votes = [AnnotatedLabel(str(i), a, l) for i in range(4) for a, l in (
    ...     ("p", "no" if i % 2 else "yes"), ("q", "no" if i % 2 else "yes"), ("r", "yes"))]
    >>> found = mace(votes)
    >>> found.choose("1"), found.reliability["p"] > found.reliability["r"]
    ('no', True)
    """
    if not votes:
        return Aggregated({}, {})
    coded = _Coded.of(votes)
    people, labels = len(coded.annotators), len(coded.labels)
    draws = [
        1 + (1 + noise) * np.random.RandomState(0).uniform(size=(people, width))
        for width in (2, labels)
    ]
    guessing, strategy = (draw / draw.sum(axis=1, keepdims=True) for draw in draws)
    marginals, counts, knowing = _expect(coded, guessing, strategy)
    for _ in range(rounds):
        guessing = _normalise(knowing, np.array([0.5, 0.5]))
        strategy = _normalise(counts, np.full(labels, 10.0))
        marginals, counts, knowing = _expect(coded, guessing, strategy)
    rates = marginals / marginals.sum(axis=1, keepdims=True)
    knows = guessing[:, 1] / guessing.sum(axis=1)
    return coded.name(rates, np.asarray(knows))


def _expect(coded: _Coded, guessing: Floats, strategy: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the marginals of the labels, and the expected counts of guesses and of knowledge."""
    t, w, y = coded.t, coded.w, coded.y
    labels = len(coded.labels)
    guess = guessing[w, 0] * strategy[w, y]
    agree = y[:, None] == np.arange(labels)
    chance = guess[:, None] + guessing[w, 1][:, None] * agree
    marginals = np.ones((len(coded.items), labels))
    np.multiply.at(marginals, t, chance)
    marginals /= labels
    whole = marginals.sum(axis=1)
    guessed = (marginals[t] / chance).sum(axis=1) * guess / whole[t]
    known = marginals[t, y] * guessing[w, 1] / (guess + guessing[w, 1]) / whole[t]
    counts = np.zeros((len(coded.annotators), labels))
    np.add.at(counts, (w, y), guessed)
    knowing = np.zeros((len(coded.annotators), 2))
    np.add.at(knowing, w, np.column_stack([guessed, known]))
    return marginals, counts, knowing


def _normalise(counts: Floats, priors: Floats) -> Floats:
    raised = counts + priors
    return np.asarray(np.exp(digamma(raised) - digamma(raised.sum(axis=1, keepdims=True))))


def digamma(values: Floats) -> Floats:
    """Return the derivative of the logarithm of the gamma function, for positive values.

    >>> round(float(digamma(np.array([1.0]))[0]), 12)
    -0.577215664902
    """
    x, shift = np.array(values, float), np.zeros_like(values, float)
    for _ in range(10):  # the series is exact to 15 digits from 10 on
        low = x < 10
        shift = np.where(low, shift - 1 / np.where(low, x, 1.0), shift)
        x = np.where(low, x + 1, x)
    square = 1 / (x * x)
    terms = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
    series = np.zeros_like(x)
    for term in reversed(terms):
        series = (series + term) * square
    return np.asarray(shift + np.log(x) - 0.5 / x - series)
