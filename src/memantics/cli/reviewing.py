"""A person between two stages of a reappraisal: accept, edit or skip, in the terminal."""

from __future__ import annotations

from collections.abc import Callable

import typer
from pydantic import BaseModel

from memantics.actions.reappraise import Shape, Stage
from memantics.actions.text_editor import edit_as_json
from memantics.cli.terminal import console, plain
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
            current, complaint = edit_as_json(current)
            if complaint:
                _complain(complaint)


def _show(stage: Stage, meme: str, value: BaseModel) -> None:
    out = console()
    out.print(plain(f"{meme}: {_TITLES[stage]}", "bold"))
    out.print(plain(dump_json(value.model_dump(mode="json"))))


def _complain(what: str) -> None:
    console().print(plain(f"  {what}", "red"))
