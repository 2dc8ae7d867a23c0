"""Topics that are never rewritten: the lists, and fifty memes of which none may be done."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from memantics.core.data import toml_beside
from memantics.models.embedded.ocr import open_reader
from memantics.understanding.reappraisal.messages import translate
from memantics.understanding.reappraisal.topics import TOPICS, decline_topic, find_topic
from memantics.understanding.reappraise import TargetEmotion, reappraise
from memantics.understanding.vision.typefaces import ANTON, BLACK, find_face

CAPTIONS: dict[str, dict[str, list[list[str]]]] = toml_beside(__file__, "grave_captions.toml")
LISTED = [row for rows in CAPTIONS["listed"].values() for row in rows]


def draw(path: Path, captions: list[str]) -> Path:
    """Draw captions on a plain background, the first at the top and the second at the bottom."""
    image = Image.new("RGB", (560, 320), "#e4f0dd")
    pen = ImageDraw.Draw(image)
    for text, (y, anchor) in zip(captions, ((24, "ma"), (296, "md")), strict=False):
        face = find_face(text, ANTON if text.isascii() else BLACK)
        size = next(n for n in range(40, 8, -1) if face.at(n).getlength(text) <= 530)
        pen.text((280, y), text, "black", font=face.at(size), anchor=anchor)
    image.save(path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "calm"])
def test_no_meme_about_a_grave_topic_is_done(tmp_path: Path, target: TargetEmotion | None) -> None:
    assert len(LISTED) == 50
    paths = [
        draw(tmp_path / f"{number:02}.png", captions)
        for number, (_, *captions) in enumerate(LISTED)
    ]
    with open_reader() as ocr:
        # A model that is asked fails, and the meme is not declined.
        made = reappraise(paths, model="fake/break", target=target, out=tmp_path / "out", ocr=ocr)
    assert [one.meme for one in made if one.status == "done"] == []
    declined = [one for one in made if one.status == "declined"]
    assert len(declined) == 50
    assert all("are never rewritten" in one.reason for one in declined)


@pytest.mark.parametrize(("topic", "captions"), [(row[0], row[1:]) for row in LISTED])
def test_a_grave_topic_is_found(topic: str, captions: list[str]) -> None:
    assert topic in TOPICS
    assert find_topic(captions) is not None


@pytest.mark.parametrize(
    "captions",
    [["this exam is killing me"], ["my phone died again"], ["累死了"], ["社死现场"], ["秒杀价"]],
)
def test_figurative_words_are_no_topic(captions: list[str]) -> None:
    assert find_topic(captions) is None
    assert decline_topic(captions) == ""


def test_the_reason_names_words_and_topic_in_both_languages() -> None:
    reason = decline_topic(["4 car pile-up", "93 people died"])
    assert reason == "the meme mentions 'died'; memes about deaths are never rewritten"
    assert translate(reason, "zh") == "表情包提到 'died'，涉及死亡，不予改写"


def test_traditional_characters_are_read() -> None:
    assert find_topic(["飛機墜毀在山裡"]) is not None


def test_a_pun_on_a_topic_is_found_by_its_reading() -> None:
    found = find_topic(["我抑郁了"])
    assert found is not None
    assert found.topic == "illness"
