"""A verdict with its reasons, from a detector file or from one trained at first use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics import __version__
from memantics.core.errors import InputError
from memantics.core.home import home
from memantics.detector.examples import Example, Loaded
from memantics.detector.explanation import Part, explain
from memantics.detector.fast import FastDetector, train
from memantics.detector.features import Embedder
from memantics.detector.presets import FastSettings, find_preset
from memantics.detector.storage import load, load_with_card, save

SAMPLE_NOTE = (
    "judged by a detector trained on the starter pack's few dozen memes: an example of how it"
    " works, not a verdict to act on; train your own with 'memantics detector train'"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a detector says about one meme, with its strongest reasons.

    ``sample`` marks a verdict of the tiny detector that is trained on the starter pack; ``note``
    says so in words and belongs beside every verdict that is shown.
    """

    id: str
    harmful: bool
    probability: float
    type: str | None
    reasons: tuple[Part, ...]
    detector: str
    sample: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Screener:
    """A detector that is ready to judge; ``name`` is its file or what stands in for one."""

    detector: FastDetector
    name: str
    sample: bool
    embedder: Embedder | None = None

    def screen(self, examples: Sequence[Example], reasons: int = 6) -> list[Verdict]:
        """Judge memes; one with nothing to read in it is an error, not a harmless meme."""
        verdicts = []
        for example in examples:
            if example.empty:
                raise InputError(
                    f"meme {example.id} has no text to judge by", hint="read it with OCR first"
                )
            found = explain(self.detector, example, self.embedder)
            said = found.prediction
            verdicts.append(
                Verdict(
                    id=example.id,
                    harmful=said.label == 1,
                    probability=said.probability,
                    type=said.type,
                    reasons=found.strongest(reasons),
                    detector=self.name,
                    sample=self.sample,
                    note=SAMPLE_NOTE if self.sample else "",
                )
            )
        return verdicts


OpenEmbedder = Callable[[FastSettings], Embedder | None]


def _open_none(settings: FastSettings) -> None:
    del settings


def open_screener(
    path: Path | None,
    read_sample: Callable[[], Loaded],
    open_embedder: OpenEmbedder = _open_none,
) -> Screener:
    """The detector of a file; without one, a tiny one on sample data, trained once in seconds.

    ``open_embedder`` gives the embedder that a detector's settings ask for.
    """
    if path is not None:
        detector, card = load_with_card(path)
        sample = bool(card.get("sample", False))
        return Screener(detector, path.name, sample, open_embedder(detector.settings))
    loaded = read_sample()
    facts = f"{__version__}:{loaded.checksum}:{len(loaded.examples)}"
    place = home() / "detectors" / f"starter-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.zip"
    if not place.is_file():
        save(train(loaded.examples, find_preset("ridge")), place, {"sample": True})
    return Screener(load(place), "starter sample", True)


def screen(
    texts: Sequence[str],
    path: Path | None,
    read_sample: Callable[[], Loaded],
    open_embedder: OpenEmbedder = _open_none,
) -> list[Verdict]:
    """Judge plain texts."""
    examples = [Example(str(place), text) for place, text in enumerate(texts, 1)]
    return open_screener(path, read_sample, open_embedder).screen(examples)
