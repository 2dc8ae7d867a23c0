"""Where letters should be: the text that an OCR read, drawn and laid over the picture.

On photographs no colour tells letters from what is behind them, but their shapes do: the drawn
text is shifted and scaled until it matches the picture best, and its pixels tell the colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from memantics.vision.captions import has_chinese
from memantics.vision.colours import Mask, Pixels
from memantics.vision.regions import PixelBox
from memantics.vision.typefaces import ANTON, BALOO, BLACK, REGULAR, Typeface

_HEIGHT = 36  # pixels: enough to tell letters, and quick
_PADS_DOWN = (0.02, 0.09, 0.16, 0.23)  # of the height of a box: OCR boxes are loose
_PADS_ACROSS = (0.0, 0.08, 0.16, 0.26)
Plane = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Match:
    """A text laid over a picture: how well it matches, from 0 to 1, and its letters."""

    quality: float
    body: Mask


def lay_text(crop: Pixels, text: str, box: PixelBox) -> Match:
    """Lay a text over its box in the best way; ``body`` covers the whole crop."""
    body: Mask = np.zeros(crop.shape[:2], bool)
    left, top = max(0, box[0]), max(0, box[1])
    own = crop[top : box[3], left : box[2]]
    if min(own.shape[:2]) < 6 or not text.strip():
        return Match(0.0, body)
    scale = min(1.0, _HEIGHT / own.shape[0])
    size = (max(8, round(own.shape[1] * scale)), max(6, round(own.shape[0] * scale)))
    small = Image.fromarray(own).convert("L").resize(size, Image.Resampling.BOX)
    plane = _normalise(np.asarray(small, np.float32))
    best: tuple[float, Typeface | None, tuple[float, float]] = (0.0, None, (0.0, 0.0))
    for face in (REGULAR, BLACK) if has_chinese(text) else (ANTON, BALOO, REGULAR):
        for down in _PADS_DOWN:
            for across in _PADS_ACROSS:
                drawn = _normalise(_draw(text, face, size, (across, down)))
                quality = abs(float((plane * drawn).mean()))
                if quality > best[0]:
                    best = (quality, face, (across, down))
    quality, chosen, pads = best
    if chosen is not None:
        whole = (own.shape[1], own.shape[0])
        body[top : box[3], left : box[2]] = _draw(text, chosen, whole, pads) > 150
    return Match(quality, body)


def _normalise(plane: Plane) -> Plane:
    spread = float(plane.std())
    return np.asarray((plane - plane.mean()) / spread if spread > 1e-3 else plane * 0, np.float32)


def _draw(text: str, face: Typeface, size: tuple[int, int], pads: tuple[float, float]) -> Plane:
    """A text pulled to fill a box but for its margins, which are shares of the box's height."""
    width, height = size
    across, down = round(pads[0] * height), round(pads[1] * height)
    inner = (max(4, width - 2 * across), max(4, height - 2 * down))
    plane = np.zeros((height, width), np.float32)
    pulled = np.asarray(_plate(text.strip(), face).resize(inner, Image.Resampling.BOX), np.float32)
    x, y = (width - inner[0]) // 2, (height - inner[1]) // 2
    plane[max(0, y) : y + inner[1], max(0, x) : x + inner[0]] = pulled[:height, :width]
    return plane


@lru_cache(maxsize=64)
def _plate(text: str, face: Typeface) -> Image.Image:
    font = face.at(64)
    left, top, right, bottom = (int(value) for value in font.getbbox(text))
    plate = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(plate).text((-left, -top), text, font=font, fill=255)
    return plate
