"""``memantics build remake``: memes that people sent back, made again."""

from __future__ import annotations

import typer

from memantics.actions import remake as action
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain, tell


def _end(done: action.Remade) -> None:
    for name, reason in done.failed.items():
        tell(f"{name}: {reason}")
    if done.failed:
        raise typer.Exit(1)


@expose(
    action.remake,
    end=_end,
    hide=("asking", "model", "best_of", "mood", "face", "editor_params"),
)
def build_remake(done: action.Remade) -> None:
    """Make memes again that people sent back, or whose caption or plan they revised."""
    if done.queue is not None:
        text = f"{done.memes} memes made again; for people to check: {done.queue}"
        console().print(plain(text))
