"""A whole new meme in one step, as tests need it."""

from __future__ import annotations

from PIL import Image

from memantics.core.model import Editor
from memantics.understanding.reappraisal.records import ReappraisalPlan
from memantics.understanding.reappraisal.rendering import DrawnMeme, paint_meme, set_captions
from memantics.understanding.vision.page import MemeStructure


async def draw_meme(
    image: Image.Image, page: MemeStructure, plan: ReappraisalPlan, editor: Editor | None = None
) -> DrawnMeme:
    """Make the new meme; without an editor only captions change."""
    return set_captions(await paint_meme(image, page, plan, editor), page, plan)
