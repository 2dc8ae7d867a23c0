"""Near copies: the same picture with the same words, saved again. A hash alone cannot tell that.

One other character may change no bit of a perceptual hash, so the blocks of both pictures are
compared as well. The bound lies below what one other character of 14 pixels does to a picture of
720 (docs/research/ocr.md): what passes was saved again with next to no loss.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from memantics.core.lines import ImageReading
from memantics.vision.hashes import measure_distance

Thumb = NDArray[np.uint8]
COPY_BITS = 2
COPY_BLOCK = 0.75  # of 255: mean difference of the block that differs most
_SIDE, _BLOCK = 256, 8
_KEPT = 256  # pictures that are looked back at, 64 KB each


def make_thumb(image: Image.Image) -> Thumb:
    """A small grey copy, to be compared with others."""
    grey = image.convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return np.asarray(grey, np.uint8)


def measure_blocks(one: Thumb, other: Thumb) -> float:
    """The mean difference of the block that differs most.

    >>> black = np.zeros((256, 256), np.uint8)
    >>> spot = black.copy()
    >>> spot[3, 3] = 64
    >>> measure_blocks(black, spot)
    1.0
    """
    count = _SIDE // _BLOCK
    apart = np.abs(one.astype(np.int16) - other).reshape(count, _BLOCK, count, _BLOCK)
    return float(apart.mean(axis=(1, 3)).max())


class SeenPictures:
    """What was read in the last pictures, for copies of them."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, tuple[int, int], Thumb, ImageReading]] = deque(maxlen=_KEPT)

    def find(self, look: int, image: Image.Image) -> ImageReading | None:
        """What was read in a picture of which this one is a copy."""
        near = [
            (thumb, said)
            for known, size, thumb, said in self._seen
            if size == image.size and measure_distance(known, look) <= COPY_BITS
        ]
        values = make_thumb(image) if near else None
        return next(
            (said for thumb, said in near if values is not None and _same(thumb, values)),
            None,
        )

    def add(self, look: int, image: Image.Image, said: ImageReading) -> None:
        """Remember what a picture says."""
        self._seen.append((look, image.size, make_thumb(image), said))


def _same(one: Thumb, other: Thumb) -> bool:
    return measure_blocks(one, other) <= COPY_BLOCK
