"""Images of a queue: copied into its folder, for a queue must be complete on its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memantics.core.data import inside
from memantics.core.images import probe, read_bytes
from memantics.core.memes import Meme

IMAGES = "images"


def queue_images(memes: Iterable[Meme], folder: Path) -> dict[str, str]:
    """Copy the images of memes into a queue; by id the name under which an item finds its own."""
    (folder / IMAGES).mkdir(parents=True, exist_ok=True)
    names = {}
    for meme in memes:
        data = read_bytes(meme.image)
        probe(data, meme.image.name)
        name = f"{IMAGES}/{meme.id}{meme.image.suffix.lower()}"
        place = inside(folder, name)
        if not (place.is_file() and place.read_bytes() == data):
            place.write_bytes(data)
        names[meme.id] = name
    return names
