"""Folders of memes (images alone, or images with a ``memes.jsonl``), their captions and join keys.

The join keys match answers from other tools with benchmark items: by id, or by image and question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from memantics.core.data import conform, inside, read_jsonl
from memantics.core.errors import DataError
from memantics.core.ids import escape_id, normalise_id, read_id
from memantics.core.records import Image, Item

MEMES, CAPTIONS = "memes.jsonl", "captions.jsonl"
# Names of the notes that are added when a meme is read by a model or by OCR.
HOMOPHONES, TEMPLATE, BESIDE = "heard as", "template", "text in the picture that is no caption"
KIND = "kind of picture"
NOTED = (HOMOPHONES, TEMPLATE, BESIDE, KIND)
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"})
# The length of a name is checked separately: within the regular expression it took 0.1 s to
# compile.
ID, LONGEST_ID = r"^\w[\w.\-]*$", 200


@dataclass(frozen=True, slots=True)
class Meme:
    """One meme. ``text`` is the text printed on it; ``notes`` are named texts about it.

    Known notes: ``meaning`` (of the text), ``description`` (of the image), ``background``, ``heard
    as`` (a homophone reading), ``template`` (other texts on the same image), ``kind of picture`` (a
    screenshot, a chat, text only; set only if certain). ``template_cluster`` names the memes of one
    template, which belong in one split.
    """

    id: str
    image: Path
    text: str = ""
    language: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    template_cluster: str = ""


def _normalise(given: object) -> object:
    return normalise_id(given) if isinstance(given, str) else given


class MemeLine(BaseModel):
    """A line of ``memes.jsonl``; fields of other tools are allowed."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: Annotated[str, BeforeValidator(_normalise)] = Field(pattern=ID, max_length=LONGEST_ID)
    image: str
    text: str = ""
    language: str = ""
    notes: dict[str, str] = {}
    kept: bool = True
    template_cluster: object = None  # Other tools may use this field for something else.


def read_memes(folder: Path) -> tuple[Meme, ...]:
    """Return the memes of a folder in order; skip lines with ``"kept": false``.

    Image files are not opened here.
    """
    if not folder.is_dir():
        raise DataError(folder, "is not a folder", hint="give a folder of images")
    listed = folder / MEMES
    memes = tuple(_read_lines(listed) if listed.is_file() else _list_images(folder))
    if not memes:
        raise DataError(
            folder, "contains no memes", hint=f"add images, or a {MEMES} that lists them"
        )
    seen: set[str] = set()
    for meme in memes:
        if meme.id in seen:
            raise DataError(folder, f"two memes have the id {meme.id!r}", hint="rename one")
        seen.add(meme.id)
    return memes


def _read_lines(path: Path) -> Iterator[Meme]:
    for row, line in read_jsonl(path):
        entry = conform(MemeLine, line, path, row)
        if entry.kept:
            image = inside(path.parent, entry.image)
            template_cluster = (
                entry.template_cluster if isinstance(entry.template_cluster, str) else ""
            )
            yield Meme(entry.id, image, entry.text, entry.language, entry.notes, template_cluster)


def _list_images(folder: Path) -> Iterator[Meme]:
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            yield Meme(escape_id(path.stem), path)


def name_apart(memes: Iterable[Meme]) -> list[Meme]:
    """Return memes whose ids are usable as distinct folder names; ambiguous ids get a number.

    >>> odd = [Meme("..", Path("...png")), Meme("a b", Path("x")), Meme("a_b", Path("y"))]
    >>> [meme.id for meme in name_apart(odd)]
    ['meme', 'a_b', 'a_b-2']
    """
    seen: set[str] = set()
    named = []
    for meme in memes:
        plain = re.sub(r"[^\w.\-]+", "_", meme.id).strip("._")[:100] or "meme"
        name, number = plain, 1
        while name in seen:
            number += 1
            name = f"{plain}-{number}"
        seen.add(name)
        named.append(replace(meme, id=name))
    return named


class CaptionLine(BaseModel):
    """A line of a captions file; fields of other tools are allowed."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    text_caption: str = ""
    image_caption: str = ""


def read_captions(path: Path) -> dict[str, Mapping[str, str]]:
    """Return notes by meme, from ``captions.jsonl`` or a file with the same two fields."""
    found: dict[str, Mapping[str, str]] = {}
    for row, value in read_jsonl(path):
        line = conform(CaptionLine, value, path, row)
        meme_id = read_id(line.id, path, row)
        if meme_id in found:
            raise DataError(path, f"id {meme_id!r} occurs twice", row=row)
        said = {"meaning": line.text_caption, "description": line.image_caption}
        found[meme_id] = {name: caption for name, caption in said.items() if caption.strip()}
    return found


def with_captions(
    memes: Iterable[Meme], captions: Mapping[str, Mapping[str, str]]
) -> tuple[Meme, ...]:
    """Add captions to the notes of memes; existing notes are kept."""
    return tuple(replace(meme, notes={**captions.get(meme.id, {}), **meme.notes}) for meme in memes)


def image_key(name: str) -> str:
    """Normalise an image name for joins: no folder, no extension, no leading zeros.

    Spreadsheets read ``01235`` as a number and drop its zero.

    >>> image_key("img/01235.png"), image_key("1235"), image_key("CN90001.PNG")
    ('1235', '1235', 'cn90001')
    """
    last = PurePosixPath(name.strip().replace("\\", "/")).name
    head, dot, ending = last.rpartition(".")
    stem = head if dot and ending.isalnum() and len(ending) <= 4 and head else last
    stem = stem.casefold()
    return stem.lstrip("0") or "0" if stem.isdecimal() else stem


def question_key(text: str) -> str:
    r"""Normalise a question for joins between copies of a data set.

    >>> question_key("What  does\nit SHOW? ")
    'what does it show?'
    """
    return " ".join(text.casefold().split())


def item_images(item: Item) -> tuple[str, ...]:
    """Return the join keys of an item: those of its images and of its meme."""
    return tuple(dict.fromkeys([*image_keys(item.images), image_key(item.group)]))


def image_keys(images: Iterable[Image]) -> list[str]:
    """Return the join keys of images."""
    return [image_key(image.path.name) for image in images]
