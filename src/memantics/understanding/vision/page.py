"""The panels and captions of a meme, and new captions drawn in the old place and text style.

The style is found by drawing: colours, weight and spacing measured from pixels alone fail on
photographs and with missing fonts. The old text is therefore drawn in each candidate style, and
the one most similar to the original is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from memantics.core.errors import InputError
from memantics.core.lines import TextLine
from memantics.understanding.vision import typesetting
from memantics.understanding.vision.appearance import PictureKind, tell_kind
from memantics.understanding.vision.colours import Mask, Pixels, find_mode
from memantics.understanding.vision.erasing import remove_ink
from memantics.understanding.vision.fidelity import compare_added, soften_added
from memantics.understanding.vision.ink import Ink, choose_legible, find_ink
from memantics.understanding.vision.lettering import Lettering, find_plain_ground, measure_lettering
from memantics.understanding.vision.panels import Region, find_panels
from memantics.understanding.vision.regions import CaptionBlock, PixelBox, find_blocks, has_chinese
from memantics.understanding.vision.segmentation import take_in_marks
from memantics.understanding.vision.typefaces import FACES, find_face
from memantics.understanding.vision.typesetting import calibrate, draw_text, fit_text

# minimum gain in similarity for which another style is chosen
_BETTER, _OTHER_COLOURS = 0.012, 0.06
_ALIKE = 0.97  # similarity at which the search stops
_FAR = 0.1  # maximum similarity loss of a font for which other stroke widths are also tried
_AROUND = 14  # inpainting radius in pixels
# steps of extra stroke width relative to the letter size, on each side
_WEIGHTS = (0.0, 0.012, 0.024)
# margin around letters relative to the size; minimum edge contrast (0 to 255)
_RIM, _SOLID = 0.05, 200
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_INSETS = (0.02, 0.08)  # excess width of OCR boxes, relative to the line height
_CLEAR = 110  # minimum contrast (0 to 255) of letters and background box
_MARGIN = 0.12  # margin of a background box, relative to its height
MOST_CAPTIONS = 40  # maximum number of captions per image, since each is measured letter by letter


def match_look(pixels: Pixels, text: str, ink: Ink, look: Lettering) -> tuple[Ink, Lettering]:
    """Find the box and text style whose rendering is most similar to the original."""
    if ink.tilt or look.vertical or not _can_draw(text, look):
        return ink, look
    left, top = max(0, ink.zone[0] - _AROUND), max(0, ink.zone[1] - _AROUND)
    crop = np.ascontiguousarray(pixels[top : ink.zone[3] + _AROUND, left : ink.zone[2] + _AROUND])
    here = _move(ink, -left, -top)
    plate = crop.copy()
    remove_ink(plate, here)

    old = soften_added(crop, plate, here)
    # the same style may be tried more than once
    known: dict[tuple[PixelBox, Lettering], float] = {}

    def rate(ink: Ink, look: Lettering) -> float:
        if (ink.box, look) not in known:
            again = plate.copy()
            draw_text(again, ink, look, fit_text(text, look, ink.room, legible=False))
            known[ink.box, look] = compare_added(old, soften_added(again, plate, here))
        return known[ink.box, look]

    def sample(ink: Ink, look: Lettering) -> Iterator[tuple[Ink, Lettering]]:
        """Sample the image colours inside and around the drawn letters."""
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
    """Vary the box of the letters, since it may include parts of the image."""
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
    """Return the style with extra letter spacing instead of stretched letters."""
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


@dataclass(frozen=True, slots=True)
class LetteredCaption:
    """A caption with its letters and text style."""

    block: CaptionBlock
    ink: Ink
    lettering: Lettering

    @property
    def text(self) -> str:
        """The text of the caption."""
        return self.block.text

    @property
    def budget(self) -> int:
        """The approximate number of characters that fit; at least the old text and one more."""
        return max(len(self.text) + 1, typesetting.count_fitting(self.lettering, self.ink.room))


@dataclass(frozen=True, slots=True)
class MemeStructure:
    """The structure that a reappraisal must keep; ``kind`` is the image type, if certain."""

    size: tuple[int, int]
    panels: tuple[Region, ...]
    captions: tuple[LetteredCaption, ...]
    kind: PictureKind = ""

    @property
    def language(self) -> str:
        """``zh`` if most captions contain Chinese characters, else ``en``."""
        chinese = sum(len(c.text) for c in self.captions if has_chinese(c.text))
        return "zh" if 2 * chinese > sum(len(c.text) for c in self.captions) else "en"


def read_page(image: Image.Image, lines: Sequence[TextLine]) -> MemeStructure:
    """Measure a meme, given its OCR text lines.

    The image type is used too: text of a screenshot has a plain background and is left-aligned.
    """
    pixels: Pixels = np.asarray(image.convert("RGB"))
    kind = tell_kind(image, lines)
    panels = find_panels(image)
    blocks = find_blocks(lines, panels, image.size)
    if len(blocks) > MOST_CAPTIONS:
        raise InputError(
            f"the image has {len(blocks)} captions; the limit is {MOST_CAPTIONS}",
            hint="crop the image to the relevant part",
        )
    captions = []
    for read in blocks:
        others = [other.box for other in blocks if other is not read]
        found = take_in_marks(pixels, read, others)
        ink = find_ink(pixels, found, others, plain=bool(kind))
        spaced = zip(found.lines, ink.texts, strict=True)
        block = replace(found, lines=tuple(replace(line, text=text) for line, text in spaced))
        lettering = measure_lettering(pixels, block, ink, panels)
        if kind.startswith("screenshot") and lettering.rows == 1 and not lettering.vertical:
            lettering = replace(lettering, align="left")
        look = typesetting.calibrate(block.text, lettering, ink.room)
        captions.append(LetteredCaption(block, *match_look(pixels, block.text, ink, look)))
    return MemeStructure(image.size, panels, tuple(captions), kind)


def erase_captions(image: Image.Image, captions: Iterable[LetteredCaption]) -> Image.Image:
    """Return the image without some of its captions."""
    pixels: Pixels = np.array(image.convert("RGB"))
    for caption in captions:
        remove_ink(pixels, caption.ink)
    return Image.fromarray(pixels)


def set_caption(
    image: Image.Image, caption: LetteredCaption, text: str
) -> tuple[Image.Image, PixelBox]:
    """Draw a text at the position and in the style of a caption; also return its ink box."""
    if caption.ink.tilt and not (caption.ink.ground.flat or caption.lettering.outline_width):
        return set_on_box(image, caption, text)  # the background of tilted letters is uncertain
    setting = typesetting.fit_text(text, caption.lettering, caption.ink.room)
    pixels: Pixels = np.array(image.convert("RGB"))
    box = typesetting.draw_text(pixels, caption.ink, caption.lettering, setting)
    return Image.fromarray(pixels), box


def set_on_box(
    image: Image.Image, caption: LetteredCaption, text: str
) -> tuple[Image.Image, PixelBox]:
    """Draw a text on a background box in the caption's colours, for text that OCR cannot read."""
    ink, style = caption.ink, caption.lettering
    plate = style.outline if style.outline_width else ink.ground.colour
    fill = style.fill
    if max(abs(a - b) for a, b in zip(plate, fill, strict=True)) < _CLEAR:
        fill = choose_legible(plate, style.size)[0]
    plain = replace(style, fill=fill, outline_width=0.0, weight=0.0, align="centre")
    if not ink.tilt:
        # Unreadable letters were not measured well either, so the whole box is filled.
        left, top, right, bottom = ink.zone
        inset = round(_MARGIN * (bottom - top))
        ink = replace(ink, box=(left + inset, top + inset, right - inset, bottom - inset))
        plain = replace(plain, size=(bottom - top) / max(1, style.rows))
    pixels: Pixels = np.array(image.convert("RGB"))
    typesetting.draw_box(pixels, ink, plate)
    box = typesetting.draw_text(pixels, ink, plain, typesetting.fit_text(text, plain, ink.room))
    return Image.fromarray(pixels), box


def mask_captions(size: tuple[int, int], captions: Iterable[LetteredCaption]) -> Mask:
    """Mask the zones of captions, the only area that new captions change."""
    mask: Mask = np.zeros((size[1], size[0]), bool)
    for caption in captions:
        left, top, right, bottom = caption.ink.zone
        mask[top:bottom, left:right] = True
    return mask


def mask_pictures(image: Image.Image, page: MemeStructure) -> Mask:
    """Mask the repaintable area: panels without gutters, caption bars and bubbles."""
    width, height = page.size
    mask: Mask = np.zeros((height, width), bool)
    for panel in page.panels:
        left, top = round(panel.left * width), round(panel.top * height)
        mask[top : round(panel.bottom * height), left : round(panel.right * width)] = True
    pixels: Pixels = np.asarray(image.convert("RGB"))
    for caption in page.captions:
        if caption.lettering.kind != "overlay":
            ground = Image.fromarray(find_plain_ground(pixels, caption.ink)).resize(page.size)
            # A plain area that covers most of the image is not a bar: stickers have a white
            # background.
            if np.asarray(ground).mean() >= 0.4:
                continue
            mask &= ~np.asarray(ground)
            left, top, right, bottom = caption.ink.zone
            mask[top:bottom, left:right] = False
    return mask


def restore_ink(
    image: Image.Image, source: Image.Image, captions: Iterable[LetteredCaption]
) -> Image.Image:
    """Draw the unchanged captions on a repainted image again."""
    import cv2

    pixels: Pixels = np.array(image.convert("RGB"))
    old: Pixels = np.asarray(source.convert("RGB"))
    for caption in captions:
        left, top, right, bottom = caption.ink.zone
        letters = cv2.dilate(caption.ink.mask.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        pixels[top:bottom, left:right][letters] = old[top:bottom, left:right][letters]
    return Image.fromarray(pixels)
