"""Forty captions in ten styles, set again as they were: the nearest style must be their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from memantics.understanding.vision import page as looks
from memantics.understanding.vision.colours import Pixels
from memantics.understanding.vision.fidelity import compare_lettering
from memantics.understanding.vision.ink import Ink
from memantics.understanding.vision.lettering import Lettering
from memantics.understanding.vision.page import erase_captions, read_page, set_caption
from memantics.understanding.vision.regions import PixelBox
from memantics.understanding.vision.typesetting import TypesetText, fit_text
from tests.vision.pictures import BLACK, REGULAR, Print, blank, photo, print_on

PLAIN = Print("", 240, 290, 46, REGULAR, "black", "black", 0)
BOLD = replace(PLAIN, face=BLACK)
STYLES = {
    "thin black": PLAIN,
    "thin white": replace(PLAIN, fill="white"),
    "bold black": BOLD,
    "bold white": replace(BOLD, fill="white"),
    "bold red": replace(BOLD, fill="#c01818"),
    "bold yellow": replace(BOLD, fill="#ffe000"),
    "white in black": replace(BOLD, fill="white", stroke=4),
    "black in white": replace(BOLD, outline="white", stroke=4),
    "yellow in black": replace(BOLD, fill="#ffe000", stroke=4),
    "pink in white": replace(BOLD, fill="#d0307c", outline="white", stroke=4),
}
TEXTS = ("今晚又失眠了", "你可真会说话", "My phone is dead", "Nobody asked you")
LEAST = 0.86  # of 1


def draw(style: str, text: str) -> tuple[Image.Image, Image.Image]:
    """The picture with a caption, and without."""
    ground = photo(480, 360, seed=11) if TEXTS.index(text) % 2 else blank(480, 360, "#7fa3b8")
    image = ground.copy()
    print_on(image, replace(STYLES[style], text=text))
    return image, ground


def measure_gap(one: Image.Image, other: Image.Image) -> float:
    return float(np.abs(np.asarray(one).astype(int) - np.asarray(other).astype(int)).mean())


def find_nearest(style: str, text: str) -> tuple[str, float]:
    """The style whose picture is nearest to the result, and how alike the letters are."""
    image, ground = draw(style, text)
    lines = print_on(ground, replace(STYLES[style], text=text))
    page = read_page(image, lines)
    (caption,) = page.captions
    plate = erase_captions(image, page.captions)
    made, _ = set_caption(plate, caption, caption.text)
    gaps = {name: measure_gap(made, draw(name, text)[0]) for name in STYLES}
    before, erased, again = (np.asarray(picture) for picture in (image, plate, made))
    alike = compare_lettering(before, erased, again, caption.ink)
    return min(gaps, key=lambda name: gaps[name]), alike


@pytest.mark.parametrize("style", STYLES)
def test_the_nearest_style_is_found(style: str) -> None:
    nearest, alike = find_nearest(style, TEXTS[0])
    assert (nearest, alike >= LEAST) == (style, True), alike


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS[1:])
@pytest.mark.parametrize("style", STYLES)
def test_the_nearest_style_is_found_for_other_texts_and_grounds(style: str, text: str) -> None:
    nearest, alike = find_nearest(style, text)
    assert (nearest, alike >= LEAST) == (style, True), alike


def test_spacing_between_letters_is_kept() -> None:
    image = blank(480, 200, "white")
    pen = replace(PLAIN, y=100)
    boxes = [
        print_on(image, replace(pen, text=c, x=90 + 90 * i))[0].box
        for i, c in enumerate("老朋友了")
    ]
    left, top, right, bottom = zip(*boxes, strict=True)
    line = replace(
        print_on(blank(), pen)[0],
        text="老朋友了",
        box=(min(left), min(top), max(right), max(bottom)),
    )
    (caption,) = read_page(image, [line]).captions
    assert caption.lettering.tracking > 0.5
    made = fit_text("老同学了", caption.lettering, caption.ink.room)
    assert made.size == pytest.approx(46, rel=0.12)
    assert made.width == pytest.approx(caption.ink.box[2] - caption.ink.box[0], rel=0.06)


def test_a_text_that_no_font_draws_is_measured_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memantics.understanding.vision.typefaces._ask_system", lambda _: None)
    image = blank(480, 200, "white")
    (line,) = print_on(image, replace(PLAIN, text="我的朋友", y=100))
    (caption,) = read_page(image, [replace(line, text="我的朋\U00020021")]).captions
    assert caption.lettering.tracking == 0


@pytest.mark.parametrize(("gap", "heavier"), [(0.09, True), (0.11, False)])
def test_each_look_is_rated_once_and_a_far_font_in_one_weight(
    monkeypatch: pytest.MonkeyPatch, gap: float, heavier: bool
) -> None:
    image, ground = draw("bold white", TEXTS[2])
    lines = print_on(ground, replace(STYLES["bold white"], text=TEXTS[2]))
    tried: list[tuple[PixelBox, Lettering]] = []

    def note(pixels: Pixels, ink: Ink, look: Lettering, setting: TypesetText) -> None:
        tried.append((ink.box, look))

    def rate(*layers: object) -> float:
        return 0.5 - gap * (tried[-1][1].face != tried[0][1].face)

    monkeypatch.setattr(looks, "draw_text", note)
    monkeypatch.setattr(looks, "compare_added", rate)
    read_page(image, lines)
    sampled = (255, 255, 255), (0, 255, 0)  # the sheet on which colours are sampled
    rated = [each for each in tried if (each[1].fill, each[1].outline) != sampled]
    assert len(set(rated)) == len(rated)
    other = [look for _, look in rated if look.face != rated[0][1].face]
    assert other
    assert any(look.weight > 0 for look in other) == heavier
