"""An analysis in a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from pydantic import JsonValue, TypeAdapter
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from memantics.build.analysis.describe import describe_form
from memantics.build.analysis.records import Analysis, Harm
from memantics.cli.terminal import console, plain
from memantics.knowledge.ontology.vocabulary import DIMENSION_TERMS, DIMENSIONS
from memantics.knowledge.records import Individual, Knowledge

_KNOWLEDGE = TypeAdapter(Knowledge)
_LISTED = 3


def show(own: Analysis) -> None:
    """Print a card that fits a terminal."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, line in _lines(own):
        grid.add_row(title, line)
    console().print(Panel(grid, title=plain(own.meme.image.name), title_align="left"))


def _lines(own: Analysis) -> Iterator[tuple[str, Text]]:
    yield "says", plain(own.text or "nothing that could be read")
    yield "", plain(describe_form(own), "dim")
    for sound in own.sounds:
        yield "puns on", plain(f"{sound.reading} ({sound.confidence:.0%} sure)")
    yield from _list("intends", own.intents)
    yield from _list("one must know", own.background)
    for harm in own.harms:
        yield "harm", tell_harm(harm)
        yield "", plain(f"by {harm.by}" + (f"; {harm.reason}" if harm.reason else ""), "dim")
    for feeling in own.feelings:
        yield "feels", plain(feeling.emotion)
        yield "", plain(f"by {feeling.by}; {feeling.reason}".rstrip("; "), "dim")
    if own.knowledge is not None:
        for name in DIMENSIONS:
            yield from _list(DIMENSION_TERMS[name].label, map(_tell, own.knowledge.of(name)))
    for gap in own.missing:
        yield "left out", plain(f"{gap.part}: {gap.reason}", "yellow")
    if own.statuses:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(own.statuses.items()))
        yield "asked", plain(f"{own.model}: {counts}", "dim")


def _list(title: str, lines: Iterable[str]) -> Iterator[tuple[str, Text]]:
    """The first few lines below one title; the page and --json have all."""
    found = list(lines)
    for place, line in enumerate(found[:_LISTED]):
        yield (title if not place else ""), plain(line)
    if len(found) > _LISTED:
        yield "", plain(f"… and {len(found) - _LISTED} more", "dim")


def _tell(own: Individual) -> str:
    told = f"{own.label}: {own.description}" if own.description else own.label
    return f"{told} [{own.kind}]" if own.kind else told


def tell_harm(harm: Harm) -> Text:
    """The verdict in one line, in a colour of its own."""
    parts = ["harmful" if harm.harmful else "not harmful"]
    if harm.score is not None:
        parts.append(f"chance {harm.score:.0%}")
    parts += [f"{harm.type}" if harm.type else "", f"against {harm.target}" if harm.target else ""]
    if harm.elements:
        parts.append("through " + ", ".join(f"“{own}”" for own in harm.elements[:4]))
    return plain("; ".join(part for part in parts if part), "red" if harm.harmful else "green")


def dump(own: Analysis) -> dict[str, JsonValue]:
    """The whole analysis as JSON."""
    known = _KNOWLEDGE.dump_python(own.knowledge, mode="json") if own.knowledge else None
    return {
        "meme": own.meme.id,
        "image": str(own.meme.image),
        "text": own.text,
        "lines": list(own.lines),
        "language": own.language,
        "panels": own.panels,
        "model": own.model,
        "sounds": [asdict(one) for one in own.sounds],
        "intents": list(own.intents),
        "background": list(own.background),
        "harm": [asdict(one) for one in own.harms],
        "emotion": [asdict(one) for one in own.feelings],
        "knowledge": known,
        "left_out": [asdict(one) for one in own.missing],
        "statuses": dict(own.statuses),
    }
