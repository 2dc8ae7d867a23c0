"""A record in the user's editor, as JSON."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import orjson
from pydantic import ValidationError

from memantics.core.data import dump_json
from memantics.core.errors import first_fault
from memantics.reappraise.folder import Shape


def edit_as_json(value: Shape) -> tuple[Shape, str]:
    """What a person made of a value, and a complaint where the edit had to be dropped."""
    try:
        text = _open_editor(dump_json(value.model_dump(mode="json")))
        return type(value).model_validate(orjson.loads(text), strict=True), ""
    except orjson.JSONDecodeError as error:
        return value, f"not valid JSON: {error}; the edit is dropped"
    except ValidationError as error:
        return value, f"{first_fault(error)}; the edit is dropped"
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return value, f"the editor did not work: {error}; set EDITOR to one that does"


def _open_editor(text: str) -> bytes:
    """What becomes of a text in the user's editor: $VISUAL, else $EDITOR, else vi."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stage.json"
        path.write_text(text, encoding="utf-8")
        subprocess.run([*shlex.split(command), str(path)], check=True)  # noqa: S603 - the user's own
        return path.read_bytes()
