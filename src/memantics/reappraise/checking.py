"""Checks of a result that need no model: panels, places of captions, pixels, and what is read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from PIL import Image

from memantics.reappraise.grading import NAME as EMBEDDED
from memantics.reappraise.records import CaptionCheck, Checks, ReappraisalPlan
from memantics.reappraise.rendering import Drawn, list_changes
from memantics.vision.captions import CaptionBlock, TextLine
from memantics.vision.ink import Ink, Pixels
from memantics.vision.marks import find_marks
from memantics.vision.page import Page
from memantics.vision.panels import count_panels
from memantics.vision.regions import PixelBox, Region, measure_overlap
from memantics.vision.similarity import compare_pictures, share_changed

_KEPT = 60  # channels: grading moves colours by less
_UNTOUCHED = 0.02  # of the pixels that an editor may change
_FACES = re.compile(
    r"\bfac(?:e|es|ial)\b|\bsmil|\bmouths?\b|\beyes?\b|\bexpressions?\b|\bfrown|[脸笑嘴眼]|表情",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Made:
    """A result: what was drawn, what an OCR reads on it, and the name of the editor, if any."""

    drawn: Drawn
    lines: Sequence[TextLine]
    editor: str | None = None


def check_result(source: Image.Image, page: Page, plan: ReappraisalPlan, made: Made) -> Checks:
    """Compare a result with its source and its plan."""
    drawn, lines = made.drawn, made.lines
    before, after = np.asarray(source.convert("RGB")), np.asarray(drawn.image.convert("RGB"))
    captions = []
    for region, (caption, text) in list_changes(page, plan).items():
        own = [line for line in lines if _lies_in(line.box, caption.ink.zone)]
        seen = CaptionBlock(tuple(own)).box if own else (0, 0, 0, 0)
        said = "".join(line.text for line in own)
        captions.append(
            CaptionCheck(
                region=region,
                planned=text,
                overlap=round(compare_boxes(caption.block.box, seen), 4),
                ink_overlap=round(compare_boxes(caption.ink.box, drawn.boxes[region]), 4),
                read=round(measure_reading(text, said), 4),
                border=round(_share_of_border(before, after, caption.ink), 4),
                leftover=len(find_marks(after, TextLine(text, drawn.boxes[region]))),
            )
        )
    inside = round(share_changed(source, drawn.image, drawn.allowed), 6)
    return Checks(
        panels_before=len(page.panels),
        panels_after=count_panels(drawn.image),
        captions=captions,
        changed_outside=round(share_changed(source, drawn.image, ~drawn.allowed), 6),
        changed_inside=inside,
        distance=compare_pictures(source, drawn.image),
        notes=list(_tell_visual(plan, made.editor, inside)),
    )


def _tell_visual(plan: ReappraisalPlan, editor: str | None, changed: float) -> Iterator[str]:
    """What became of the plan for the picture, as far as it can be told."""
    if editor is None:
        yield "captions only: the picture was not repainted, as the plan for it asks"
    elif editor == EMBEDDED:
        yield "light and colours only: this editor changes no face and no thing of the plan"
    elif changed < _UNTOUCHED:
        yield "the editor left the picture almost as it was: the plan for it was not followed"
    if _FACES.search(plan.visual):
        yield "the mood of faces was not compared with the captions: nothing here can tell it"


def _share_of_border(before: Pixels, after: Pixels, ink: Ink) -> float:
    if not ink.borders.any():
        return 1.0
    left, top, right, bottom = ink.zone
    old, new = (each[top:bottom, left:right][ink.borders].astype(int) for each in (before, after))
    return float((np.abs(old - new).max(axis=1) <= _KEPT).mean())


def compare_boxes(one: PixelBox, other: PixelBox) -> float:
    """Intersection over union of two boxes in pixels.

    >>> compare_boxes((0, 0, 10, 10), (0, 0, 10, 5))
    0.5
    """
    return measure_overlap(Region(*one), Region(*other))


def measure_reading(planned: str, read: str) -> float:
    """The longest part of a text that was read in one piece, as a share; case does not count.

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
