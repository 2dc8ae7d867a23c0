"""How a new meme came about, for the marks in its file."""

from __future__ import annotations

import asyncio

from memantics.core.credentials import EditStep, Original
from memantics.core.images import read_bytes
from memantics.core.marks import COMPOSITE_WITH_AI, DigitalSource
from memantics.core.memes import Meme
from memantics.core.model import Editor
from memantics.core.stamping import Making, name_system
from memantics.understanding.reappraisal.grading import NAME as EMBEDDED_EDITOR

SHEET_STEP = EditStep("c2pa.edited", "shown beside the original")


async def describe_making(
    meme: Meme, planner: str, editor: Editor | None, *, changed: bool
) -> Making:
    """Describe an edit: the source type follows from who wrote the captions and who painted.

    ``changed`` tells whether captions were rewritten. Captions by a person, on an image that no
    model repainted, make a composite; with a model, it is a composite with AI parts.
    """
    original = Original(meme.image.name, await asyncio.to_thread(read_bytes, meme.image))
    author = name_system(planner)
    painter = name_system(editor.name) if editor else ""
    steps = []
    if changed:
        steps.append(
            EditStep(
                "c2pa.edited",
                f"captions rewritten by {author or planner}",
            )
        )
        steps.append(EditStep("c2pa.drawing", "captions drawn in place of the old ones"))
    if painter:
        steps.append(EditStep("c2pa.edited", f"repainted by {painter}"))
    elif editor is not None:
        steps.append(EditStep("c2pa.color_adjustments", "light and colours changed"))
    source: DigitalSource = "composite"
    if painter or (author and changed):
        source = COMPOSITE_WITH_AI
    elif not changed and editor is not None and editor.name == EMBEDDED_EDITOR:
        source = "algorithmicallyEnhanced"
    systems = dict.fromkeys((author if changed else "", painter))
    return Making(source, tuple(steps), ", ".join(filter(None, systems)), original)
