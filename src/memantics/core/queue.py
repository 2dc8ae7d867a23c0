"""The files in which construction and annotation meet: a queue goes out, verdicts come back.

A queue is a folder: ``queue.json`` (a :class:`QueueCard`), ``items.jsonl`` (one
:class:`QueueItem` a line) and the images that items name, relative to the folder. Verdicts are
``verdicts.jsonl``, one :class:`ItemVerdict` a line. Values of fields are plain JSON; which fields
there are is said by the workflow that the card names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from memantics.core.data import conform, dump_json, inside, read_json, read_jsonl
from memantics.core.errors import DataError
from memantics.core.images import read_bytes
from memantics.core.journal import replace_file, whole_file

CARD, ITEMS, VERDICTS = "queue.json", "items.jsonl", "verdicts.jsonl"
_CLOSED = ConfigDict(extra="forbid", frozen=True)


class QueueCard(BaseModel):
    """What a queue is about. ``origin`` says which command made it, from what.

    ``people`` is how many judge each item, where that is not left to the workflow.
    """

    model_config = _CLOSED

    title: str
    workflow: str
    language: str = "en"
    warning: str = ""
    licence: str = ""
    origin: str = ""
    people: int = Field(default=0, ge=0, le=50)


class Shown(BaseModel):
    """A text that annotators see: ``kind`` says how (``text``, ``list``, ``options``)."""

    model_config = _CLOSED

    label: str
    value: str | list[str]
    kind: str = "text"


class QueueItem(BaseModel):
    """One thing to judge.

    ``group`` is the meme. ``values`` are drafts for the workflow's fields (pre-labels, shown or
    hidden by setting), ``gold`` known answers for training rounds, ``hidden`` what no annotator
    may see (the model behind an output) and what comes back untouched with the verdict.
    """

    model_config = _CLOSED

    id: str = Field(min_length=1, max_length=300)
    group: str = Field(min_length=1, max_length=300)
    images: list[str] = []
    shown: list[Shown] = []
    values: dict[str, JsonValue] = {}
    gold: dict[str, JsonValue] | None = None
    hidden: dict[str, JsonValue] = {}


class Vote(BaseModel):
    """What one person said at one stage; ``person`` is a pseudonym.

    ``guideline`` is the version of the guideline that they read: 1 is the workflow's own.
    """

    model_config = _CLOSED

    person: str
    stage: str
    values: dict[str, JsonValue]
    at: str = ""
    guideline: int = 1


class ItemVerdict(BaseModel):
    """How an item ended: kept or not, with the agreed values, and the votes behind them."""

    model_config = _CLOSED

    item: str
    group: str
    workflow: str
    kept: bool
    values: dict[str, JsonValue]
    reason: str = ""
    votes: list[Vote] = []
    hidden: dict[str, JsonValue] = {}


def copy_picture(image: Path, queue: Path, name: str) -> str:
    """Put an image into a queue, which must be complete on its own; its name there."""
    place = f"images/{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}{image.suffix.lower()}"
    target = inside(queue, place)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(read_bytes(image))
    return place


def write_queue(folder: Path, card: QueueCard, items: Iterable[QueueItem]) -> int:
    """Write a queue; return how many items it holds. Images must lie inside the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    with whole_file(folder / ITEMS) as file:
        for item in items:
            for image in item.images:
                inside(folder, image)
            file.write(orjson.dumps(item.model_dump(exclude_defaults=True)) + b"\n")
            count += 1
    # Last: a folder without a card is no queue yet.
    replace_file(folder / CARD, dump_json(card.model_dump()).encode(), "queue")
    return count


def read_queue(folder: Path) -> tuple[QueueCard, list[QueueItem]]:
    """Read a queue; a bad line is an error that names it, and so is an id that comes twice."""
    if not (folder / CARD).is_file():
        raise DataError(
            folder, f"is no queue: {CARD} is missing", hint="'memantics build' makes one"
        )
    card = conform(QueueCard, read_json(folder / CARD), folder / CARD)
    items: list[QueueItem] = []
    seen: set[str] = set()
    for row, line in read_jsonl(folder / ITEMS):
        item = conform(QueueItem, line, folder / ITEMS, row)
        if item.id in seen:
            raise DataError(folder / ITEMS, f"id {item.id!r} comes twice", row=row)
        for image in item.images:
            inside(folder, image)
        seen.add(item.id)
        items.append(item)
    return card, items


def write_verdicts(path: Path, verdicts: Iterable[ItemVerdict]) -> int:
    """Write verdicts, one a line; return how many."""
    count = 0
    with whole_file(path) as file:
        for verdict in verdicts:
            file.write(orjson.dumps(verdict.model_dump(exclude_defaults=False)) + b"\n")
            count += 1
    return count


def read_verdicts(path: Path) -> Iterator[ItemVerdict]:
    """Read verdicts; a bad line is an error that names it."""
    for row, line in read_jsonl(path):
        yield conform(ItemVerdict, line, path, row)
