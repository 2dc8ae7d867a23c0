"""Reader: one meme a line in ``memes.jsonl``, images in ``images/``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from memantics.core.data import Source, conform, inside, read_jsonl
from memantics.core.errors import DataError

FILE = "memes.jsonl"
Text = Annotated[str, Field(min_length=1)]


class Row(BaseModel):
    """A line of the file. A field that is not named here is an error, not a guess."""

    model_config = ConfigDict(extra="forbid")

    id: Text
    image: Text
    text: str
    meaning: Text
    others: Annotated[list[Text], Field(min_length=3, max_length=3)]


@dataclass(frozen=True, slots=True)
class Meme:
    """One meme: what it means, and three statements that miss it."""

    id: str
    file: str
    text: str
    meaning: str
    others: tuple[str, ...]
    image: Path | None


@dataclass(frozen=True, slots=True)
class Release:
    """All memes of one copy."""

    source: Source
    memes: tuple[Meme, ...]


def open_release(source: Source) -> Release:
    """Read every record, or say which one is wrong."""
    path = source.root / FILE
    if not path.is_file():
        raise DataError(source.root, f"has no {FILE}", hint="give the folder that holds it")
    images = source.images or source.root / "images"
    memes: dict[str, Meme] = {}
    for number, value in read_jsonl(path):
        row = conform(Row, value, FILE, number)
        if row.id in memes:
            raise DataError(FILE, f"meme {row.id} stands there twice", row=number)
        if len({row.meaning, *row.others}) < 4:
            raise DataError(FILE, "two of the four statements are the same", row=number)
        image = inside(images, row.image)
        memes[row.id] = Meme(
            id=row.id,
            file=row.image,
            text=row.text,
            meaning=row.meaning,
            others=tuple(row.others),
            image=image if image.is_file() else None,
        )
    if not memes:
        raise DataError(FILE, "holds no meme")
    return Release(source, tuple(memes.values()))
