"""Regions, panels, lines and spaces: a case on each side of every threshold."""

from __future__ import annotations

import random

import numpy as np
import pytest
from PIL import Image, ImageDraw

from memantics.understanding.vision.hashes import count_bits
from memantics.understanding.vision.panels import Region, _is_bar, count_panels, find_panels
from memantics.understanding.vision.regions import (
    enclose,
    join_lines,
    measure_match,
    measure_overlap,
)
from memantics.understanding.vision.spacing import InkProfile, part_words
from memantics.understanding.vision.typefaces import ANTON, Typeface
from memantics.understanding.vision.typesetting import _halve, break_lines, split_pieces


@pytest.mark.parametrize(("gap", "regions"), [(8, 1), (9, 2), (10, 2)])
def test_lines_nearer_than_nine_tenths_of_their_height_are_one_caption(
    gap: int, regions: int
) -> None:
    below = [(10, 0, 50, 10), (10, 10 + gap, 50, 20 + gap)]
    beside = [(0, 10, 40, 20), (40 + gap, 10, 90, 20)]
    assert len(join_lines(below, (100, 100))) == regions
    assert len(join_lines(beside, (100, 100))) == regions


def test_the_lower_of_two_lines_sets_the_gap() -> None:
    """A large line and a small one: the small one's height counts."""
    assert len(join_lines([(0, 0, 90, 40), (0, 48, 90, 58)], (100, 100))) == 1
    assert len(join_lines([(0, 0, 90, 40), (0, 49, 90, 59)], (100, 100))) == 2


def test_three_lines_are_joined_through_the_middle_one_and_empty_boxes_are_none() -> None:
    lines = [(0, 0, 60, 10), (0, 40, 60, 50), (0, 20, 60, 30)]
    assert len(join_lines(lines, (100, 200))) == 3
    close = [(0, 0, 60, 10), (10, 34, 80, 44), (0, 17, 60, 27)]
    assert join_lines(close, (100, 200)) == (Region(0, 0, 0.8, 0.22),)
    assert join_lines([(5, 5, 5, 9), (5, 5, 9, 5)], (10, 10)) == ()
    assert enclose([(1, 2, 3, 4)]) == (1, 2, 3, 4)


def test_overlap_is_intersection_over_union() -> None:
    one = Region(0, 0, 0.5, 0.5)
    assert measure_overlap(one, Region(0.25, 0.25, 0.75, 0.75)) == pytest.approx(1 / 7)
    assert measure_overlap(one, Region(0.5, 0, 1, 0.5)) == 0
    assert measure_overlap(one, Region(0.6, 0.6, 0.4, 0.4)) == 0
    assert measure_overlap(Region(0, 0, 0, 0), Region(0, 0, 0, 0)) == 0


def test_a_quarter_of_overlap_makes_a_pair() -> None:
    whole = Region(0, 0, 1, 1)
    assert measure_match([whole], [Region(0, 0, 0.25, 1)]) == 1
    assert measure_match([whole], [Region(0, 0, 0.249, 1)]) == 0
    assert measure_match([], []) == 1
    assert measure_match([whole], []) == 0
    # The better overlap wins, and each region has one partner.
    half = Region(0, 0, 0.5, 1)
    assert measure_match([whole, half], [half]) == pytest.approx(2 / 3)
    assert measure_match([half, whole], [whole, half]) == 1


def noise(width: int, height: int, seed: int = 1) -> Image.Image:
    """A soft blot of colours, without a straight line."""
    small = Image.frombytes("RGB", (9, 9), random.Random(seed).randbytes(3 * 81))
    return small.resize((width, height), Image.Resampling.BICUBIC)


def stack(heights: list[int], gap: int = 4, width: int = 200) -> Image.Image:
    """Noise over noise with white gutters between."""
    whole = Image.new("RGB", (width, sum(heights) + gap * (len(heights) - 1)), "white")
    top = 0
    for number, height in enumerate(heights):
        whole.paste(noise(width, height, number), (0, top))
        top += height + gap
    return whole


def test_panels_are_of_like_size() -> None:
    assert count_panels(stack([100, 100])) == 2
    assert count_panels(stack([100, 42])) == 2
    assert count_panels(stack([100, 36])) == 1
    assert count_panels(stack([100, 100, 100])) == 3


def test_a_gutter_is_thin() -> None:
    assert count_panels(stack([100, 100], gap=11)) == 2
    assert count_panels(stack([100, 100], gap=20)) == 1


def test_boxes_of_panels_are_shares_row_by_row() -> None:
    grid = Image.new("RGB", (204, 204), "white")
    for number, place in enumerate([(0, 0), (104, 0), (0, 104), (104, 104)]):
        grid.paste(noise(100, 100, number), place)
    found = find_panels(grid)
    assert [(round(p.left, 2), round(p.top, 2)) for p in found] == [
        *((0, 0), (0.51, 0), (0, 0.51), (0.51, 0.51))
    ]
    assert find_panels(noise(64, 64)) == (Region(0, 0, 1, 1),)


def test_edges_without_a_gutter_count_at_halves_and_thirds_only() -> None:
    def meet(row: int) -> Image.Image:
        made = Image.new("RGB", (120, 120), "black")
        made.paste((250, 120, 30), (0, row, 120, 120))
        return made

    assert count_panels(meet(60)) == 2
    assert count_panels(meet(61)) == 2
    assert count_panels(meet(63)) == 1
    assert count_panels(meet(60).transpose(Image.Transpose.ROTATE_90)) == 2
    assert count_panels(meet(63).transpose(Image.Transpose.ROTATE_90)) == 2


def test_a_bar_is_plain_and_hardly_coloured() -> None:
    def bar(light: int, coloured: int) -> bool:
        rows = np.full((100, 3), 120, np.int16)
        rows[:light] = 255
        rows[100 - coloured :] = (200, 20, 20)
        return _is_bar(rows.reshape(10, 10, 3))

    assert bar(45, 0)
    assert not bar(44, 0)
    assert bar(60, 4)
    assert not bar(60, 5)
    dark = np.zeros((10, 10, 3), np.int16)
    assert _is_bar(dark)
    assert not _is_bar(np.full((10, 10, 3), 30, np.int16))
    # Colours are told pixel by pixel: light and dark greys are none.
    assert _is_bar(np.repeat(np.array([[[255], [0]]], np.int16), 3, axis=2).repeat(5, axis=0))


def test_bits_are_counted() -> None:
    values = [0, 1, 3, 2**63, 2**64 - 1, 0x0123456789ABCDEF]
    found = count_bits(np.array(values, dtype=np.uint64)).tolist()
    assert found == [value.bit_count() for value in values]


def test_lines_break_into_the_number_that_is_asked_for() -> None:
    pieces = split_pieces("a bb ccc dddd")
    assert break_lines(pieces, 0, len) is None
    assert break_lines(pieces, 5, len) is None
    assert break_lines(pieces, 4, len) == ("a", "bb", "ccc", "dddd")
    assert break_lines(pieces, 1, len) == ("a bb ccc dddd",)
    assert break_lines(pieces, 2, len) == ("a bb", "ccc dddd")
    assert break_lines(pieces, 3, len) == ("a bb", "ccc", "dddd")
    # One long word and short ones: the longest line that can be cut is cut at its half.
    assert break_lines(split_pieces("x y z wwwwwwwwwwwwwwww"), 3, len) == (
        *("x y", "z", "wwwwwwwwwwwwwwww"),
    )


@pytest.mark.parametrize(
    ("line", "place"),
    [(["a", "a"], 1), (["a", "a", "a", "a"], 2), (["aaa", "a", "a"], 1), (["a", "a", "aaa"], 2)],
)
def test_a_line_is_halved_where_half_of_it_is_used(line: list[str], place: int) -> None:
    assert _halve(line, len) == place


def test_marks_stay_with_their_characters() -> None:
    assert split_pieces("他说：“好。”走") == ("他", "说：", "“好。”", "走")
    assert split_pieces("用 GPT 写 ok") == ("用 ", "GPT ", "写 ", "ok")
    assert split_pieces("  two   words ") == ("two ", "words")


def draw_profile(text: str, face: Typeface, size: int = 32) -> InkProfile:
    """How much ink each column of a drawn text holds."""
    font = face.at(size)
    left, top, right, bottom = (int(value) for value in font.getbbox(text))
    plate = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(plate).text((-left, -top), text, font=font, fill=255)
    return np.asarray(np.asarray(plate).sum(axis=0) / 255.0, np.float64)


def test_spaces_are_found_only_where_gaps_are_wide() -> None:
    profile = draw_profile("SO AM I", ANTON)
    assert part_words("SOAMI", profile, 32) == "SO AM I"
    assert part_words("SO AMI", profile, 32) == "SO AM I"
    # Gaps below a share of the line's height are gaps between letters.
    assert part_words("SOAMI", profile, 200) == "SOAMI"
    # More words than letters, an empty line, and a space where no gap is.
    assert part_words("SA", profile, 32) == "SA"
    assert part_words("", profile, 32) == ""
    assert part_words("S OAMI", profile, 32) == "S OAMI"
    assert part_words("SOAMI", np.zeros(50), 32) == "SOAMI"
