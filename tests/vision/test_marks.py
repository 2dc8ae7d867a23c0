"""Borders stay, punctuation goes with its caption, and what belongs to the scene is no caption."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw

from memantics.core.lines import TextLine
from memantics.understanding.vision.page import erase_captions, read_page, set_caption
from memantics.understanding.vision.segmentation import find_marks
from memantics.understanding.vision.typesetting import fit_text
from tests.vision.pictures import BALOO, Print, as_jpeg, blank, photo, print_on

BLACK = Print("NO MORE MEETINGS", 240, 120, 40, BALOO, fill="black", stroke=0)


def boxed(gap: int, *, round_box: bool = False, jpeg: bool = False) -> tuple[Image.Image, TextLine]:
    """A label on a photograph: a frame of 3 pixels, ``gap`` pixels away from its text."""
    image = photo()
    (line,) = print_on(blank(), BLACK)
    left, top, right, bottom = line.box
    frame = (left - gap, top - gap, right + gap, bottom + gap)
    pen = ImageDraw.Draw(image)
    if round_box:
        pen.rounded_rectangle(frame, 18, fill="white", outline="black", width=3)
    else:
        pen.rectangle(frame, fill="white", outline="black", width=3)
    print_on(image, BLACK)
    return (as_jpeg(image) if jpeg else image), line


def share_of_frame(image: Image.Image, line: TextLine, gap: int) -> float:
    """How much of the straight parts of the frame is dark."""
    left, top, right, bottom = line.box
    pixels = np.asarray(image.convert("L"))
    rows = pixels[[top - gap + 1, bottom + gap - 1], left + 20 : right - 20]
    return float((rows < 90).mean())


@pytest.mark.parametrize("jpeg", [False, True])
@pytest.mark.parametrize(
    ("gap", "round_box"),
    [(0, False), (2, False), (5, False), (5, True), (12, False), (12, True), (20, True)],
)
def test_the_border_of_a_box_is_neither_erased_nor_crossed(
    gap: int, round_box: bool, jpeg: bool
) -> None:
    image, line = boxed(gap, round_box=round_box, jpeg=jpeg)
    (caption,) = read_page(image, [line]).captions
    left, top, right, bottom = line.box
    inner = (left - gap + 2, top - gap + 2, right + gap - 2, bottom + gap - 2)
    box = caption.ink.box
    assert (inner[0] <= box[0], inner[1] <= box[1]) == (True, True)
    assert (box[2] <= inner[2], box[3] <= inner[3]) == (True, True)
    plate = erase_captions(image, [caption])
    assert share_of_frame(plate, line, gap) > 0.95
    middle = np.asarray(plate.convert("L"))[top + 8 : bottom - 8, left + 20 : right - 20]
    assert float((middle < 128).mean()) < 0.002
    made, _ = set_caption(plate, caption, "FEWER, SHORTER ONES")
    assert share_of_frame(made, line, gap) > 0.95


@pytest.mark.parametrize("sign", ["!", "?", "…", "!!", ".", "。"])
def test_punctuation_that_was_not_read_is_erased(sign: str) -> None:
    image = blank(colour="white")
    face = BALOO if sign != "。" else replace(BALOO, file="NotoSansSC-Regular-subset.otf")
    whole = replace(BLACK, text="NO MORE MEETINGS" + sign, face=face)
    (full,) = print_on(image, whole)
    bare = blank(colour="white")
    (line,) = print_on(bare, replace(whole, text="NO MORE MEETINGS"))
    shift = full.box[0] - line.box[0]
    cut = TextLine(
        "NO MORE MEETINGS", (full.box[0], full.box[1], line.box[2] + shift - 6, full.box[3])
    )
    assert find_marks(np.asarray(image), cut)
    (caption,) = read_page(image, [cut]).captions
    plate = np.asarray(erase_captions(image, [caption]).convert("L"))
    assert int((plate < 128).sum()) == 0


def test_a_thing_of_another_colour_or_far_away_is_no_punctuation() -> None:
    image = blank(colour="white")
    (line,) = print_on(image, BLACK)
    pen = ImageDraw.Draw(image)
    x, y = line.box[2], (line.box[1] + line.box[3]) // 2
    pen.ellipse((x + 4, y - 8, x + 20, y + 8), fill="red")
    assert find_marks(np.asarray(image), line) == []
    pen.rectangle((x + 45, y - 12, x + 50, y + 12), fill="black")
    assert find_marks(np.asarray(image), line) == []
    pen.rectangle((0, y - 2, line.box[0] - 6, y + 2), fill="black")  # a line that comes from afar
    assert find_marks(np.asarray(image), line) == []


def test_heavier_letters_are_set_heavier() -> None:
    thin, thick = blank(colour="white"), blank(colour="white")
    plain = read_page(thin, print_on(thin, BLACK)).captions[0].lettering
    bold = replace(BLACK, stroke=2, outline="black")
    heavy = read_page(thick, print_on(thick, bold)).captions[0].lettering
    assert plain.weight == 0
    assert 1.0 <= heavy.weight <= 2.6


def test_the_outline_shrinks_with_the_letters() -> None:
    image = blank(600, 360)
    lines = print_on(image, Print("SHORT", 300, 100, 90, stroke=5))
    (caption,) = read_page(image, lines).captions
    text = "a bit longer"
    setting = fit_text(text, caption.lettering, caption.ink.box)
    assert setting.size < 0.8 * caption.lettering.size
    made, _ = set_caption(erase_captions(image, [caption]), caption, text)
    dark = np.asarray(made.convert("L")) < 60
    ruled = np.asarray(image.convert("L")) < 60
    assert dark.sum() < 1.25 * ruled.sum()
