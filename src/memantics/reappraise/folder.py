"""The folder of one reappraisal: a file for each stage, made so that people can correct them.

A stage's file names the hash of what it was made from. Where that still holds, the stage is not
taken again; a person who edits a file therefore keeps the edit, and all later stages follow it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, JsonValue

from memantics.core.closed import Closed
from memantics.core.data import conform, dump_json, read_json
from memantics.core.errors import DataError
from memantics.core.journal import replace_file

FEELING, PLAN, CHECKS = "feeling.json", "plan.json", "checks.json"
MEME, BOTH = "meme.png", "before-after.png"
VERSIONS, SHEET, PAGE = "versions.json", "versions.png", "versions.html"
Shape = TypeVar("Shape", bound=BaseModel)
StageStatus = Literal["done", "flawed", "failed", "declined"]


class StageFile(Closed):
    """A stage as it stands on disk; ``made_from`` is the hash of all that it depends on."""

    status: StageStatus
    made_by: str
    made_from: str
    reason: str = ""
    value: JsonValue = None


def hash_inputs(*parts: JsonValue) -> str:
    """A short hash of what a stage depends on.

    >>> hash_inputs("a", 1) == hash_inputs("a", 1) != hash_inputs("a", 2)
    True
    """
    return hashlib.sha256(dump_json(list(parts)).encode()).hexdigest()[:16]


def read_stage(path: Path, shape: type[Shape], made_from: str) -> Shape | None:
    """The value of a stage that was taken and still holds; None where it must be taken (again).

    A file that a person broke is an error that names the field.
    """
    if not path.is_file():
        return None
    try:
        stage = conform(StageFile, read_json(path), path)
        if stage.status not in ("done", "flawed") or stage.made_from != made_from:
            return None
        return conform(shape, stage.value, path)
    except DataError as error:
        raise DataError(
            path, error.what, hint="correct that file, or delete it to make it anew"
        ) from error


def write_stage(path: Path, stage: StageFile) -> None:
    """Write a stage whole or not at all."""
    replace_file(path, dump_json(stage.model_dump(mode="json")).encode())
