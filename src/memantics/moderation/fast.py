"""Fast detectors and classifiers: linear or kernel heads over texts, with calibrated decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memantics.core.errors import InputError
from memantics.core.labels import name_group
from memantics.core.result import Result
from memantics.metrics.rounding import Floats, Ints
from memantics.moderation import examples as known
from memantics.moderation.calibration import (
    DecisionRule,
    FoldScore,
    decide_nested,
    fit_decision,
    fit_harm_decision,
    rate_harm,
)
from memantics.moderation.examples import order_examples
from memantics.moderation.features import Embedder
from memantics.moderation.heads import (
    FEWEST,
    PRESETS,
    FastSettings,
    FittedHeads,
    HeadModel,
    TypeHead,
    find_preset,
    fit_heads,
    make_dense,
    make_rows,
    split_repeatedly,
    use_one_thread,
)
from memantics.moderation.kernel import (
    MOST,
    Singles,
    Targets,
    add_margin,
    list_types,
    make_targets,
    weigh,
)
from memantics.moderation.obfuscation import add_copies

__all__ = [
    "PRESETS",
    "DecisionRule",
    "FastDetector",
    "FastSettings",
    "LabelPrediction",
    "Prediction",
    "Trained",
    "TypeHead",
    "find_preset",
    "fit",
    "fit_labels",
    "make_dense",
    "make_rows",
    "train",
]

_FEWEST_TEXTS = 4  # two folds with two texts each


@dataclass(frozen=True, slots=True)
class Prediction(Result):
    """The prediction of a detector for one meme.

    ``types`` are type probabilities, empty without type labels. ``not_scored`` is the reason why
    label and probability are not a verdict. ``out_of_domain`` is True if the text differs from the
    training texts, None if that was not checked. ``review`` is the reason for human review.
    """

    id: str
    label: int
    probability: float
    type: str | None
    types: Mapping[str, float]
    not_scored: str = ""
    out_of_domain: bool | None = None
    review: str = ""

    @property
    def name(self) -> str:
        """The label as a word: harmful or harmless."""
        return "not_scored" if self.not_scored else known.LABELS[self.label]


@dataclass(frozen=True, slots=True)
class LabelPrediction(Result):
    """The prediction of a classifier for one meme.

    ``labels`` is one label, or any number for multi-label classifiers; ``label`` is the most
    probable one. ``chances`` are the probabilities, which add up to 1 unless multi-label.
    """

    id: str
    label: str
    probability: float
    labels: tuple[str, ...]
    chances: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FastDetector(HeadModel):
    """A trained detector of harm, or a classifier with one head per class of ``labels``."""

    decision: DecisionRule
    labels: known.LabelSet = known.HARM

    @property
    def types(self) -> tuple[str, ...]:
        """The harm types that it predicts; empty without type labels."""
        return () if self.labels.name else list_types(self.heads)

    def widen(self, scores: Singles) -> Floats:
        """Raw scores of the heads and, for harm, the margin between the types."""
        return np.asarray(scores, float) if self.labels.name else add_margin(self.heads, scores)

    def predict(
        self, examples: Sequence[known.Example], embedder: Embedder | None = None
    ) -> list[Prediction]:
        """Predict harm for each example; ids are copied to the result and are not features."""
        if not examples:
            return []
        return self.name_predictions(examples, self.widen(self.score(examples, embedder)))

    def classify(
        self, examples: Sequence[known.Example], embedder: Embedder | None = None
    ) -> list[LabelPrediction]:
        """Predict labels for each example; ids are copied to the result and are not features."""
        if not examples:
            return []
        scores = self.widen(self.score(examples, embedder))
        return self.name_labels(examples, *self.decision.decide(scores))

    def name_predictions(
        self, examples: Sequence[known.Example], scores: Floats
    ) -> list[Prediction]:
        """Convert scores to harm predictions."""
        chances, labels, shares, kinds = self.decision.decide_harm(scores)
        types = self.types
        return [
            Prediction(
                id=example.id,
                label=int(labels[place]),
                probability=float(chances[place]),
                type=types[int(kinds[place])] if kinds is not None else None,
                types={}
                if shares is None
                else dict(zip(types, shares[place].tolist(), strict=True)),
            )
            for place, example in enumerate(examples)
        ]

    def name_labels(
        self, examples: Sequence[known.Example], chances: Floats, places: Sequence[tuple[int, ...]]
    ) -> list[LabelPrediction]:
        """Convert probabilities and class indices to label predictions."""
        classes = self.labels.classes
        found = []
        for example, row, held in zip(examples, chances.tolist(), places, strict=True):
            first = held[0] if len(held) == 1 else int(np.argmax(row))
            labels = tuple(classes[place] for place in held)
            shares = dict(zip(classes, row, strict=True))
            found.append(LabelPrediction(example.id, classes[first], row[first], labels, shares))
        return found


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained detector with its cross-validated predictions for the training examples.

    Thresholds were chosen on ``held_out``, so its metrics are slightly too high. ``said`` are
    predictions of labels other than harm. ``repeats`` has the held-out macro-F1 for each seed of
    the inner folds.
    """

    detector: FastDetector
    held_out: tuple[Prediction, ...] = ()
    said: tuple[LabelPrediction, ...] = ()
    repeats: tuple[float, ...] = ()


def train(
    examples: Sequence[known.Example], settings: FastSettings, embedder: Embedder | None = None
) -> FastDetector:
    """Train on labelled examples; hyperparameters are chosen by inner cross-validation."""
    return fit(examples, settings, embedder).detector


@use_one_thread()
def fit(
    examples: Sequence[known.Example],
    settings: FastSettings,
    embedder: Embedder | None = None,
    origins: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
) -> Trained:
    """Train a harm detector, and keep the cross-validated predictions.

    ``origins`` gives the index of the example that each one was augmented from (its own index if
    none). Augmented copies are held out together with their origin, to avoid leakage. Predictions
    for augmented copies come last. ``weights`` are example weights.
    """
    known.need_labels(examples, "training data")
    known.need_two_classes([int(e.label or 0) for e in examples], "the training data")
    _need_enough(examples)
    order = order_examples(examples)
    start: Sequence[int] = range(len(examples)) if origins is None else origins
    ranks = {place: rank for rank, place in enumerate(order)}
    sorted_examples: Sequence[known.Example] = [examples[place] for place in order]
    places: Sequence[int] = [ranks[start[place]] for place in order]
    if settings.copies:
        share = min(settings.copies, MOST / len(examples) - 1)
        grown = add_copies(sorted_examples, places, max(0.0, share), settings.seed)
        sorted_examples, places = grown.examples, grown.origins
    labels = np.array([int(e.label or 0) for e in sorted_examples], np.int64)
    targets = make_targets(sorted_examples)
    if weights is not None:
        heavy = np.array([weights[order[place]] for place in places], np.float32)
        targets = replace(targets, weights=targets.weights * heavy)
    strata = [f"{e.label}/{e.type}" for e in sorted_examples]
    ways = split_repeatedly(
        [e.id for e in sorted_examples], strata, settings, _group_texts(sorted_examples, places)
    )

    def rate(held_out: Singles, folds: Ints) -> FoldScore:
        return rate_harm(add_margin(targets.heads, held_out), labels, folds)

    fitted = fit_heads(sorted_examples, targets, settings, ways, rate, embedder)
    table, after = add_margin(targets.heads, fitted.held_out), settings.type_head == "hierarchical"
    decision = fit_harm_decision(table, sorted_examples, targets.heads, ways[0], hierarchical=after)
    detector = _assemble(fitted, targets.heads, settings, decision, known.HARM)
    said = detector.name_predictions(sorted_examples, table)
    back = [said[ranks[place]] for place in range(len(examples))]
    return Trained(detector, (*back, *said[len(examples) :]), repeats=_list_values(fitted))


def _group_texts(examples: Sequence[known.Example], origins: Sequence[int]) -> list[int]:
    """Return for each example the first one with the same text, so that they share a fold.

    An augmented copy counts as its original. With too few texts for two folds (say, memes that
    differ in their images alone), equal texts may be held out apart.
    """
    first: dict[str, int] = {}
    named = [name_group(one.text) or f"\0{place}" for place, one in enumerate(examples)]
    groups = [first.setdefault(named[origin], origin) for origin in origins]
    return groups if len(first) >= _FEWEST_TEXTS else list(origins)


def _list_values(fitted: FittedHeads) -> tuple[float, ...]:
    return tuple(round(rating.value, 4) for rating in fitted.ratings)


@use_one_thread()
def fit_labels(
    data: known.Loaded, settings: FastSettings, embedder: Embedder | None = None
) -> Trained:
    """Train a classifier; hyperparameters are chosen by group-disjoint cross-validation."""
    _check(data)
    order = order_examples(data.examples, data.gold, data.groups)
    given, data = data, data.take(order)
    classes, several = data.labels.classes, data.labels.several
    signs = np.array([[name in names for name in classes] for names in data.gold])
    strata = ["|".join(names) for names in data.gold]
    targets = Targets(classes, np.where(signs, 1, -1).astype(np.float32), weigh(strata))
    first = {group: place for place, group in reversed(list(enumerate(data.groups)))}
    origins = [first[group] for group in data.groups]
    ways = split_repeatedly([e.id for e in data.examples], strata, settings, origins)

    def rate(held_out: Singles, folds: Ints) -> FoldScore:
        found = decide_nested(np.asarray(held_out, float), signs, folds, several=several)
        return FoldScore(found.value, found.error)

    fitted = fit_heads(data.examples, targets, settings, ways, rate, embedder)
    table = np.asarray(fitted.held_out, float)
    best = decide_nested(table, signs, ways[0], several=several)
    decision = fit_decision(table, signs, several=several, biased=best.biased)
    detector = _assemble(fitted, classes, settings, decision, data.labels)
    said = detector.name_labels(data.examples, best.chances, best.places)
    back = dict(zip(order, said, strict=True))
    ordered = tuple(back[place] for place in range(len(given.examples)))
    return Trained(detector, said=ordered, repeats=_list_values(fitted))


def _assemble(
    fitted: FittedHeads,
    heads: tuple[str, ...],
    settings: FastSettings,
    decision: DecisionRule,
    labels: known.LabelSet,
) -> FastDetector:
    return FastDetector(
        settings=settings,
        extractor=fitted.extractor,
        heads=heads,
        scorer=fitted.scorer,
        decision=decision,
        ridge=fitted.ridge,
        examples=len(fitted.held_out),
        embedder=fitted.embedder,
        labels=labels,
    )


def _need_enough(examples: Sequence[known.Example]) -> None:
    if len(examples) < FEWEST:
        raise InputError(f"{len(examples)} examples are too few", hint=f"give at least {FEWEST}")


def _check(data: known.Loaded) -> None:
    _need_enough(data.examples)
    if len(data.labels.classes) < 2 and not data.labels.several:
        raise InputError(
            f"{data.labels.name} has only one class", hint="give memes of at least two classes"
        )
    if len(set(data.groups)) < 4:
        raise InputError(
            f"{data.labels.name} has fewer than four groups of memes",
            hint="memes of one group stay together, so give data with more groups",
        )
