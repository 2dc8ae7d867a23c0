"""A model card for a trained network: what it learnt from, what chose it, what it is not."""

from __future__ import annotations

from pathlib import Path

from memantics.core.template import fill_template
from memantics.detector.card import clean_markdown
from memantics.detector.examples import Loaded
from memantics.detector.neural.checkpoint import write_whole
from memantics.detector.neural.seeds import TrainedSeeds, tabulate
from memantics.detector.neural.settings import NetworkShape

CARD = "CARD.md"
_JOINED = {
    "attention": "the text's tokens attend to the captions' tokens",
    "pooled": "the paper's formula as printed, in which captions cancel out",
    "sum": "vectors are added, as in the official code",
    "none": "captions are not read",
}


def write_card(trained: TrainedSeeds, data: Loaded) -> Path:
    """Write ``CARD.md`` beside the detectors."""
    path = trained.folder / CARD
    write_whole(path, describe(trained, data).encode())
    return path


def describe(trained: TrainedSeeds, data: Loaded) -> str:
    """The card as Markdown."""
    facts = trained.seeds[0]
    return fill_template(
        __file__,
        "card.md",
        {"clean": clean_markdown, "count": "{:,}".format},
        data=data,
        trained=trained,
        facts=facts,
        encoders=[kind for kind in ("text", "image", "clip") if (_first(trained) / kind).is_dir()],
        captions=_say_captions(facts.shape),
        rows=tabulate(trained.seeds).rows,
    )


def _say_captions(shape: NetworkShape) -> str:
    """Which captions are read and how they join, and how texts become vectors."""
    if not shape.joined:
        said = _JOINED["none"]
    else:
        said = f"of the {' and the '.join(shape.joined)}: {_JOINED[shape.integration]}"
        if shape.integration == "attention" and shape.values == "text":
            said += ", which only reorder the text (values as printed)"
    return said if shape.pooling == "auto" else f"{said}; texts are pooled by {shape.pooling}"


def _first(trained: TrainedSeeds) -> Path:
    return trained.folder / f"seed-{trained.seeds[0].seed}"
