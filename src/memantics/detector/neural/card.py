"""A model card for a trained network: what it learnt from, what chose it, what it is not."""

from __future__ import annotations

from pathlib import Path

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
_LIMITS = """## Limits

- The validation part chose the epoch, so its figures are a little too good: a test part or other
  data say more.
- Labels follow one community's annotators at one time. A low chance is no clearance and a high one
  no verdict: use it to order what people look at.
- Weights learnt from restricted data fall under its terms: read these before you publish any.
"""


def write_card(trained: TrainedSeeds, data: Loaded) -> Path:
    """Write ``CARD.md`` beside the detectors."""
    path = trained.folder / CARD
    write_whole(path, describe(trained, data).encode())
    return path


def describe(trained: TrainedSeeds, data: Loaded) -> str:
    """The card as Markdown."""
    facts = trained.seeds[0]
    shape, training, counts = facts.shape, facts.training, facts.counts
    encoders = [kind for kind in ("text", "image", "clip") if (_first(trained) / kind).is_dir()]
    said = {
        "Decides between": ", ".join(facts.classes),
        "Encoders": ", ".join(encoders),
        "Captions": _say_captions(shape),
        "Data": f"{clean_markdown(data.name)}; licence of the data: {clean_markdown(data.licence)}",
        "Memes": f"{counts['train']:,} to train on, {counts['valid']:,} to choose the epoch "
        f"(held out: {training.hold_out}), {counts['test']:,} to test on, "
        f"{counts['skipped'] + len(data.skips):,} left out;"
        " ids and file names serve the split alone",
        "Seeds": f"{len(trained.seeds)}; seed {trained.chosen} had the best validation score",
        "Training": f"AdamW, rate {training.rate:g}, batch {training.batch}, class weights "
        f"{training.weighting}, at most {training.epochs} epochs, {training.patience} idle end it",
        "Packages": ", ".join(f"{name} {version}" for name, version in facts.versions.items()),
    }
    head = "| part | figure | mean | sd over seeds |\n|---|---|---:|---:|"
    rows = [f"| {' | '.join(row)} |" for row in tabulate(trained.seeds).rows]
    facts_list = "\n".join(f"- {name}: {what}." for name, what in said.items())
    title = "# Model card: a neural detector of harmful memes"
    if data.sample:
        title += "\n\nTrained on a small sample: it shows how things work and detects little."
    return "\n\n".join([title, facts_list, "\n".join([head, *rows]), _LIMITS])


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
