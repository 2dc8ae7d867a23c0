"""``memantics build remake``: memes that people sent back, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import remake as action
from memantics.cli import flags
from memantics.cli.reappraise import EditorUrl
from memantics.cli.terminal import console, plain, print_json, tell

Build = Annotated[
    Path, typer.Argument(help="The folder of 'build reappraisal', its queues with verdicts.jsonl.")
]


def build_remake(
    folder: Build, editor_url: EditorUrl = None, as_json: flags.AsJson = False
) -> None:
    """Make memes again that people sent back, or whose caption or plan they revised."""
    done = action.remake(folder, editor_url=editor_url)
    if as_json:
        print_json(done)
    elif done.queue is not None:
        text = f"{done.memes} memes made again; for people to check: {done.queue}"
        console().print(plain(text))
    for name, reason in done.failed.items():
        tell(f"{name}: {reason}")
    if done.failed:
        raise typer.Exit(1)
