"""Pictures for probes: a white one of the same size, and one whose text is painted over."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageStat

from memantics.core.images import load, probe, read_bytes
from memantics.core.journal import replace_file
from memantics.vision.regions import PixelBox

_MARGIN = 0.15  # of a line's height: strokes and outlines reach beyond the box


class PictureShelf:
    """Changed pictures in a folder, each made once: the same picture always gets the same file."""

    def __init__(
        self, folder: Path, find_lines: Callable[[bytes, str], Sequence[PixelBox]]
    ) -> None:
        self._folder = folder
        self._find_lines = find_lines

    def blank(self, path: Path) -> Path:
        """A white picture of the same size."""
        facts = probe(read_bytes(path), path.name)
        made = self._folder / f"blank-{facts.width}x{facts.height}.png"
        if not made.is_file():
            _save(Image.new("RGB", (facts.width, facts.height), "white"), made)
        return made

    def erase(self, path: Path) -> Path:
        """The picture with its lines of text painted over in the colour around them."""
        data = read_bytes(path)
        made = self._folder / f"erased-{hashlib.sha256(data).hexdigest()[:24]}.png"
        if not made.is_file():
            picture = load(path).convert("RGB")
            for box in self._find_lines(data, path.name):
                paint_over(picture, box)
            _save(picture, made)
        return made


def paint_over(picture: Image.Image, box: PixelBox) -> None:
    """Fill a box, and a little more, with the median colour of the ring around it."""
    margin = max(2, round((box[3] - box[1]) * _MARGIN))
    inner = _grow(picture, box, margin)
    outer = _grow(picture, box, 2 * margin + 1)
    ring = Image.new("L", picture.size, 0)
    draw = ImageDraw.Draw(ring)
    draw.rectangle(outer, fill=255)
    draw.rectangle(inner, fill=0)
    # Text at the edge of a picture may leave no ring: then the box itself says its colour.
    mask = ring if ring.getextrema() != (0, 0) else None
    colour = tuple(int(value) for value in ImageStat.Stat(picture, mask).median)
    ImageDraw.Draw(picture).rectangle(inner, fill=colour)


def _grow(picture: Image.Image, box: PixelBox, by: int) -> PixelBox:
    left, top, right, bottom = box
    return (
        max(0, left - by),
        max(0, top - by),
        min(picture.width - 1, right + by),
        min(picture.height - 1, bottom + by),
    )


def _save(picture: Image.Image, path: Path) -> None:
    data = io.BytesIO()
    picture.save(data, "PNG")
    replace_file(path, data.getvalue(), "picture", "MEMANTICS_HOME")
