"""Small queues made of the sample data, for every workflow."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from memantics.core.queue import QueueCard, QueueItem, Shown, write_queue
from memantics.core.samples import image_path, read_samples

MEMES = tuple(meme.id for meme in read_samples())


def make_queue(folder: Path, workflow: str, count: int, warning: str = "", **extra: Any) -> Path:
    """A queue of the first memes; ``extra`` gives fields of its items by name."""
    (folder / "images").mkdir(parents=True)
    items = []
    for place, meme in enumerate(MEMES[:count]):
        image = image_path(meme)
        shutil.copyfile(image, folder / "images" / image.name)
        given = {name: value(place) if callable(value) else value for name, value in extra.items()}
        items.append(
            QueueItem(
                id=f"meme-{place + 1}",
                group=f"meme-{place + 1}",
                images=[f"images/{image.name}"],
                **given,
            )
        )
    alone = 1 if workflow == "validate" else 0  # most tests have one person judge
    card = QueueCard(title=workflow, workflow=workflow, warning=warning, annotators_per_item=alone)
    write_queue(folder, card, items)
    return folder


def questions(_place: int) -> list[Shown]:
    """What the validation workflow judges."""
    return [
        Shown(label="knowledge", value="The meme shows a keyboard."),
        Shown(label="question", value="What does it show?"),
        Shown(label="options", value=["a keyboard", "a cat"], kind="options"),
        Shown(label="marked answer", value="a keyboard"),
    ]
