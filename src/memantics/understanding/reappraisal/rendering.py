"""Third reappraisal stage: repaint the image inside its mask, draw captions, check the result.

The checks of panels, caption positions, pixels and OCR text need no model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

import numpy as np
from PIL import Image, ImageDraw

from memantics.core.errors import ImageError, InputError, Rejected
from memantics.core.images import decode, encode_png
from memantics.core.lines import TextLine
from memantics.core.model import Editor, EditRequest
from memantics.understanding.reappraisal.grading import NAME as EMBEDDED
from memantics.understanding.reappraisal.messages import say
from memantics.understanding.reappraisal.records import (
    CaptionCheck,
    EditChecks,
    KinderVersion,
    ReappraisalPlan,
    SourceEmotion,
)
from memantics.understanding.vision.colours import Mask, Pixels
from memantics.understanding.vision.drawing import (
    compare_ghost,
    compare_outlines,
    find_remains,
    is_clipped,
    measure_smear,
)
from memantics.understanding.vision.fidelity import compare_lettering, find_damage, find_strokes
from memantics.understanding.vision.hashes import compare_pictures, measure_change
from memantics.understanding.vision.ink import Ink
from memantics.understanding.vision.page import (
    LetteredCaption,
    MemeStructure,
    erase_captions,
    mask_captions,
    mask_pictures,
    restore_ink,
    set_caption,
    set_on_box,
)
from memantics.understanding.vision.panels import Region, count_panels
from memantics.understanding.vision.regions import (
    CaptionBlock,
    PixelBox,
    has_chinese,
    measure_overlap,
)
from memantics.understanding.vision.typefaces import BALOO, find_missing
from memantics.understanding.vision.typesetting import fit_text

LEGIBLE = 0.8  # minimum proportion read back by OCR; else the caption is drawn again
# maximum change of a colour channel (0 to 255) in a kept pixel; colour grading changes less
_KEPT = 60
_UNTOUCHED = 0.02  # proportion of changed editable pixels below which the image counts as unchanged
_FACES = re.compile(
    r"\bfac(?:e|es|ial)\b|\bsmil|\bmouths?\b|\beyes?\b|\bexpressions?\b|\bfrown|[脸笑嘴眼]|表情",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class MadeMeme:
    """A result: the drawn image, its OCR text and the name of the editor, if any.

    ``faces`` counts the faces to repaint; None if none were searched.
    """

    drawn: DrawnMeme
    lines: Sequence[TextLine]
    editor: str | None = None
    faces: int | None = None


def check_result(
    source: Image.Image, page: MemeStructure, plan: ReappraisalPlan, made: MadeMeme
) -> EditChecks:
    """Compare a result with its source and its plan."""
    drawn, lines = made.drawn, made.lines
    before, after = np.asarray(source.convert("RGB")), np.asarray(drawn.image.convert("RGB"))
    plate = np.asarray(drawn.plate.convert("RGB"))
    captions = []
    for region, (caption, text) in list_changes(page, plan).items():
        others = [other.ink.box for other in page.captions if other is not caption]
        again = np.asarray(_set_again(drawn.plate, caption))
        caption_lines = [line for line in lines if _lies_in(line.box, caption.ink.zone)]
        seen = CaptionBlock(tuple(caption_lines)).box if caption_lines else (0, 0, 0, 0)
        said = "".join(line.text for line in caption_lines)
        captions.append(
            CaptionCheck(
                region=region,
                planned=text,
                overlap=round(compare_boxes(caption.block.box, seen), 4),
                ink_overlap=round(compare_boxes(caption.ink.box, drawn.boxes[region]), 4),
                read=round(measure_reading(text, said), 4),
                border=round(_share_of_border(before, after, caption.ink), 4),
                leftover=len(find_strokes(before, plate, caption.ink, others))
                + find_remains(plate, caption.ink),
                background_box=region in drawn.boxed,
                lettering=round(compare_lettering(before, plate, again, caption.ink), 4),
                size=round(drawn.sizes.get(region, 1.0), 4),
                outline=round(compare_outlines(before, again, caption.ink), 4),
                ghost=round(compare_ghost(before, plate, caption.ink), 4),
                smear=round(measure_smear(before, plate, caption.ink), 4),
                clipped=is_clipped(drawn.boxes[region], caption.ink.box, page.size),
            )
        )
    inside = round(measure_change(source, drawn.image, drawn.allowed), 6)
    return EditChecks(
        panels_before=len(page.panels),
        panels_after=count_panels(drawn.image),
        captions=captions,
        changed_outside=round(measure_change(source, drawn.image, ~drawn.allowed), 6),
        changed_inside=inside,
        distance=compare_pictures(source, drawn.image),
        notes=[*_tell_visual(made, inside), *_tell_hand(page, plan)],
        damage=round(find_damage(before, after, drawn.allowed), 4),
    )


def _set_again(plate: Image.Image, caption: LetteredCaption) -> Image.Image:
    """Redraw the old text in the measured text style; a full square replaces missing glyphs."""
    face = caption.lettering.face
    text = caption.text
    for sign in find_missing(face, text) if has_chinese(text) else "":
        text = text.replace(sign, "国")
    try:
        return set_caption(plate, caption, text)[0]
    except InputError:
        return plate


def _tell_visual(made: MadeMeme, changed: float) -> Iterator[str]:
    """Report which part of the image instruction was followed."""
    editor = made.editor
    if made.faces == 0:
        yield say("no_face")
    elif made.faces:
        yield say("faces", count=made.faces)
    elif editor is None:
        yield say("captions_only")
    elif editor == EMBEDDED:
        yield say("colours_only")
    elif changed < _UNTOUCHED:
        yield say("not_followed")


def _tell_hand(page: MemeStructure, plan: ReappraisalPlan) -> Iterator[str]:
    """List captions in handwriting, which the available fonts cannot reproduce."""
    found = [
        list_change
        for list_change, (old, _) in list_changes(page, plan).items()
        if old.lettering.hops
    ]
    if found:
        yield say("handwriting", regions=", ".join(found))


def tell_mood(plan: ReappraisalPlan) -> Iterator[str]:
    """Report that faces were not compared with the new captions."""
    if _FACES.search(plan.visual):
        yield say("faces_unchecked")


def _share_of_border(before: Pixels, after: Pixels, ink: Ink) -> float:
    if not ink.borders.any():
        return 1.0
    left, top, right, bottom = ink.zone
    old, new = (each[top:bottom, left:right][ink.borders].astype(int) for each in (before, after))
    return float((np.abs(old - new).max(axis=1) <= _KEPT).mean())


def compare_boxes(one: PixelBox, other: PixelBox) -> float:
    """Compute the intersection over union of two boxes in pixels.

    >>> compare_boxes((0, 0, 10, 10), (0, 0, 10, 5))
    0.5
    """
    return measure_overlap(Region(*one), Region(*other))


def measure_reading(planned: str, read: str) -> float:
    """Return the proportion of a text that OCR read in one piece, ignoring case.

    >>> measure_reading("So am I!", "SOAMI"), measure_reading("half full", "half fu11")
    (1.0, 0.75)
    """
    one, other = _strip(planned), _strip(read)
    if not one:
        return 1.0
    match = SequenceMatcher(None, one, other, autojunk=False).find_longest_match()
    return match.size / len(one)


def _strip(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]+", "", folded)


def _lies_in(box: PixelBox, zone: PixelBox) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return zone[0] <= x <= zone[2] and zone[1] <= y <= zone[3]


_GAP = 12
_STRIP = 40
_PAPER, _INK = (247, 245, 240), (43, 36, 64)


@dataclass(frozen=True, slots=True)
class DrawnMeme:
    """A drawn meme: ``boxes`` of the new captions, and the ``allowed`` area of change.

    ``plate`` is the old image without the changed captions. ``boxed`` names the regions whose
    captions are on background boxes; ``sizes`` are new letter sizes relative to the old ones.
    """

    image: Image.Image
    boxes: dict[str, PixelBox]
    allowed: Mask
    plate: Image.Image
    boxed: frozenset[str] = frozenset()
    sizes: dict[str, float] = field(default_factory=dict)


def list_changes(
    page: MemeStructure, plan: ReappraisalPlan
) -> dict[str, tuple[LetteredCaption, str]]:
    """List the captions with a new text, by region; changes of spaces do not count."""
    return {
        str(number): (caption, plan.captions[str(number)])
        for number, caption in enumerate(page.captions, 1)
        if "".join(plan.captions[str(number)].split()) != "".join(caption.text.split())
    }


@dataclass(frozen=True, slots=True)
class Painted:
    """The image without the changed captions; ``allowed`` is the area that may change.

    ``plate`` is the same image without the editor's changes.
    """

    image: Image.Image
    allowed: Mask
    plate: Image.Image


async def paint_meme(
    image: Image.Image,
    page: MemeStructure,
    plan: ReappraisalPlan,
    editor: Editor | None = None,
    faces: tuple[PixelBox, ...] = (),
) -> Painted:
    """Remove the changed captions, and let an editor repaint the image."""
    changed = [caption for caption, _ in list_changes(page, plan).values()]
    allowed = mask_captions(page.size, changed)
    plate = erase_captions(image, changed)
    if editor is None:
        return Painted(plate, allowed, plate)
    painted, mask = await _repaint(image, page, plan, editor, faces)
    made = Image.fromarray(np.where(mask[..., None], np.asarray(painted), np.asarray(plate)))
    stay = [caption for caption in page.captions if caption not in changed]
    return Painted(restore_ink(made, image, stay), allowed | mask, plate)


def set_captions(
    painted: Painted, page: MemeStructure, plan: ReappraisalPlan, boxed: Collection[str] = ()
) -> DrawnMeme:
    """Draw all new captions; those of the regions ``boxed`` on background boxes."""
    made, boxes, sizes = painted.image, {}, {}
    for region, (caption, text) in list_changes(page, plan).items():
        draw = set_on_box if region in boxed else set_caption
        made, boxes[region] = draw(made, caption, text)
        style = caption.lettering
        sizes[region] = fit_text(text, style, caption.ink.room).size / style.size
    return DrawnMeme(made, boxes, painted.allowed, painted.plate, frozenset(boxed), sizes)


async def _repaint(
    image: Image.Image,
    page: MemeStructure,
    plan: ReappraisalPlan,
    editor: Editor,
    faces: tuple[PixelBox, ...],
) -> tuple[Image.Image, Mask]:
    """Let an editor repaint the image without captions; only the masked area is used."""
    mask = mask_pictures(image, page)
    plate = erase_captions(image, page.captions)
    request = EditRequest(
        encode_png(plate),
        encode_png(Image.fromarray((mask * 255).astype(np.uint8))),
        f"{plan.visual} {plan.keep} The feeling must become {plan.target}. Add no text.",
        plan.target,
        captions=tuple(caption.ink.zone for caption in page.captions),
        panels=tuple(_list_panels(page, plan)),
        faces=faces,
    )
    try:
        painted = decode(await editor.edit(request), f"{editor.name} output")
    except ImageError as error:
        raise Rejected(f"{editor.name} returned no usable image: {error}") from error
    if painted.size != image.size:
        painted = painted.resize(image.size, Image.Resampling.LANCZOS)
    return painted, mask


def _list_panels(page: MemeStructure, plan: ReappraisalPlan) -> Iterator[PixelBox]:
    """List the boxes of the panels whose captions change."""
    changed = {caption.block.panel for caption, _ in list_changes(page, plan).values()}
    width, height = page.size
    for number, panel in enumerate(page.panels):
        if number in changed:
            yield (
                round(panel.left * width),
                round(panel.top * height),
                round(panel.right * width),
                round(panel.bottom * height),
            )


def show_both(
    before: Image.Image, after: Image.Image, emotion: SourceEmotion, plan: ReappraisalPlan
) -> Image.Image:
    """Draw the source and the result side by side, with their emotions."""
    return _lay_out([(before, f"before: {emotion}"), (after, f"after: {plan.target}")], 720, 2)


def show_versions(
    before: Image.Image, pictures: Sequence[Image.Image], versions: Sequence[KinderVersion]
) -> Image.Image:
    """Draw the contact sheet: the source and its versions with numbers and failed checks."""
    labels = (
        f"{one.number}"
        + (f": flawed ({', '.join(sorted({f.check for f in flaws}))})" if flaws else "")
        for one in versions
        for flaws in [one.checks.flaws]
    )
    return _lay_out([(before, "original"), *zip(pictures, labels, strict=True)], 480, 3)


def _lay_out(shown: Sequence[tuple[Image.Image, str]], side: int, columns: int) -> Image.Image:
    """Arrange images of one size in rows, each with a label above it."""
    first = shown[0][0]
    scale = min(1.0, side / max(first.size))
    width, height = (max(1, round(length * scale)) for length in first.size)
    rows = -(-len(shown) // columns)
    across = min(columns, len(shown)) * (width + _GAP) + _GAP
    sheet = Image.new("RGB", (across, rows * (height + _STRIP) + _GAP), _PAPER)
    pen = ImageDraw.Draw(sheet)
    for place, (picture, label) in enumerate(shown):
        left = _GAP + place % columns * (width + _GAP)
        top = place // columns * (height + _STRIP) + _STRIP
        small = picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
        sheet.paste(small, (left, top))
        pen.text((left, top - _STRIP / 2), label, fill=_INK, font=BALOO.at(24), anchor="lm")
    return sheet
