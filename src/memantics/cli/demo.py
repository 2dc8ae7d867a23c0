"""``memantics demo`` and ``memantics starter``: the memes that ship with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions.demo import copy_starter, demo
from memantics.cli import flags
from memantics.cli.terminal import print_json, say, tell

app = typer.Typer(help="The memes that ship with the package.", no_args_is_help=True)
Out = Annotated[Path, typer.Option(help="Folder of the pages.")]


def show_demo(out: Out = Path("demo"), as_json: flags.AsJson = False) -> None:
    """Take our own memes through every part of Memantics, offline, and write one page."""
    made = demo(out, lambda step: tell(f"  {step} …"))
    if as_json:
        print_json(made.to_dict())
        return
    say("")
    for line in made.highlights:
        say(f"• {line}")
    say("")
    say(f"Open {made.page} in a browser; {made.report} is how your own model would look.")


@app.command("copy")
def copy_memes(folder: Annotated[Path, typer.Argument(help="Where to put them.")]) -> None:
    """Copy our own memes and their tables to a folder, to follow the guides with."""
    say(f"{copy_starter(folder)}: memes/, memes.csv, memes.jsonl")
