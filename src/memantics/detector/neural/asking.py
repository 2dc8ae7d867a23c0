"""One way to ask a neural detector, whether it lies in its folder or in an exported file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from memantics.core.data import Skip
from memantics.core.errors import InputError
from memantics.detector.examples import Example
from memantics.detector.neural.deployed import GRAPH, open_deployed
from memantics.detector.neural.encoding import Encoded, gold_places
from memantics.detector.neural.evaluation import Chances, Figures, measure
from memantics.detector.neural.facts import FACTS, Facts
from memantics.detector.neural.saved import SUMMARY, load_neural


class Detector(Protocol):
    """What both kinds can do."""

    facts: Facts

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the chances."""
        ...

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Examples as arrays."""
        ...

    def predict(self, encoded: Encoded) -> Chances:
        """Chances of the classes, a row per encoded example."""
        ...


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a detector says of one example: the likeliest class, and the chance of each."""

    id: str
    label: str
    chances: dict[str, float]

    @property
    def harmful(self) -> float:
        """The chance that the meme is harmful, of whatever type."""
        for harmless in ("harmless", "none"):
            if harmless in self.chances:
                return 1 - self.chances[harmless]
        return 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """Predictions in the order of the examples; those without a usable image are in ``skips``."""

    examples: tuple[Example, ...]
    predictions: tuple[Prediction, ...]
    skips: tuple[Skip, ...]


def is_neural(path: Path) -> bool:
    """Whether a path is a neural detector's folder, a folder of seeds, or an exported file."""
    if path.is_dir():
        return (path / FACTS).is_file() or (path / SUMMARY).is_file()
    try:
        with zipfile.ZipFile(path) as archive:
            return GRAPH in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def open_neural(path: Path, device: str = "auto") -> Detector:
    """Open a detector: a folder with PyTorch, an exported file without."""
    if path.is_file():
        return open_deployed(path)
    if not path.is_dir():
        raise InputError(
            f"no such detector: {path}", hint="memantics detector train-neural makes one"
        )
    return load_neural(path, device)


def predict_neural(detector: Detector, examples: Sequence[Example]) -> Asked:
    """Ask a detector about examples; labels are not looked at."""
    encoded = detector.encode(examples)
    chances = detector.predict(encoded)
    classes = detector.classes
    predictions = tuple(
        Prediction(
            example.id,
            classes[int(row.argmax())],
            {name: float(chance) for name, chance in zip(classes, row, strict=True)},
        )
        for example, row in zip(encoded.examples, chances, strict=True)
    )
    return Asked(encoded.examples, predictions, encoded.skips)


def score_neural(detector: Detector, examples: Sequence[Example]) -> tuple[Figures, Asked]:
    """Figures of a detector on labelled examples."""
    asked = predict_neural(detector, examples)
    gold = gold_places(asked.examples, detector.facts.shape.target)
    guesses = np.array([detector.classes.index(one.label) for one in asked.predictions])
    return measure(gold, guesses, detector.classes), asked
