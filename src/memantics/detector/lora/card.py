"""The card of a tuned model: what it was asked, whose data it learnt from, how it was judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memantics.core.journal import replace_file
from memantics.core.result import Table
from memantics.detector.card import clean_markdown
from memantics.detector.neural.machine import find_versions

CARD = "CARD.md"
_LIMITS = """## Limits

- It was judged on memes of the data it was tuned on, in groups that it had not seen: other
  sources and other times are harder.
- {invalid}
- Weights learnt from restricted data fall under its terms: read these before you publish any."""


@dataclass(frozen=True, slots=True)
class DataOrigin:
    """Whose memes a model learnt from. ``sample`` marks the starter pack, which proves nothing."""

    data: str
    licence: str = "not said"
    languages: tuple[str, ...] = ()
    sample: bool = False


UNKNOWN = DataOrigin("not said")


def write_card(
    folder: Path,
    model: Path,
    facts: Mapping[str, str],
    table: Table,
    origin: DataOrigin,
    invalid: str,
) -> Path:
    """Write ``CARD.md`` beside the adapter; ``invalid`` says how unusable replies counted."""
    said = {
        "Model": f"{clean_markdown(model.resolve().name)} with a LoRA adapter",
        "Data": f"{clean_markdown(origin.data)}; licence of the data:"
        f" {clean_markdown(origin.licence)}",
        "Languages of the data": ", ".join(origin.languages) or "cannot be told",
        **facts,
        "Selection": "none: the number of epochs was given, and held-out groups chose nothing",
        "Packages": ", ".join(f"{label} {version}" for label, version in find_versions().items()),
    }
    head = " | ".join(name for name, _ in table.sides)
    sides = "---:|" * (len(table.columns) - 1)
    lines = [f"| {head} |", f"|---|{sides}", *(f"| {' | '.join(row)} |" for row in table.rows)]
    listed = "\n".join(f"- {label}: {what}." for label, what in said.items())
    limits = _LIMITS.format(invalid=invalid)
    text = "\n".join(
        ["# Model card: a model tuned by LoRA", "", listed, "", *lines, "", limits, ""]
    )
    path = folder / CARD
    replace_file(path, text.encode("utf-8", "replace"), "model card")
    return path
