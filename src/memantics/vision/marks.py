"""Marks that an OCR does not read: punctuation beside a line, and the borders of boxes.

Punctuation belongs to the caption and goes with it; a border belongs to the picture and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from memantics.core.lines import TextLine
from memantics.vision.captions import CaptionBlock
from memantics.vision.colours import Mask, Pixels, find_mode
from memantics.vision.regions import PixelBox, enclose

_PLAIN = 40  # channels of one ground differ by less
_ALIKE = 80  # channels of a mark and of the letters beside it
_REACH, _GAP = 1.3, 0.55  # of a line's height: how far marks are looked for, and how near they are
_WIDEST = 0.62
_LONG, _TALL = 2.6, 1.6  # of a line's height: no stroke of a letter is as long as that
_THIN = 0.16


def take_in_marks(
    pixels: Pixels, block: CaptionBlock, others: Iterable[PixelBox] = ()
) -> CaptionBlock:
    """The caption with the punctuation beside its lines, where they stand on one colour."""
    if block.vertical:
        return block
    apart = list(others)
    lines = []
    for line in block.lines:
        marks = find_marks(pixels, line, [*apart, *(text_line.box for text_line in block.lines)])
        lines.append(replace(line, box=enclose([line.box, *marks])) if marks else line)
    return replace(block, lines=tuple(lines))


def find_marks(pixels: Pixels, line: TextLine, others: Sequence[PixelBox] = ()) -> list[PixelBox]:
    """Boxes of small marks in the colour of a line's letters, just beside it on its own height."""
    import cv2

    left, top, right, bottom = line.box
    high, reach = bottom - top, round(_REACH * (bottom - top))
    x, y = max(0, left - reach), max(0, top)
    crop = pixels[y : max(0, bottom), x : max(0, right + reach)]
    inner = crop[:, max(0, left - x) : right - x]
    if high < 8 or not inner.size:
        return []
    ground, colour = _tell_apart(inner)
    ring = np.concatenate([crop[:, : left - x].reshape(-1, 3), crop[:, right - x :].reshape(-1, 3)])
    if not len(ring) or colour is None or _share_near(ring, ground, _PLAIN) < 0.6:
        return []
    ink = _near(crop, colour, _ALIKE) & ~_near(crop, ground, _PLAIN)
    _, _, stats, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    found: list[PixelBox] = []
    edges = (left, right)
    for a, b, wide, tall, area in sorted(stats[1:].tolist(), key=lambda value: -value[0]):
        box = (x + a, y + b, x + a + wide, y + b + tall)
        aside = box[2] <= left + 2 or box[0] >= right - 2
        # What goes on beyond the strip is a thing, and what is as high as it the side of a bubble.
        cut = a == 0 or a + wide == crop.shape[1] or tall == crop.shape[0]
        if aside and not cut and wide <= _WIDEST * high and area >= 0.004 * high * high:
            found.append(box)
    return [box for box in _chain(found, edges, _GAP * high) if not _touches(box, others, line)]


def _tell_apart(inner: Pixels) -> tuple[tuple[int, int, int], tuple[int, int, int] | None]:
    """The commonest colour of a line, which is its ground, and that of its letters."""
    flat = inner.reshape(-1, 3)
    ground = find_mode(flat)
    rest = flat[np.abs(flat.astype(np.int16) - np.array(ground)).max(axis=1) > _ALIKE]
    return ground, find_mode(rest) if len(rest) >= 0.03 * len(flat) else None


def _near(crop: Pixels, colour: tuple[int, int, int], within: int) -> Mask:
    near: Mask = np.abs(crop.astype(np.int16) - np.array(colour)).max(axis=-1) <= within
    return near


def _share_near(colours: Pixels, colour: tuple[int, int, int], within: int) -> float:
    return float(_near(colours, colour, within).mean())


def _chain(boxes: Sequence[PixelBox], edges: tuple[int, int], gap: float) -> list[PixelBox]:
    """Marks that follow a line without a wide gap: the first one, the one after it, and so on."""
    kept, (start, end) = [], edges
    for box in sorted(
        (numbers for numbers in boxes if numbers[0] >= end - 2), key=lambda numbers: numbers[0]
    ):
        if box[0] - end <= gap:
            kept.append(box)
            end = max(end, box[2])
    for box in sorted(
        (numbers for numbers in boxes if numbers[2] <= start + 2), key=lambda numbers: -numbers[2]
    ):
        if start - box[2] <= gap:
            kept.append(box)
            start = min(start, box[0])
    return kept


def _touches(box: PixelBox, others: Sequence[PixelBox], line: TextLine) -> bool:
    return any(
        numbers != line.box
        and min(box[2], numbers[2]) > max(box[0], numbers[0])
        and min(box[3], numbers[3]) > max(box[1], numbers[1])
        for numbers in others
    )


def find_borders(ink: Mask, height: float) -> Mask:
    """Thin straight lines longer than any stroke of a letter, and thin frames around letters."""
    import cv2

    plane = ink.astype(np.uint8)
    borders: Mask = np.zeros(ink.shape, bool)
    thin = max(2, round(_THIN * height)) + 1
    borders |= _find_rules(ink, max(12, round(_LONG * height)), thin)
    borders |= _find_rules(ink.T, max(12, round(_TALL * height)), thin).T
    count, parts, stats, middles = cv2.connectedComponentsWithStats(plane, connectivity=8)
    for place in range(1, count):
        left, top, wide, high, area = (int(value) for value in stats[place])
        if area > 0.35 * wide * high or high < height or wide < 2 * height:
            continue
        x, y = middles[1:, 0], middles[1:, 1]
        held = (x > left) & (x < left + wide) & (y > top) & (y < top + high)
        held[place - 1] = False
        inner = stats[1:, cv2.CC_STAT_AREA][held]
        if inner.sum() >= 0.5 * (plane.sum() - area) > 0 and held.sum() >= 2:
            borders |= parts == place
    return borders


def _find_rules(ink: Mask, long: int, thin: int) -> Mask:
    """Rows of ink that are longer and thinner than letters and stand free on both sides.

    The rows in which outlines of letters join are long and thin, too, but letters stand on them.
    """
    import cv2

    kernel = np.ones((1, long), np.uint8)
    runs = cv2.morphologyEx(ink.astype(np.uint8), cv2.MORPH_OPEN, kernel)
    padded = np.pad(ink, ((thin, thin), (0, 0)))
    free = ~padded[: -2 * thin] & ~padded[2 * thin :]
    count, parts, stats, _ = cv2.connectedComponentsWithStats(runs, connectivity=8)
    clear = np.bincount(parts[free], minlength=count) / np.maximum(1, stats[:, cv2.CC_STAT_AREA])
    good = (clear >= 0.7) & (stats[:, cv2.CC_STAT_HEIGHT] <= thin)
    good[0] = False
    rules: Mask = good[parts]
    return rules
