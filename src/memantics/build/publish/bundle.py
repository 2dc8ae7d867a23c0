"""What is published, whatever family it belongs to: memes, tables of records, and facts."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.images import decode, probe, read_bytes

Record = Mapping[str, JsonValue]
NAME = re.compile(r"[a-z][a-z0-9_]{1,40}")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a data set's card says besides its figures."""

    name: str
    title: str
    summary: str
    licence: str
    languages: tuple[str, ...]
    warning: str = ""
    citation: str = ""
    version: str = "1.0.0"

    def check(self) -> None:
        """Refuse names that no folder, task or hub would take."""
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"benchmark name {self.name!r} does not fit",
                hint="use small letters, digits and _, beginning with a letter",
            )


@dataclass(frozen=True, slots=True)
class PublishedMeme:
    """A meme of a bundle; ``family`` is its template family: members stay in one split."""

    id: str
    image: Path
    text: str = ""
    language: str = ""
    family: str = ""

    @property
    def file(self) -> str:
        """The name of its image in the bundle."""
        return f"{self.id}.png"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the data card: a title, sentences, and a table of figures."""

    title: str
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that is published. ``tables`` hold one record a row; their key ``meme`` names a meme."""

    facts: Facts
    memes: tuple[PublishedMeme, ...]
    tables: Mapping[str, Sequence[Record]]
    sections: tuple[Section, ...] = field(default=())


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


def read_png(path: Path) -> bytes:
    """An image as PNG: its own bytes where it is one, else decoded in bounds and written anew."""
    data = read_bytes(path)
    if probe(data, path.name).format == "PNG":
        return data
    out = io.BytesIO()
    decode(data, path.name).save(out, "PNG")
    return out.getvalue()


def name_memes(ids: Iterable[str]) -> dict[str, str]:
    """Plain names for memes, unique and fit for every family's files.

    >>> name_memes(["cat.01", "cat 01", "dog"])
    {'cat.01': 'cat-01', 'cat 01': 'cat-01-2', 'dog': 'dog'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for own in ids:
        stem = re.sub(r"[^A-Za-z0-9_]+", "-", own).strip("-")[:80] or "meme"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        names[own] = name
    return names
