"""Small pictures and a scripted reader, so that collecting can be tested without an OCR."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from PIL import Image, ImageDraw

from memantics.core.lines import ImageReading, TextLine


def line(
    text: str, box: tuple[int, int, int, int] = (20, 20, 220, 50), score: float = 0.98
) -> TextLine:
    return TextLine(text, box, score)


@dataclass
class ScriptedReader:
    """Reads what a table says, by file name; ``asked`` holds the names in order."""

    table: Mapping[str, str | tuple[TextLine, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    version: str = "scripted-1"
    asked: list[str] = field(default_factory=list)

    def read(self, data: bytes, name: str) -> ImageReading:
        self.asked.append(name)
        said = self.table.get(name, "this is a perfectly fine caption")
        return ImageReading((line(said),) if isinstance(said, str) and said else tuple(said or ()))


def draw(seed: int, size: int = 240) -> Image.Image:
    """A picture of coloured shapes; another seed is another picture."""
    rng = random.Random(seed)
    image = Image.new("RGB", (size, size), tuple(rng.randrange(256) for _ in range(3)))
    pen = ImageDraw.Draw(image)
    for _ in range(14):
        left, top = rng.randrange(size), rng.randrange(size)
        box = (left, top, left + rng.randrange(20, size), top + rng.randrange(20, size))
        colour = tuple(rng.randrange(256) for _ in range(3))
        (pen.ellipse if rng.random() < 0.5 else pen.rectangle)(box, fill=colour)
    return image


def save(image: Image.Image, path: Path, quality: int = 90) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, quality=quality)
    return path


def write_bomb(path: Path) -> Path:
    """A PNG of a few kilobytes that decodes to more pixels than are ever read."""
    Image.new("1", (7000, 7000)).save(path)
    assert path.stat().st_size < 50_000
    return path
