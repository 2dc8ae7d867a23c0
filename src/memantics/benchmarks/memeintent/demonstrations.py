"""Examples that are shown before a question: ours, or those of the user, with pictures."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from memantics.core.data import inside, load_toml
from memantics.core.errors import DataError, first_fault
from memantics.core.images import read_bytes

_SHAPE = "[[demonstration]] with text, image_caption, background, intent, and perhaps image"


class Demonstration(BaseModel):
    """One example of the few-shot settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    image_caption: str
    background: tuple[str, ...]
    intent: str
    image: str = ""


class _Demonstrations(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    demonstration: tuple[Demonstration, ...]


def read_demonstrations(path: Path) -> tuple[tuple[Demonstration, ...], str]:
    """Examples from a TOML file, with their hash, pictures included."""
    try:
        body = path.read_bytes()
        shown = _Demonstrations.model_validate(load_toml(body.decode())).demonstration
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(path, f"cannot be read: {error}", hint=_SHAPE) from error
    except ValidationError as error:
        raise DataError(path, first_fault(error), hint=_SHAPE) from error
    total = hashlib.sha256(body)
    for demonstration in shown:
        if demonstration.image:
            total.update(read_bytes(inside(path.parent, demonstration.image)))
    placed = (
        demonstration.model_copy(update={"image": str(path.parent / demonstration.image)})
        if demonstration.image
        else demonstration
        for demonstration in shown
    )
    return tuple(placed), total.hexdigest()[:16]
