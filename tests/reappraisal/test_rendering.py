"""Stage three on drawn memes: masks, editors that misbehave, checks that can fail."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from pydantic import JsonValue

from memantics.core.errors import Rejected
from memantics.core.lines import TextLine
from memantics.core.model import EditRequest
from memantics.understanding.reappraisal.grading import (
    GRADES,
    EmbeddedEditor,
    draw_sticker,
    find_free_spot,
    grade_picture,
    lift,
)
from memantics.understanding.reappraisal.records import TARGETS, ReappraisalPlan, TargetEmotion
from memantics.understanding.reappraisal.rendering import (
    DrawnMeme,
    MadeMeme,
    check_result,
    measure_reading,
    show_both,
)
from memantics.understanding.vision.hashes import measure_change
from memantics.understanding.vision.page import MemeStructure, read_page
from tests.reappraisal.drawing import draw_meme
from tests.vision.pictures import BALOO, Print, photo, print_on


class Painter:
    """An editor that paints everything in one colour, at a size of its own."""

    name, note = "painter", ""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.requests: list[EditRequest] = []

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        return {"name": self.name}

    async def edit(self, request: EditRequest) -> bytes:
        self.requests.append(request)
        return self.data

    async def close(self) -> None:
        """Nothing is held."""


def flood(colour: str, size: tuple[int, int] = (64, 64)) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "PNG")
    return data.getvalue()


@pytest.fixture
def meme() -> tuple[Image.Image, MemeStructure]:
    """A photograph under a caption bar, with a caption on it."""
    image = photo(480, 480)
    image.paste("white", (0, 0, 480, 80))
    lines = print_on(
        image,
        Print("a caption on a bar", 240, 40, 34, BALOO, "black", "black", 0),
        Print("THE KETTLE IS ANGRY", 240, 430, 44),
    )
    return image, read_page(image, lines)


def make_plan(
    first: str = "a caption on a bar", second: str = "THE KETTLE IS EAGER"
) -> ReappraisalPlan:
    return ReappraisalPlan(
        target="calm", captions={"1": first, "2": second}, visual="Softer.", keep="The kettle."
    )


def test_a_generative_editor_cannot_touch_bars_captions_and_layout(
    meme: tuple[Image.Image, MemeStructure],
) -> None:
    image, page = meme
    painter = Painter(flood("magenta"))
    drawn = asyncio.run(draw_meme(image, page, make_plan(), painter))
    new, old = np.asarray(drawn.image), np.asarray(image)
    assert drawn.image.size == image.size
    assert (new[:70] == old[:70]).all()
    assert tuple(new[200, 200]) == (255, 0, 255)
    assert measure_change(image, drawn.image, ~drawn.allowed) == 0
    # The new caption is legible on whatever was painted: its own fill and outline are there.
    left, top, right, bottom = drawn.boxes["2"]
    ink = new[top:bottom, left:right].reshape(-1, 3)
    assert (ink == (255, 255, 255)).all(axis=1).mean() > 0.2
    assert (ink == (0, 0, 0)).all(axis=1).mean() > 0.1


def test_the_editor_gets_a_picture_without_captions_and_a_mask(
    meme: tuple[Image.Image, MemeStructure],
) -> None:
    image, page = meme
    painter = Painter(flood("gold", image.size))
    asyncio.run(draw_meme(image, page, make_plan(), painter))
    (request,) = painter.requests
    with Image.open(io.BytesIO(request.image)) as sent, Image.open(io.BytesIO(request.mask)) as m:
        plate, mask = np.asarray(sent), np.asarray(m)
    left, top, right, bottom = page.captions[1].ink.box
    white = (plate[top:bottom, left:right] > 245).all(axis=2).mean()
    assert white < 0.03
    assert mask.shape == (480, 480)
    assert mask[40].max() == 0
    assert len(request.captions) == 2
    assert "Softer." in request.instruction
    assert "The kettle." in request.instruction


@pytest.mark.parametrize("data", [b"", b"not a picture", flood("red")[:80]])
def test_a_broken_picture_is_rejected(meme: tuple[Image.Image, MemeStructure], data: bytes) -> None:
    image, page = meme
    with pytest.raises(Rejected, match="returned no usable image"):
        asyncio.run(draw_meme(image, page, make_plan(), Painter(data)))


@pytest.mark.parametrize("target", TARGETS)
def test_grading_changes_colours_and_keeps_black_and_white(target: TargetEmotion) -> None:
    pixels = np.zeros((3, 256, 3), np.uint8)
    pixels[...] = np.arange(256)[None, :, None]
    pixels[1] = pixels[1] * (1.0, 0.5, 0.2)
    graded = grade_picture(pixels, GRADES[target])
    assert (graded[0, 0] == 0).all()
    assert (graded[0, 255] == 255).all()
    assert (graded[1, 128] != pixels[1, 128]).any()


def test_warm_targets_are_warmer_than_calm() -> None:
    grey = np.full((4, 4, 3), 128, np.uint8)
    warmth = {
        target: int(made[0, 0, 0]) - int(made[0, 0, 2])
        for target in TARGETS
        if (made := grade_picture(grey, GRADES[target])) is not None
    }
    assert warmth["happy"] > warmth["relaxed"] > 0 > warmth["calm"]


@pytest.mark.parametrize("target", TARGETS)
def test_stickers_keep_away_from_captions(target: TargetEmotion) -> None:
    image = Image.new("RGB", (400, 300), "skyblue")
    lines = print_on(image, Print("TOP OF THE MORNING", 200, 40, 40))
    lines += print_on(image, Print("END OF THE ROAD", 200, 260, 40))
    page = read_page(image, lines)
    plan = ReappraisalPlan(
        target=target,
        captions={"1": page.captions[0].text, "2": "END OF THE TRIP"},
        visual="x",
        keep="y",
    )
    plain, stuck = (
        asyncio.run(draw_meme(image, page, plan, EmbeddedEditor(sticker=sticker)))
        for sticker in (False, True)
    )
    differs = (np.asarray(plain.image) != np.asarray(stuck.image)).any(axis=2)
    assert differs.any()
    for caption in page.captions:
        left, top, right, bottom = caption.ink.zone
        assert not differs[top:bottom, left:right].any()


def test_a_busy_picture_gets_no_sticker() -> None:
    noise = np.random.default_rng(1).integers(0, 255, (200, 200, 3), dtype=np.uint8)
    assert find_free_spot(noise, np.ones((200, 200), bool)) is None
    assert draw_sticker(Image.new("RGB", (60, 60)), (10, 10, 30), "happy").size == (60, 60)


def test_checks_notice_what_went_wrong(meme: tuple[Image.Image, MemeStructure]) -> None:
    image, page = meme
    plan = make_plan()
    good = asyncio.run(draw_meme(image, page, plan))
    box = page.captions[1].block.box
    read = [TextLine("THE KETTLE IS EAGER", box)]
    fine = check_result(image, page, plan, MadeMeme(good, read))
    assert fine.panels_kept
    assert fine.changed_outside == 0
    assert (fine.captions[0].overlap, fine.captions[0].read) == (1.0, 1.0)
    ruined = image.copy()
    ruined.paste("lime", (0, 100, 240, 300))
    bad = check_result(
        image, page, plan, MadeMeme(DrawnMeme(ruined, good.boxes, good.allowed, good.plate), [])
    )
    assert bad.changed_outside > 0.1
    assert (bad.captions[0].overlap, bad.captions[0].read) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("planned", "read", "share"),
    [
        ("慢慢来，不急", "慢慢来不急", 1.0),
        ("It’s fine!", "ITSFINE", 1.0),
        ("abcd", "abxcd", 0.5),
        ("!!", "", 1.0),
        ("text", "", 0.0),
    ],
)
def test_how_much_was_read(planned: str, read: str, share: float) -> None:
    assert measure_reading(planned, read) == share


def test_both_pictures_are_shown_with_their_emotions(
    meme: tuple[Image.Image, MemeStructure],
) -> None:
    image, _ = meme
    sheet = show_both(image, image, "angry", make_plan())
    assert sheet.width > 2 * image.width
    assert sheet.height > image.height


def test_only_panels_whose_captions_change_get_another_mood() -> None:
    image = Image.new("RGB", (600, 300), "white")
    image.paste("#557799", (0, 0, 296, 300))
    image.paste("#665544", (304, 0, 600, 300))
    lines = print_on(image, Print("ALL IS WELL", 150, 40, 36), Print("I PANIC", 450, 40, 36))
    page = read_page(image, lines)
    assert len(page.panels) == 2
    plan = ReappraisalPlan(
        target="relaxed",
        captions={"1": page.captions[0].text, "2": "I BREATHE"},
        visual="x",
        keep="y",
    )
    drawn = asyncio.run(draw_meme(image, page, plan, EmbeddedEditor()))
    old, new = np.asarray(image), np.asarray(drawn.image)
    assert (old[:, :296] == new[:, :296]).all()
    assert (old[100:, 310:590] != new[100:, 310:590]).any(axis=2).mean() > 0.9


def test_dark_panels_are_lifted_and_light_ones_are_not() -> None:
    dark, light = np.full((8, 3), 40, np.uint8), np.full((8, 3), 200, np.uint8)
    for target in TARGETS:
        grade = GRADES[target]
        assert lift(grade, dark).light > grade.light
        assert lift(grade, light) == grade
        assert lift(grade, np.zeros((8, 3), np.uint8)).light == pytest.approx(1.35 * grade.light)


@pytest.mark.parametrize("target", TARGETS)
def test_stickers_stand_at_an_edge_and_differ_by_target(target: TargetEmotion) -> None:
    pixels = np.full((300, 400, 3), 120, np.uint8)
    spot = find_free_spot(pixels, np.ones((300, 400), bool))
    assert spot is not None
    assert not 0.3 * 400 < spot[0] + spot[2] / 2 < 0.7 * 400
    drawn = draw_sticker(Image.fromarray(pixels), spot, target)
    others = [draw_sticker(Image.fromarray(pixels), spot, each) for each in TARGETS]
    assert sum((np.asarray(drawn) == np.asarray(other)).all() for other in others) == 1
    assert find_free_spot(pixels, np.zeros((300, 400), bool)) is None


@pytest.mark.parametrize(
    ("target", "face", "line_at"),
    [
        ("happy", (255, 214, 84), (0.39, 0.4)),  # eyes that bend upwards
        ("calm", (170, 214, 160), (0.39, 0.515)),  # and down
        ("relaxed", (150, 200, 236), (0.38, 0.45)),  # a dark glass
        ("excited", (255, 176, 92), (0.38, 0.35)),  # the tip of a star
    ],
)
def test_a_sticker_is_a_face_in_its_colour_on_a_light_rim(
    target: TargetEmotion, face: tuple[int, int, int], line_at: tuple[float, float]
) -> None:
    side = 200
    drawn = draw_sticker(Image.new("RGB", (side + 40, side + 20), "teal"), (40, 20, side), target)

    def look(x: float, y: float) -> NDArray[np.int64]:
        return np.asarray(drawn.getpixel((40 + round(x * side), 20 + round(y * side))), np.int64)

    def is_like(x: float, y: float, colour: tuple[int, int, int]) -> bool:
        return bool(np.abs(look(x, y) - colour).max() < 40)

    assert is_like(0.5, 0.77, face), look(0.5, 0.77)
    assert is_like(0.5, 0.845, (255, 250, 236)), "the rim"
    assert is_like(0.29, 0.57, (244, 140, 130)), "a cheek"
    assert is_like(0.71, 0.57, (244, 140, 130)), "the other one"
    assert is_like(*line_at, (43, 36, 64)), look(*line_at)
    assert is_like(0.02, 0.98, (0, 128, 128)), "nothing is drawn beside it"
    assert drawn.getpixel((10, 10)) == (0, 128, 128)
