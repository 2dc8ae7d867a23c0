"""From scores of heads to chances and labels: of harm with its types, and of any other labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memantics.detector.calibration import (
    Floats,
    Ints,
    Softmax,
    choose_biases,
    choose_threshold,
    fit_even,
    fit_softmax,
    fit_types,
    macro_f1,
)
from memantics.detector.examples import Example
from memantics.detector.kernel import list_types
from memantics.metrics.rounding import settle

Flags = NDArray[np.bool_]
_NESTED = 5


@dataclass(frozen=True, slots=True)
class Decision:
    """What scores mean.

    Harm has a ``threshold``: one softmax of harmless and harmful and, where types are known, one
    of types with a bias each. Of other labels one holds (one softmax of the classes, and a bias
    each), or ``several`` (a softmax of two for each class, and its threshold in ``biases``).
    """

    softmaxes: tuple[Softmax, ...]
    biases: Floats
    threshold: float | None = None
    hierarchical: bool = False
    several: bool = False

    def decide_harm(self, scores: Floats) -> tuple[Floats, Ints, Floats | None, Ints | None]:
        """Chance of harm, label, chances of the types, place of the type."""
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
        """Chances of the classes, and the places of those that hold."""
        if not self.several:
            (whole,) = self.softmaxes
            best = (whole.logits(scores) + self.biases).argmax(axis=1)
            return whole.probabilities(scores), [(int(place),) for place in best]
        chances = np.column_stack(
            [softmax.probabilities(scores)[:, 1] for softmax in self.softmaxes]
        )
        held = settle(chances) >= settle(self.biases)  # at its threshold a label holds
        return chances, [tuple(np.flatnonzero(row).tolist()) for row in held]


def rate_harm(table: Floats, labels: Ints, groups: Ints) -> float:
    """Macro-F1 of held-out scores at their best threshold."""
    chances = fit_even(table, labels, groups).probabilities(table)[:, 1]
    said = (chances >= choose_threshold(chances, labels)).astype(np.int64)
    return macro_f1(labels, said, 2)


def fit_harm_decision(
    table: Floats,
    examples: Sequence[Example],
    heads: Sequence[str],
    groups: Ints,
    *,
    hierarchical: bool,
) -> Decision:
    """Calibrate and choose thresholds on scores of held-out examples."""
    labels = np.array([int(e.label or 0) for e in examples], np.int64)
    harm = fit_even(table, labels, groups)
    threshold = choose_threshold(harm.probabilities(table)[:, 1], labels)
    types = list_types(heads)
    if not types:
        return Decision((harm,), np.zeros(0), threshold)
    known = [place for place, e in enumerate(examples) if e.type in types]
    truth = np.array([types.index(str(examples[place].type)) for place in known], np.int64)
    kinds = fit_types(table[known], truth, len(types))
    biases = choose_biases(kinds.logits(table[known]), truth)
    return Decision((harm, kinds), biases, threshold, hierarchical)


class Nested(NamedTuple):
    """Decisions on each fold by what was calibrated on the others, and their macro-F1."""

    chances: Floats
    places: list[tuple[int, ...]]
    figure: float
    biased: bool


def decide_nested(table: Floats, signs: Flags, folds: Ints, *, several: bool) -> Nested:
    """The better way to decide: with biases for rare classes, or without.

    Biases must earn their place on memes that they were not chosen on.
    """
    plain, biased = (
        _decide_nested(table, signs, folds, several=several, biased=biased)
        for biased in (False, True)
    )
    return biased if biased.figure > plain.figure else plain


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
        for place, numbers in zip(np.flatnonzero(out).tolist(), said, strict=True):
            places[place] = numbers
    classes = range(signs.shape[1])
    held = np.array([[number in said for number in classes] for said in places])
    if several:
        pairs = [(signs[:, n].astype(np.int64), held[:, n].astype(np.int64)) for n in classes]
        figure = float(np.mean([macro_f1(gold, said, 2) for gold, said in pairs]))
    else:
        figure = macro_f1(signs.argmax(axis=1), held.argmax(axis=1), len(classes))
    return Nested(chances, places, figure, biased)


def fit_decision(table: Floats, signs: Flags, *, several: bool, biased: bool = True) -> Decision:
    """Calibrate and choose biases or thresholds of any labels on scores of held-out examples.

    Without ``biased`` the likeliest class is said, and a label holds from one half on.
    """
    count = signs.shape[1]
    if not several:
        truth = signs.argmax(axis=1).astype(np.int64)
        whole = fit_types(table, truth, count)
        biases = choose_biases(whole.logits(table), truth) if biased else np.zeros(count)
        return Decision((whole,), biases)
    made, thresholds = [], []
    for place in range(count):
        truth = signs[:, place].astype(np.int64)
        made.append(fit_softmax(table, truth, 2))
        chances = made[-1].probabilities(table)[:, 1]
        thresholds.append(choose_threshold(chances, truth) if biased else 0.5)
    return Decision(tuple(made), np.array(thresholds), several=True)
