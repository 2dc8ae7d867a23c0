"""``memantics models``: what can be asked."""

from __future__ import annotations

from typing import Annotated

import typer

from memantics.cli.terminal import console, print_json, table
from memantics.registry import MODEL_KINDS

app = typer.Typer(help="List the kinds of models.", no_args_is_help=True)


@app.command("list")
def show_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the kinds of models and how each is named."""
    if as_json:
        print_json([{"name": kind.example, "what": kind.what} for kind in MODEL_KINDS])
        return
    rows = table([("--model", "left"), ("what answers", "left")])
    for kind in MODEL_KINDS:
        rows.add_row(kind.example, kind.what)
    console().print(rows)
