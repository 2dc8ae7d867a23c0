"""Forms of every kind that tasks use, and images to go with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from memantics.core.records import Field, Form, Image, Message, Option, Request
from memantics.workbench.embedded import PhoneticReader
from tests.encoders import GramEncoder

READER = PhoneticReader(GramEncoder())  # loads its words at first use, once for all tests


def draw(path: Path, text: str, size: tuple[int, int] = (480, 320)) -> Path:
    """A plain picture with a caption in the font that ships with Pillow (Latin letters)."""
    picture = Pillow.new("RGB", size, "white")
    pen = ImageDraw.Draw(picture)
    pen.ellipse((size[0] // 3, size[1] // 3, size[0] // 2, size[1] // 2), fill="orange")
    for row, line in enumerate(text.splitlines()):
        pen.text((24, 20 + row * 56), line, fill="black", font=ImageFont.load_default(size=40))
    picture.save(path)
    return path


def choice(name: str, *texts: str, keys: Sequence[str] = ()) -> Field:
    return Field(
        name, "choice", tuple(Option(key, t) for key, t in zip(keys or texts, texts, strict=True))
    )


def ask(form: Form, *images: Path) -> Request:
    return Request((Message("user", (*(Image(path) for path in images), form.question)),), form)


LETTERED = Form(
    "What does the caption say?",
    (choice("answer", "None of the others", "a red car", "a tired cat", "tax law", keys="ABCD"),),
)
PUN = Form("这张表情包是不是双关？", (choice("label", "双关", "非双关"),), language="zh")
HARM = Form("Is this meme harmful?", (choice("label", "harmful", "not harmful"),))
SENTIMENT = Form(
    "判断情感",
    (choice("情感指向对象", "自己", "他人", "双方"), choice("情感类别", "正面", "中性", "负面")),
    language="zh",
    reply="json",
)
INTENT = Form("What does the meme want to say?", (Field("intent", "text"),), reply="text")
EMOTIONS = ("angry", "sad", "tense", "bored", "calm", "happy", "excited", "relaxed", "other")
JUDGE = Form(
    "Judge the edited meme.",
    (
        Field("visual_assessment.rationale", "text"),
        Field("visual_assessment.generation_quality_1_5", "integer", low=1, high=5),
        Field("visual_assessment.emotion_accuracy_1_5", "integer", low=1, high=5),
        Field("layout_consistency.consistent", "boolean"),
        choice("overall_emotion.label", *EMOTIONS),
        Field("overall_emotion.other_emotion", "text"),
        Field("perceived_emotion_shift.magnitude_1_5", "integer", low=1, high=5),
    ),
    reply="json",
    context={"source_emotion": "sad", "target_emotion": "happy", "target_caption": "GREAT DAY"},
)
