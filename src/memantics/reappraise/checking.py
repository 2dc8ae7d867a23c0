"""Checks of a result that need no model: panels, places of captions, pixels, and what is read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

from PIL import Image

from memantics.reappraise.records import CaptionCheck, Checks, ReappraisalPlan
from memantics.reappraise.rendering import Drawn, list_changes
from memantics.vision.captions import CaptionBlock, TextLine
from memantics.vision.page import Page
from memantics.vision.panels import count_panels
from memantics.vision.regions import PixelBox, Region, measure_overlap
from memantics.vision.similarity import compare_pictures, share_changed


def check_result(
    source: Image.Image, page: Page, plan: ReappraisalPlan, drawn: Drawn, lines: Sequence[TextLine]
) -> Checks:
    """Compare a result with its source and its plan; ``lines`` are what an OCR reads on it."""
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
            )
        )
    return Checks(
        panels_before=len(page.panels),
        panels_after=count_panels(drawn.image),
        captions=captions,
        changed_outside=round(share_changed(source, drawn.image, ~drawn.allowed), 6),
        changed_inside=round(share_changed(source, drawn.image, drawn.allowed), 6),
        distance=compare_pictures(source, drawn.image),
    )


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
