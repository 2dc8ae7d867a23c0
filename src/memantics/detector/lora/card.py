"""A model card for a tuned model: what it learnt from, how it was judged, what it is not."""

from __future__ import annotations

from pathlib import Path

from memantics.core.journal import replace_file
from memantics.detector.card import clean_markdown
from memantics.detector.lora.judging import Rates
from memantics.detector.lora.tuning import Tuned, Tuning
from memantics.detector.lora.wording import Wording
from memantics.detector.neural.packages import find_versions

CARD = "CARD.md"
_LIMITS = """## Limits

- It was judged on memes of the data it was tuned on, in groups that it had not seen: other
  sources and other times are harder.
- A reply without a verdict counts as a miss of its class; it is never guessed.
- Weights learnt from restricted data fall under its terms: read these before you publish any."""


def write_card(
    tuned: Tuned, model: Path, chosen: tuple[Wording, Tuning], data: tuple[str, str]
) -> Path:
    """Write ``CARD.md`` beside the adapter; ``data`` is its name and its licence."""
    path = tuned.folder / CARD
    text = describe(tuned, model, chosen, data)
    replace_file(path, text.encode("utf-8", "replace"), "model card")
    return path


def describe(
    tuned: Tuned, model: Path, chosen: tuple[Wording, Tuning], data: tuple[str, str]
) -> str:
    """The card as Markdown."""
    wording, tuning = chosen
    name, licence = (clean_markdown(part) for part in data)
    asks = "whether a meme puns" if wording.question == "pun" else "whether a meme harms"
    said = {
        "Model": f"{clean_markdown(model.resolve().name)} with a LoRA adapter",
        "Asked": f"{asks}; style {wording.style}, language {wording.language}",
        "Data": f"{name}; licence of the data: {licence}",
        "Memes": f"{tuned.trained_on:,} to train on,"
        f" {tuned.after.memes:,} of other groups to judge",
        "Selection": "none: the number of epochs was given, and held-out groups chose nothing",
        "Training": f"rank {tuning.rank}, rate {tuning.rate:g}, batch {tuning.batch},"
        f" {tuning.epochs} epochs, seed {tuning.seed}",
        "Packages": ", ".join(f"{own} {version}" for own, version in find_versions().items()),
    }
    parts = {"held out, before": tuned.before, "held out, after": tuned.after}
    if tuned.external is not None:
        parts["external, after"] = tuned.external
    rows = [f"| {part} | {rates.memes:,} | {_show(rates)} |" for part, rates in parts.items()]
    head = (
        "| memes | n | TPR | TNR | F1 | macro-F1 | unparsed |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    facts = "\n".join(f"- {own}: {what}." for own, what in said.items())
    table = "\n".join([head, *rows])
    return f"# Model card: a tuned judge of memes\n\n{facts}\n\n{table}\n\n{_LIMITS}\n"


def _show(rates: Rates) -> str:
    figures = (rates.tpr, rates.tnr, rates.f1, rates.macro_f1)
    cells = ["–" if value is None else f"{value:.3f}" for value in figures]
    return " | ".join([*cells, str(rates.unparsed)])
