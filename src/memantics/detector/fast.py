"""The fast detector of harm: the heads of harmful and of each type, and calibrated decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memantics.core.errors import InputError
from memantics.core.result import Result
from memantics.detector.calibration import (
    Floats,
    Softmax,
    choose_biases,
    choose_threshold,
    fit_even,
    fit_types,
    macro_f1,
)
from memantics.detector.disguises import add_copies
from memantics.detector.examples import LABELS, Example, need_labels, need_two_classes
from memantics.detector.features import Embedder
from memantics.detector.heads import (
    FEWEST,
    PRESETS,
    FastSettings,
    HeadModel,
    Ints,
    TypeHead,
    find_preset,
    fit_heads,
    make_dense,
    make_rows,
    split_inner,
)
from memantics.detector.kernel import MOST, Singles, add_margin, list_types, make_targets
from memantics.metrics.rounding import settle

__all__ = [
    "PRESETS",
    "Decision",
    "FastDetector",
    "FastSettings",
    "Prediction",
    "Trained",
    "TypeHead",
    "find_preset",
    "fit",
    "fit_decision",
    "make_dense",
    "make_rows",
    "train",
]


@dataclass(frozen=True, slots=True)
class Prediction(Result):
    """What a detector says about one meme; ``types`` are chances, empty without type labels.

    ``unjudged`` is why label and chance are no verdict: the text is in another language, or empty.
    ``out_of_domain``: the text is unlike the training texts; None where that was not looked at.
    """

    id: str
    label: int
    probability: float
    type: str | None
    types: Mapping[str, float]
    unjudged: str = ""
    out_of_domain: bool | None = None

    @property
    def name(self) -> str:
        """The label in words."""
        return "unjudged" if self.unjudged else LABELS[self.label]


@dataclass(frozen=True, slots=True)
class Decision:
    """From scores of all heads to chances, labels and types."""

    harm: Softmax
    threshold: float
    kinds: Softmax | None
    biases: Floats
    hierarchical: bool = False

    def decide(self, scores: Floats) -> tuple[Floats, Ints, Floats | None, Ints | None]:
        """Chance of harm, label, chances of the types, place of the type."""
        chances = self.harm.probabilities(scores)[:, 1]
        labels = (settle(chances) >= settle(self.threshold)).astype(np.int64)
        if self.kinds is None:
            return chances, labels, None, None
        logits = self.kinds.logits(scores) + self.biases
        if self.hierarchical:
            logits[:, 0] = np.where(labels == 1, -np.inf, np.inf)
        return chances, labels, self.kinds.probabilities(scores), logits.argmax(axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FastDetector(HeadModel):
    """A trained detector of harm."""

    decision: Decision

    @property
    def types(self) -> tuple[str, ...]:
        """The types it tells apart; empty where it was trained without."""
        return list_types(self.heads)

    def scores(self, examples: Sequence[Example], embedder: Embedder | None = None) -> Floats:
        """Raw scores of the heads, and the margin of the types."""
        return add_margin(self.heads, self.score(examples, embedder))

    def predict(
        self, examples: Sequence[Example], embedder: Embedder | None = None
    ) -> list[Prediction]:
        """What it says about each example; ids are copied into the answer and not looked at."""
        if not examples:
            return []
        return self.name_predictions(examples, self.scores(examples, embedder))

    def name_predictions(self, examples: Sequence[Example], scores: Floats) -> list[Prediction]:
        """Decisions from scores."""
        chances, labels, shares, kinds = self.decision.decide(scores)
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


@dataclass(frozen=True, slots=True)
class Trained:
    """A detector, and what it said about each training example while that was held out.

    Thresholds were chosen on these very predictions, so their figures are slightly flattering.
    """

    detector: FastDetector
    held_out: tuple[Prediction, ...]


def train(
    examples: Sequence[Example], settings: FastSettings, embedder: Embedder | None = None
) -> FastDetector:
    """Train on labelled examples; every choice is made on examples held out inside them."""
    return fit(examples, settings, embedder).detector


def fit(
    examples: Sequence[Example],
    settings: FastSettings,
    embedder: Embedder | None = None,
    origins: Sequence[int] | None = None,
) -> Trained:
    """Train, and keep the predictions for held-out examples.

    ``origins`` says which example each one was made from (its own place: from none). They are
    held out together: whoever has learnt a disguised copy has seen the meme. Predictions for
    copies that the settings ask for come last.
    """
    need_labels(examples, "training data")
    labels = np.array([int(e.label or 0) for e in examples], np.int64)
    need_two_classes(labels.tolist(), "the training data")
    if len(examples) < FEWEST:
        raise InputError(f"{len(examples)} examples are too few", hint=f"give at least {FEWEST}")
    places: Sequence[int] = range(len(examples)) if origins is None else origins
    if settings.copies:
        share = min(settings.copies, MOST / len(examples) - 1)
        grown = add_copies(examples, places, max(0.0, share), settings.seed)
        examples, places = grown.examples, grown.origins
        labels = np.array([int(e.label or 0) for e in examples], np.int64)
    targets = make_targets(examples)
    strata = [f"{e.label}/{e.type}" for e in examples]
    groups = split_inner([e.id for e in examples], strata, settings, places)

    def rate(held_out: Singles) -> float:
        return _rate(add_margin(targets.heads, held_out), labels, groups)

    fitted = fit_heads(examples, targets, settings, groups, rate, embedder)
    table = add_margin(targets.heads, fitted.held_out)
    detector = FastDetector(
        settings=settings,
        extractor=fitted.extractor,
        heads=targets.heads,
        scorer=fitted.scorer,
        decision=fit_decision(table, examples, targets.heads, groups, settings),
        ridge=fitted.ridge,
        examples=len(examples),
        embedder=fitted.embedder,
    )
    return Trained(detector, tuple(detector.name_predictions(examples, table)))


def _rate(table: Floats, labels: Ints, groups: Ints) -> float:
    chances = fit_even(table, labels, groups).probabilities(table)[:, 1]
    said = (chances >= choose_threshold(chances, labels)).astype(np.int64)
    return macro_f1(labels, said, 2)


def fit_decision(
    table: Floats,
    examples: Sequence[Example],
    heads: Sequence[str],
    groups: Ints,
    settings: FastSettings,
) -> Decision:
    """Calibrate and choose thresholds on scores of held-out examples."""
    labels = np.array([int(e.label or 0) for e in examples], np.int64)
    harm = fit_even(table, labels, groups)
    threshold = choose_threshold(harm.probabilities(table)[:, 1], labels)
    types = list_types(heads)
    if not types:
        return Decision(harm, threshold, None, np.zeros(0))
    known = [place for place, e in enumerate(examples) if e.type in types]
    truth = np.array([types.index(str(examples[place].type)) for place in known], np.int64)
    kinds = fit_types(table[known], truth, len(types))
    biases = choose_biases(kinds.logits(table[known]), truth)
    return Decision(harm, threshold, kinds, biases, settings.type_head == "hierarchical")
