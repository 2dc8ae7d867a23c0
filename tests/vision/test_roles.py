"""What each line of a picture is: drawn memes are read by the OCR that ships, and told apart."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from memantics.core.lines import ImageReading, TextLine
from memantics.models.embedded.ocr import RapidReader, RememberingOcr
from memantics.understanding.vision import roles
from memantics.understanding.vision.roles import (
    assign_roles,
    choose_roles,
    measure_lines,
    rate_lines,
    read_image_text,
)
from tests.vision.worded import CASES

TITLE = TextLine("WHEN YOU DIVIDE BY ZERO", (20, 10, 580, 70))


def as_png(image: Image.Image) -> bytes:
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def squeeze(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


@pytest.fixture(scope="module")
def ocr() -> RememberingOcr:
    return RememberingOcr(RapidReader(), None)


@pytest.fixture(scope="module")
def quick() -> RememberingOcr:
    return RememberingOcr(RapidReader("fast"), None)


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["ocr", "quick"])
@pytest.mark.parametrize("name", CASES)
def test_captions_are_told_from_the_rest(
    name: str, reader: str, request: pytest.FixtureRequest
) -> None:
    ocr, drawn = request.getfixturevalue(reader), CASES[name]()
    found = read_image_text(ocr, as_png(drawn.image), name, image=drawn.image)
    said = squeeze(found.caption)
    for text in drawn.caption:
        assert squeeze(text) in said, (text, found)
    for line in found.lines:
        for text, role in drawn.others.items():
            if squeeze(line.text) == squeeze(text):
                assert line.role == role, line
    # Scraps of the scene may slip in; most of what is taken is the caption.
    assert len(said) <= 1.15 * len(squeeze("".join(drawn.caption))) + 1, said


def test_all_text_is_the_caption_where_a_person_says_so(ocr: RememberingOcr) -> None:
    drawn = CASES["watermark"]()
    data = as_png(drawn.image)
    assert (
        "memelord" in read_image_text(RememberingOcr(RapidReader(), None, "all"), data, "m").caption
    )
    found = read_image_text(ocr, data, "m")
    assert "memelord" in found.other_text
    assert "memelord" in found.text
    assert found.caption == "MONDAY AGAIN"


def test_the_best_line_is_always_kept() -> None:
    image = Image.new("RGB", (600, 400), "white")
    for text in ("@memelord_99", "9:41", "x"):
        (line,) = assign_roles([TextLine(text, (500, 380, 560, 392), 0.6)], image)
        assert line.role == "caption"
    assert assign_roles([], image) == ()


@pytest.mark.parametrize("text", ["@memelord_99", "imgflip.com", "www.memes.example", "微博 小猫"])
def test_a_small_site_or_account_is_a_watermark(text: str) -> None:
    image = Image.new("RGB", (600, 400), "white")
    at_most, more = TextLine(text, (10, 366, 120, 394)), TextLine(text, (10, 365, 120, 394))
    assert [line.role for line in assign_roles([TITLE, at_most], image)][1] == "watermark"
    assert [line.role for line in assign_roles([TITLE, more], image)][1] != "watermark"


@pytest.mark.parametrize(
    "text",
    ["9:41", "下午 3:05", "87%", "5G", "LTE", "312 likes", "Delivered", "中国移动", "12.5 KB/s"],
)
def test_a_small_status_is_interface(text: str) -> None:
    image = Image.new("RGB", (600, 400), "white")
    small = TextLine(text, (10, 300, 60, 320))
    assert assign_roles([TITLE, small], image)[1].role == "interface"


@pytest.mark.parametrize(
    ("text", "plate"),
    [
        ("A8K 2719", True), ("AB12 XYZ", True), ("沪B·12345", True), ("KL98-4711", True),
        ("TOP 10", False), ("NBA 2023", False), ("IPHONE 15", False), ("A123", False),
        ("A1234", True), ("A1234567", True), ("A12345678", False), ("12345678", False),
    ],
)  # fmt: skip
def test_a_plate_is_scene_however_large_it_is(text: str, plate: bool) -> None:
    image = Image.new("RGB", (600, 400), "white")
    line = TextLine(text, (60, 150, 60 + 45 * len(text), 250))
    said = assign_roles([TITLE, line], image)[1]
    assert ((said.role, said.probability) == ("scene", 0.9)) == plate
    assert assign_roles([line], image)[0].role == "caption"


@pytest.mark.parametrize(
    ("title", "wide", "tiles"),
    [
        ((150, 450), 460, False), ((150, 450), 461, True),
        ((20, 580), 550, False), ((20, 580), 551, True),
    ],
)  # fmt: skip
def test_letters_far_apart_are_tiles(title: tuple[int, int], wide: int, tiles: bool) -> None:
    """In line heights, and beside the likeliest line; alone, or of three letters, not."""
    caption = replace(TITLE, text=19 * "b", box=(title[0], 10, title[1], 70))
    for text in ("东南西北", "n o b a y s u p"):
        line = TextLine(text, (60, 150, 60 + wide, 250))
        said = choose_roles([caption, line], [0.9, 0.8], 400, 0.1)[1]
        assert (said.role, said.probability) == (("scene", 0.9) if tiles else ("caption", 0.8))
        assert choose_roles([line], [0.8], 400, 0.1)[0].role == "caption"
    few = TextLine("东南西", (60, 150, 60 + wide, 250))
    assert choose_roles([caption, few], [0.9, 0.8], 400, 0.1)[1].role == "caption"


@pytest.mark.parametrize(
    ("text", "box", "tiles"),
    [
        ("summer", (347, 175, 464, 201), False),  # wide letters, none of them long
        ("ME SO SAD", (222, 175, 415, 215), False),
        ("GO AHEAD SAY ZOOM MEETING", (92, 175, 548, 205), False),
        ("QWERTY", (60, 175, 360, 215), True),
        ("s u m m e r", (60, 175, 300, 201), True),
    ],
)
def test_wide_letters_are_not_far_apart(
    text: str, box: tuple[int, int, int, int], tiles: bool
) -> None:
    """Boxes as the OCR found them on drawn memes; keys and tiles have more room between letters."""
    caption = TextLine("making plans for", (291, 138, 519, 174))
    line = TextLine(text, box)
    said = choose_roles([caption, line], [0.99, 0.9], 520, 0.1)[1]
    assert said.role == ("scene" if tiles else "caption")


def test_a_clock_time_of_the_captions_size_is_none() -> None:
    image = Image.new("RGB", (600, 400), "white")
    # Below the status bar, and taller than six tenths of the tallest line (60 pixels).
    for height, role in ((36, "interface"), (37, "caption"), (60, "caption")):
        line = TextLine("3:07 AM", (200, 300, 400, 300 + height))
        found = assign_roles([TITLE, line], image)[1].role
        assert (found == "interface") == (role == "interface")


def test_chances_are_rounded_and_features_are_finite() -> None:
    image = Image.new("RGB", (300, 200), "white")
    lines = [TextLine("so", (0, 0, 2, 2), 0.0), TextLine("", (290, 190, 400, 300), 1.0), TITLE]
    table = measure_lines(lines, np.asarray(image))
    assert table.shape == (3, len(roles.FEATURES))
    assert np.isfinite(table).all()
    for chance in rate_lines(table):
        assert chance == round(chance, 5)
        assert 0 <= chance <= 1


def test_a_reading_keeps_every_line() -> None:
    lines = (TITLE, replace(TITLE, text="sin", role="scene"), replace(TITLE, text="and"))
    found = ImageReading(lines)
    assert found.text.split("\n") == ["WHEN YOU DIVIDE BY ZERO", "sin", "and"]
    assert found.caption.split("\n") == ["WHEN YOU DIVIDE BY ZERO", "and"]
    assert found.other_text == "sin"
    letters = [replace(TITLE, text=char, role="scene") for char in "HAT?"]
    assert ImageReading((TITLE, *letters)).other_text == "H\nA\nT"
    assert ImageReading((TITLE, *letters[1:])).other_text == ""
    assert ImageReading((TITLE, *letters[1:])).said == TITLE.text
