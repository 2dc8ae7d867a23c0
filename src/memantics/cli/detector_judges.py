"""Detectors of every kind behind one face: examples in, predictions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memantics.cli.detector_data import open_embedder
from memantics.core.errors import InputError
from memantics.detector import neural
from memantics.detector.examples import Example
from memantics.detector.fast import FastDetector, Prediction
from memantics.detector.features import Embedder
from memantics.detector.storage import load, load_card


class Judge(Protocol):
    """Anything that predicts; ``checksum`` is that of the data it was trained on."""

    @property
    def checksum(self) -> str:
        """Which data it has seen; empty where nobody wrote that down."""
        ...

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction per example, in order."""
        ...


@dataclass(frozen=True, slots=True)
class FastJudge:
    """A fast detector with the embedder it needs."""

    detector: FastDetector
    embedder: Embedder | None
    card: dict[str, object]

    @property
    def checksum(self) -> str:
        """Which data it has seen."""
        return str(self.card.get("checksum", ""))

    @property
    def sample(self) -> bool:
        """Whether it was trained on the starter pack."""
        return bool(self.card.get("sample", False))

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction per example, in order."""
        return self.detector.predict(examples, self.embedder)


@dataclass(frozen=True, slots=True)
class NeuralJudge:
    """A network, or what was exported from one."""

    detector: neural.Detector

    @property
    def checksum(self) -> str:
        """Which data it has seen."""
        return self.detector.facts.data.get("checksum", "")

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction per example, in order; a missing image is an error here."""
        asked = neural.predict_neural(self.detector, examples)
        if asked.skips:
            first = asked.skips[0]
            raise InputError(
                f"{len(asked.skips)} memes cannot be judged: {first.row}: {first.reason}",
                hint="leave them out, or use a detector of texts",
            )
        types = set(self.detector.classes) != {"harmless", "harmful"}
        return [
            Prediction(
                id=said.id,
                label=int(said.label not in ("harmless", "none")),
                probability=said.harmful,
                type=said.label if types else None,
                types=said.chances if types else {},
            )
            for said in asked.predictions
        ]


def open_judge(path: Path) -> FastJudge | NeuralJudge:
    """Open a detector of any kind."""
    if neural.is_neural(path):
        return NeuralJudge(neural.open_neural(path))
    return open_fast(path)


def open_fast(path: Path) -> FastJudge:
    """Open a fast detector; a network is refused with what to do."""
    if neural.is_neural(path):
        raise InputError(f"{path} is a network, and this works on fast detectors only")
    detector = load(path)
    return FastJudge(detector, open_embedder(detector.settings), load_card(path))
