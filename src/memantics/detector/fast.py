"""The fast detector: blocks of pieces, a low-degree kernel, several heads, calibrated decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memantics.core.errors import InputError, UnknownName
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
from memantics.detector.examples import LABELS, Example, need_labels, need_two_classes
from memantics.detector.features import (
    GRID,
    Dense,
    Embedder,
    Extractor,
    FeatureBlock,
    Field,
    cut_all,
    fit_extractor,
    measure_images,
    read_field,
)
from memantics.detector.folds import Split, split_examples
from memantics.detector.kernel import (
    Kernel,
    KernelScorer,
    Rows,
    Scorer,
    Singles,
    Targets,
    add_margin,
    fit_svm,
    list_types,
    make_gram,
    make_targets,
    solve,
    to_rows,
    unfold,
)

TypeHead = Literal["flat", "hierarchical"]
Solver = Literal["kernel", "svm"]
_SQUARE = Kernel(2)


@dataclass(frozen=True, slots=True)
class FastSettings:
    """How a fast detector is trained.

    ``ridges`` are tried in turn and the one is kept whose predictions for held-out examples have
    the best macro-F1; with the solver ``svm`` they are costs. ``inner`` says how examples are
    held out for that, for calibration and for thresholds.
    """

    preset: str
    blocks: tuple[FeatureBlock, ...]
    dense: tuple[Dense, ...] = ()
    kernel: Kernel = _SQUARE
    ridges: tuple[float, ...] = (0.25,)
    solver: Solver = "kernel"
    inner: Split = "random"
    inner_folds: int = 10
    type_head: TypeHead = "flat"
    seed: int = 0


_CHARS = (
    FeatureBlock("text", "chars", 1.0),
    FeatureBlock("text_caption", "chars", 0.7),
    FeatureBlock("image_caption", "chars", 0.5),
)
_SOUNDS = (FeatureBlock("text", "fuzzy", 0.5), FeatureBlock("text", "words", 0.5))
_MEANINGS = (Dense("text", 0.8), Dense("text_caption", 0.55), Dense("image_caption", 0.4))
PRESETS: Mapping[str, FastSettings] = MappingProxyType(
    {
        settings.preset: settings
        for settings in (
            FastSettings("fast", _CHARS + _SOUNDS),
            FastSettings("linear", _CHARS, solver="svm", ridges=(0.1,), inner_folds=5),
            FastSettings("ridge", _CHARS, kernel=Kernel(1), ridges=(0.5, 1.0)),
            FastSettings("readings", (*_CHARS, *_SOUNDS, FeatureBlock("text", "readings", 0.5))),
            FastSettings("full", _CHARS, dense=_MEANINGS, ridges=(0.5,)),
        )
    }
)


def find_preset(name: str) -> FastSettings:
    """Settings by name.

    >>> find_preset("fast").kernel.degree
    2
    """
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]


Ints = NDArray[np.int64]
_FEWEST = 8
_CONSTANT = 0.2


@dataclass(frozen=True, slots=True)
class Prediction(Result):
    """What a detector says about one meme; ``types`` are chances, empty without type labels."""

    id: str
    label: int
    probability: float
    type: str | None
    types: Mapping[str, float]

    @property
    def name(self) -> str:
        """The label in words."""
        return LABELS[self.label]


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
        labels = (chances > self.threshold).astype(np.int64)
        if self.kinds is None:
            return chances, labels, None, None
        logits = self.kinds.logits(scores) + self.biases
        if self.hierarchical:
            logits[:, 0] = np.where(labels == 1, -np.inf, np.inf)
        return chances, labels, self.kinds.probabilities(scores), logits.argmax(axis=1)


@dataclass(frozen=True, slots=True)
class FastDetector:
    """A trained detector. ``embedder`` names the version of the embedder that it needs."""

    settings: FastSettings
    extractor: Extractor
    heads: tuple[str, ...]
    scorer: Scorer
    decision: Decision
    ridge: float
    examples: int
    embedder: str = ""

    @property
    def types(self) -> tuple[str, ...]:
        """The types it tells apart; empty where it was trained without."""
        return list_types(self.heads)

    def scores(self, examples: Sequence[Example], embedder: Embedder | None = None) -> Floats:
        """Raw scores of the heads, and the margin of the types."""
        self.check_embedder(embedder)
        rows = make_rows(self.extractor, examples, embedder)
        return add_margin(self.heads, self.scorer.score(rows))

    def check_embedder(self, embedder: Embedder | None) -> None:
        """Refuse another embedder than the one it was trained with."""
        given = embedder.version if embedder is not None else ""
        if self.embedder and given != self.embedder:
            raise InputError(
                f"this detector needs the embedder {self.embedder}, not {given or 'none'}",
                hint="open the same one (--embedder), install that version, or train again",
            )

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


def make_rows(extractor: Extractor, examples: Sequence[Example], embedder: Embedder | None) -> Rows:
    """Examples as numbers. Their ids and the names of their images have no way in."""
    blocks = [vocabulary.block for vocabulary in extractor.vocabularies]
    matrix = extractor.transform(cut_all(blocks, examples))
    return to_rows(matrix, make_dense(extractor, examples, embedder))


def make_dense(
    extractor: Extractor, examples: Sequence[Example], embedder: Embedder | None
) -> Singles | None:
    """The dense blocks side by side; None where there are none."""
    parts: list[Singles] = []
    for block in extractor.dense:
        if block.source == "image":
            part = measure_images([example.image for example in examples])
        elif embedder is None:
            raise InputError(f"the block {block.name} needs an embedder", hint="use --preset fast")
        else:
            part = _embed(embedder, examples, block.source)
        parts.append(np.asarray(part * np.float32(block.weight / extractor.scale), np.float32))
    return np.hstack(parts) if parts else None


def _embed(embedder: Embedder, examples: Sequence[Example], field: Field) -> Singles:
    texts = [read_field(example, field) for example in examples]
    rounded = np.rint(np.array(embedder.encode(texts), np.float32) * GRID) / GRID
    vectors = rounded.astype(np.float32)
    # A field that is empty has no meaning, whatever an embedder makes of nothing.
    vectors[[not text for text in texts]] = 0
    return vectors


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
    held out together: whoever has learnt a disguised copy has seen the meme.
    """
    need_labels(examples, "training data")
    labels = np.array([int(e.label or 0) for e in examples], np.int64)
    need_two_classes(labels.tolist(), "the training data")
    if len(examples) < _FEWEST:
        raise InputError(f"{len(examples)} examples are too few", hint=f"give at least {_FEWEST}")
    texts = cut_all(settings.blocks, examples)
    extractor = fit_extractor(settings.blocks, settings.dense, texts)
    rows = to_rows(extractor.transform(texts), make_dense(extractor, examples, embedder))
    targets = make_targets(examples)
    groups = _split(examples, settings, range(len(examples)) if origins is None else origins)
    fitted = _fit(rows, targets, settings, groups, labels)
    table = add_margin(targets.heads, fitted.held_out)
    detector = FastDetector(
        settings=settings,
        extractor=extractor,
        heads=targets.heads,
        scorer=fitted.scorer,
        decision=fit_decision(table, examples, targets.heads, groups, settings),
        ridge=fitted.ridge,
        examples=len(examples),
        embedder=embedder.version if embedder is not None and _embeds(settings) else "",
    )
    return Trained(detector, tuple(detector.name_predictions(examples, table)))


def _split(examples: Sequence[Example], settings: FastSettings, origins: Sequence[int]) -> Ints:
    first, places = np.unique(np.asarray(origins, np.int64), return_inverse=True)
    kept = [examples[place] for place in first.tolist()]
    folds = min(settings.inner_folds, len(kept) // 2)
    groups: Ints = split_examples(kept, settings.inner, folds, settings.seed)[places]
    return groups


def _embeds(settings: FastSettings) -> bool:
    return any(block.source != "image" for block in settings.dense)


@dataclass(frozen=True, slots=True)
class _Fitted:
    scorer: Scorer
    held_out: Singles
    ridge: float
    figure: float


def _fit(
    rows: Rows, targets: Targets, settings: FastSettings, groups: Ints, labels: Ints
) -> _Fitted:
    best: _Fitted | None = None
    for ridge in settings.ridges:
        if settings.solver == "svm":
            scorer: Scorer
            scorer, held_out = fit_svm(rows, targets.signs, targets.weights, ridge, groups)
        else:
            gram = make_gram(rows, settings.kernel)
            solved = solve(gram, targets.signs, targets.weights, ridge, groups)
            held_out = solved.held_out
            scorer = (
                unfold(rows, solved.duals, _CONSTANT)
                if settings.kernel.degree == 1
                else KernelScorer(rows, settings.kernel, solved.duals)
            )
        figure = _rate(add_margin(targets.heads, held_out), labels, groups)
        if best is None or figure > best.figure:
            best = _Fitted(scorer, held_out, ridge, figure)
    if best is None:
        raise InputError("no ridge to try", hint="give one")
    return best


def _rate(table: Floats, labels: Ints, groups: Ints) -> float:
    chances = fit_even(table, labels, groups).probabilities(table)[:, 1]
    said = (chances > choose_threshold(chances, labels)).astype(np.int64)
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
