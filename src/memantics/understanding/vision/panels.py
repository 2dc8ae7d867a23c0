"""Find the panels of a meme from straight lines across it.

A gutter is a thin band of one colour from edge to edge that differs from both sides. Panels without
a gutter meet at one straight edge. A horizon is also a straight edge, so a horizontal edge counts
only if it divides the height into equal parts. Bars with only a caption and strips much smaller
than the rest are not panels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SignedPixels = NDArray[np.int16]
# size in pixels to which images are scaled; lines stay visible, and the time is bounded
_SIDE = 480
_ALIKE = 26  # maximum difference of a colour channel (0 to 255) within one colour, also in a JPEG
_ACROSS = 0.97
_BESIDE = 0.6
_THICKEST = 0.06
_SMALLEST = 0.22  # minimum panel size relative to the side; thinner parts are edges of objects
_EVEN = 0.4  # minimum size ratio of neighbouring panels; floor and wall differ more
_DEPTH = 3
_BAR_HEIGHT = 0.34
_BAR_PLAIN = 0.45
_BAR_COLOURED = 0.04


@dataclass(frozen=True, slots=True)
class Region:
    """A box (left, top, right, bottom) relative to the image's width and height."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        """The box area relative to the image."""
        return max(0.0, self.right - self.left) * max(0.0, self.bottom - self.top)


def find_panels(image: Image.Image) -> tuple[Region, ...]:
    """Find the panels of an image, row by row; an image without dividing lines is one panel.

    >>> picture = Image.new("RGB", (200, 100), "white")
    >>> picture.paste("red", (0, 0, 97, 100))
    >>> picture.paste("blue", (103, 0, 200, 100))
    >>> len(find_panels(picture))
    2
    """
    scale = min(1.0, _SIDE / max(image.size))
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    # BOX keeps thin lines visible; nearest-neighbour scaling may lose them.
    small = image.convert("RGB").resize(size, Image.Resampling.BOX)
    pixels: SignedPixels = np.asarray(small, dtype=np.int16)
    height, width = pixels.shape[:2]
    top, bottom = _find_top(pixels), height - _find_top(pixels[::-1])
    found = _split(pixels, (0, top, width, bottom), _DEPTH)
    return tuple(
        Region(left / width, top / height, right / width, bottom / height)
        for left, top, right, bottom in sorted(found, key=lambda box: (box[1], box[0]))
    )


def count_panels(image: Image.Image) -> int:
    """The number of panels.

    >>> count_panels(Image.new("RGB", (80, 80), "green"))
    1
    """
    return len(find_panels(image))


_Box = tuple[int, int, int, int]


def _split(pixels: SignedPixels, box: _Box, depth: int) -> list[_Box]:
    """Split a box along its lines, recursively."""
    left, top, right, bottom = box
    part = pixels[top:bottom, left:right]
    if depth == 0 or min(part.shape[:2]) < 16:
        return [box]
    for across in (False, True):
        pieces = _cut(part if across else part.transpose(1, 0, 2), horizontal=across)
        if len(pieces) > 1:
            boxes = [
                (left, top + a, right, top + b) if across else (left + a, top, left + b, bottom)
                for a, b in pieces
            ]
            return [found for piece in boxes for found in _split(pixels, piece, depth - 1)]
    return [box]


def _cut(part: SignedPixels, *, horizontal: bool) -> list[tuple[int, int]]:
    """Return the ranges of rows between the dividing lines of an image part."""
    length = len(part)
    smallest = max(8, round(_SMALLEST * length))
    start, pieces = 0, []
    for first, last in _find_lines(part, horizontal=horizontal):
        if first - start >= smallest and length - last >= smallest:
            pieces.append((start, first))
            start = last
    pieces.append((start, length))
    sizes = [last - first for first, last in pieces]
    return pieces if min(sizes) >= _EVEN * max(sizes) else [(0, length)]


def _find_lines(part: SignedPixels, *, horizontal: bool) -> list[tuple[int, int]]:
    """Find gutters, and edges without a gutter, that cross the whole image part."""
    length = len(part)
    # A few dozen columns suffice to determine the colour of a plain row.
    colours: SignedPixels = np.median(part[:, :: max(1, part.shape[1] // 48)], axis=1).astype(
        np.int16
    )
    plain = 1 - _share_unlike(part, colours[:, None]) >= _ACROSS
    steps = _share_unlike(part[1:], part[:-1])
    lines = []
    row = 1
    while row < length - 1:
        last = row
        while last < length and plain[last] and _alike(colours[row], colours[last]):
            last += 1
        thin = row < last <= row + max(3, round(_THICKEST * length))
        if thin and last < length and _stands_out(part, colours[row], row, last):
            lines.append((row, last))
            row = last + 1  # the far border of a gutter is not a separate line
            continue
        if steps[row - 1] >= _ACROSS and _may_meet(row, length, horizontal=horizontal):
            lines.append((row, row))
        row = max(last, row + 1)
    return lines


def _share_unlike(one: SignedPixels, other: SignedPixels) -> NDArray[np.float64]:
    """Return the proportion of differing pixels for each row; by channel, since that is faster."""
    gaps = np.abs(one - other) > _ALIKE
    share: NDArray[np.float64] = (gaps[..., 0] | gaps[..., 1] | gaps[..., 2]).mean(axis=1)
    return share


def _alike(one: SignedPixels, other: SignedPixels) -> bool:
    return bool((np.abs(one - other) <= _ALIKE).all())


def _stands_out(part: SignedPixels, colour: SignedPixels, first: int, last: int) -> bool:
    """Tell whether a band differs from both sides.

    Scaling blurs the border of a line into an extra row, so the row after it is compared.
    """
    sides = part[[max(0, first - 2), min(len(part) - 1, last + 1)]]
    return bool((_share_unlike(sides, colour) >= _BESIDE).all())


def _may_meet(row: int, length: int, *, horizontal: bool) -> bool:
    if not horizontal:
        return True
    return any(abs(row / length - k / n) < 0.012 for n in (2, 3) for k in range(1, n))


def _find_top(pixels: SignedPixels) -> int:
    """Find the start of the image below a caption-only bar; 0 if there is none."""
    most = round(_BAR_HEIGHT * len(pixels))
    steps = _share_unlike(pixels[1 : most + 1], pixels[:most])
    ends = [int(row) + 1 for row in np.flatnonzero(steps >= _BESIDE)]
    return next((end for end in reversed(ends) if end > 8 and _is_bar(pixels[:end])), 0)


def _is_bar(part: SignedPixels) -> bool:
    """Tell whether a part is mostly white or black, with hardly any colour."""
    flat = part.reshape(-1, 3)
    light = flat.mean(axis=1)
    plain = max(float((light > 225).mean()), float((light < 30).mean()))
    coloured = float((flat.max(axis=1) - flat.min(axis=1) > 60).mean())
    return plain >= _BAR_PLAIN and coloured <= _BAR_COLOURED
