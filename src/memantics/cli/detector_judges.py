"""Detectors of every kind behind one face: examples in, predictions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memantics.actions.detector_data import open_embedder, read_images
from memantics.core.errors import InputError
from memantics.detector import neural
from memantics.detector.examples import Example
from memantics.detector.fast import FastDetector, Prediction
from memantics.detector.features import Embedder
from memantics.detector.storage import load_with_card
from memantics.models.embedders import LOCAL


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

    @property
    def reads_images(self) -> bool:
        """Whether it has learnt from what images say."""
        return any(block.field == "ocr" for block in self.detector.settings.blocks)

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction per example, in order."""
        return self.detector.predict(self.look(examples), self.embedder)

    def look(self, examples: Sequence[Example]) -> tuple[Example, ...]:
        """Examples with their images read, where the detector has learnt from such texts."""
        return read_images(examples)[0] if self.reads_images else tuple(examples)


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


def open_judge(path: Path, encoder: Path | None = None) -> FastJudge | NeuralJudge:
    """Open a detector of any kind; ``encoder`` is the folder of the one it was trained with."""
    if neural.is_neural(path):
        return NeuralJudge(neural.open_neural(path))
    return open_fast(path, encoder)


def open_fast(path: Path, encoder: Path | None = None) -> FastJudge:
    """Open a fast detector; a network is refused with what to do."""
    if neural.is_neural(path):
        raise InputError(
            f"{path} is a network, and this works on fast detectors only",
            hint="give a file that 'memantics detector train' wrote",
        )
    detector, card = load_with_card(path)
    # Of two detectors that are compared only one may need the folder.
    folder = encoder if detector.embedder.startswith(LOCAL) else None
    return FastJudge(detector, open_embedder(detector.settings, folder), card)
