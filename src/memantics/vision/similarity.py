"""How much an edit changed: bits of a perceptual hash, and the share of pixels that differ."""

from __future__ import annotations

import numpy as np
from PIL import Image

from memantics.vision.colours import Mask
from memantics.vision.hashes import hash_image, measure_distance

_SAME = 8  # channels that differ by less are the same: rounding, not a change


def compare_pictures(before: Image.Image, after: Image.Image) -> int:
    """The number of bits in which two perceptual hashes differ, from 0 (alike) to 64."""
    return measure_distance(hash_image(before), hash_image(after))


def share_changed(before: Image.Image, after: Image.Image, where: Mask) -> float:
    """The share of the pixels in ``where`` that differ visibly; 0 where there are none.

    >>> black, white = Image.new("RGB", (2, 1)), Image.new("RGB", (2, 1), "white")
    >>> share_changed(black, white, np.array([[True, False]]))
    1.0
    """
    if before.size != after.size:
        return 1.0
    one = np.asarray(before.convert("RGB"), dtype=np.int16)
    other = np.asarray(after.convert("RGB"), dtype=np.int16)
    changed = np.abs(one - other).max(axis=2) > _SAME
    return float(changed[where].mean()) if where.any() else 0.0
