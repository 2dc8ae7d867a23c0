"""The embedded editor: light, colours and a small sticker, by target emotion. No model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import JsonValue

from memantics.core.editor import EditRequest
from memantics.core.images import decode, encode_png
from memantics.reappraise.sticker import draw_sticker, find_free_spot

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
