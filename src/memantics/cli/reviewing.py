"""A person between two stages of a reappraisal: accept, edit or skip, in the terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import orjson
import typer
from pydantic import BaseModel, ValidationError

from memantics.actions.reappraise import Shape, Stage
from memantics.cli.terminal import console, plain
from memantics.core.data import dump_json
from memantics.core.errors import first_fault

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
    """Let a person edit the value as JSON; an edit that cannot be read is dropped."""
    try:
        text = _open_editor(dump_json(value.model_dump(mode="json")))
        return type(value).model_validate(orjson.loads(text), strict=True)
    except orjson.JSONDecodeError as error:
        _complain(f"not valid JSON: {error}; the edit is dropped")
    except ValidationError as error:
        _complain(f"{first_fault(error)}; the edit is dropped")
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        _complain(f"the editor did not work: {error}; set EDITOR to one that does")
    return value


def _open_editor(text: str) -> bytes:
    """What becomes of a text in the user's editor: $VISUAL, else $EDITOR, else vi."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stage.json"
        path.write_text(text, encoding="utf-8")
        subprocess.run([*shlex.split(command), str(path)], check=True)  # noqa: S603 - the user's own
        return path.read_bytes()


def _complain(what: str) -> None:
    console().print(plain(f"  {what}", "red"))
