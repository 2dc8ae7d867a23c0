"""Export for the human evaluation of the MemeIntent paper: a blind rating queue, and its key.

The paper samples thirty memes at random, with the reply of every setting. Two people rate every
reply from 1 to 5 for textual completeness, relevance and correctness (workflow ``rate-outputs``).
The annotation queue does not name models.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memantics.benchmarks.plugin import (
    KEY,
    QUEUE,
    HumanExport,
    copy_image,
    name_origin,
    read_runs,
    write_apart,
)
from memantics.core.errors import InputError
from memantics.core.queue import QueueCard, QueueItem, Shown, write_queue
from memantics.core.records import Item
from memantics.core.rundir import RunFacts, last_answers, read_items

TASK = "memeintent/intent"
MEMES = 30
WORKFLOW = "rate-outputs"


@dataclass(frozen=True, slots=True)
class _Run:
    folder: Path
    facts: RunFacts
    replies: Mapping[str, str]
    items: Mapping[str, Item] = field(default_factory=dict)


def export_human_evaluation(
    runs: Sequence[Path], out: Path, seed: int = 0, memes: int = MEMES
) -> HumanExport:
    """Sample memes that every run answered, and write the rating queue and its key to ``out``."""
    facts = read_runs(runs, TASK)
    read = [_read(folder, run_facts) for folder, run_facts in zip(runs, facts, strict=True)]
    shared = sorted(set.intersection(*(set(run.replies) for run in read)), key=_natural)
    if not shared:
        raise InputError("no meme is answered in all of these runs", hint="give finished runs")
    chance = random.Random(seed)
    drawn = chance.sample(shared, min(memes, len(shared)))
    pairs = [(meme, run) for meme in drawn for run in read]
    # All replies are shuffled together, so that neither position nor neighbours reveal the setting.
    chance.shuffle(pairs)
    named = [(f"r{n:04}", meme, run) for n, (meme, run) in enumerate(pairs, 1)]
    keys = [name_origin(n, r.folder.name, r.facts.model, r.facts.options) for n, _, r in named]
    write_apart(out / KEY, keys)
    images = {meme: _copy(read[0].items[meme], out / QUEUE) for meme in drawn}
    card = QueueCard(
        title="Intents of memes", workflow=WORKFLOW, warning=read[0].facts.warning, origin=TASK
    )
    items = (_item(name, meme, run, images[meme]) for name, meme, run in named)
    count = write_queue(out / QUEUE, card, items)
    return HumanExport(out / QUEUE, out / KEY, len(drawn), len(read), count)


def _read(folder: Path, facts: RunFacts) -> _Run:
    replies = {
        name: answer.value
        for name, answer in last_answers(folder).items()
        if answer.status == "answered" and isinstance(answer.value, str)
    }
    items = {line.item.id: line.item for line in read_items(folder)}
    return _Run(folder, facts, replies, items)


def _item(name: str, meme: str, run: _Run, images: list[str]) -> QueueItem:
    """Return one reply to rate, without the model that wrote it."""
    text = run.items[meme].form.context.get("text", "")
    shown = [Shown(label="Text", value=text)] if text else []
    return QueueItem(
        id=name,
        group=meme,
        images=images,
        shown=[*shown, Shown(label="Output", value=run.replies[meme])],
    )


def _copy(item: Item, queue: Path) -> list[str]:
    """Copy the meme's image into the annotation queue."""
    name = copy_image(item.images[0].path, queue, item.group) if item.images else None
    return [name] if name else []


def _natural(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isascii() and name.isdecimal() else (10**9, name)
