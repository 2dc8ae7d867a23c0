"""Measures of a drawn caption: outline, remains of old strokes, smear, clipped text.

Thresholds: docs/research/reappraisal-checks.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memantics.understanding.vision.colours import Pixels
from memantics.understanding.vision.ink import Ink
from memantics.understanding.vision.regions import PixelBox

_GREY = 18  # maximum difference of a colour channel (0 to 255) of a plain background
_CHANGED = 12  # minimum difference of a colour channel (0 to 255) of a changed pixel
_SPECK = 0.004  # minimum area of a remaining stroke, relative to the squared line height


def compare_outlines(before: Pixels, again: Pixels, ink: Ink) -> float:
    """Return the difference of colour just outside the letters' fill, from 0 (same) to 1."""
    import cv2

    left, top, right, bottom = ink.zone
    old, new = (image[top:bottom, left:right].astype(np.int16) for image in (before, again))
    fill = np.abs(old - np.array(ink.fill, np.int16)).max(axis=2) <= 70
    inside = (fill & ink.mask).astype(np.uint8)
    wide = 2 * max(1, round(0.25 * ink.stroke)) + 1
    ring = (cv2.dilate(inside, np.ones((wide, wide), np.uint8)) > 0) & (inside == 0)
    if not ring.any():
        return 0.0
    gap = np.abs(np.median(old[ring], axis=0) - np.median(new[ring], axis=0)).max()
    return float(gap) / 255


def find_remains(plate: Pixels, ink: Ink) -> int:
    """Count grey remains of old strokes on a plain background."""
    import cv2

    if not ink.ground.flat:
        return 0
    left, top, right, bottom = ink.zone
    tall = max(8, min(box[3] - box[1] for box in ink.lines))
    crop = plate[top:bottom, left:right].astype(np.int16)
    gap = np.abs(crop - np.array(ink.ground.colour, np.int16)).max(axis=2) > _GREY
    near = cv2.dilate(ink.mask.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    borders = cv2.dilate(ink.borders.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    left_over = (gap & near & ~borders).astype(np.uint8)
    _, _, stats, _ = cv2.connectedComponentsWithStats(left_over, connectivity=8)
    return int((stats[1:, 4] >= _SPECK * tall * tall).sum())


def compare_ghost(before: Pixels, plate: Pixels, ink: Ink) -> float:
    """Return how much of the old letters' pattern the inpainted image still has, from 0 to 1."""
    import cv2

    if ink.ground.flat:
        return 0.0
    left, top, right, bottom = ink.zone
    near = cv2.dilate(ink.mask.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    tall = max(8, min(box[3] - box[1] for box in ink.lines))
    old, new = (
        _sharpen(image[top:bottom, left:right].mean(axis=2).astype(np.float32), 0.1 * tall)[near]
        for image in (before, plate)
    )
    scale = float(np.sqrt((old * old).sum() * (new * new).sum()))
    return max(0.0, float((old * new).sum()) / scale) if scale else 0.0


def _sharpen(plane: NDArray[np.float32], width: float) -> NDArray[np.float32]:
    import cv2

    return plane - np.asarray(cv2.GaussianBlur(plane, (0, 0), max(1.0, width)), np.float32)


def measure_smear(before: Pixels, plate: Pixels, ink: Ink) -> float:
    """Return the proportion of pixels beside the letters that removing them changed."""
    import cv2

    left, top, right, bottom = ink.zone
    wide = 2 * round(ink.outline_width + 4) + 1
    near = cv2.dilate(ink.mask.astype(np.uint8), np.ones((wide, wide), np.uint8)) > 0
    if near.all():
        return 0.0
    old, new = (image[top:bottom, left:right].astype(np.int16) for image in (before, plate))
    return float((np.abs(old - new).max(axis=2)[~near] > _CHANGED).mean())


def is_clipped(box: PixelBox, before: PixelBox, size: tuple[int, int]) -> bool:
    """Tell whether new letters touch an edge of the image that the old ones did not touch."""
    width, height = size
    edges = (box[0] <= 0, box[1] <= 0, box[2] >= width, box[3] >= height)
    old = (before[0] <= 1, before[1] <= 1, before[2] >= width - 1, before[3] >= height - 1)
    return any(new and not was for new, was in zip(edges, old, strict=True))
