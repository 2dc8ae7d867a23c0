"""The memes: modules here named ``en_*`` or ``zh_*`` that expose ``MEMES: tuple[Meme, ...]``."""

from __future__ import annotations

import importlib
from pathlib import Path

from starter.declare import Meme

HERE = Path(__file__).resolve().parent


def find_memes() -> tuple[Meme, ...]:
    """All declared memes, sorted by id; an id that occurs twice is refused."""
    names = sorted(p.stem for p in HERE.glob("*.py") if p.stem.startswith(("en_", "zh_")))
    memes: dict[str, Meme] = {}
    for name in names:
        for meme in getattr(importlib.import_module(f"starter.content.{name}"), "MEMES", ()):
            if meme.id in memes:
                raise ValueError(f"{name}: the id {meme.id} is used twice")
            memes[meme.id] = meme
    return tuple(memes[key] for key in sorted(memes))
