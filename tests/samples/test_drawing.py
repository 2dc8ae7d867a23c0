"""Drawing: the committed pictures come from the code, and texts stay inside their space."""

from __future__ import annotations

import pytest
from PIL import ImageChops, ImageStat
from sample_data.draw.canvas import Canvas, grid
from sample_data.draw.creatures import shade
from sample_data.draw.letters import bubble, overlay, sign
from sample_data.draw.people import Looks
from sample_data.scenes import read_word
from sample_data.sheets import feel, find_memes, read_ask, read_knowledge

from memantics.core import images
from memantics.core.samples import image_path, read_samples

DECLARED = {meme.id: meme for meme in find_memes()}


def test_all_declared_memes_are_committed() -> None:
    assert sorted(DECLARED) == [meme.id for meme in read_samples()]


@pytest.mark.parametrize("name", ["en-002", "en-013", "CN90001", "zh-001"])
def test_redrawing_gives_the_committed_picture_and_record(name: str) -> None:
    canvas = DECLARED[name].draw()
    committed = images.load(image_path(name))
    drawn = canvas.finish().convert("RGB")
    assert drawn.size == committed.size
    # Other versions of Pillow and FreeType move edges by a shade; the picture must be the same.
    difference = ImageStat.Stat(ImageChops.difference(drawn, committed))
    assert max(difference.mean) < 2
    record = DECLARED[name].record(canvas)
    assert record == next(meme for meme in read_samples() if meme.id == name)


def test_the_same_drawing_gives_the_same_bytes() -> None:
    draw = DECLARED["en-006"].draw
    assert draw().png() == draw().png()


def test_texts_are_noted_with_their_panel_and_style() -> None:
    left, right = Canvas(320, 320), Canvas(320, 320)
    overlay(left, "One\ntwo", "top")
    bubble(right, "Three", (20, 20, 200, 100), (100, 200))
    whole = grid([left, right])
    assert [(p.text, p.style, p.panel) for p in whole.printed] == [
        ("One two", "overlay", 0),
        ("Three", "bubble", 1),
    ]
    assert (whole.width, whole.height, whole.panels) == (648, 320, 2)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["word " * 400, "字" * 900])
def test_a_text_that_cannot_fit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        sign(Canvas(640, 640), text, (10, 10, 120, 60))


@pytest.mark.parametrize(
    "text", ["Short", "A much longer caption with many more words", "这是一句中文，带标点！"]
)
def test_captions_stay_inside_the_picture(text: str) -> None:
    canvas = Canvas(640, 640, "#ffffff")
    overlay(canvas, text, "bottom")
    dark = canvas.image.convert("L").point(lambda v: 255 if v < 128 else 0).getbbox()
    assert dark is not None
    left, top, right, bottom = dark
    assert left > 0
    assert right < canvas.image.width
    assert bottom < canvas.image.height
    assert top > canvas.image.height * 0.6


def test_shades() -> None:
    assert shade("#808080", 0.5) == "#404040"
    assert shade("#808080", 1.5) == "#c0c0c0"


def test_questions_are_shuffled_the_same_way_each_time() -> None:
    lines = ("What?", "- a", "- b", "- c", "! why")
    first = read_ask("en-001", "Scene", lines)
    assert first == read_ask("en-001", "Scene", lines)
    assert first.options[first.answer] == "None of the others"
    assert sorted(first.options) == ["None of the others", "a", "b", "c"]


def test_votes_give_the_majority() -> None:
    assert feel("self-neutral other-negative other-negative").target == "other"
    assert feel("both-positive").votes == ("both-positive",) * 3


def test_the_short_notation_is_unfolded() -> None:
    lines = ("Where?", "- a", "+ b", "- c", "! because", "@ S/room V/cat")
    ask = read_ask("en-001", "Scene", lines)
    assert sorted(ask.options) == ["None of the others", "a", "b", "c"]
    assert ask.options[ask.answer] == "b"
    assert ask.related == ("Scene/room", "VisualMaterial/cat")
    found = read_knowledge("T said | words | Hello\nV cat | cat | A cat\nS room | room | A room")
    assert found[2].relations[0].target == "VisualMaterial/cat"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("-3", -3),
        ("2.0", 2.0),
        ("1,2,3,4", (1, 2, 3, 4)),
        ("0,-1;2.5,3", [(0, -1), (2.5, 3)]),
        ("false", False),
        ("none", None),
        ("1 + 1 = 2", "1 + 1 = 2"),
        ("7:00. Five more", "7:00. Five more"),
        ("two\\nlines", "two\nlines"),
        ("looks:hair=bun,glasses=true", Looks(hair="bun", glasses=True)),
    ],
)
def test_the_words_of_a_scene_are_read(word: str, value: object) -> None:
    assert read_word(word) == value
    assert type(read_word(word)) is type(value)
