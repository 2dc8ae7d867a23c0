"""The letters of a caption: pixels, lines, colours and background."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from memantics.core.lines import TextLine
from memantics.understanding.vision.colours import Colour, Mask, Pixels, tell_colours
from memantics.understanding.vision.regions import CaptionBlock, PixelBox, enclose, has_chinese
from memantics.understanding.vision.segmentation import FLAT, find_letters
from memantics.understanding.vision.spacing import part_words
from memantics.understanding.vision.typefaces import measure_stroke

_ALIKE = 70  # maximum difference of a colour channel (0 to 255) within one letter colour
_THICKEST = 0.24  # maximum stroke width, relative to the height of a line
_MOST = 0.6  # minimum proportion of ink in the letters' own colours
_SPECK = 0.06  # minimum size of a stroke, relative to the height of a line
_SURE = 40  # minimum number of ink pixels for a measurement
# Minimum proportion of a plain background and its tolerance, in general and for plain image types.
_EVEN, _NOISY = (0.96, FLAT // 2), (0.9, FLAT)
_HALF = 0.4  # minimum opacity of a pixel that counts as ink after rotation
__all__ = [
    "Background",
    "Colour",
    "Ink",
    "Mask",
    "Pixels",
    "choose_legible",
    "find_ink",
    "find_zone",
]


@dataclass(frozen=True, slots=True)
class Background:
    """The background of a caption: its most frequent colour, and whether it is plain."""

    colour: Colour
    flat: bool


@dataclass(frozen=True, slots=True)
class Ink:
    """The letters of a caption.

    ``zone`` is the caption's box; nothing outside it is changed. ``mask`` covers the zone. ``box``
    is the tight box around the ink and ``lines`` those of its lines, in image pixels. ``texts`` are
    the lines' texts, with spaces that OCR missed. ``outline_width`` is 0 without an outline.
    ``borders`` are image lines in the zone, such as a frame; they are kept. ``tilt`` is the slope
    of a line in degrees, ``span`` its width and height when straightened.
    """

    zone: PixelBox
    mask: Mask
    box: PixelBox
    lines: tuple[PixelBox, ...]
    texts: tuple[str, ...]
    ground: Background
    fill: Colour
    outline: Colour
    outline_width: float
    stroke: float
    borders: Mask
    tilt: float = 0.0
    span: tuple[int, int] = (0, 0)

    @property
    def room(self) -> PixelBox:
        """The box for a text: the ink box, or that of the straightened line."""
        return (0, 0, *self.span) if self.tilt else self.box


def find_zone(block: CaptionBlock, size: tuple[int, int]) -> PixelBox:
    """Return the zone of a caption: its OCR box, enlarged to include outlines and accents."""
    left, top, right, bottom = block.box
    pad = max(3, round(0.12 * block.line_height))
    return (
        max(0, left - pad),
        max(0, top - pad),
        min(size[0], right + pad),
        min(size[1], bottom + pad),
    )


def find_ink(
    pixels: Pixels, block: CaptionBlock, others: Iterable[PixelBox] = (), *, plain: bool = False
) -> Ink:
    """Separate letters from the background; ``others`` are boxes of other captions.

    With ``plain``, the image type implies a plain background, so noise is ignored.
    """
    if len(block.lines) == 1 and block.lines[0].tilted:
        return _find_tilted_ink(pixels, block)
    size = (pixels.shape[1], pixels.shape[0])
    zone = find_zone(block, size)
    reach = max(4, round(0.3 * block.line_height))
    frame = (
        max(0, zone[0] - reach),
        max(0, zone[1] - reach),
        min(size[0], zone[2] + reach),
        min(size[1], zone[3] + reach),
    )
    crop = pixels[frame[1] : frame[3], frame[0] : frame[2]]
    inside, around = _mark(crop.shape[:2], frame, block, zone), _mark_around(frame, zone, others)
    pieces = [(text, _shift(box, frame)) for text, box in _list_pieces(block)]
    whole, shade, borders = find_letters(crop, inside, around, pieces)
    x, y = zone[0] - frame[0], zone[1] - frame[1]
    inner = (slice(y, y + zone[3] - zone[1]), slice(x, x + zone[2] - zone[0]))
    lines = tuple(
        _tighten(whole[inner], zone, box) for box in _part_rows(whole[inner], zone, block)
    )
    ground = _judge_ground(crop[inner], whole[inner] | borders[inner], _NOISY if plain else _EVEN)
    fill, outline, width = tell_colours(crop, whole, ground.colour, shade)
    whole = _drop_strangers(crop, whole, fill, outline if width else None)
    body = _find_body(crop, whole, fill, outline if width else ground.colour)
    if not ground.flat:
        body = _drop_specks(body, block.line_height)
        lines = _measure_lines(body[inner], zone, block, width) or lines
    stroke = measure_stroke(body)
    tall = min(min(box[2] - box[0], box[3] - box[1]) for box in lines)
    if not ground.flat and stroke > _THICKEST * tall:
        # Letters are never that thick, so part of the image was found; a readable default style is
        # used.
        fill, outline, width = choose_legible(ground.colour, tall)
    texts = tuple(
        _space(line.text, body[inner], _shift(box, zone))
        for line, box in zip(block.lines, lines, strict=True)
    )
    return Ink(
        zone=zone,
        mask=whole[inner],
        box=enclose(lines),
        lines=lines,
        texts=texts,
        ground=ground,
        fill=fill,
        outline=outline,
        outline_width=width,
        stroke=stroke if ground.flat else min(stroke, 0.2 * tall),
        borders=borders[inner],
    )


def _find_tilted_ink(pixels: Pixels, block: CaptionBlock) -> Ink:
    """Find the ink of a tilted line: straighten it, find the ink, and rotate back."""
    import cv2

    (line,) = block.lines
    wide, high = line.span
    size = (wide + 3 * high, 4 * high)
    middle = ((line.box[0] + line.box[2]) / 2, (line.box[1] + line.box[3]) / 2)
    turn = cv2.getRotationMatrix2D(middle, -line.tilt, 1.0)
    turn[:, 2] += np.subtract((size[0] / 2, size[1] / 2), middle)
    straight = cv2.warpAffine(pixels, turn, size, borderMode=cv2.BORDER_REPLICATE)
    left, top = (size[0] - wide) // 2, (size[1] - high) // 2
    level = TextLine(line.text, (left, top, left + wide, top + high), line.score)
    ink = find_ink(np.asarray(straight, np.uint8), replace(block, lines=(level,)))
    sheet = np.zeros((size[1], size[0]), np.float32)
    sheet[ink.zone[1] : ink.zone[3], ink.zone[0] : ink.zone[2]] = ink.mask
    zone = find_zone(block, (pixels.shape[1], pixels.shape[0]))
    turn[:, 2] += turn[:, :2] @ np.array(zone[:2])
    shape = (zone[2] - zone[0], zone[3] - zone[1])
    mask: Mask = cv2.warpAffine(sheet, turn, shape, flags=cv2.WARP_INVERSE_MAP) > _HALF
    box = _tighten(mask, zone, zone)
    return replace(
        ink,
        zone=zone,
        mask=mask,
        box=box,
        lines=(box,),
        borders=np.zeros(mask.shape, bool),
        tilt=line.tilt,
        span=(ink.box[2] - ink.box[0], ink.box[3] - ink.box[1]),
    )


def choose_legible(ground: Colour, tall: float) -> tuple[Colour, Colour, float]:
    """Choose white on dark or black on light, with a thin outline."""
    dark = sum(ground) < 3 * 140
    white, black = (255, 255, 255), (0, 0, 0)
    return (white, black, 0.04 * tall) if dark else (black, white, 0.04 * tall)


def _space(text: str, body: Mask, box: PixelBox) -> str:
    if has_chinese(text):
        return text
    part = body[max(0, box[1]) : box[3], max(0, box[0]) : box[2]]
    return part_words(text, part.sum(axis=0).astype(np.float64), float(len(part)))


def _list_pieces(block: CaptionBlock) -> list[tuple[str, PixelBox]]:
    """List texts with their boxes: whole lines, or characters of vertical text."""
    if not block.vertical:
        return [(line.text, line.box) for line in block.lines]
    pieces = []
    for line in block.lines:
        signs = line.text.replace(" ", "")
        left, top, right, bottom = line.box
        step = (bottom - top) / max(1, len(signs))
        pieces += [
            (sign, (left, round(top + i * step), right, round(top + (i + 1) * step)))
            for i, sign in enumerate(signs)
        ]
    return pieces


def _shift(box: PixelBox, frame: PixelBox) -> PixelBox:
    return box[0] - frame[0], box[1] - frame[1], box[2] - frame[0], box[3] - frame[1]


def _mark(shape: tuple[int, ...], frame: PixelBox, block: CaptionBlock, zone: PixelBox) -> Mask:
    """Mark the slightly enlarged line boxes within the zone."""
    marked = np.zeros(shape[:2], bool)
    grow = max(2, round(0.06 * block.line_height))
    for line in block.lines:
        left, top = max(zone[0], line.box[0] - grow), max(zone[1], line.box[1] - grow)
        right, bottom = min(zone[2], line.box[2] + grow), min(zone[3], line.box[3] + grow)
        marked[top - frame[1] : bottom - frame[1], left - frame[0] : right - frame[0]] = True
    return marked


def _mark_around(frame: PixelBox, zone: PixelBox, others: Iterable[PixelBox]) -> Mask:
    around = np.ones((frame[3] - frame[1], frame[2] - frame[0]), bool)
    for box in (zone, *others):
        left, top = max(0, box[0] - frame[0]), max(0, box[1] - frame[1])
        around[top : max(0, box[3] - frame[1]), left : max(0, box[2] - frame[0])] = False
    return around


def _judge_ground(crop: Pixels, ink: Mask, even: tuple[float, int]) -> Background:
    """Determine the background from the pixels between the letters."""
    import cv2

    rest = cv2.dilate(ink.astype(np.uint8), np.ones((5, 5), np.uint8)) == 0
    between = crop[rest] if rest.sum() >= 20 else crop.reshape(-1, 3)
    red, green, blue = (int(value) for value in np.median(between, axis=0))
    gaps = np.abs(between.astype(np.int16) - (red, green, blue)).max(axis=1)
    return Background((red, green, blue), bool((gaps <= even[1]).mean() >= even[0]))


def _drop_strangers(crop: Pixels, ink: Mask, fill: Colour, outline: Colour | None) -> Mask:
    """Remove pixels that have neither the fill nor the outline colour of the letters."""
    import cv2

    wide = crop.astype(np.int16)
    near = np.abs(wide - np.array(fill)).max(axis=2) <= _ALIKE
    if outline is not None:
        near |= np.abs(wide - np.array(outline)).max(axis=2) <= _ALIKE
    in_colour = near & ink
    if in_colour.sum() < _MOST * ink.sum():
        return ink  # keep all pixels of letters with many colours
    edges: Mask = cv2.dilate(in_colour.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    return ink & edges


def _drop_specks(body: Mask, tall: int) -> Mask:
    """Remove components that are smaller than any stroke."""
    import cv2

    _, parts, stats, _ = cv2.connectedComponentsWithStats(body.astype(np.uint8), connectivity=8)
    large = stats[:, cv2.CC_STAT_AREA] >= (_SPECK * tall) ** 2
    large[0] = False
    kept: Mask = large[parts]
    return kept if kept.sum() >= _MOST * body.sum() else body


def _measure_lines(
    body: Mask, zone: PixelBox, block: CaptionBlock, edge: float
) -> tuple[PixelBox, ...]:
    """Measure the line boxes from their letters, including the outline."""
    if body.sum() < _SURE or block.vertical:
        return ()
    grow = round(edge)
    boxes = [_tighten(body, zone, box) for box in _part_rows(body, zone, block)]
    return tuple(
        (
            max(zone[0], box[0] - grow),
            max(zone[1], box[1] - grow),
            min(zone[2], box[2] + grow),
            min(zone[3], box[3] + grow),
        )
        for box in boxes
    )


def _find_body(crop: Pixels, ink: Mask, fill: Colour, beyond: Colour) -> Mask:
    """Find letters without outline and edges: pixels nearer to the fill than to ``beyond``."""
    wide = crop.astype(np.int32)
    from_fill = ((wide - np.array(fill)) ** 2).sum(axis=2)
    other = ((wide - np.array(beyond)) ** 2).sum(axis=2)
    body: Mask = ink & (from_fill < other)
    return body


def _part_rows(mask: Mask, zone: PixelBox, block: CaptionBlock) -> list[PixelBox]:
    """Split overlapping boxes of text lines at the row with the least ink between them."""
    boxes = [list(line.box) for line in block.lines]
    if block.vertical:
        return [line.box for line in block.lines]
    ink = mask.sum(axis=1)
    for i, upper in enumerate(boxes):
        for lower in boxes[i + 1 :]:
            high, low = (upper[1] + upper[3]) // 2, (lower[1] + lower[3]) // 2
            apart = low - high > 0.5 * min(upper[3] - upper[1], lower[3] - lower[1])
            beside = min(upper[2], lower[2]) > max(upper[0], lower[0])
            if apart and beside and upper[3] + 6 > lower[1]:
                between = ink[high - zone[1] : low - zone[1]]
                thin = np.flatnonzero(between == between.min())
                cut = high + int(thin[len(thin) // 2])
                upper[3], lower[1] = cut - 3, cut + 3
    return [(box[0], box[1], box[2], box[3]) for box in boxes]


def _tighten(mask: Mask, zone: PixelBox, box: PixelBox) -> PixelBox:
    """Return the tight box around the ink of one line, ignoring specks."""
    left, top = max(0, box[0] - zone[0] - 3), max(0, box[1] - zone[1] - 3)
    part = mask[top : box[3] - zone[1] + 3, left : box[2] - zone[0] + 3]
    rows, columns = part.sum(axis=1), part.sum(axis=0)
    if not rows.size or rows.max() < 2:
        return box
    ys = np.flatnonzero(rows >= max(1, 0.02 * rows.max()))
    xs = np.flatnonzero(columns >= 1)
    return (
        zone[0] + left + int(xs[0]),
        zone[1] + top + int(ys[0]),
        zone[0] + left + int(xs[-1]) + 1,
        zone[1] + top + int(ys[-1]) + 1,
    )
