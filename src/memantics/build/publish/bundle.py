"""What is published, whatever family it belongs to: memes, tables of records, and facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from memantics.core.errors import InputError
from memantics.core.writing import PublishedMeme, Record, read_png

NAME = re.compile(r"[a-z][a-z0-9_]{1,40}")


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a data set's card says besides its figures."""

    name: str
    title: str
    summary: str
    licence: str
    languages: tuple[str, ...]
    warning: str = ""
    citation: str = ""
    version: str = "1.0.0"

    @property
    def canary(self) -> str:
        """A string unlike any other: a model that knows it has trained on these files."""
        drawn = uuid5(NAMESPACE_URL, f"{self.name} {self.version} {self.title}")
        return f"MEMANTICS CANARY {drawn}"

    def check(self) -> None:
        """Refuse names that no folder, task or hub would take."""
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"benchmark name {self.name!r} does not fit",
                hint="use small letters, digits and _, beginning with a letter",
            )


@dataclass(frozen=True, slots=True)
class CardSection:
    """A part of the data card: a title, sentences, and a table of figures."""

    title: str
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that is published. ``tables`` hold one record a row; their key ``meme`` names a meme.

    Without ``images`` memes are named by id, file and checksum, for data whose images may not be
    passed on.
    """

    facts: CardFacts
    memes: tuple[PublishedMeme, ...]
    tables: Mapping[str, Sequence[Record]]
    sections: tuple[CardSection, ...] = field(default=())
    images: bool = True


def copy_images(memes: Iterable[PublishedMeme], folder: Path) -> int:
    """Copy the images, PNG byte by byte, others as PNG; return how many.

    One format, since most families' official formats know no other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for meme in memes:
        (folder / meme.file).write_bytes(read_png(meme.image))
        count += 1
    return count
