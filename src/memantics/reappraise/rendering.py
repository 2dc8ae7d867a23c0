"""Stage three: the picture repainted inside of its mask, and captions set in their old places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from memantics.core.editor import Editor, EditRequest
from memantics.core.errors import ImageError, Rejected
from memantics.core.images import decode, encode_png
from memantics.reappraise.records import Emotion, ReappraisalPlan
from memantics.vision.ink import Mask
from memantics.vision.page import (
    Caption,
    Page,
    erase_captions,
    mask_captions,
    mask_pictures,
    restore_ink,
    set_caption,
)
from memantics.vision.regions import PixelBox
from memantics.vision.typefaces import BALOO

_GAP = 12
_STRIP = 40
_PAPER, _INK = (247, 245, 240), (43, 36, 64)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A new meme: ``boxes`` are those of new captions' ink, ``allowed`` all that may differ."""

    image: Image.Image
    boxes: dict[str, PixelBox]
    allowed: Mask


def list_changes(page: Page, plan: ReappraisalPlan) -> dict[str, tuple[Caption, str]]:
    """The captions that get another text, by region."""
    return {
        str(number): (caption, plan.captions[str(number)])
        for number, caption in enumerate(page.captions, 1)
        if plan.captions[str(number)].strip() != caption.text
    }


async def draw_meme(
    image: Image.Image, page: Page, plan: ReappraisalPlan, editor: Editor | None = None
) -> Drawn:
    """Make the new meme; without an editor only captions change."""
    changes = list_changes(page, plan)
    changed = [caption for caption, _ in changes.values()]
    allowed = mask_captions(page.size, changed)
    if editor is None:
        made = erase_captions(image, changed)
    else:
        painted, mask = await _repaint(image, page, plan, editor)
        rest = np.asarray(erase_captions(image, changed))
        made = Image.fromarray(np.where(mask[..., None], np.asarray(painted), rest))
        allowed |= mask
        stay = [caption for caption in page.captions if caption not in changed]
        made = restore_ink(made, image, stay)
    boxes = {}
    for region, (caption, text) in changes.items():
        made, boxes[region] = set_caption(made, caption, text)
    return Drawn(made, boxes, allowed)


async def _repaint(
    image: Image.Image, page: Page, plan: ReappraisalPlan, editor: Editor
) -> tuple[Image.Image, Mask]:
    """Let an editor repaint the picture without captions; only what is in the mask counts."""
    mask = mask_pictures(image, page)
    plate = erase_captions(image, page.captions)
    request = EditRequest(
        encode_png(plate),
        encode_png(Image.fromarray((mask * 255).astype(np.uint8))),
        f"{plan.visual} {plan.keep} The feeling must become {plan.target}. Add no text.",
        plan.target,
        captions=tuple(caption.ink.zone for caption in page.captions),
    )
    try:
        painted = decode(await editor.edit(request), f"{editor.name} output")
    except ImageError as error:
        raise Rejected(f"{editor.name} gave no usable picture: {error}") from error
    if painted.size != image.size:
        painted = painted.resize(image.size, Image.Resampling.LANCZOS)
    return painted, mask


def show_both(
    before: Image.Image, after: Image.Image, emotion: Emotion, plan: ReappraisalPlan
) -> Image.Image:
    """Both pictures side by side, with the two emotions above them."""
    scale = min(1.0, 720 / max(before.size))
    size = (max(1, round(before.width * scale)), max(1, round(before.height * scale)))
    sheet = Image.new("RGB", (2 * size[0] + 3 * _GAP, size[1] + _STRIP + _GAP), _PAPER)
    pen = ImageDraw.Draw(sheet)
    for place, (picture, label) in enumerate(
        ((before, f"before: {emotion}"), (after, f"after: {plan.target}"))
    ):
        left = _GAP + place * (size[0] + _GAP)
        sheet.paste(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS), (left, _STRIP))
        pen.text((left, _STRIP / 2), label, fill=_INK, font=BALOO.at(24), anchor="lm")
    return sheet
