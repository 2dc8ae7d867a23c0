"""``python -m research.precedents``: which copies of decided memes a memory knows, and which not.

Pictures of PunMemeCN's development part are taught with their captions. Copies are saved again,
scaled and cropped; siblings are other memes of the release, asked with their own captions, and the
taught pictures with another caption. Captions are those of the release, not read by OCR.
"""

from __future__ import annotations

import io
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from memantics.detector.precedents import Memory, Precedent
from memantics.vision.hashes import hash_image
from research.data import read_puns
from research.protocol import DATA

TAUGHT = 200


def _save(image: Image.Image, quality: int) -> Image.Image:
    body = io.BytesIO()
    image.save(body, "JPEG", quality=quality)
    return Image.open(io.BytesIO(body.getvalue()))


def _crop(share: float) -> Callable[[Image.Image], Image.Image]:
    def cut(image: Image.Image) -> Image.Image:
        wide, high = image.size
        x, y = int(wide * share / 2), int(high * share / 2)
        return image.crop((x, y, wide - x, high - y))

    return cut


EDITS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "JPEG at 75": lambda image: _save(image, 75),
    "JPEG at 30": lambda image: _save(image, 30),
    "half the size": lambda image: image.resize((image.width // 2, image.height // 2)),
    "brighter by a fifth": lambda image: image.point(lambda value: min(255, int(value * 1.2))),
    "cropped by 2 %": _crop(0.02),
    "cropped by 5 %": _crop(0.05),
    "cropped by 10 %": _crop(0.10),
}


def main() -> int:
    """Print the figures of docs/research/precedents.md."""
    out = sys.stdout.write
    folder = DATA / "punmemecn" / "images"
    files = {path.name: path for path in folder.rglob("*.png")}
    rows = [row for row in read_puns() if row.content.name in files]
    random.Random(1).shuffle(rows)
    taught, others = rows[:TAUGHT], rows[TAUGHT:]
    pictures = {row.id: Image.open(files[row.content.name]).convert("RGB") for row in taught}
    memory = Memory(Path(tempfile.mkdtemp()) / "memory")
    memory.teach(
        Precedent(
            row.id, "harmful", "", row.content.caption, "", f"{hash_image(pictures[row.id]):016x}"
        )
        for row in taught
    )

    def knows(image: Image.Image, text: str) -> bool:
        return (
            memory.find(text=text, sha256="0" * 64, phash=f"{hash_image(image):016x}") is not None
        )

    for name, edit in EDITS.items():
        hits = sum(knows(edit(pictures[row.id]), row.content.caption) for row in taught)
        out(f"{name}: {hits} of {len(taught)}\n")
    swapped = sum(
        knows(pictures[row.id], other.content.caption)
        for row, other in zip(taught, others, strict=False)
    )
    out(f"another caption: {swapped} of {min(len(taught), len(others))}\n")
    captions = {row.content.caption for row in taught}
    strangers = [row for row in others if row.content.caption not in captions]
    alarms = sum(
        knows(Image.open(files[row.content.name]).convert("RGB"), row.content.caption)
        for row in strangers
    )
    out(f"other memes of the release: {alarms} of {len(strangers)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
