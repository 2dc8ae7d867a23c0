"""Cross-validation in which everything, from vocabulary to threshold, is learnt inside a fold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memantics.detector.examples import Example, need_labels, need_two_classes
from memantics.detector.fast import Prediction, train
from memantics.detector.features import Embedder, Singles
from memantics.detector.folds import Folds, Split, split_examples
from memantics.detector.presets import FastSettings

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


class _Remembering:
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
    kept = _Remembering(embedder) if embedder is not None else None

    def fit(examples: Sequence[Example]) -> Callable[[Sequence[Example]], list[Prediction]]:
        detector = train(examples, settings, kept)
        return lambda others: detector.predict(others, kept)

    return fit


def cross_validate(
    examples: Sequence[Example],
    trainer: Trainer,
    split: Split,
    count: int | None = None,
    on_fold: Callable[[int, int], None] = lambda _done, _all: None,
    seed: int = 0,
) -> Study:
    """Hold out each fold in turn. Test labels are never seen by what predicts them."""
    need_labels(examples, "the data")
    folds = split_examples(examples, split, count or DEFAULT_FOLDS[split], seed)
    _check(examples, folds)
    start = time.perf_counter()
    found: dict[int, Prediction] = {}
    total = int(folds.max()) + 1
    for fold in range(total):
        inside = [examples[place] for place in np.flatnonzero(folds != fold).tolist()]
        places: list[int] = np.flatnonzero(folds == fold).tolist()
        # What is predicted has lost its labels: not even a mistake could use them.
        outside = [_blind(examples[place]) for place in places]
        found.update(zip(places, trainer(inside)(outside), strict=True))
        on_fold(fold + 1, total)
    return Study(
        split=split,
        folds=tuple(folds.tolist()),
        examples=tuple(examples),
        predictions=tuple(found[place] for place in range(len(examples))),
        seconds=time.perf_counter() - start,
    )


def _blind(example: Example) -> Example:
    return replace(example, label=None, type=None, modality=None)


def _check(examples: Sequence[Example], folds: Folds) -> None:
    for fold in range(int(folds.max()) + 1):
        kept = [int(examples[place].label or 0) for place in np.flatnonzero(folds != fold).tolist()]
        need_two_classes(kept, f"all but fold {fold + 1}")
