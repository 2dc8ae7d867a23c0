"""``memantics demo`` and ``memantics starter``: the memes that ship with the package."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import typer

from memantics.actions.demo import Tour, copy_starter, demo
from memantics.cli.expose import expose
from memantics.cli.terminal import say, tell

app = typer.Typer(help="The memes that ship with the package.", no_args_is_help=True)


@expose(demo, watch=lambda: nullcontext({"progress": lambda step: tell(f"  {step} …")}))
def show_demo(made: Tour) -> None:
    """Take our own memes through every part of Memantics, offline, and write one page."""
    say("")
    for line in made.highlights:
        say(f"• {line}")
    say("")
    say(f"Open {made.page} in a browser; {made.report} is how your own model would look.")


@app.command("copy")
@expose(copy_starter, json=None)
def copy_memes(folder: Path) -> None:
    """Copy our own memes and their tables to a folder, to follow the guides with."""
    say(f"{folder}: memes/, memes.csv, memes.jsonl")
