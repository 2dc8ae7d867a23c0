"""``memantics analyze``: one meme, everything at once; an analysis as a card in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.panel import Panel
from rich.table import Table

from memantics.actions import analyze as action
from memantics.actions.analysis_lines import describe
from memantics.actions.analyze import Analyses, Analysis
from memantics.cli.expose import expose
from memantics.cli.progress import tell_tokens, watch
from memantics.cli.terminal import console, plain, tell
from memantics.core.parameters import Flag

Page = Annotated[Path | None, Flag("Write one self-contained page to this file.")]


def _save(made: Analyses, out: Page = None) -> None:
    if out is not None and made:
        made.save(out)


def _end(made: Analyses) -> None:
    for error in made.refused:
        tell(f"error: {error}")
    if made.refused:
        raise typer.Exit(1 if made else 2)
    if any(one.statuses.get("failed") for one in made):
        raise typer.Exit(1)


@expose(
    action.analyze,
    watch=watch("analyze"),
    dump=lambda made: [one.to_dict() for one in made],
    save=_save,
    end=_end,
)
def analyze(made: Analyses, out: Path | None) -> None:
    """Say what memes say, show, mean, intend and pun on, and whom they may hurt.

    Without a model it reads, listens and screens on this machine, and says what it left out.
    """
    for one in made:
        show(one)
    tell_tokens(made.tokens, len(made))
    if out is not None and made:
        console().print(plain(f"page: {out}"))


def show(found: Analysis) -> None:
    """Print a card that fits a terminal."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, line, tone in describe(found):
        grid.add_row(title, plain(line, tone))
    console().print(Panel(grid, title=plain(found.meme.image.name), title_align="left"))
