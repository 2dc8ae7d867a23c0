"""``memantics humans``: put the answers of runs before people, blind to who gave them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.cli.flags import Folders
from memantics.cli.terminal import console, plain
from memantics.core.errors import InputError
from memantics.core.rundir import read_facts
from memantics.registry import find_benchmark


def export_humans(
    folders: Folders,
    out: Annotated[Path, typer.Option(help="Folder for the queue and its key.")] = Path("humans"),
    memes: Annotated[int, typer.Option(min=1, help="How many memes to draw.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
) -> None:
    """Export answers for rating by people: a blind queue, and the key that tells who said what."""
    name = read_facts(folders[0]).benchmark
    export = find_benchmark(name).plugin.human_ratings
    if export is None:
        raise InputError(f"{name} has no protocol for human ratings", hint="memeintent has one")
    done = export(folders, out, seed, memes)
    written = f"{done.rows} ratings of {done.memes} memes: {done.queue}"
    console().print(plain(f"{written}; keep {done.key} from the raters"))
