"""Queues over sample memes, and annotations as the annotation app would give them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    QueueCard,
    QueueItem,
    write_annotations,
    write_queue,
)
from memantics.core.samples import SampleMeme, image_path, read_samples


def pick_memes(language: str, count: int) -> list[SampleMeme]:
    return [meme for meme in read_samples() if meme.language == language][:count]


def make_queue(folder: Path, workflow: str, memes: list[SampleMeme]) -> Path:
    (folder / "images").mkdir(parents=True)
    items = []
    for meme in memes:
        shutil.copy(image_path(meme.id), folder / "images" / meme.file)
        hidden: dict[str, JsonValue] = {
            "text": meme.text,
            "language": meme.language,
            "description": meme.description,
            "meaning": meme.meaning,
        }
        items.append(
            QueueItem(id=meme.id, group=meme.id, images=[f"images/{meme.file}"], hidden=hidden)
        )
    write_queue(folder, QueueCard(title="Test queue", workflow=workflow, warning="Rude."), items)
    return folder


def judge(
    folder: Path,
    workflow: str,
    values: Mapping[str, dict[str, JsonValue]],
    dropped: frozenset[str] = frozenset(),
) -> None:
    """Three people who agree on everything."""
    write_annotations(
        folder / "annotations.jsonl",
        [
            AggregatedAnnotation(
                item=name,
                group=name,
                workflow=workflow,
                kept=name not in dropped,
                values=own,
                reason="not understood" if name in dropped else "",
                annotations=[
                    IndividualAnnotation(annotator=f"p{n}", stage="label", values=own)
                    for n in (1, 2, 3)
                ],
            )
            for name, own in values.items()
        ],
    )
