"""Emoji that stand for letters or sounds in a caption; drawn here, since our fonts have none."""

from __future__ import annotations

import re
from collections.abc import Mapping

from PIL import Image, ImageDraw, ImageFilter

_FINE = 4  # drawn so many times as large, and reduced
# Shapes in a square of 100, in their order: filled with ink (1) or cut out of it (0).
_Shape = tuple[str, int, tuple[int, ...]]
SIGNS: Mapping[str, tuple[_Shape, ...]] = {
    "⭕": (("ellipse", 1, (4, 4, 96, 96)), ("ellipse", 0, (27, 27, 73, 73))),
    "❤": (
        ("ellipse", 1, (2, 8, 54, 60)),
        ("ellipse", 1, (46, 8, 98, 60)),
        ("polygon", 1, (7, 47, 93, 47, 50, 97)),
    ),
    "👁": (
        ("ellipse", 1, (0, 18, 100, 82)),
        ("ellipse", 0, (9, 27, 91, 73)),
        ("ellipse", 1, (32, 28, 68, 72)),
        ("ellipse", 0, (50, 38, 61, 49)),
    ),
    "⛵": (
        ("polygon", 1, (52, 2, 52, 68, 96, 68)),
        ("polygon", 1, (44, 18, 44, 68, 8, 68)),
        ("polygon", 1, (2, 75, 98, 75, 80, 98, 20, 98)),
    ),
}
_APART = re.compile(f"([{''.join(SIGNS)}])")


def split_signs(line: str) -> list[str]:
    """A line in pieces of letters and single signs.

    >>> split_signs("ann⭕ying"), split_signs("so am I")
    (['ann', '⭕', 'ying'], ['so am I'])
    """
    return [part for part in _APART.split(line) if part]


def draw_sign(sign: str, side: int, edge: float) -> Image.Image:
    """A sign as a mask, with so many pixels of outline around a square of that side."""
    pad = round(edge) * _FINE
    whole = side * _FINE + 2 * pad
    mask = Image.new("L", (whole, whole))
    pen = ImageDraw.Draw(mask)
    for kind, ink, numbers in SIGNS[sign]:
        places = [pad + number * side * _FINE / 100 for number in numbers]
        getattr(pen, kind)(places, fill=255 * ink)
    if pad:
        mask = mask.filter(ImageFilter.MaxFilter(2 * pad + 1))
    small = side + 2 * round(edge)
    return mask.resize((small, small), Image.Resampling.LANCZOS)
