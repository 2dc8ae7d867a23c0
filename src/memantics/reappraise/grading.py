"""The embedded editor: light, colours and a small sticker, by target emotion. No model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from pydantic import JsonValue

from memantics.core.editor import EditRequest
from memantics.core.images import decode, encode_png

_SCALE = 4
_LINE = (43, 36, 64, 255)
_CREAM = (255, 250, 236, 255)
Spot = tuple[int, int, int]


def find_free_spot(pixels: NDArray[np.uint8], mask: NDArray[np.bool_]) -> Spot | None:
    """The calmest square of the mask (left, top, side); None where all of it is busy."""
    height, width = mask.shape
    side = max(24, round(0.13 * min(width, height)))
    grey = pixels.astype(np.float32).mean(axis=2)
    busy = np.zeros((height, width), np.float64)
    busy[:, 1:] += np.abs(np.diff(grey, axis=1)) > 12
    busy[1:, :] += np.abs(np.diff(grey, axis=0)) > 12
    busy[~mask] += 4
    total = np.pad(busy.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    best, spot = 0.02 * side * side, None
    margin = max(4, side // 6)
    for top in range(margin, height - side - margin, max(1, side // 4)):
        for left in range(margin, width - side - margin, max(1, side // 4)):
            low, right = top + side, left + side
            inside = total[low, right] - total[top, right] - total[low, left] + total[top, left]
            # Among calm places the one nearest to a side disturbs the picture least.
            away = min(left, width - right) / width
            if inside + away < best:
                best, spot = inside + away, (left, top, side)
    return spot


def draw_sticker(image: Image.Image, spot: Spot, target: str) -> Image.Image:
    """Lay the sticker of a target emotion on a picture."""
    left, top, side = spot
    plate = Image.new("RGBA", (side * _SCALE, side * _SCALE))
    draw = {"happy": _draw_sun, "calm": _draw_leaf, "relaxed": _draw_cup, "excited": _draw_star}
    draw[target](ImageDraw.Draw(plate), side * _SCALE)
    small = plate.resize((side, side), Image.Resampling.LANCZOS)
    made = image.convert("RGB")
    made.paste(small, (left, top), small)
    return made


def _draw_sun(pen: ImageDraw.ImageDraw, side: int) -> None:
    middle, width = side / 2, max(2, side // 32)
    for ray in range(8):
        turn = math.pi / 4 * ray
        ends = [
            (middle + math.cos(turn) * side * far, middle + math.sin(turn) * side * far)
            for far in (0.34, 0.46)
        ]
        pen.line(ends, fill=(255, 178, 46, 255), width=3 * width)
    box = (side * 0.24, side * 0.24, side * 0.76, side * 0.76)
    pen.ellipse(box, fill=(255, 210, 74, 255), outline=_LINE, width=width)
    for x in (0.4, 0.6):
        pen.ellipse((side * x - 2 * width, side * 0.43, side * x + 2 * width, side * 0.51), _LINE)
    pen.arc((side * 0.38, side * 0.45, side * 0.62, side * 0.64), 20, 160, _LINE, 2 * width)


def _draw_leaf(pen: ImageDraw.ImageDraw, side: int) -> None:
    width = max(2, side // 32)
    shape = []
    for step in range(41):
        along = step / 40
        bulge = math.sin(math.pi * along) * 0.24
        shape.append(
            (side * (0.15 + 0.7 * along - bulge * 0.7), side * (0.85 - 0.7 * along - bulge * 0.7))
        )
    for step in range(40, -1, -1):
        along = step / 40
        bulge = math.sin(math.pi * along) * 0.24
        shape.append(
            (side * (0.15 + 0.7 * along + bulge * 0.7), side * (0.85 - 0.7 * along + bulge * 0.7))
        )
    pen.polygon(shape, fill=(126, 190, 120, 255), outline=_LINE, width=width)
    pen.line([(side * 0.1, side * 0.9), (side * 0.75, side * 0.25)], fill=_LINE, width=width)


def _draw_cup(pen: ImageDraw.ImageDraw, side: int) -> None:
    width = max(2, side // 32)
    pen.arc((side * 0.6, side * 0.48, side * 0.88, side * 0.76), -100, 120, _LINE, 2 * width)
    cup = (side * 0.16, side * 0.42, side * 0.72, side * 0.86)
    pen.rounded_rectangle(cup, side * 0.12, fill=_CREAM, outline=_LINE, width=width)
    for x in (0.34, 0.52):
        for part, (start, end) in enumerate(((90, 270), (-90, 90))):
            y = 0.1 + 0.13 * part
            box = (side * (x - 0.05), side * y, side * (x + 0.05), side * (y + 0.13))
            pen.arc(box, start, end, _LINE, width)


def _draw_star(pen: ImageDraw.ImageDraw, side: int) -> None:
    middle, width = side / 2, max(2, side // 32)
    points = []
    for step in range(10):
        turn, far = math.pi / 5 * step - math.pi / 2, side * (0.46 if step % 2 == 0 else 0.2)
        points.append((middle + math.cos(turn) * far, middle + math.sin(turn) * far))
    pen.polygon(points, fill=(255, 190, 60, 255), outline=_LINE, width=width)


NAME = "embedded"


@dataclass(frozen=True, slots=True)
class Grade:
    """A change of tone: light and contrast as factors, warmth from blue to red, vividness."""

    light: float
    contrast: float
    warmth: float
    vivid: float


GRADES: Mapping[str, Grade] = {
    "happy": Grade(1.10, 1.02, 14.0, 1.18),
    "calm": Grade(1.03, 0.90, -4.0, 0.90),
    "relaxed": Grade(1.06, 0.94, 10.0, 1.0),
    "excited": Grade(1.06, 1.08, 5.0, 1.2),
}


class EmbeddedEditor:
    """Grades colours inside of the mask; with ``sticker`` it adds one small drawing of ours."""

    name = NAME
    note = "baseline: light and colours only"

    def __init__(self, *, sticker: bool = False) -> None:
        self._sticker = sticker

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The version of the grades."""
        return {"name": self.name, "rules": "1", "sticker": self._sticker}

    async def edit(self, request: EditRequest) -> bytes:
        """Grade the picture."""
        image = decode(request.image, "picture")
        mask = np.asarray(decode(request.mask, "mask").convert("L")) > 127
        graded = grade_picture(np.asarray(image), GRADES[request.target])
        made = Image.fromarray(np.where(mask[..., None], graded, np.asarray(image)))
        if self._sticker:
            free = mask.copy()
            for left, top, right, bottom in request.captions:
                free[top:bottom, left:right] = False
            spot = find_free_spot(np.asarray(made), free)
            if spot is not None:
                made = draw_sticker(made, spot, request.target)
        return encode_png(made)

    async def close(self) -> None:
        """Nothing is held."""


def grade_picture(pixels: NDArray[np.uint8], grade: Grade) -> NDArray[np.uint8]:
    """Change the tone of the middle colours; pure white and black stay, and so do gutters.

    >>> ends = np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8)
    >>> bool((grade_picture(ends, GRADES["happy"]) == ends).all())
    True
    """
    values = pixels.astype(np.float32)
    grey = values @ np.array([0.299, 0.587, 0.114], np.float32)
    made = grey[..., None] + (values - grey[..., None]) * grade.vivid
    made = (made - 128) * grade.contrast + 128
    made *= grade.light
    made += np.array([grade.warmth, 0.15 * grade.warmth, -grade.warmth], np.float32)
    # A colour near either end moves little: paper stays white, and ink stays black.
    weight = 1 - np.abs(grey / 127.5 - 1) ** 3
    mixed = values + (made - values) * weight[..., None]
    return np.asarray(np.clip(mixed, 0, 255).round(), np.uint8)
