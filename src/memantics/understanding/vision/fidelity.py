"""Checks that an image with new captions is still the same: text style, old strokes, other areas.

Captions are compared by drawing: the old text is redrawn in the measured text style and compared
with the original. Wrong measurements become visible this way, even if the new text is readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memantics.understanding.vision.colours import Colour, Mask, Pixels
from memantics.understanding.vision.ink import Ink
from memantics.understanding.vision.regions import PixelBox
from memantics.understanding.vision.typefaces import measure_stroke

Layer = NDArray[Any]
_SOFT = 0.05  # accepted shift of letters between fonts, relative to the line height
_SAME = 12  # maximum difference of a colour channel (0 to 255) in unchanged pixels
# maximum colour-channel difference of a stroke from the letter fill; minimum difference from its
# background
_ALIKE, _UNLIKE = 70, 60
# search distance for old strokes, beside and above, relative to the line height
_FAR, _HIGH = 1.9, 0.3
# maximum width and height and minimum area of a stroke, relative to the line height
_WIDEST, _TALLEST, _LEAST = 1.1, 1.35, 0.006
_HELD = 0.6  # minimum outlined proportion of a stroke's edge, if letters have outlines
_CLEAR = 0.9  # minimum contrasting proportion of a stroke's edge
_BLOCK = 16  # side of a compared block outside captions, in pixels


def compare_lettering(before: Pixels, plate: Pixels, again: Pixels, ink: Ink) -> float:
    """Compare the old letters with the same text redrawn; 1 is identical, 0 unrelated.

    ``plate`` is the image without letters: only the letters' contribution to it is compared.
    """
    return compare_added(*(soften_added(image, plate, ink) for image in (before, again)))


def soften_added(image: Pixels, plate: Pixels, ink: Ink) -> Layer:
    """Return the blurred difference that letters add to the image without them."""
    import cv2

    left, top, right, bottom = ink.zone
    soft = max(0.8, _SOFT * min(box[3] - box[1] for box in ink.lines))
    base = plate[top:bottom, left:right].astype(np.float32)
    return cv2.GaussianBlur(image[top:bottom, left:right].astype(np.float32) - base, (0, 0), soft)


def compare_added(one: Layer, other: Layer) -> float:
    """Compare what two renderings of a text add to the image; at most 1 (identical)."""
    total = float((one * one).sum() + (other * other).sum())
    return float(2 * (one * other).sum() / total) if total else 1.0


def find_strokes(
    before: Pixels, plate: Pixels, ink: Ink, others: Sequence[PixelBox] = ()
) -> list[PixelBox]:
    """Find strokes of an old caption that are still visible in the new image.

    On a plain background a stroke has the letters' colour, and an outline if letters have one. On
    an image it must also be as thick as the letters and stand out on all sides.
    """
    import cv2

    if ink.tilt:
        return []
    bare = not (ink.ground.flat or ink.outline_width)
    tall = max(8, min(box[3] - box[1] for box in ink.lines))
    left, top, right, bottom = ink.box
    wide, high = round(_FAR * tall) + 2, round(_HIGH * tall) + 2
    x, y = max(0, left - wide), max(0, top - high)
    crop = before[y : bottom + high, x : right + wide].astype(np.int16)
    kept = np.abs(crop - plate[y : bottom + high, x : right + wide]).max(axis=2) <= _SAME
    strokes = kept & (_gap(crop, ink.fill) <= _ALIKE) & (_gap(crop, ink.ground.colour) > _UNLIKE)
    _, parts, stats, _ = cv2.connectedComponentsWithStats(strokes.astype(np.uint8), connectivity=8)
    edge = _gap(crop, ink.fill) > _ALIKE if bare else _gap(crop, ink.outline) <= _ALIKE
    found = []
    for number, (a, b, w, h, area) in enumerate(stats[1:].tolist(), 1):
        box = (x + a, y + b, x + a + w, y + b + h)
        cut = a == 0 or b == 0 or a + w == crop.shape[1] or b + h == crop.shape[0]
        large = w > _WIDEST * tall or h > _TALLEST * tall or area < _LEAST * tall * tall
        if cut or large or not _on_a_row(box, ink, tall) or _overlaps(box, others):
            continue
        if bare and not 0.5 * ink.stroke <= measure_stroke(parts == number) <= 1.6 * ink.stroke:
            continue
        if ink.ground.flat or _share_around(parts == number, edge) >= (_CLEAR if bare else _HELD):
            found.append(box)
    return found


def _gap(crop: NDArray[np.int16], colour: Colour) -> NDArray[np.int16]:
    gap: NDArray[np.int16] = np.abs(crop - np.array(colour, np.int16)).max(axis=2)
    return gap


def _on_a_row(box: PixelBox, ink: Ink, tall: int) -> bool:
    """Tell whether a stroke is at the height of a text line and at most one letter away from it."""
    middle = (box[1] + box[3]) / 2
    return any(
        line[1] - 0.1 * tall <= middle <= line[3] + 0.2 * tall
        and line[0] - tall <= box[2]
        and box[0] <= line[2] + tall
        for line in ink.lines
    )


def _overlaps(box: PixelBox, others: Sequence[PixelBox]) -> bool:
    return any(
        min(box[2], other[2]) > max(box[0], other[0])
        and min(box[3], other[3]) > max(box[1], other[1])
        for other in others
    )


def _share_around(stroke: Mask, edge: Mask) -> float:
    import cv2

    near = cv2.dilate(stroke.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    ring = near & ~stroke
    return float(edge[ring].mean()) if ring.any() else 0.0


def find_damage(before: Pixels, after: Pixels, allowed: Mask) -> float:
    """Return the largest loss of structure in a block outside ``allowed``, from 0 to 1.

    The loss is one minus the structural similarity (SSIM) of the block; a mean over the image would
    hide small damage.
    """
    import cv2

    if before.shape != after.shape:
        return 1.0
    lost = np.zeros(allowed.shape, np.float32)
    for channel in range(3):
        one, other = (image[..., channel].astype(np.float32) for image in (before, after))
        mean_one, mean_other = _blur(one), _blur(other)
        spread = _blur(one * one) - mean_one**2, _blur(other * other) - mean_other**2
        both = _blur(one * other) - mean_one * mean_other
        light, texture = (0.01 * 255) ** 2, (0.03 * 255) ** 2
        alike = ((2 * mean_one * mean_other + light) * (2 * both + texture)) / (
            (mean_one**2 + mean_other**2 + light) * (spread[0] + spread[1] + texture)
        )
        lost = np.maximum(lost, 1 - alike)
    # Blocks that overlap a caption may differ.
    kernel = np.ones((_BLOCK + 1, _BLOCK + 1), np.uint8)
    outside = cv2.dilate(allowed.astype(np.uint8), kernel) == 0
    return float(np.clip(lost[outside].max(), 0, 1)) if outside.any() else 0.0


def _blur(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    import cv2

    return np.asarray(cv2.blur(plane, (_BLOCK, _BLOCK)), np.float32)
