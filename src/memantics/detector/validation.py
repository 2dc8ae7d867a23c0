"""Predictions for memes by detectors that have not seen them: folds that are held out in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from memantics.detector.examples import Example, Loaded, need_labels, need_two_classes
from memantics.detector.fast import FastSettings, LabelPrediction, Prediction, fit_labels, train
from memantics.detector.features import Embedder, Seer
from memantics.detector.folds import Folds, Split, split_examples, split_random
from memantics.detector.kernel import Singles

Said = TypeVar("Said")
Watch = Callable[[int, int], None]
Trainer = Callable[[Sequence[Example]], Callable[[Sequence[Example]], list[Prediction]]]
DEFAULT_FOLDS = {"blocks": 10, "random": 5}


@dataclass(frozen=True, slots=True)
class Study:
    """Predictions for every example by a detector that has not seen its fold."""

    split: Split
    folds: tuple[int, ...]
    examples: tuple[Example, ...]
    predictions: tuple[Prediction, ...]
    seconds: float

    @property
    def count(self) -> int:
        """The number of folds."""
        return max(self.folds) + 1


class Remembering:
    """An embedder that keeps every vector: each fold asks for the same texts again."""

    def __init__(self, embedder: Embedder) -> None:
        self.version = embedder.version
        self._embedder = embedder
        self._known: dict[str, Singles] = {}

    def encode(self, texts: Sequence[str]) -> Singles:
        """One row per text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])


def make_trainer(settings: FastSettings, embedder: Embedder | None = None) -> Trainer:
    """Training and prediction with fixed settings; meanings are computed once for all folds."""
    # What sees pictures keeps what it saw.
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
    trainer: Trainer,
    split: Split,
    count: int | None = None,
    on_fold: Watch = _ignore,
    seed: int = 0,
) -> Study:
    """Hold out each fold in turn. Test labels are never seen by what predicts them."""
    need_labels(examples, "the data")
    folds = split_examples(examples, split, count or DEFAULT_FOLDS[split], seed)
    _check(examples, folds)
    start = time.perf_counter()

    def ask(inside: list[int], outside: list[int]) -> list[Prediction]:
        judge = trainer([examples[place] for place in inside])
        # What is predicted has lost its labels: not even a mistake could use them.
        return judge([_blind(examples[place]) for place in outside])

    said = tuple(_hold_out(folds, ask, on_fold))
    seconds = time.perf_counter() - start
    return Study(split, tuple(folds.tolist()), tuple(examples), said, seconds)


def cross_validate_labels(
    data: Loaded,
    settings: FastSettings,
    embedder: Embedder | None = None,
    count: int = 5,
    on_fold: Watch = _ignore,
) -> list[LabelPrediction]:
    """Predictions for every example by an expert that has not seen its group."""
    groups = sorted(set(data.groups))
    folds = dict(zip(groups, split_random(groups, min(count, len(groups))).tolist(), strict=True))

    def ask(inside: list[int], outside: list[int]) -> list[LabelPrediction]:
        expert = fit_labels(data.take(inside), settings, embedder).detector
        return expert.classify([data.examples[place] for place in outside], embedder)

    return _hold_out(np.array([folds[group] for group in data.groups]), ask, on_fold)


def _hold_out(
    folds: Folds, ask: Callable[[list[int], list[int]], list[Said]], on_fold: Watch
) -> list[Said]:
    """What was said of each place while its fold was held out."""
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
