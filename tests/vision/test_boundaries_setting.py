"""Sizes, stretches and places of captions, worked out with a font of square letters.

Every letter is half as wide as the font's size, and its ink reaches from 0.2 to 0.9 of it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memantics.core.errors import InputError
from memantics.understanding.vision.ink import Background, Ink
from memantics.understanding.vision.lettering import Lettering
from memantics.understanding.vision.regions import PixelBox
from memantics.understanding.vision.typefaces import ANTON, Typeface
from memantics.understanding.vision.typesetting import (
    TypesetText,
    _judge,
    _place,
    _set_column,
    _set_rows,
    calibrate,
    count_fitting,
    draw_text,
    fit_text,
)


class SquareFont:
    def __init__(self, size: float) -> None:
        self.size = size

    def getlength(self, text: str) -> float:
        return 0.5 * self.size * len(text)

    def getbbox(self, text: str) -> tuple[float, float, float, float]:
        return 0.0, 0.2 * self.size, 0.5 * self.size * len(text), 0.9 * self.size


class Square(Typeface):
    def at(self, size: float) -> Any:
        return SquareFont(size)

    def covers(self, text: str) -> bool:
        return True


STYLE = Lettering(
    face=Square("square", chinese=False),
    size=20.0,
    pitch=1.2,
    fill=(255, 255, 255),
    outline=(0, 0, 0),
    outline_width=0.0,
    align="centre",
    upper=False,
    vertical=False,
    kind="overlay",
    rows=1,
)


def check(setting: TypesetText, **expected: float) -> None:
    for name, value in expected.items():
        assert getattr(setting, name) == pytest.approx(value, abs=1e-3), name


def test_one_line_grows_to_its_box_but_not_far_beyond_its_old_size() -> None:
    roomy = _set_rows(("abcd",), STYLE, (0, 0, 100, 40))
    check(roomy, size=21.6, stretch=1.06, step=25.92, width=2 * 21.6 * 1.06, height=0.7 * 21.6)
    narrow = _set_rows(("abcd",), STYLE, (0, 0, 30, 40))
    check(narrow, size=30 / (2 * 0.78), stretch=0.78, width=30, height=0.7 * 30 / 1.56)
    low = _set_rows(("abcd",), STYLE, (10, 5, 48, 19))
    check(low, size=20, stretch=0.95, step=24, width=38, height=14)


def test_several_lines_fill_the_height_with_their_distance() -> None:
    lines = ("abcd", "ab")
    tight = _set_rows(lines, STYLE, (0, 0, 200, 30))
    check(tight, size=30 / 1.9, step=1.2 * 30 / 1.9, height=30)
    loose = _set_rows(lines, STYLE, (0, 0, 200, 100))
    check(loose, size=21.6, step=1.45 * 25.92, height=1.45 * 25.92 + 15.12)
    between = _set_rows(lines, STYLE, (0, 0, 200, 45))
    check(between, size=21.6, step=45 - 15.12, height=45)
    wide = _set_rows(("abcd",), replace(STYLE, stretch=1.2), (0, 0, 100, 40))
    check(wide, stretch=1.2 * 1.06)
    check(_set_rows(("abcd",), STYLE, (0, 0, 100, 40), free=True), stretch=1.28)


def test_an_outline_takes_room_on_both_sides() -> None:
    style = replace(STYLE, outline_width=2.0, weight=1.0)
    made = _set_rows(("abcd",), style, (0, 0, 46, 20))
    check(made, size=20, stretch=1.0, width=46, height=20)
    column = _set_column("ab", style, (0, 0, 20, 100))
    size = 14 / 0.94
    check(column, size=size, step=1.45 * size, stretch=1, width=20, height=1.45 * size + 14 + 6)
    # Whatever the outline, four pixels are left for the letters.
    check(_set_rows(("a",), style, (0, 0, 7, 7)), size=4 / 0.7, height=4 + 6)


def test_a_column_has_one_character_below_the_other() -> None:
    style = replace(STYLE, vertical=True)
    two = _set_column("好 了", style, (0, 0, 20, 100))
    assert two.lines == ("好", "了")
    check(two, size=20 / 0.94, step=1.45 * 20 / 0.94, stretch=1, width=20)
    check(two, height=1.45 * 20 / 0.94 + 20)
    low = _set_column("好了", style, (0, 0, 20, 30))
    check(low, size=30 / 1.98, step=30 - 0.94 * 30 / 1.98, height=30, stretch=1.28)
    one = _set_column("好", style, (0, 0, 200, 200))
    check(one, size=21.6, step=21.6, stretch=1.28, height=0.94 * 21.6, width=0.94 * 21.6 * 1.28)
    barely = _set_column("好", style, (0, 0, 22, 20))
    check(barely, size=20, step=20, stretch=22 / 18.8)


def test_a_setting_is_judged_by_room_stretch_size_and_lines() -> None:
    style, box = replace(STYLE, rows=2), (10, 20, 110, 70)
    plain = TypesetText(("ab", "cd"), style.face, 20, 1.0, 24, 100, 50)
    assert _judge(plain, style, box) == pytest.approx(0)
    assert _judge(replace(plain, width=150, height=80), style, box) == pytest.approx(0)
    assert _judge(replace(plain, width=50, height=40), style, box) == pytest.approx(2 * 0.6)
    for factor in (2.0, 0.5):
        penalty = 0.5 * math.log(2)
        assert _judge(replace(plain, stretch=factor), style, box) == pytest.approx(penalty)
        assert _judge(replace(plain, size=20 * factor), style, box) == pytest.approx(penalty)
    assert _judge(replace(plain, lines=("ab",)), style, box) == pytest.approx(0.06)
    assert _judge(replace(plain, lines=tuple("abcd")), style, box) == pytest.approx(0.12)
    column = replace(style, vertical=True)
    assert _judge(replace(plain, lines=tuple("abcd")), column, box) == pytest.approx(0)
    gap = replace(plain, lines=("好 了", "ab c"))
    assert _judge(gap, style, box) == pytest.approx(0.25)


def test_how_many_characters_fit() -> None:
    # Two thirds of the old size, 13.4; three rows of 100 pixels with letters of 0.5 × 0.78 × 1.08.
    assert count_fitting(STYLE, (10, 20, 110, 70)) == int(3 * 100 / (0.5 * 0.78 * 1.08 * 13.4))
    assert count_fitting(STYLE, (10, 20, 110, 64)) == int(2 * 100 / (0.5 * 0.78 * 1.08 * 13.4))
    assert count_fitting(replace(STYLE, size=10), (0, 0, 100, 9)) == int(100 / (0.4212 * 9))
    assert count_fitting(STYLE, (0, 0, 5, 5)) == 2
    column = replace(STYLE, vertical=True)
    assert count_fitting(column, (7, 30, 27, 130)) == int(100 / (13.4 * 1.02))
    assert count_fitting(column, (0, 0, 20, 9)) == 1


def test_a_text_is_refused_below_the_size_that_can_be_read() -> None:
    # 9 pixels, or 0.45 of the old size where that is more; never more than the old size itself.
    for old, least in ((15.0, 9.0), (20.0, 9.0), (40.0, 18.0), (8.0, 8.0)):
        style = replace(STYLE, size=old)
        wide = least * 0.5 * 0.78 * 10
        fits = fit_text("a" * 10, style, (0, 0, math.ceil(wide), 400))
        assert fits.size >= least
        with pytest.raises(InputError, match=r"too long.*about \d+ characters"):
            fit_text("a" * 10, style, (0, 0, math.floor(wide), 400))
        small = fit_text("a" * 10, style, (0, 0, math.floor(wide), 400), legible=False)
        assert small.size < least


def test_the_old_text_tells_its_true_size() -> None:
    assert calibrate("abcd", STYLE, (0, 0, 100, 40)).size == 20  # never larger than measured
    assert calibrate("abcd", STYLE, (0, 0, 100, 7)).size == pytest.approx(10)
    assert calibrate("abcd", STYLE, (0, 0, 4, 2)).size == 4
    assert calibrate("  ", STYLE, (0, 0, 100, 7)) is STYLE


def test_capitals_and_the_authors_own_breaks() -> None:
    assert fit_text("so  am I", replace(STYLE, upper=True), (0, 0, 200, 20)).lines == ("SO AM I",)
    # A space between Chinese words is a break that the author made.
    chinese = replace(STYLE, face=Square("square", chinese=True), rows=2)
    assert fit_text("好的 走吧", chinese, (0, 0, 26, 50)).lines == ("好的", "走吧")


@pytest.mark.parametrize(("align", "left"), [("left", 12.0), ("centre", 32.0), ("right", 52.0)])
def test_lines_stand_where_the_old_ones_did(align: Any, left: float) -> None:
    style = replace(STYLE, align=align, outline_width=2.0)
    setting = TypesetText(("abcd", "abcdefgh"), style.face, 20, 1.0, 30, 84, 48)
    # 40 and 80 wide, 2 of outline on each side, in a box of 84; 100 high, of which 48 are used.
    (first, second) = _place(setting, style, (10, 0, 94, 100))
    assert first == pytest.approx((left, 26 + 2 - 4))
    assert second == pytest.approx((12.0, 26 + 2 - 4 + 30))


def test_a_column_is_centred_whatever_the_alignment() -> None:
    style = replace(STYLE, align="left", vertical=True)
    setting = TypesetText(("好", "了"), style.face, 20, 2.0, 24, 20, 44)
    assert _place(setting, style, (0, 0, 40, 44)) == [
        pytest.approx((10.0, -1.2)),
        pytest.approx((10.0, 22.8)),
    ]


def draw(
    ground: tuple[int, int, int], style: Lettering, zone: PixelBox = (10, 10, 110, 50)
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.uint8]], PixelBox]:
    pixels = np.full((60, 120, 3), ground, np.uint8)
    empty = np.zeros((zone[3] - zone[1], zone[2] - zone[0]), bool)
    ink = Ink(
        zone, empty, (20, 15, 100, 45), (), (), Background(ground, True), style.fill, style.outline,
        style.outline_width, 0.0, empty,
    )  # fmt: skip
    setting = fit_text("HI", style, ink.box)
    return pixels, draw_text(pixels, ink, style, setting)


def box_of_changes(pixels: Any, ground: tuple[int, int, int]) -> PixelBox:
    ys, xs = np.nonzero(np.abs(pixels.astype(int) - ground).max(axis=2) > 40)
    return int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1


REAL = replace(STYLE, face=ANTON, fill=(250, 20, 20), size=30.0)


def test_a_caption_is_drawn_in_its_box_in_its_colours() -> None:
    pixels, box = draw((0, 0, 0), REAL)
    assert box == box_of_changes(pixels, (0, 0, 0))
    assert box[0] >= 20
    assert box[1] >= 15
    assert box[2] <= 100
    assert box[3] <= 45
    assert pixels.reshape(-1, 3).max(axis=0).tolist() == [250, 20, 20]
    middle = (box[0] + box[2]) / 2
    assert abs(middle - 60) <= 2
    outlined, wide = draw((0, 0, 0), replace(REAL, outline=(0, 0, 250), outline_width=3.0))
    assert outlined[..., 2].max() == 250
    assert outlined[..., 0].max() == 250
    assert wide[0] < wide[2]
    assert not outlined[:10].any()
    assert not outlined[:, :10].any()


def test_colours_that_would_not_be_seen_are_replaced() -> None:
    # A difference of 50 of 255 in one channel is seen, 49 is not.
    seen, _ = draw((100, 100, 100), replace(REAL, fill=(150, 100, 100)))
    assert seen.max() == 150
    unseen, _ = draw((100, 100, 100), replace(REAL, fill=(149, 100, 100)))
    assert unseen.max() == 255
    light, _ = draw((200, 200, 200), replace(REAL, fill=(210, 200, 200)))
    assert light.min() == 0
    # An outline that is seen is enough.
    style = replace(REAL, fill=(100, 100, 100), outline=(0, 0, 0), outline_width=2.0)
    outlined, _ = draw((100, 100, 100), style)
    assert outlined.max() == 100
    assert outlined.min() == 0
