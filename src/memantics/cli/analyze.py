"""``memantics analyze``: one meme, everything at once; an analysis as a card in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from memantics.actions import analyze as action
from memantics.actions.analyze import JOURNAL, Analysis, Harm
from memantics.actions.asking import Asking
from memantics.actions.knowledge import Individual, outline
from memantics.cli import flags
from memantics.cli.progress import tell_tokens, watching
from memantics.cli.terminal import console, plain, print_json, tell

_LISTED = 3

Images = Annotated[list[Path], typer.Argument(help="Image files.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", help="KIND/NAME; without one only this machine's parts speak."),
]
Detector = Annotated[
    Path | None,
    typer.Option(help="A detector file. Default: a tiny one trained on the starter pack."),
]
Language = Annotated[
    str | None, typer.Option(help="Language of what the model writes. Default: the meme's.")
]
Page = Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")]
Journal = Annotated[
    Path, typer.Option(help="Folder of the journal: what is in there is not asked again.")
]


@flags.asks_models()
def analyze(
    images: Images,
    asking: Asking,
    model: ModelName = None,
    detector: Detector = None,
    language: Language = None,
    out: Page = None,
    calls: Journal = JOURNAL,
    as_json: flags.AsJson = False,
) -> None:
    """Say what memes say, show, mean, intend and pun on, and whom they may hurt.

    Without a model it reads, listens and screens on this machine, and says what it left out.
    """
    with watching("analyze", asking.prices) as show_progress:
        made = action.analyze(
            images,
            model=model,
            detector=detector,
            language=language,
            journal=calls,
            asking=asking,
            progress=show_progress,
        )
    if out is not None and made:
        made.save(out)
    if as_json:
        print_json([one.to_dict() for one in made])
    else:
        for one in made:
            show(one)
        tell_tokens(made.tokens, len(made))
        if out is not None and made:
            console().print(plain(f"page: {out}"))
    for error in made.refused:
        tell(f"error: {error}")
    if made.refused:
        raise typer.Exit(1 if made else 2)
    if any(one.statuses.get("failed") for one in made):
        raise typer.Exit(1)


def show(found: Analysis) -> None:
    """Print a card that fits a terminal."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, line in _lines(found):
        grid.add_row(title, line)
    console().print(Panel(grid, title=plain(found.meme.image.name), title_align="left"))


def _lines(found: Analysis) -> Iterator[tuple[str, Text]]:
    yield "says", plain(found.text or "nothing that could be read")
    yield "", plain(found.form, "dim")
    for sound in found.sounds:
        yield "puns on", plain(f"{sound.reading} ({sound.confidence:.0%} sure)")
    yield from _list("intends", found.intents)
    yield from _list("one must know", found.background)
    for harm in found.verdicts:
        yield ("harm, a guess" if harm.baseline else "harm"), tell_harm(harm)
        yield "", plain(f"by {harm.by}" + (f"; {harm.reason}" if harm.reason else ""), "dim")
    for feeling in found.moods:
        yield ("feels, a guess" if feeling.baseline else "feels"), plain(feeling.emotion)
        yield "", plain(f"by {feeling.by}; {feeling.reason}".rstrip("; "), "dim")
    for own in found.contradictions:
        yield "contradiction", plain(f"{own.about}: {own.text}", "red")
    for line in found.baselines:
        yield "baseline", plain(line, "dim")
    if found.knowledge is not None:
        for title, members in outline(found.knowledge):
            yield from _list(title, (_tell(own) for own, _ in members))
    for line in found.gaps:
        yield "left out", plain(line, "yellow")
    if found.statuses:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(found.statuses.items()))
        yield "asked", plain(f"{found.model}: {counts}", "dim")


def _list(title: str, lines: Iterable[str]) -> Iterator[tuple[str, Text]]:
    """The first few lines below one title; the page and --json have all."""
    found = list(lines)
    for place, line in enumerate(found[:_LISTED]):
        yield (title if not place else ""), plain(line)
    if len(found) > _LISTED:
        yield "", plain(f"… and {len(found) - _LISTED} more", "dim")


def _tell(one: Individual) -> str:
    told = f"{one.label}: {one.description}" if one.description else one.label
    return f"{told} [{one.kind}]" if one.kind else told


def tell_harm(harm: Harm) -> Text:
    """The verdict in one line, in a colour of its own."""
    parts = ["harmful" if harm.harmful else "not harmful"]
    if harm.score is not None:
        parts.append(f"chance {harm.score:.0%}")
    parts += [f"{harm.type}" if harm.type else "", f"against {harm.target}" if harm.target else ""]
    if harm.elements:
        parts.append("through " + ", ".join(f"“{part}”" for part in harm.elements[:4]))
    colour = "dim" if harm.baseline else "red" if harm.harmful else "green"
    return plain("; ".join(part for part in parts if part), colour)
