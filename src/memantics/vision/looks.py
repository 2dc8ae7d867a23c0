"""The look of a caption found by drawing: of several looks, the one most like the original.

Colours, weight and spacing measured from pixels alone go wrong on photographs and with fonts that
we do not have. Here the old text is set again in each look and laid over the picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from memantics.core.errors import InputError
from memantics.vision.captions import has_chinese
from memantics.vision.colours import find_mode
from memantics.vision.fidelity import compare_added, soften_added
from memantics.vision.ink import Ink, Pixels
from memantics.vision.lettering import Lettering
from memantics.vision.regions import PixelBox
from memantics.vision.removal import remove_ink
from memantics.vision.typefaces import FACES, find_face
from memantics.vision.typesetting import calibrate, draw_text, fit_text

_BETTER, _OTHER_COLOURS = 0.012, 0.06  # of 1: by how much another look must be nearer
_ALIKE = 0.97  # of 1: no other look is sought
_FAR = 0.1  # of 1: a font that is so much farther at its own weight is not tried in others
_AROUND = 14  # pixels: what painting over looks at
_WEIGHTS = (0.0, 0.012, 0.024)  # of the size, on each side of a stroke
_RIM, _SOLID = 0.05, 200  # of the size: what is looked at around letters; of 255: not an edge
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_INSETS = (0.02, 0.08)  # of a line's height: what OCR boxes are wider than letters


def match_look(pixels: Pixels, text: str, ink: Ink, look: Lettering) -> tuple[Ink, Lettering]:
    """The box and the look in which the old text is most like the original."""
    if ink.tilt or look.vertical or not _can_draw(text, look):
        return ink, look
    left, top = max(0, ink.zone[0] - _AROUND), max(0, ink.zone[1] - _AROUND)
    crop = np.ascontiguousarray(pixels[top : ink.zone[3] + _AROUND, left : ink.zone[2] + _AROUND])
    here = _move(ink, -left, -top)
    plate = crop.copy()
    remove_ink(plate, here)

    old = soften_added(crop, plate, here)
    known: dict[tuple[PixelBox, Lettering], float] = {}  # the same look is tried more than once

    def rate(ink: Ink, look: Lettering) -> float:
        if (ink.box, look) not in known:
            again = plate.copy()
            draw_text(again, ink, look, fit_text(text, look, ink.room, legible=False))
            known[ink.box, look] = compare_added(old, soften_added(again, plate, here))
        return known[ink.box, look]

    def sample(ink: Ink, look: Lettering) -> Iterator[tuple[Ink, Lettering]]:
        """The colours that the picture has where the letters are drawn, and around them."""
        sheet = np.zeros_like(crop)
        white = replace(look, fill=_WHITE, outline=(0, 255, 0), outline_width=_RIM * look.size)
        draw_text(sheet, ink, white, fit_text(text, white, ink.room, legible=False))
        body, rim = sheet[..., 0] > _SOLID, (sheet[..., 1] > _SOLID) & (sheet[..., 0] < 8)
        if body.any() and rim.any():
            look = replace(look, fill=find_mode(crop[body]))
            yield ink, look
            yield ink, replace(look, outline_width=0.0)
            for width in (0.045, 0.09):
                yield (
                    ink,
                    replace(look, outline=find_mode(crop[rim]), outline_width=width * look.size),
                )

    best, score = (here, look), rate(here, look)
    for vary, better in (
        (_vary_weights, _BETTER),
        (_vary_spacing, _BETTER),
        (sample, _OTHER_COLOURS),
        (_vary_colours, _OTHER_COLOURS),
        (_vary_boxes, _BETTER),
        (_vary_weights, _BETTER),
        (_vary_spacing, _BETTER),
    ):
        for other in list(vary(*best)) if score < _ALIKE else ():
            plain = other[0], replace(other[1], weight=0.0)
            if vary is _vary_weights and rate(*plain) < score - _FAR:
                continue
            found = rate(*other)
            if found > score + better:
                best, score = other, found
    chosen, style = best
    return _move(chosen, left, top), calibrate(text, style, chosen.room)


def _can_draw(text: str, look: Lettering) -> bool:
    try:
        find_face(text, look.face)
    except InputError:
        return False
    return bool(text.strip())


def _vary_colours(ink: Ink, look: Lettering) -> Iterator[tuple[Ink, Lettering]]:
    thin = max(1.0, 0.045 * look.size)
    yield ink, replace(look, outline_width=0.0)
    for fill, outline in ((_WHITE, _BLACK), (_BLACK, _WHITE), (look.outline, look.fill)):
        yield ink, replace(look, fill=fill, outline_width=0.0)
        for width in (thin, 2 * thin):
            yield ink, replace(look, fill=fill, outline=outline, outline_width=width)
    for share in (0.6, 0.8):
        yield ink, replace(look, outline_width=share * look.outline_width)


def _vary_boxes(ink: Ink, look: Lettering) -> Iterator[tuple[Ink, Lettering]]:
    """Other boxes of the letters: what was found may hold some of the picture."""
    left, top, right, bottom = ink.zone
    tall = (bottom - top) / max(1, look.rows)
    pad = max(3, round(0.12 * tall / 1.24))
    for inset in _INSETS:
        by = pad + round(inset * tall)
        box = (left + by, top + by, right - by, bottom - by)
        if box[2] - box[0] > tall / 2 and box[3] - box[1] > tall / 3:
            yield replace(ink, box=box), replace(look, size=1.3 * look.size)


def _vary_weights(ink: Ink, look: Lettering) -> Iterator[tuple[Ink, Lettering]]:
    chinese = has_chinese("".join(look.texts))
    for face in FACES:
        if face.chinese or not chinese:
            for share in _WEIGHTS:
                yield ink, replace(look, face=face, weight=share * look.size)


def _vary_spacing(ink: Ink, look: Lettering) -> Iterator[tuple[Ink, Lettering]]:
    """Letters as wide as the font's with space between them, instead of stretched ones."""
    longest = max(look.texts, key=len, default="")
    wide = ink.box[2] - ink.box[0] - 2 * look.edge
    left, _, right, _ = look.face.at(100).getbbox(longest)
    for size in (look.size, 0.9 * look.size):
        gap = (wide / size - (right - left) / 100) / max(1, len(longest) - 1)
        if len(longest) > 1 and -0.15 <= gap <= 1.2:
            yield ink, replace(look, tracking=gap, stretch=1.0)


def _move(ink: Ink, x: int, y: int) -> Ink:
    def shift(box: PixelBox) -> PixelBox:
        return box[0] + x, box[1] + y, box[2] + x, box[3] + y

    return replace(
        ink, zone=shift(ink.zone), box=shift(ink.box), lines=tuple(map(shift, ink.lines))
    )
