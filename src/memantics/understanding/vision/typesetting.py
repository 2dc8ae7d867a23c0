"""Typeset a new caption: break, size and stretch the text until it fills its old box."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw

from memantics.core.errors import InputError
from memantics.understanding.vision.colours import Colour, Mask, Pixels
from memantics.understanding.vision.ink import Ink, choose_legible
from memantics.understanding.vision.lettering import Lettering
from memantics.understanding.vision.regions import PixelBox, has_chinese
from memantics.understanding.vision.typefaces import (
    SIGNS,
    Typeface,
    draw_sign,
    find_face,
    measure_line,
    split_signs,
)

_NO_START = frozenset("，。！？、；：）》】”’…—～·,.!?;:)]}%")
_NO_END = frozenset("（《【“‘([{")
_LATIN = re.compile(r"[^\s\u2e80-\uffef]")


def split_pieces(text: str) -> tuple[str, ...]:
    """Split a line where it may break; a space stays with the part before it.

    >>> split_pieces("so am I"), split_pieces("（好）吧，OK 的")
    (('so ', 'am ', 'I'), ('（好）', '吧，', 'OK ', '的'))
    """
    text = " ".join(text.split())
    if not has_chinese(text):
        return tuple(re.findall(r"\S+ ?", text))
    pieces: list[str] = []
    for c in text:
        last = pieces[-1][-1] if pieces else " "
        word = _LATIN.match(c) is not None and _LATIN.match(last) is not None
        if pieces and (c == " " or c in _NO_START or last in _NO_END or word):
            pieces[-1] += c
        else:
            pieces.append(c)
    return tuple(pieces)


def break_lines(
    pieces: Sequence[str], count: int, measure: Callable[[str], float]
) -> tuple[str, ...] | None:
    """Break into exactly ``count`` lines with the shortest longest line; None if impossible.

    >>> break_lines(split_pieces("one two three four"), 2, len)
    ('one two', 'three four')
    """
    if count < 1 or count > len(pieces):
        return None
    widths = [measure(piece) for piece in pieces]
    low, high = max(widths), sum(widths)
    for _ in range(24):
        middle = (low + high) / 2
        if len(_fill(pieces, widths, middle)) <= count:
            high = middle
        else:
            low = middle
    lines = _fill(pieces, widths, high)
    while len(lines) < count:
        # Fewer lines were needed: split the longest line that can be split.
        longest = max(
            (line for line in lines if len(line) > 1), key=lambda line: sum(map(measure, line))
        )
        place = lines.index(longest)
        half = _halve(longest, measure)
        lines[place : place + 1] = [longest[:half], longest[half:]]
    return tuple("".join(line).strip() for line in lines)


def _fill(pieces: Sequence[str], widths: Sequence[float], limit: float) -> list[list[str]]:
    lines: list[list[str]] = []
    used = 0.0
    for piece, width in zip(pieces, widths, strict=True):
        if not lines or used + width > limit + 1e-6:
            lines.append([])
            used = 0.0
        lines[-1].append(piece)
        used += width
    return lines


def _halve(line: Sequence[str], measure: Callable[[str], float]) -> int:
    total, used = sum(map(measure, line)), 0.0
    for place, piece in enumerate(line[:-1], 1):
        used += measure(piece)
        if used >= total / 2:
            return place
    return len(line) - 1


NARROWEST, WIDEST = 0.78, 1.28  # range of the horizontal stretch
_LARGEST = 1.08  # maximum letter size, relative to the old size
_WIDER = 1.06  # maximum letter width, relative to the old one
_SMALLEST = 0.45
_SEEN = 50  # minimum contrast (0 to 255) of small text
LEGIBLE = 9.0  # minimum size of legible letters in pixels
_MOST_LINES = 8
_LOOSEST = 1.45  # maximum line distance, relative to the old one


@dataclass(frozen=True, slots=True)
class TypesetText:
    """A fitted text: lines, font size, stretch, and line distance in pixels.

    ``width`` and ``height`` are those of the ink with its outline; ``tracking`` is the extra letter
    spacing in pixels before stretching.
    """

    lines: tuple[str, ...]
    face: Typeface
    size: float
    stretch: float
    step: float
    width: float
    height: float
    tracking: float = 0.0


def fit_text(
    text: str, lettering: Lettering, box: PixelBox, *, legible: bool = True
) -> TypesetText:
    """Find the best layout of a text in a box; with ``legible``, reject an unreadable one."""
    shown = " ".join((text.upper() if lettering.upper else text).split())
    if not shown:
        raise InputError("the caption is empty", hint="write a text, or keep the old one")
    style = replace(lettering, face=find_face(shown, lettering.face))
    if style.vertical:
        settings = [_set_column(shown, style, box)]
    else:
        pieces = split_pieces(shown)
        measure = style.face.at(100).getlength
        if not legible and style.texts:
            # the old text keeps its line breaks
            return _set_rows(style.texts, style, box, free=True)
        broken = [break_lines(pieces, n, measure) for n in range(1, _MOST_LINES + 1)]
        if has_chinese(shown) and " " in shown:
            broken.append(tuple(shown.split(" ")))  # the text is broken at the author's line breaks
        broken.append(keep_breaks(pieces, style.texts))
        settings = [_set_rows(lines, style, box, free=not legible) for lines in broken if lines]
    best = min(settings, key=lambda each: _judge(each, style, box))
    if legible and best.size < min(lettering.size, max(LEGIBLE, _SMALLEST * lettering.size)):
        raise InputError(
            f"the caption {text!r} is too long for its area",
            hint=f"use at most about {count_fitting(lettering, box)} characters",
        )
    return best


def keep_breaks(pieces: Sequence[str], old: Sequence[str]) -> tuple[str, ...] | None:
    """Keep the old line breaks; None if the words there changed.

    >>> keep_breaks(split_pieces("my phone is at ease"), ["my phone is", "at one percent"])
    ('my phone is', 'at ease')
    """
    parts = [split_pieces(line) for line in old]
    words = [piece.strip().casefold() for part in parts for piece in part]
    new = [piece.strip().casefold() for piece in pieces]
    matched: dict[int, int] = {}
    for block in SequenceMatcher(None, words, new, autojunk=False).get_matching_blocks():
        matched |= {block.a + step: block.b + step for step in range(block.size)}
    cuts, end = [0], 0
    for part in parts[:-1]:
        end += len(part)
        place = matched.get(end, matched[end - 1] + 1 if end - 1 in matched else 0)
        cuts.append(place)
    cuts.append(len(pieces))
    if len(old) < 2 or any(b <= a for a, b in pairwise(cuts)):
        return None
    return tuple("".join(pieces[a:b]).strip() for a, b in pairwise(cuts))


def calibrate(text: str, lettering: Lettering, box: PixelBox) -> Lettering:
    """Use the size at which the old text fits its box, since tilted letters look larger."""
    try:
        fitted = fit_text(text, lettering, box, legible=False)
    except InputError:
        return lettering
    size = min(lettering.size, max(4.0, fitted.size))
    return replace(lettering, size=size, stretch=fitted.stretch)


def _set_rows(
    lines: tuple[str, ...], style: Lettering, box: PixelBox, *, free: bool = False
) -> TypesetText:
    """Choose the largest size at which the lines fit a box.

    Letters may not be much wider than the old ones, unless ``free`` is set.
    """
    edge = 2 * style.edge
    wide, high = max(4.0, box[2] - box[0] - edge), max(4.0, box[3] - box[1] - edge)
    width, first, last = _measure(lines, style.face, style.tracking)
    tall = (len(lines) - 1) * style.pitch + (last - first)
    widest = WIDEST if free else min(WIDEST, max(1.0, _WIDER * style.stretch))
    size = min(high / tall, wide / (width * NARROWEST), _LARGEST * style.size)
    stretch = min(widest, max(NARROWEST, wide / (width * size)))
    step = style.pitch * size
    if len(lines) > 1:
        step = min((high - (last - first) * size) / (len(lines) - 1), _LOOSEST * step)
    height = (len(lines) - 1) * step + (last - first) * size
    wide = width * size * stretch + edge
    gap = style.tracking * size
    return TypesetText(lines, style.face, size, stretch, step, wide, height + edge, gap)


def _measure(lines: tuple[str, ...], face: Typeface, tracking: float) -> tuple[float, float, float]:
    """Measure lines at font size 1: largest width, top of the first and bottom of the last line."""
    boxes = [measure_line(face, 100, line, 100 * tracking) for line in lines]
    widest = max(box[2] - box[0] for box in boxes)
    return max(0.1, widest / 100), boxes[0][1] / 100, max(boxes[-1][3] / 100, boxes[0][1] / 100)


def _set_column(text: str, style: Lettering, box: PixelBox) -> TypesetText:
    """Arrange characters vertically, as in the old caption."""
    edge = 2 * style.edge
    wide, high = max(4.0, box[2] - box[0] - edge), max(4.0, box[3] - box[1] - edge)
    lines = tuple(c for c in text if not c.isspace())
    size = min(wide / 0.94, high / max(1.0, 1.02 * len(lines) - 0.06), _LARGEST * style.size)
    step = size
    if len(lines) > 1:
        step = min((high - 0.94 * size) / (len(lines) - 1), _LOOSEST * size)
    stretch = min(WIDEST, max(1.0, wide / (0.94 * size)))
    height = (len(lines) - 1) * step + 0.94 * size + edge
    return TypesetText(lines, style.face, size, stretch, step, 0.94 * size * stretch + edge, height)


def _judge(setting: TypesetText, style: Lettering, box: PixelBox) -> float:
    """Rate the difference from the old caption: empty space, distorted letters, another size."""
    wide, high = box[2] - box[0], box[3] - box[1]
    covered = min(1.0, setting.width / wide) * min(1.0, setting.height / high)
    return (
        2.0 * (1 - covered)
        + 0.5 * abs(math.log(setting.stretch / style.stretch))
        + 0.5 * abs(math.log(setting.size / style.size))
        + 0.06 * abs(len(setting.lines) - style.rows) * (not style.vertical)
        - 0.1 * (setting.lines == style.texts)
        + 0.25 * sum(" " in line and has_chinese(line) for line in setting.lines)
    )


def count_fitting(lettering: Lettering, box: PixelBox) -> int:
    """Estimate how many characters fit, Chinese or English depending on the font.

    Letters may shrink to two thirds of the old size and be condensed.
    """
    sample = "国" if lettering.face.chinese and not lettering.upper else "n"
    em = lettering.face.at(100).getlength(sample * 10) / 1000
    size = max(LEGIBLE, 0.67 * lettering.size)
    wide, high = box[2] - box[0], box[3] - box[1]
    if lettering.vertical:
        return max(1, int(high / (size * 1.02)))
    rows = max(1, int((high + 0.3 * size) / (lettering.pitch * size)))
    return max(2, int(rows * wide / (em * NARROWEST * 1.08 * size)))


def draw_text(pixels: Pixels, ink: Ink, lettering: Lettering, setting: TypesetText) -> PixelBox:
    """Draw a caption inside its zone; return its ink box."""
    lettering = _keep_legible(pixels, ink, lettering)
    left, top, right, bottom = ink.zone
    size, box = (right - left, bottom - top), _shift(ink.box, ink.zone)
    if ink.tilt:
        # A tilted line is drawn straight on a separate layer and then rotated.
        margin = math.ceil(lettering.edge) + 4
        size = (ink.span[0] + 2 * margin, ink.span[1] + 2 * margin)
        box = (margin, margin, margin + ink.span[0], margin + ink.span[1])
    body, outline = Image.new("L", size), Image.new("L", size)
    starts = _place(setting, lettering, box)
    # Smaller letters get a thinner outline; otherwise they would look heavier.
    scale = min(1.0, setting.size / lettering.size)
    for line, place in zip(setting.lines, starts, strict=True):
        _stamp(body, line, setting, place, scale * lettering.weight)
        if lettering.outline_width:
            _stamp(outline, line, setting, place, max(1.0, scale * lettering.edge))
    if ink.tilt:
        body, outline = _turn(body, ink), _turn(outline, ink)
    image = Image.fromarray(pixels[top:bottom, left:right])
    if lettering.outline_width:
        image.paste(lettering.outline, mask=outline)
    image.paste(lettering.fill, mask=body)
    pixels[top:bottom, left:right] = np.asarray(image)
    drawn = np.maximum(np.asarray(body), np.asarray(outline)) > 40
    return _box_of(drawn, ink.zone)


def draw_box(pixels: Pixels, ink: Ink, colour: Colour) -> None:
    """Fill the area of a caption with one colour, with the caption's tilt."""
    left, top, right, bottom = ink.zone
    mask = Image.new("L", (right - left, bottom - top), 255)
    if ink.tilt:
        mask = _turn(Image.new("L", (ink.span[0] + 8, ink.span[1] + 8), 255), ink)
    image = Image.fromarray(pixels[top:bottom, left:right])
    image.paste(colour, mask=mask)
    pixels[top:bottom, left:right] = np.asarray(image)


def _turn(sheet: Image.Image, ink: Ink) -> Image.Image:
    """Rotate a straight layer by a line's tilt around the centre of the old letters."""
    turned = sheet.rotate(ink.tilt, Image.Resampling.BICUBIC, expand=True)
    left, top, right, bottom = _shift(ink.box, ink.zone)
    spot = (round((left + right - turned.width) / 2), round((top + bottom - turned.height) / 2))
    layer = Image.new("L", (ink.zone[2] - ink.zone[0], ink.zone[3] - ink.zone[1]))
    layer.paste(turned, spot)
    return layer


def _shift(box: PixelBox, zone: PixelBox) -> PixelBox:
    return box[0] - zone[0], box[1] - zone[1], box[2] - zone[0], box[3] - zone[1]


def _keep_legible(pixels: Pixels, ink: Ink, lettering: Lettering) -> Lettering:
    """Use other colours if the measured ones would not be visible."""
    left, top, right, bottom = ink.box
    ground = np.median(pixels[top:bottom, left:right].reshape(-1, 3), axis=0)
    colours = [lettering.fill] + [lettering.outline] * (lettering.outline_width > 0)
    if max(float(np.abs(ground - colour).max()) for colour in colours) >= _SEEN:
        return lettering
    red, green, blue = (int(value) for value in ground)
    fill, outline, width = choose_legible((red, green, blue), lettering.size)
    return replace(lettering, fill=fill, outline=outline, outline_width=width)


def _place(setting: TypesetText, style: Lettering, box: PixelBox) -> list[tuple[float, float]]:
    """Return the start of each line's ink (left and top) in the zone."""
    edge = style.edge
    font = setting.face.at(setting.size)
    free = (box[3] - box[1]) - setting.height
    y = box[1] + free / 2 + edge
    first = font.getbbox(setting.lines[0])[1]
    starts = []
    for row, line in enumerate(setting.lines):
        spread = measure_line(setting.face, setting.size, line, setting.tracking)
        wide = (spread[2] - spread[0]) * setting.stretch + 2 * edge
        gap = (box[2] - box[0]) - wide
        share = {"left": 0.0, "centre": 0.5, "right": 1.0}[
            "centre" if style.vertical else style.align
        ]
        up = (0.06 * setting.size) if style.vertical else first
        starts.append((box[0] + gap * share + edge, y - up + row * setting.step))
    return starts


def _stamp(
    layer: Image.Image, line: str, setting: TypesetText, place: tuple[float, float], edge: float
) -> None:
    """Draw one stretched line with its ink starting at ``place``."""
    left, top, right, bottom = measure_line(setting.face, setting.size, line, setting.tracking)
    pad = math.ceil(edge) + 3
    # The outline is narrowed before stretching, so that it is equally wide on all sides.
    plate = Image.new("L", (math.ceil(right - left) + 2 * pad, math.ceil(bottom - top) + 2 * pad))
    pen, font, x = ImageDraw.Draw(plate), setting.face.at(setting.size), pad - left
    for part in line if setting.tracking else split_signs(line):
        # the sign has the height of a capital and replaces a glyph that the font lacks
        if part in SIGNS:
            _, above, _, below = font.getbbox("H")
            side = max(4, round(min(1.1 * (below - above), font.getlength(part))))
            spot = round(x - round(edge)), round(pad - top + below - side - round(edge))
            plate.paste(255, spot, mask=draw_sign(part, side, edge))
        else:
            pen.text((x, pad - top), part, font=font, fill=255, stroke_width=edge)
        x += font.getlength(part) + setting.tracking
    wide = max(1, round(plate.width * setting.stretch))
    if wide != plate.width:
        plate = plate.resize((wide, plate.height), Image.Resampling.LANCZOS)
    x, y = place[0] - pad * setting.stretch, place[1] + top - pad
    spot = (round(x), round(y))
    layer.paste(255, spot, mask=plate)


def _box_of(mask: Mask, zone: PixelBox) -> PixelBox:
    ys, xs = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(ys):
        return (zone[0], zone[1], zone[0], zone[1])
    return (
        zone[0] + int(xs[0]),
        zone[1] + int(ys[0]),
        zone[0] + int(xs[-1]) + 1,
        zone[1] + int(ys[-1]) + 1,
    )
