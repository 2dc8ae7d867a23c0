"""Edit a whole image with one instruction and no mask, as in the MER-Bench paper.

The index is MER-Bench's list of requested edits. The masked mode uses the same index: the editor
repaints around the captions, and Memantics draws the captions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from memantics.core.images import decode, encode_png, read_bytes
from memantics.core.model import Editor, EditRequest, Taken
from memantics.core.prompt import read_prompts
from memantics.core.samples import Polarity, VisualType
from memantics.understanding.reappraisal.messages import say
from memantics.understanding.reappraisal.records import (
    MemeFeeling,
    ReappraisalPlan,
    SourceEmotion,
    TargetEmotion,
)
from memantics.understanding.reappraisal.stages import ReappraisalSubject


@dataclass(frozen=True, slots=True)
class EditWish:
    """A row of MER-Bench's index: a meme and the requested edit."""

    id: str
    source_emotion: SourceEmotion
    target_emotion: TargetEmotion
    description: str
    rewritten: str
    plan: str
    visual_type: VisualType
    polarity: Polarity


def write_instruction(wish: EditWish) -> str:
    """Write the editor's instruction for the whole image."""
    prompt = read_prompts(Path(__file__).parent / "prompts")["whole"]
    return prompt.fill(
        source=wish.source_emotion,
        target=wish.target_emotion,
        plan=wish.plan or "as the new caption suggests",
        caption=wish.rewritten,
    )


async def edit_whole(wish: EditWish, image: Path, editor: Editor) -> bytes:
    """Edit a whole image; return a PNG file of the source's size."""
    source = decode(await asyncio.to_thread(read_bytes, image), image.name)
    request = EditRequest(encode_png(source), b"", write_instruction(wish), wish.target_emotion, 0)
    made = decode(await editor.edit(request), f"{wish.id} (edited)").convert("RGB")
    if made.size != source.size:
        made = made.resize(source.size, Image.Resampling.LANCZOS)
    return encode_png(made)


def divide_caption(text: str, sizes: Sequence[int]) -> list[str]:
    r"""Divide a caption among the old captions: by its lines, else by words and old lengths.

    MER-Bench's index has one text for all captions of a meme and does not assign its parts to them.

    >>> divide_caption("when it rains at last", [4, 12])
    ['when', 'it rains at last']
    >>> divide_caption("one\ntwo", [9, 9]), divide_caption("alone", [1, 1])
    (['one', 'two'], ['alone'])
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = text.split()
    if len(lines) == len(sizes) or len(words) < len(sizes):
        return lines
    parts: list[str] = []
    left = sum(sizes)
    for place, size in enumerate(sizes):
        behind = len(sizes) - place - 1
        wanted = round(len(words) * size / left) if left else len(words)
        take = min(max(1, wanted), len(words) - behind)
        parts.append(" ".join(words[:take]))
        words, left = words[take:], left - size
    return parts


@dataclass(frozen=True, slots=True)
class WishPlanner:
    """A planner that returns the edit requested in MER-Bench's index; no model is called."""

    wish: EditWish
    name: str = "index"

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Return the emotion that the row of MER-Bench's index names."""
        wish = self.wish
        feeling = MemeFeeling(
            emotion=wish.source_emotion,
            description=wish.description[:4000] or "not described",
            visual_type=wish.visual_type,
            polarity=wish.polarity,
        )
        return Taken(subject.id, "answered", feeling)

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Divide the requested caption among the captions of the meme."""
        del feeling
        old = [caption.text for caption in subject.page.captions]
        names = [str(number) for number in range(1, len(old) + 1)]
        lines = divide_caption(self.wish.rewritten, [len(text) for text in old])
        if not names or len(lines) != len(names):
            reason = say("lines", lines=len(lines), captions=len(names))
            return Taken(subject.id, "unparsed", None, reason)
        plan = ReappraisalPlan(
            target=self.wish.target_emotion,
            captions=dict(zip(names, lines, strict=True)),
            visual=self.wish.plan[:2000] or "lighter colours",
            keep="everything else",
        )
        return Taken(subject.id, "answered", plan)
