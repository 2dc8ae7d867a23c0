"""A meme as a page: its panels and captions measured, and captions set anew in their places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from memantics.core.errors import InputError
from memantics.core.lines import TextLine
from memantics.vision import typesetting
from memantics.vision.appearance import PictureKind, tell_kind
from memantics.vision.captions import CaptionBlock, find_blocks, has_chinese
from memantics.vision.ink import Ink, Mask, Pixels, choose_legible, find_ink
from memantics.vision.lettering import Lettering, find_plain_ground, measure_lettering
from memantics.vision.looks import match_look
from memantics.vision.marks import take_in_marks
from memantics.vision.panels import Region, find_panels
from memantics.vision.regions import PixelBox
from memantics.vision.removal import remove_ink

_CLEAR = 110  # of 255: colours of letters and plate that differ by less are hard to read
_MARGIN = 0.12  # of a plate's height: what is free around its letters


MOST_CAPTIONS = 40  # each is measured letter by letter


@dataclass(frozen=True, slots=True)
class LetteredCaption:
    """A caption with its letters and their look."""

    block: CaptionBlock
    ink: Ink
    lettering: Lettering

    @property
    def text(self) -> str:
        """What it says."""
        return self.block.text

    @property
    def budget(self) -> int:
        """About how many characters its place holds; the old text and one more fit always."""
        return max(len(self.text) + 1, typesetting.count_fitting(self.lettering, self.ink.room))


@dataclass(frozen=True, slots=True)
class Page:
    """A meme's structure: what reappraisal must not move; ``kind`` of picture, where it is sure."""

    size: tuple[int, int]
    panels: tuple[Region, ...]
    captions: tuple[LetteredCaption, ...]
    kind: PictureKind = ""

    @property
    def language(self) -> str:
        """``zh`` where most captions have Chinese characters, else ``en``."""
        chinese = sum(len(c.text) for c in self.captions if has_chinese(c.text))
        return "zh" if 2 * chinese > sum(len(c.text) for c in self.captions) else "en"


def read_page(image: Image.Image, lines: Sequence[TextLine]) -> Page:
    """Measure a meme, given the lines of text that an OCR found on it.

    Its kind says what cannot be seen in one line: text of a screen stands on plain ground and
    begins at the left.
    """
    pixels: Pixels = np.asarray(image.convert("RGB"))
    kind = tell_kind(image, lines)
    panels = find_panels(image)
    blocks = find_blocks(lines, panels, image.size)
    if len(blocks) > MOST_CAPTIONS:
        raise InputError(
            f"it has {len(blocks)} captions; {MOST_CAPTIONS} are set anew at most",
            hint="cut out the part that matters",
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
    return Page(image.size, panels, tuple(captions), kind)


def erase_captions(image: Image.Image, captions: Iterable[LetteredCaption]) -> Image.Image:
    """The picture without some of its captions."""
    pixels: Pixels = np.array(image.convert("RGB"))
    for caption in captions:
        remove_ink(pixels, caption.ink)
    return Image.fromarray(pixels)


def set_caption(
    image: Image.Image, caption: LetteredCaption, text: str
) -> tuple[Image.Image, PixelBox]:
    """Set a text in the place and the look of a caption; return the box of the new ink too."""
    if caption.ink.tilt and not (caption.ink.ground.flat or caption.lettering.outline_width):
        return set_on_plate(image, caption, text)  # what lay behind tilted letters is a guess
    setting = typesetting.fit_text(text, caption.lettering, caption.ink.room)
    pixels: Pixels = np.array(image.convert("RGB"))
    box = typesetting.draw_text(pixels, caption.ink, caption.lettering, setting)
    return Image.fromarray(pixels), box


def set_on_plate(
    image: Image.Image, caption: LetteredCaption, text: str
) -> tuple[Image.Image, PixelBox]:
    """Set a text on a plain plate in the colours of a caption: where letters alone do not read."""
    ink, style = caption.ink, caption.lettering
    plate = style.outline if style.outline_width else ink.ground.colour
    fill = style.fill
    if max(abs(a - b) for a, b in zip(plate, fill, strict=True)) < _CLEAR:
        fill = choose_legible(plate, style.size)[0]
    plain = replace(style, fill=fill, outline_width=0.0, weight=0.0, align="centre")
    if not ink.tilt:
        # Letters that could not be read were not measured well, either: fill the whole plate.
        left, top, right, bottom = ink.zone
        inset = round(_MARGIN * (bottom - top))
        ink = replace(ink, box=(left + inset, top + inset, right - inset, bottom - inset))
        plain = replace(plain, size=(bottom - top) / max(1, style.rows))
    pixels: Pixels = np.array(image.convert("RGB"))
    typesetting.draw_plate(pixels, ink, plate)
    box = typesetting.draw_text(pixels, ink, plain, typesetting.fit_text(text, plain, ink.room))
    return Image.fromarray(pixels), box


def mask_captions(size: tuple[int, int], captions: Iterable[LetteredCaption]) -> Mask:
    """The zones of captions: nothing outside of them changes when they are set anew."""
    mask: Mask = np.zeros((size[1], size[0]), bool)
    for caption in captions:
        left, top, right, bottom = caption.ink.zone
        mask[top:bottom, left:right] = True
    return mask


def mask_pictures(image: Image.Image, page: Page) -> Mask:
    """What may be repainted: panels, but no gutters, and no bars and bubbles with captions."""
    width, height = page.size
    mask: Mask = np.zeros((height, width), bool)
    for panel in page.panels:
        left, top = round(panel.left * width), round(panel.top * height)
        mask[top : round(panel.bottom * height), left : round(panel.right * width)] = True
    pixels: Pixels = np.asarray(image.convert("RGB"))
    for caption in page.captions:
        if caption.lettering.kind != "overlay":
            ground = Image.fromarray(find_plain_ground(pixels, caption.ink)).resize(page.size)
            # A plain ground that is most of the picture is no bar: stickers stand on white.
            if np.asarray(ground).mean() >= 0.4:
                continue
            mask &= ~np.asarray(ground)
            left, top, right, bottom = caption.ink.zone
            mask[top:bottom, left:right] = False
    return mask


def restore_ink(
    image: Image.Image, source: Image.Image, captions: Iterable[LetteredCaption]
) -> Image.Image:
    """Put the letters of captions that stay back on a picture that was repainted."""
    import cv2

    pixels: Pixels = np.array(image.convert("RGB"))
    old: Pixels = np.asarray(source.convert("RGB"))
    for caption in captions:
        left, top, right, bottom = caption.ink.zone
        letters = cv2.dilate(caption.ink.mask.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        pixels[top:bottom, left:right][letters] = old[top:bottom, left:right][letters]
    return Image.fromarray(pixels)
