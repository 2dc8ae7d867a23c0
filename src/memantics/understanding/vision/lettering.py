"""Measure the text style of a caption, so that a new text can be drawn in the same style."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

import numpy as np

from memantics.understanding.vision.colours import Colour, Mask, Pixels
from memantics.understanding.vision.ink import Ink
from memantics.understanding.vision.panels import Region
from memantics.understanding.vision.regions import CaptionBlock, PixelBox, enclose, has_chinese
from memantics.understanding.vision.typefaces import Shape, Typeface, match_face, measure_shape

Alignment = Literal["left", "centre", "right"]
LetteringKind = Literal["bar", "overlay", "bubble"]
_SLACK = 0.03
_SMALL = 320
# minimum number of characters, and height of a character relative to its row, for uneven baselines
_HOPPING, _HOPS = 3, 0.8
# maximum extra stroke width relative to the letter height; more would fill the letters' holes
_HEAVIEST = 0.05


@dataclass(frozen=True, slots=True)
class Lettering:
    """The text style of a caption.

    ``size`` is the font size in pixels that reproduces the height of the old text, and ``pitch``
    the line distance relative to it. ``kind`` is the position: on a plain bar, on the image, or in
    a bubble or label. ``weight`` is the extra stroke width on each side in pixels. ``hops`` is true
    for uneven baselines, as in handwriting. ``texts`` are the old lines, ``stretch`` is the width
    relative to the font, and ``tracking`` the extra letter spacing relative to the size.
    """

    face: Typeface
    size: float
    pitch: float
    fill: Colour
    outline: Colour
    outline_width: float
    align: Alignment
    upper: bool
    vertical: bool
    kind: LetteringKind
    rows: int
    weight: float = 0.0
    hops: bool = False
    texts: tuple[str, ...] = ()
    stretch: float = 1.0
    tracking: float = 0.0

    @property
    def edge(self) -> float:
        """Width in pixels by which outline and extra stroke width exceed the font's letters."""
        return self.outline_width + self.weight


def measure_lettering(
    pixels: Pixels, block: CaptionBlock, ink: Ink, panels: Sequence[Region] = ()
) -> Lettering:
    """Measure the text style of a caption from its lines and their ink."""
    rows = _join_rows(block, ink)
    texts = [text for text, _ in rows]
    edge = 2 * ink.outline_width
    tall = [_measure_height(ink, text, box) for text, box in rows]
    hops = any(height < box[3] - box[1] for height, (_, box) in zip(tall, rows, strict=True))
    heights = [max(4.0, height - edge) for height in tall]
    shapes = [
        Shape(max(1.0, box[2] - box[0] - edge) / height, ink.stroke / height)
        for (_, box), height in zip(rows, heights, strict=True)
    ]
    if ink.tilt:
        wide, high = (max(4.0, side - edge) for side in ink.span)
        shapes, heights = [Shape(wide / high, ink.stroke / high)], [high]
    if block.vertical:
        wide = max(4.0, ink.box[2] - ink.box[0] - edge)
        texts, shapes = ["".join(texts)[:1]], [Shape(1.0, ink.stroke / wide)]
        heights = [wide]
    face = match_face(texts, shapes)
    sizes = [h / _ink_height(face, text) for text, h in zip(texts, heights, strict=True)]
    size = float(median(sizes))
    steps = [b[1][1] - a[1][1] for a, b in pairwise(rows)]
    pitch = float(median(steps)) / size if steps and not block.vertical else face.pitch
    letters = [c for c in block.text if c.isalpha() and c.upper() != c.lower()]
    upper = len(letters) >= 2 and sum(c.isupper() for c in letters) >= 0.9 * len(letters)
    return Lettering(
        face=face,
        size=size,
        pitch=min(1.8, max(0.85, pitch)),
        fill=ink.fill,
        outline=ink.outline,
        outline_width=ink.outline_width,
        align=_find_alignment([box for _, box in rows]),
        upper=upper,
        vertical=block.vertical,
        kind=_find_kind(pixels, block, ink, panels),
        rows=len(rows),
        weight=0.0 if block.vertical else _measure_weight(face, texts, heights, ink.stroke),
        hops=hops and not block.vertical,
        texts=tuple(text for text, _ in rows),
    )


def _measure_height(ink: Ink, text: str, box: PixelBox) -> float:
    """Measure the height of a row; for Chinese with uneven baselines, of its characters."""
    tall, count = float(box[3] - box[1]), len(text.replace(" ", ""))
    if count < _HOPPING or not has_chinese(text) or ink.tilt:
        return tall
    left, top = box[0] - ink.zone[0], box[1] - ink.zone[1]
    row = ink.mask[max(0, top) : box[3] - ink.zone[1], max(0, left) : box[2] - ink.zone[0]]
    spans = [np.flatnonzero(cell.any(axis=1)) for cell in np.array_split(row, count, axis=1)]
    cells = [float(span[-1] - span[0] + 1) for span in spans if len(span)]
    usual = float(median(cells)) if cells else tall
    return usual if usual < _HOPS * tall else tall


def _measure_weight(
    face: Typeface, texts: Sequence[str], heights: Sequence[float], stroke: float
) -> float:
    """Measure how much thicker the strokes are than the font's, on each side.

    The result is 0 if the difference is within the measurement error.
    """
    strokes = [measure_shape(face, text).stroke * h for text, h in zip(texts, heights, strict=True)]
    lacking, tall = (stroke - float(median(strokes))) / 2, float(median(heights))
    return min(lacking, _HEAVIEST * tall) if lacking > max(0.5, 0.01 * tall) else 0.0


def _join_rows(block: CaptionBlock, ink: Ink) -> list[tuple[str, PixelBox]]:
    """Join line boxes beside each other into rows."""
    rows: list[tuple[str, PixelBox]] = []
    for line, box in zip(block.lines, ink.lines, strict=True):
        if rows and not block.vertical:
            text, last = rows[-1]
            shared = min(last[3], box[3]) - max(last[1], box[1])
            if shared > 0.5 * min(last[3] - last[1], box[3] - box[1]):
                rows[-1] = (f"{text} {line.text.strip()}", enclose((last, box)))
                continue
        rows.append((line.text.strip(), box))
    return rows


def _ink_height(face: Typeface, text: str) -> float:
    """Return the height of a text's ink relative to the font size."""
    _, top, _, bottom = face.at(100).getbbox(text)
    return max(0.05, (bottom - top) / 100)


def _find_alignment(rows: Sequence[PixelBox]) -> Alignment:
    """Find the alignment of rows; a single row counts as centred."""
    if len(rows) < 2:
        return "centre"
    wide = max(box[2] - box[0] for box in rows)
    spreads: dict[Alignment, float] = {
        "centre": float(np.ptp([(box[0] + box[2]) / 2 for box in rows])),
        "left": float(np.ptp([box[0] for box in rows])),
        "right": float(np.ptp([box[2] for box in rows])),
    }
    best = min(spreads, key=lambda edge: spreads[edge])
    return best if spreads[best] + _SLACK * wide < spreads["centre"] else "centre"


def find_plain_ground(pixels: Pixels, ink: Ink) -> Mask:
    """Find the plain area behind a caption, at a reduced size.

    Letters count as part of the area, so they do not divide it. Callers scale the result to the
    size that they need.
    """
    import cv2

    height, width = pixels.shape[:2]
    scale = min(1.0, _SMALL / max(height, width))
    size = (max(8, round(width * scale)), max(8, round(height * scale)))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    plain = np.abs(small.astype(np.int16) - np.array(ink.ground.colour)).max(axis=2) <= 20
    left, top, right, bottom = (round(value * scale) for value in ink.zone)
    plain[top : bottom + 1, left : right + 1] = True
    _, parts = cv2.connectedComponents(plain.astype(np.uint8), connectivity=4)
    middle = (min(size[1] - 1, (top + bottom) // 2), min(size[0] - 1, (left + right) // 2))
    ground: Mask = parts == parts[middle]
    return ground


def _find_kind(
    pixels: Pixels, block: CaptionBlock, ink: Ink, panels: Sequence[Region]
) -> LetteringKind:
    """Determine the position type of a caption from its plain background."""
    if ink.outline_width or not ink.ground.flat:
        return "overlay"
    plain = find_plain_ground(pixels, ink)
    columns, rows = np.flatnonzero(plain.any(axis=0)), np.flatnonzero(plain.any(axis=1))
    panel = panels[block.panel] if block.panel < len(panels) else Region(0, 0, 1, 1)
    reach = (columns[-1] - columns[0] + 1) / max(1.0, (panel.right - panel.left) * plain.shape[1])
    tall = (rows[-1] - rows[0] + 1) / plain.shape[0]
    if reach >= 0.93:
        scale = plain.shape[0] / pixels.shape[0]
        beside = plain[int(ink.box[1] * scale) : int(ink.box[3] * scale) + 1].mean()
        return "bar" if beside >= 0.97 or tall < 0.4 else "overlay"
    return "bubble" if reach < 0.85 and tall < 0.7 else "overlay"
