"""Drawn memes whose captions are known to the pixel."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from memantics.core.lines import TextLine
from memantics.understanding.vision.typefaces import ANTON, BALOO, BLACK, REGULAR, Typeface

__all__ = ["ANTON", "BALOO", "BLACK", "REGULAR", "Print", "as_jpeg", "blank", "photo", "print_on"]


@dataclass(frozen=True)
class Print:
    """A line as it is printed: text, middle, size, and look."""

    text: str
    x: int
    y: int
    size: int = 48
    face: Typeface = ANTON
    fill: str = "white"
    outline: str = "black"
    stroke: int = 4


def blank(width: int = 480, height: int = 360, colour: str = "#cfe4f2") -> Image.Image:
    return Image.new("RGB", (width, height), colour)


def photo(width: int = 480, height: int = 360, seed: int = 3) -> Image.Image:
    """Soft random blobs with some noise: what a photograph is to a finder of letters."""
    random = np.random.default_rng(seed)
    coarse = random.integers(30, 215, size=(7, 7, 3), dtype=np.uint8)
    smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    noise = random.integers(-9, 9, size=(height, width, 3))
    return Image.fromarray(np.clip(np.asarray(smooth) + noise, 0, 255).astype(np.uint8))


def print_on(image: Image.Image, *prints: Print) -> list[TextLine]:
    """Print lines on a picture; return them as a good OCR would, with loose boxes."""
    pen = ImageDraw.Draw(image)
    lines = []
    for each in prints:
        font = each.face.at(each.size)
        given = {"font": font, "anchor": "mm", "stroke_width": each.stroke}
        pen.text((each.x, each.y), each.text, each.fill, stroke_fill=each.outline, **given)  # type: ignore[arg-type]
        left, top, right, bottom = pen.textbbox((each.x, each.y), each.text, **given)  # type: ignore[arg-type]
        loose = max(2, each.size // 10)
        box = (
            max(0, int(left) - loose),
            max(0, int(top) - loose),
            min(image.width, int(right) + loose),
            min(image.height, int(bottom) + loose),
        )
        lines.append(TextLine(each.text, box, 0.99))
    return lines


def as_jpeg(image: Image.Image, quality: int = 85) -> Image.Image:
    data = io.BytesIO()
    image.save(data, "JPEG", quality=quality)
    return Image.open(io.BytesIO(data.getvalue())).convert("RGB")
