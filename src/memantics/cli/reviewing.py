"""A person between two stages of a reappraisal: accept, edit or skip, in the terminal."""

from __future__ import annotations

from collections.abc import Callable

import click
import orjson
import typer
from pydantic import BaseModel, ValidationError

from memantics.cli.screen import console, plain
from memantics.construct.reappraisal.chain import Stage
from memantics.construct.reappraisal.folder import Shape
from memantics.core.data import dump_json

_TITLES = {"feeling": "what it feels like", "plan": "the plan", "reading": "", "picture": ""}


def review_in_terminal(
    stage: Stage, meme: str, value: Shape, check: Callable[[Shape], list[str]]
) -> Shape | None:
    """Show a stage and ask; an edit that breaks a rule is shown with the reason and asked again."""
    current = value
    while True:
        _show(stage, meme, current)
        faults = check(current)
        for fault in faults:
            console().print(plain(f"  not allowed: {fault}", "red"))
        choices = "[e]dit, [s]kip" if faults else "[a]ccept, [e]dit, [s]kip"
        answer = typer.prompt(choices, default="e" if faults else "a", err=True).strip().lower()
        if answer.startswith("s"):
            return None
        if answer.startswith("a") and not faults:
            return current
        if answer.startswith("e"):
            current = _edit(current)


def _show(stage: Stage, meme: str, value: BaseModel) -> None:
    out = console()
    out.print(plain(f"{meme}: {_TITLES[stage]}", "bold"))
    out.print(plain(dump_json(value.model_dump(mode="json"))))


def _edit(value: Shape) -> Shape:
    """Open the value in the user's editor ($VISUAL, $EDITOR); what cannot be read is left out."""
    text = click.edit(dump_json(value.model_dump(mode="json")), extension=".json")
    if text is None:
        return value
    try:
        return type(value).model_validate(orjson.loads(text), strict=True)
    except orjson.JSONDecodeError as error:
        console().print(plain(f"  not valid JSON: {error}; the edit is dropped", "red"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        console().print(plain(f"  {place}: {first['msg']}; the edit is dropped", "red"))
    return value
