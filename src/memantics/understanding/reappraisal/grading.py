"""The embedded editor: light, colours and an optional sticker per panel, without a model."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from pydantic import JsonValue

from memantics.core.images import decode, encode_png
from memantics.core.model import EditRequest

_SCALE = 4
_SIDE = 0.2  # sticker size, relative to the shorter side of a panel
_MIDDLE = 0.3  # no sticker centre is farther than this from both sides, as a fraction of the width
# maximum density of image edges under a sticker, and penalty for the distance from the border
_BUSY, _AWAY = 0.25, 0.1
_SKIN_RED, _SKIN_BLUE = (3.0, 47.0), (-53.0, 1.0)  # ranges of skin colours: chroma relative to grey
_SKIN_KEPT = 0.85  # proportion by which changes of skin colours are reduced
_ROWS = 256  # image rows processed at once; the computation needs twelve times their memory
_LIFT = 1.35  # maximum brightness factor
_LINE = (43, 36, 64, 255)
_CREAM = (255, 250, 236, 255)
_CHEEK = (244, 140, 130, 255)
Spot = tuple[int, int, int]


def find_free_spot(pixels: NDArray[np.uint8], mask: NDArray[np.bool_]) -> Spot | None:
    """Find the least busy square of the mask, preferably near an edge; None if all is busy.

    The square is returned as left, top and side.
    """
    height, width = mask.shape
    side = max(24, round(_SIDE * min(width, height)))
    grey = pixels.astype(np.float32).mean(axis=2)
    busy = np.zeros((height, width), np.float64)
    busy[:, 1:] += np.abs(np.diff(grey, axis=1)) > 12
    busy[1:, :] += np.abs(np.diff(grey, axis=0)) > 12
    busy[~mask] += 4
    total = np.pad(busy.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    best, spot = _BUSY * side * side, None
    margin = max(4, side // 6)
    # Faces and objects are in the middle, so an edge is preferred.
    for top in range(margin, height - side - margin, max(1, side // 4)):
        for left in range(margin, width - side - margin, max(1, side // 4)):
            low, right = top + side, left + side
            if _MIDDLE * width < (left + right) / 2 < (1 - _MIDDLE) * width:
                continue
            inside = total[low, right] - total[top, right] - total[low, left] + total[top, left]
            away = min(left, width - right) / width + min(top, height - low) / height
            cost = inside + _AWAY * away * side * side
            if cost < best:
                best, spot = cost, (left, top, side)
    return spot


def draw_sticker(image: Image.Image, spot: Spot, target: str) -> Image.Image:
    """Draw the sticker of a target emotion: a face with that expression."""
    left, top, side = spot
    big = side * _SCALE
    plate = Image.new("RGBA", (big, big))
    pen = ImageDraw.Draw(plate)
    _FACES[target](pen, big)
    small = plate.resize((side, side), Image.Resampling.LANCZOS)
    made = image.convert("RGB")
    made.paste(small, (left, top), small)
    return made


def _draw_disc(pen: ImageDraw.ImageDraw, side: int, colour: tuple[int, int, int, int]) -> int:
    """Draw a round face with red cheeks on a white rim; return the line width."""
    width = max(2, side // 32)
    pen.ellipse((side * 0.14, side * 0.14, side * 0.86, side * 0.86), _CREAM)
    face = (side * 0.18, side * 0.18, side * 0.82, side * 0.82)
    pen.ellipse(face, fill=colour, outline=_LINE, width=width)
    for x in (0.31, 0.69):
        pen.ellipse((side * (x - 0.06), side * 0.53, side * (x + 0.06), side * 0.61), _CHEEK)
    return width


def _close_eyes(pen: ImageDraw.ImageDraw, side: int, width: int, *, down: bool) -> None:
    """Draw eyes as arcs: laughing eyes bend upwards, resting eyes downwards."""
    for x in (0.39, 0.61):
        box = (side * (x - 0.06), side * 0.4, side * (x + 0.06), side * 0.52)
        pen.arc(box, *((0, 180) if down else (180, 360)), fill=_LINE, width=2 * width)


def _draw_happy(pen: ImageDraw.ImageDraw, side: int) -> None:
    """Draw a laughing sun."""
    for ray in range(8):
        turn = math.pi / 4 * ray
        ends = [
            (side / 2 + math.cos(turn) * side * far, side / 2 + math.sin(turn) * side * far)
            for far in (0.37, 0.48)
        ]
        pen.line(ends, fill=(255, 178, 46, 255), width=max(6, side // 16))
    width = _draw_disc(pen, side, (255, 214, 84, 255))
    _close_eyes(pen, side, width, down=False)
    mouth = (side * 0.36, side * 0.46, side * 0.64, side * 0.72)
    pen.chord(mouth, 0, 180, fill=(196, 60, 70, 255), outline=_LINE, width=width)


def _draw_calm(pen: ImageDraw.ImageDraw, side: int) -> None:
    """Draw a calm face with a leaf."""
    width = _draw_disc(pen, side, (170, 214, 160, 255))
    _close_eyes(pen, side, width, down=True)
    pen.arc((side * 0.4, side * 0.5, side * 0.6, side * 0.68), 20, 160, _LINE, 2 * width)
    leaf = [(0.5, 0.2), (0.6, 0.04), (0.78, 0.02), (0.72, 0.16), (0.5, 0.2)]
    shape = [(side * x, side * y) for x, y in leaf]
    pen.polygon(shape, fill=(104, 172, 98, 255), outline=_LINE, width=width)


def _draw_relaxed(pen: ImageDraw.ImageDraw, side: int) -> None:
    """Draw a smiling face with dark glasses."""
    width = _draw_disc(pen, side, (150, 200, 236, 255))
    for x in (0.38, 0.62):
        glass = (side * (x - 0.1), side * 0.38, side * (x + 0.1), side * 0.52)
        pen.rounded_rectangle(glass, side * 0.05, fill=_LINE)
    pen.line([(side * 0.22, side * 0.41), (side * 0.78, side * 0.41)], _LINE, 2 * width)
    pen.arc((side * 0.38, side * 0.46, side * 0.64, side * 0.7), 15, 150, _LINE, 2 * width)


def _draw_excited(pen: ImageDraw.ImageDraw, side: int) -> None:
    """Draw a face with stars for eyes."""
    width = _draw_disc(pen, side, (255, 176, 92, 255))
    for x in (0.38, 0.62):
        points = []
        for step in range(10):
            turn, far = math.pi / 5 * step - math.pi / 2, side * (0.11 if step % 2 == 0 else 0.05)
            points.append((side * x + math.cos(turn) * far, side * 0.45 + math.sin(turn) * far))
        pen.polygon(points, fill=(255, 240, 120, 255), outline=_LINE, width=width)
    mouth = (side * 0.36, side * 0.48, side * 0.64, side * 0.76)
    pen.chord(mouth, 0, 180, fill=(196, 60, 70, 255), outline=_LINE, width=width)


_FACES: Mapping[str, Callable[[ImageDraw.ImageDraw, int], None]] = {
    "happy": _draw_happy,
    "calm": _draw_calm,
    "relaxed": _draw_relaxed,
    "excited": _draw_excited,
}


NAME = "embedded"


@dataclass(frozen=True, slots=True)
class Grade:
    """A colour change: brightness and contrast as factors, warmth from blue to red, saturation.

    ``middle`` is the mean brightness, from 0 to 255, to which darker panels are raised.
    """

    light: float
    contrast: float
    warmth: float
    vivid: float
    middle: float = 0.0


GRADES: Mapping[str, Grade] = {
    "happy": Grade(1.10, 1.02, 16.0, 1.22, 138.0),
    "calm": Grade(1.04, 0.86, -8.0, 0.84, 120.0),
    "relaxed": Grade(1.07, 0.92, 12.0, 0.98, 132.0),
    "excited": Grade(1.06, 1.10, 6.0, 1.30, 128.0),
}


class EmbeddedEditor:
    """Change colours inside the mask panel by panel, with an optional sticker per panel.

    Only panels whose captions change are edited; ``sticker`` adds a drawing.
    """

    name = NAME
    note = "baseline: light and colours"

    def __init__(self, *, sticker: bool = False) -> None:
        self._sticker = sticker

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The version of the colour changes, on which stored results depend."""
        return {"name": self.name, "rules": "3", "sticker": self._sticker}

    async def edit(self, request: EditRequest) -> bytes:
        """Change light and colours of the image."""
        return await asyncio.to_thread(self._edit, request)

    def _edit(self, request: EditRequest) -> bytes:
        image = decode(request.image, "picture")
        pixels, grade = np.array(image), GRADES[request.target]
        mask = np.asarray(decode(request.mask, "mask").convert("L")) > 127
        panels = request.panels or ((0, 0, *image.size),)
        for left, top, right, bottom in panels:
            part, part_mask = pixels[top:bottom, left:right], mask[top:bottom, left:right]
            if part_mask.any():
                graded = grade_picture(part, lift(grade, part[part_mask]))
                part[:] = np.where(part_mask[..., None], graded, part)
        made = Image.fromarray(pixels)
        free = mask.copy()
        for left, top, right, bottom in request.captions:
            free[top:bottom, left:right] = False
        for left, top, right, bottom in panels if self._sticker else ():
            spot = find_free_spot(pixels[top:bottom, left:right], free[top:bottom, left:right])
            if spot is not None:
                made = draw_sticker(made, (left + spot[0], top + spot[1], spot[2]), request.target)
        return encode_png(made)

    async def close(self) -> None:
        """Do nothing: the editor holds no resources."""


def lift(grade: Grade, colours: NDArray[np.uint8]) -> Grade:
    """Raise the brightness of a colour change (grade) for panels that are too dark.

    >>> dark = np.full((4, 3), 60, np.uint8)
    >>> lift(GRADES["happy"], dark).light > lift(GRADES["happy"], dark + 120).light
    True
    """
    mean = max(1.0, float(colours.mean()))
    return replace(grade, light=grade.light * min(_LIFT, max(1.0, (grade.middle / mean) ** 0.5)))


def grade_picture(pixels: NDArray[np.uint8], grade: Grade) -> NDArray[np.uint8]:
    """Change mid-tone colours; pure white, pure black and gutters are kept.

    >>> ends = np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8)
    >>> bool((grade_picture(ends, GRADES["happy"]) == ends).all())
    True
    """
    made = np.empty_like(pixels)
    for top in range(0, len(pixels), _ROWS):
        made[top : top + _ROWS] = _grade_rows(pixels[top : top + _ROWS], grade)
    return made


def rate_skin(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rate from 0 to 1 how similar each colour is to skin, by its two chroma channels.

    Wood and fur have the same chroma, so their colours are kept, too.

    >>> colours = [(110, 70, 50), (186, 124, 84), (240, 200, 170), (70, 160, 90), (128, 128, 128)]
    >>> rate_skin(np.array([colours], np.float32)).round(1)[0].tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0]
    """
    red = values @ np.array([0.5, -0.4187, -0.0813], np.float32)
    blue = values @ np.array([-0.1687, -0.3313, 0.5], np.float32)
    edges = (red - _SKIN_RED[0], _SKIN_RED[1] - red, blue - _SKIN_BLUE[0], _SKIN_BLUE[1] - blue)
    # The rating changes gradually, which avoids patches of another tone in faces.
    return np.asarray(np.prod([np.clip(edge / 6, 0, 1) for edge in edges], axis=0), np.float32)


def _grade_rows(pixels: NDArray[np.uint8], grade: Grade) -> NDArray[np.uint8]:
    values = pixels.astype(np.float32)
    grey = values @ np.array([0.299, 0.587, 0.114], np.float32)
    made = grey[..., None] + (values - grey[..., None]) * grade.vivid
    made = (made - 128) * grade.contrast + 128
    made *= grade.light
    made += np.array([grade.warmth, 0.15 * grade.warmth, -grade.warmth], np.float32)
    # Colours near white or black change little: paper stays white and ink black.
    weight = 1 - np.abs(grey / 127.5 - 1) ** 3
    weight *= 1 - _SKIN_KEPT * rate_skin(values)
    mixed = values + (made - values) * weight[..., None]
    return np.asarray(np.clip(mixed, 0, 255).round(), np.uint8)
