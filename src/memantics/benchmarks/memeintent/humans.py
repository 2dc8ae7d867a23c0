"""The paper's human evaluation as files: a blind queue for annotators, and a key for later.

Thirty random memes, each with the reply of every setting; two people rate every reply from 1 to 5
for textual completeness, relevance and correctness (workflow ``rate-outputs``). The queue says
nothing about models.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memantics.core.data import inside
from memantics.core.errors import InputError, StoreError
from memantics.core.images import read_bytes
from memantics.core.queue import QueueCard, QueueItem, Shown, write_queue
from memantics.core.records import Item
from memantics.core.rundir import RunFacts, dump_line, last_answers, read_facts, read_items
from memantics.tasks.plugin import HumanExport

TASK = "memeintent/intent"
MEMES = 30
QUEUE, KEY = "queue", "key.jsonl"
WORKFLOW = "rate-outputs"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """Where a reply of the queue comes from; kept from annotators."""

    id: str
    run: str
    model: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Run:
    folder: Path
    facts: RunFacts
    replies: Mapping[str, str]
    items: Mapping[str, Item] = field(default_factory=dict)


def export_human_evaluation(
    runs: Sequence[Path], out: Path, seed: int = 0, memes: int = MEMES
) -> HumanExport:
    """Draw memes that every run answered, and write queue and key into the folder ``out``."""
    read = [_read(folder) for folder in runs]
    _check(read)
    shared = sorted(set.intersection(*(set(run.replies) for run in read)), key=_natural)
    if not shared:
        raise InputError("no meme is answered in all of these runs", hint="give finished runs")
    chance = random.Random(seed)
    drawn = chance.sample(shared, min(memes, len(shared)))
    pairs = [(meme, run) for meme in drawn for run in read]
    # One shuffle over all: neither the place nor the neighbours of a reply tell its setting.
    chance.shuffle(pairs)
    named = [(f"r{n:04}", meme, run) for n, (meme, run) in enumerate(pairs, 1)]
    keys = [KeyRow(name, r.folder.name, r.facts.model, r.facts.options) for name, _, r in named]
    _write(out / KEY, b"".join(map(dump_line, keys)))
    images = {meme: _copy(read[0].items[meme], out / QUEUE) for meme in drawn}
    card = QueueCard(
        title="Intents of memes", workflow=WORKFLOW, warning=read[0].facts.warning, origin=TASK
    )
    items = (_item(name, meme, run, images[meme]) for name, meme, run in named)
    count = write_queue(out / QUEUE, card, items)
    return HumanExport(out / QUEUE, out / KEY, len(drawn), len(read), count)


def _read(folder: Path) -> _Run:
    facts = read_facts(folder)
    if facts.task != TASK:
        raise InputError(f"{folder} is a run of {facts.task}", hint=f"give runs of {TASK}")
    replies = {
        name: answer.value
        for name, answer in last_answers(folder).items()
        if answer.status == "answered" and isinstance(answer.value, str)
    }
    items = {line.item.id: line.item for line in read_items(folder)}
    return _Run(folder, facts, replies, items)


def _check(runs: Sequence[_Run]) -> None:
    if not runs:
        raise InputError("no run was given", hint=f"give run directories of {TASK}")
    if len({run.facts.fingerprint for run in runs}) < len(runs):
        raise InputError("a run was given twice", hint="give each setting once")
    if len({run.facts.data.get("checksum") for run in runs}) > 1:
        raise InputError("these runs are on different data", hint="give runs on the same data")


def _item(name: str, meme: str, run: _Run, images: list[str]) -> QueueItem:
    """One reply to rate. Nothing here tells where it comes from."""
    text = run.items[meme].form.context.get("text", "")
    shown = [Shown(label="Text", value=text)] if text else []
    return QueueItem(
        id=name,
        group=meme,
        images=images,
        shown=[*shown, Shown(label="Output", value=run.replies[meme])],
    )


def _copy(item: Item, queue: Path) -> list[str]:
    """Put the meme's image into the queue, which must be complete on its own."""
    if not item.images or not item.images[0].path.is_file():
        return []
    source = item.images[0].path
    name = f"images/{item.group}{source.suffix.lower()}"
    place = inside(queue, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(read_bytes(source))
    return [name]


def _natural(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isascii() and name.isdecimal() else (10**9, name)


def _write(path: Path, data: bytes) -> None:
    """Write a new file: one that is there may have been handed out already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise StoreError(f"{path} exists already", hint="choose another --out") from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}", hint="choose another --out"
        ) from error
