"""Held-out predictions: cross-validation of detectors, and three baseline classifiers for audits.

The baselines are the fast detector, nearest memes and naive Bayes. One kernel matrix serves all
fold assignments: its inverse gives held-out scores without refitting. Ids are never features.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memantics.metrics.naive_bayes import log_rates
from memantics.metrics.rounding import Floats, Ints, settle
from memantics.moderation import kernel as kernels
from memantics.moderation.calibration import decide_nested
from memantics.moderation.examples import (
    Example,
    Folds,
    FoldScheme,
    Loaded,
    need_labels,
    need_two_classes,
    split_examples,
    split_random,
)
from memantics.moderation.fast import LabelPrediction, Prediction, fit_labels, train
from memantics.moderation.features import Embedder, Seer, cut_all, fit_extractor
from memantics.moderation.heads import AUTO, FastSettings, choose_preset, need_training
from memantics.moderation.kernel import Singles

NEIGHBOURS = 10
JUDGES = FAST, NEAREST, BAYES = "fast detector", "nearest memes", "naive Bayes"
_BLOCK = 1024
_PLACES = 1e-9  # breaks ties by position, so that neighbours do not depend on the processor
_SMOOTH = 0.1


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Held-out predictions of one baseline classifier: class probabilities and a class per meme.

    ``name`` is the name of the classifier.
    """

    name: str
    chances: Floats
    said: Ints


@dataclass(frozen=True, slots=True)
class HeldOutVerdicts:
    """Predictions of all baseline classifiers for one fold assignment.

    ``nearness`` is the cosine similarity to the nearest training meme.
    """

    judges: tuple[HeldOut, ...]
    nearness: Floats

    def find(self, name: str) -> HeldOut:
        """Return the predictions of one baseline classifier by name."""
        return next(judge for judge in self.judges if judge.name == name)

    @property
    def mean(self) -> Floats:
        """Mean class probabilities over the classifiers."""
        return np.asarray(np.mean([judge.chances for judge in self.judges], axis=0))


def judge_held_out(
    data: Loaded, ways: Mapping[str, Ints], labels: Ints | None = None
) -> dict[str, HeldOutVerdicts]:
    """Predict every meme from the other folds, for each fold assignment in ``ways``.

    ``labels`` replace the gold labels if given.
    """
    need_training()
    classes = data.labels.classes
    given = number_labels(data) if labels is None else labels
    settings = choose_preset(AUTO, data.texts)
    texts = cut_all(settings.blocks, data.examples)
    extractor = fit_extractor(settings.blocks, (), texts)
    rows = kernels.to_rows(extractor.transform(texts), None)
    flags = np.eye(len(classes), dtype=bool)[given]
    signs = np.where(flags, 1, -1).astype(np.float32)
    gram, near = _find_nearest(rows, flags, ways, settings.kernel)
    weights = kernels.weigh([classes[place] for place in given])
    inverse, duals = kernels.invert(gram, signs, weights, settings.ridges[-1])
    found = {}
    for name, folds in ways.items():
        votes, nearness = near[name]
        tables = {
            FAST: np.asarray(kernels.hold_out(inverse, duals, signs, folds), float),
            NEAREST: votes,
            BAYES: _score_by_naive_bayes(rows, flags, folds),
        }
        judges = [_calibrate(judge, table, flags, folds) for judge, table in tables.items()]
        found[name] = HeldOutVerdicts(tuple(judges), nearness)
    return found


class RunAnswers(NamedTuple):
    """Answers of a run by meme, for memes with one question each, and which are correct.

    A refused, unparsed or failed answer counts as incorrect.
    """

    name: str
    said: Mapping[str, str]
    right: Sequence[tuple[str, bool]]


def weigh_answers(data: Loaded, run: RunAnswers, folds: Ints) -> HeldOut:
    """Estimate label probabilities from a run's answers, by label frequencies in other folds."""
    flags = np.eye(len(data.labels.classes))[number_labels(data)]
    names = [run.said.get(example.id, "") for example in data.examples]
    known = {name: place for place, name in enumerate(dict.fromkeys(names))}
    places = np.array([known[name] for name in names])
    table = np.zeros(flags.shape)
    for fold in np.unique(folds):
        out = folds == fold
        counts = np.zeros((len(known), flags.shape[1])) + flags[~out].mean(axis=0)
        np.add.at(counts, places[~out], flags[~out])
        table[out] = (counts / counts.sum(axis=1, keepdims=True))[places[out]]
    return HeldOut(run.name, table, np.asarray(settle(table).argmax(axis=1), np.int64))


def number_labels(data: Loaded) -> Ints:
    """Return the class index of each meme's label."""
    places = {name: place for place, name in enumerate(data.labels.classes)}
    return np.array([places[gold[0]] for gold in data.gold], np.int64)


def _find_nearest(
    rows: kernels.Rows, flags: NDArray[np.bool_], ways: Mapping[str, Ints], kernel: kernels.Kernel
) -> tuple[kernels.Singles, dict[str, tuple[Floats, Floats]]]:
    """Compute the kernel of all memes and, per fold assignment, nearest-neighbour votes."""
    size = len(rows)
    gram = np.empty((size, size), np.float32)
    votes = {name: np.zeros(flags.shape) for name in ways}
    nearness = {name: np.zeros(size) for name in ways}
    lengths = np.sqrt(np.asarray(rows.sparse.to_scipy().power(2).sum(axis=1)).ravel())
    lengths[lengths == 0] = 1
    order = np.arange(size) * _PLACES / size
    for start in range(0, size, _BLOCK):
        end = min(size, start + _BLOCK)
        products = kernels.multiply(rows.take(np.arange(start, end)), rows)
        alike = (products / lengths[start:end, None] / lengths[None, :]).astype(float).round(5)
        alike -= order
        for name, folds in ways.items():
            hidden = np.where(folds[start:end, None] == folds[None, :], -1.0, alike)
            many = min(NEIGHBOURS, size)
            places = np.argpartition(-hidden, many - 1, axis=1)[:, :many]
            values = np.take_along_axis(hidden, places, axis=1).clip(0)
            votes[name][start:end] = (values[:, :, None] * flags[places]).sum(axis=1)
            nearness[name][start:end] = values.max(axis=1)
        gram[start:end] = kernel.shape(products)
    return gram, {name: (votes[name], nearness[name]) for name in ways}


def _score_by_naive_bayes(rows: kernels.Rows, flags: NDArray[np.bool_], folds: Ints) -> Floats:
    """Compute log-probabilities by naive Bayes over weighted n-grams, with a uniform prior."""
    matrix = rows.sparse.to_scipy()
    table = np.zeros(flags.shape)
    for fold in np.unique(folds):
        out = folds == fold
        counts = np.asarray((matrix[~out].T @ flags[~out].astype(np.float64)).T)
        table[out] = matrix[out] @ log_rates(counts, _SMOOTH).T
    return table


def _calibrate(name: str, table: Floats, flags: NDArray[np.bool_], folds: Ints) -> HeldOut:
    """Calibrate the scores of each fold on the other folds, and predict classes."""
    spread = float(table.std()) or 1.0
    centred = (table - table.mean(axis=1, keepdims=True)) / spread
    nested = decide_nested(centred, flags, folds, several=False)
    return HeldOut(name, nested.chances, np.array([said[0] for said in nested.places], np.int64))


def draw_memes(data: Loaded, most: int) -> Loaded:
    """Select at most ``most`` memes, evenly spaced over the data."""
    size = len(data.examples)
    if size <= most:
        return data
    return data.take([int(place * size / most) for place in range(most)])


def list_strata(data: Loaded) -> Sequence[str]:
    """Return the label of each meme, for stratified folds."""
    return [gold[0] for gold in data.gold]


# Cross-validation of detectors and classifiers.

Said = TypeVar("Said")
FoldWatch = Callable[[int, int], None]
FoldTrainer = Callable[[Sequence[Example]], Callable[[Sequence[Example]], list[Prediction]]]
DEFAULT_FOLDS = {"blocks": 10, "random": 5}


@dataclass(frozen=True, slots=True)
class HeldOutStudy:
    """Cross-validated predictions for every example, with the folds."""

    split: FoldScheme
    folds: tuple[int, ...]
    examples: tuple[Example, ...]
    predictions: tuple[Prediction, ...]
    seconds: float

    @property
    def count(self) -> int:
        """Number of folds."""
        return max(self.folds) + 1


class Remembering:
    """An encoder that caches every vector, since each fold encodes the same texts."""

    def __init__(self, embedder: Embedder) -> None:
        self.version = embedder.version
        self._embedder = embedder
        self._known: dict[str, Singles] = {}

    def encode(self, texts: Sequence[str]) -> Singles:
        """Encode texts, one row per text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])


def make_trainer(settings: FastSettings, embedder: Embedder | None = None) -> FoldTrainer:
    """Make a function that trains and predicts; embeddings are computed once for all folds."""
    # Image encoders already cache their vectors.
    kept = embedder
    if embedder is not None and not isinstance(embedder, Seer):
        kept = Remembering(embedder)

    def fit(examples: Sequence[Example]) -> Callable[[Sequence[Example]], list[Prediction]]:
        detector = train(examples, settings, kept)
        return lambda others: detector.predict(others, kept)

    return fit


def _ignore(_done: int, _all: int) -> None:
    pass


def cross_validate(
    examples: Sequence[Example],
    trainer: FoldTrainer,
    split: FoldScheme,
    count: int | None = None,
    on_fold: FoldWatch = _ignore,
) -> HeldOutStudy:
    """Cross-validate a detector; labels of the test fold are removed before prediction."""
    need_labels(examples, "the data")
    folds = split_examples(examples, split, count or DEFAULT_FOLDS[split])
    _check(examples, folds)
    start = time.perf_counter()

    def ask(inside: list[int], outside: list[int]) -> list[Prediction]:
        judge = trainer([examples[place] for place in inside])
        # Labels are removed before prediction, so that they cannot leak.
        return judge([_blind(examples[place]) for place in outside])

    said = tuple(_hold_out(folds, ask, on_fold))
    seconds = time.perf_counter() - start
    return HeldOutStudy(split, tuple(folds.tolist()), tuple(examples), said, seconds)


def cross_validate_labels(
    data: Loaded,
    settings: FastSettings,
    embedder: Embedder | None = None,
    count: int = 5,
    on_fold: FoldWatch = _ignore,
) -> list[LabelPrediction]:
    """Predict every example by a classifier trained without its group."""
    groups = sorted(set(data.groups))
    folds = dict(zip(groups, split_random(groups, min(count, len(groups))).tolist(), strict=True))

    def ask(inside: list[int], outside: list[int]) -> list[LabelPrediction]:
        classifier = fit_labels(data.take(inside), settings, embedder).detector
        return classifier.classify([data.examples[place] for place in outside], embedder)

    return _hold_out(np.array([folds[group] for group in data.groups]), ask, on_fold)


def _hold_out(
    folds: Folds, ask: Callable[[list[int], list[int]], list[Said]], on_fold: FoldWatch
) -> list[Said]:
    """Collect the prediction of each example while its fold is held out."""
    found: dict[int, Said] = {}
    total = int(folds.max()) + 1
    for fold in range(total):
        outside: list[int] = np.flatnonzero(folds == fold).tolist()
        found.update(
            zip(outside, ask(np.flatnonzero(folds != fold).tolist(), outside), strict=True)
        )
        on_fold(fold + 1, total)
    return [found[place] for place in range(len(folds))]


def _blind(example: Example) -> Example:
    return replace(example, label=None, type=None, modality=None, target=None)


def _check(examples: Sequence[Example], folds: Folds) -> None:
    for fold in range(int(folds.max()) + 1):
        kept = [int(examples[place].label or 0) for place in np.flatnonzero(folds != fold).tolist()]
        need_two_classes(kept, f"all but fold {fold + 1}")
