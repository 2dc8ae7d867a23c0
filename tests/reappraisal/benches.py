"""A drawn meme with a known reading, and workshops that need no OCR."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image

from memantics.core.lines import TextLine
from memantics.core.memes import Meme
from memantics.core.model import Editor, Taken
from memantics.core.records import Request
from memantics.models.embedded.ocr import RapidReader, RememberingOcr
from memantics.models.fake import ScriptedReply
from memantics.understanding.editing import line_reader
from memantics.understanding.reappraisal.records import (
    PAIRS,
    MemeFeeling,
    ReappraisalPlan,
    TargetEmotion,
)
from memantics.understanding.reappraisal.stages import Planner, ReappraisalSubject
from memantics.understanding.reappraisal.workshop import StageReview, Workshop
from memantics.understanding.vision.page import MemeStructure, read_page
from tests.vision.pictures import Print, blank, print_on

TOP, LOW = "MY PHONE IS AT ONE PERCENT", "I PANIC"
FEELING = {
    "emotion": "tense",
    "description": "A phone with a nearly empty battery looks worried.",
    "visual_type": "Cartoon_Anime",
    "polarity": "Negative",
}
PLAN: dict[str, object] = {
    "target": "relaxed",
    "captions": {"1": "MY PHONE IS AT ONE PERCENT", "2": "I DRIFT"},
    "visual": "The phone smiles with closed eyes.",
    "keep": "The phone and the wall stay.",
    "scenario": ["phone"],
}


def draw_meme_file(folder: Path, name: str = "phone.png") -> tuple[Path, list[TextLine]]:
    image = blank(600, 400)
    lines = print_on(image, Print(TOP, 300, 50, 44), Print(LOW, 300, 350, 52))
    image.paste("tomato", (250, 150, 350, 250))
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return path, lines


def make_page(folder: Path) -> MemeStructure:
    path, lines = draw_meme_file(folder)
    return read_page(Image.open(path).convert("RGB"), lines)


def make_shop(
    folder: Path,
    planner: Planner,
    lines: list[TextLine],
    editor: Editor | None = None,
    target: TargetEmotion | None = None,
    review: StageReview | None = None,
) -> Workshop:
    """A workshop in which every source reads the same; results are read by the OCR that ships."""

    def read(data: bytes, name: str) -> Sequence[TextLine]:
        return read_again(data, name) if name.endswith("(new)") else lines

    return Workshop(planner, read, folder / "out", editor, target, review)


@cache
def read_again(data: bytes, name: str) -> Sequence[TextLine]:
    return line_reader(RememberingOcr(RapidReader(), None))(data, name)


def make_meme(path: Path, name: str = "phone") -> Meme:
    return Meme(name, path)


@dataclass(frozen=True, slots=True)
class FixedPlanner:
    """A planner without a model: the last caption becomes ``I DRIFT``."""

    name: str = "fixed"

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        return Taken(subject.id, "answered", MemeFeeling.model_validate(FEELING))

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        texts = [caption.text for caption in subject.page.captions]
        texts[-1:] = ["I DRIFT"] if texts else []
        captions = {str(number): text for number, text in enumerate(texts, 1)}
        plan = PLAN | {"captions": captions, "target": PAIRS[feeling.emotion], "scenario": []}
        return Taken(subject.id, "answered", ReappraisalPlan.model_validate(plan))


MOOD = {"faces": "relaxed", "captions": "relaxed", "fit": True, "reason": "Both are at ease."}
Script = Callable[[Request], ScriptedReply]


def choose(*order: int, topic: str = "none", **faults: str) -> str:
    """A critic's reply: the plans in this order; ``v2="nonsense"`` is a fault of plan 2."""
    versions = [
        {"number": number, "fault": faults.get(f"v{number}", "none"), "why": "it is"}
        for number in order
    ]
    return json.dumps({"topic": topic, "versions": versions, "reason": "The joke is heard."})


def answer(
    feeling: Script | None = None,
    plan: Script | None = None,
    mood: Script | None = None,
    choice: Script | None = None,
) -> Script:
    """A model that answers each stage as told, well by default."""

    def script(request: Request) -> ScriptedReply:
        assert request.schema is not None
        properties = request.schema["properties"]
        assert isinstance(properties, dict)
        if "fit" in properties:
            return mood(request) if mood else json.dumps(MOOD)
        if "topic" in properties:
            return choice(request) if choice else choose(1)
        if "captions" in properties:
            return plan(request) if plan else json.dumps(PLAN)
        return feeling(request) if feeling else json.dumps(FEELING)

    return script
