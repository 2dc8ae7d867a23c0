"""Emoji that stand for letters or sounds in a caption; drawn here, since our fonts have none."""

from __future__ import annotations

import re

from PIL import Image, ImageDraw, ImageFilter

from memantics.core.data import toml_beside

SIGNS = "⭕❤👁⛵"
_APART = re.compile(f"([{SIGNS}])")
_FINE = 4  # drawn so many times as large, and reduced


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
    for shape, ink, numbers in toml_beside(__file__, "signs.toml")[sign]:
        places = [pad + number * side * _FINE / 100 for number in numbers]
        getattr(pen, shape)(places, fill=255 * ink)
    if pad:
        mask = mask.filter(ImageFilter.MaxFilter(2 * pad + 1))
    small = side + 2 * round(edge)
    return mask.resize((small, small), Image.Resampling.LANCZOS)
