"""A model card for a trained network: what it learnt from, what chose it, what it is not."""

from __future__ import annotations

from pathlib import Path

from memantics.detector.examples import Loaded
from memantics.detector.neural.checkpoint import write_whole
from memantics.detector.neural.seeds import Trained, summarise

CARD = "CARD.md"
_JOINED = {
    "attention": "the text's tokens attend to the captions' tokens",
    "pooled": "the paper's formula as printed, in which captions cancel out",
    "sum": "vectors are added, as in the official code",
    "none": "captions are not read",
}


def write_card(trained: Trained, data: Loaded) -> Path:
    """Write ``CARD.md`` beside the detectors."""
    path = trained.folder / CARD
    write_whole(path, describe(trained, data).encode())
    return path


def describe(trained: Trained, data: Loaded) -> str:
    """The card as Markdown."""
    facts = trained.seeds[0]
    shape, training, counts = facts.shape, facts.training, facts.counts
    encoders = [kind for kind in ("text", "image", "clip") if (_first(trained) / kind).is_dir()]
    lines = [
        "# Model card: a neural detector of harmful memes",
        "",
        f"- Decides between: {', '.join(facts.classes)}.",
        f"- Encoders: {', '.join(encoders)}. Captions: {_JOINED[shape.integration]}.",
        f"- Data: {_plain(data.name)}; licence of the data: {_plain(data.licence)}.",
        f"- Memes: {counts['train']:,} to train on, {counts['valid']:,} held out to choose the"
        f" epoch ({training.hold_out}), {counts['test']:,} to test on; {counts['skipped']:,} left"
        " out. Ids and file names were used for the split alone.",
        f"- Seeds: {len(trained.seeds)}; seed {trained.chosen} had the best validation score.",
        f"- Training: AdamW, rate {training.rate:g}, batch {training.batch}, class weights"
        f" {training.weighting}, at most {training.epochs} epochs, {training.patience} idle ones"
        " end it.",
        "- Packages: " + ", ".join(f"{k} {v}" for k, v in facts.versions.items()) + ".",
        "",
        "| part | figure | mean | sd over seeds |",
        "|---|---|---:|---:|",
    ]
    for part, figures in summarise(trained.seeds).items():
        lines += [
            f"| {part} | {name} | {100 * own['mean']:.2f} | {100 * own['sd']:.2f} |"
            for name, own in figures.items()
        ]
    lines += [
        "",
        "## Limits",
        "",
        "- The validation part chose the epoch, so its figures are a little too good; a test part"
        " or other data say more.",
        "- Labels follow one community's annotators at one time. A low chance is no clearance, a"
        " high one no verdict: use it to order what people look at.",
        "- Weights learnt from restricted data fall under its terms. Do not publish them without"
        " reading these.",
        "",
    ]
    return "\n".join(lines)


def _first(trained: Trained) -> Path:
    return trained.folder / f"seed-{trained.seeds[0].seed}"


def _plain(text: str) -> str:
    """A name from outside, without what Markdown would read."""
    return "".join(c if c.isalnum() or c in " ,.:/()-" else "_" for c in text)
