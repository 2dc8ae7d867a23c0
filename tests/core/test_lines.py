"""Lines of text in an image: which are tilted, in which order they are read, which are captions."""

from __future__ import annotations

from itertools import permutations

import pytest

from memantics.core.lines import (
    CharacterAlternative,
    ImageReading,
    TextLine,
    TextRole,
    explain_unread,
    order_lines,
)


@pytest.mark.parametrize(
    ("tilt", "span", "tilted"),
    [
        (4.0, (100, 20), True),
        (3.9, (100, 20), False),
        (-4.0, (100, 20), True),
        (-3.9, (100, 20), False),
        (40.0, (100, 20), True),
        (40.1, (100, 20), False),
        (12.0, (30, 20), True),
        (12.0, (29, 20), False),
        (12.0, (0, 0), False),
        (12.0, (5, 0), False),
    ],
)
def test_the_angle_of_a_long_line_counts(tilt: float, span: tuple[int, int], tilted: bool) -> None:
    assert TextLine("x", (0, 0, 9, 9), 1.0, tilt, span).tilted is tilted


def test_the_height_of_a_line() -> None:
    assert TextLine("x", (1, 2, 30, 14)).height == 12


def test_rows_are_read_from_top_to_bottom_and_from_left_to_right() -> None:
    lines = [
        TextLine("a", (0, 0, 10, 20)),
        TextLine("b", (20, 9, 30, 29)),  # 11 of 20 pixels are shared
        TextLine("c", (0, 30, 10, 50)),
        TextLine("d", (20, 40, 30, 60)),  # 10 of 20: half is not more than half
    ]
    for order in permutations(lines):
        assert "".join(line.text for line in order_lines(order)) == "abcd"
    swapped = [TextLine("b", (20, 0, 30, 20)), TextLine("a", (0, 9, 10, 29))]
    assert "".join(line.text for line in order_lines(swapped)) == "ab"
    apart = [TextLine("b", (20, 0, 30, 20)), TextLine("a", (0, 10, 10, 30))]
    assert "".join(line.text for line in order_lines(apart)) == "ba"
    # A small line beside a large one is in its row.
    sizes = [TextLine("b", (50, 0, 90, 40)), TextLine("a", (0, 12, 40, 22))]
    assert "".join(line.text for line in order_lines(sizes)) == "ab"
    assert order_lines([]) == ()


def reading(*parts: tuple[str, TextRole]) -> ImageReading:
    lines = (TextLine(text, (0, n, 9, n + 1), role=role) for n, (text, role) in enumerate(parts))
    return ImageReading(tuple(lines))


def test_captions_and_other_text() -> None:
    found = reading(("one", "caption"), ("shop", "scene"), ("two", "caption"), ("@me", "watermark"))
    assert found.text == "one\nshop\ntwo\n@me"
    assert found.caption == "one\ntwo"
    assert [line.text for line in found.captions] == ["one", "two"]
    assert found.other_text == "shop\n@me"
    assert found.said == "one\nshop\ntwo\n@me"
    assert ImageReading().text == ImageReading().caption == ImageReading().said == ""


def test_isolated_characters_are_noise_unless_they_spell_a_word() -> None:
    two = reading(("x", "scene"), ("cap", "caption"), (" y ", "scene"), ("--", "scene"))
    assert (two.said, two.other_text) == ("cap", "")
    three = reading(("x", "scene"), ("y", "scene"), ("z", "scene"), ("7", "scene"), ("!", "scene"))
    assert three.said == "x\ny\nz"
    digits = reading(("x", "scene"), ("y", "scene"), ("7", "scene"), ("ok", "scene"))
    assert digits.said == "ok"
    # A caption is never noise, and does not count as a letter that spells.
    assert reading(("!", "caption"), ("a", "caption"), ("b", "scene")).said == "!\na"


def test_alternatives_have_places_in_the_caption() -> None:
    def line(text: str, role: TextRole, *others: CharacterAlternative) -> TextLine:
        return TextLine(text, (0, 0, 9, 9), role=role, alternatives=others)

    found = ImageReading(
        (
            line("ab", "caption", CharacterAlternative(1, "x", 0.5)),
            line("not a caption", "scene", CharacterAlternative(0, "y", 0.9)),
            line(
                "cd",
                "caption",
                CharacterAlternative(0, "e", 0.4),
                CharacterAlternative(0, "f", 0.3),
                CharacterAlternative(1, "g", 0.2),
            ),
        )
    )
    assert found.caption == "ab\ncd"
    assert found.caption_alternatives == {1: {"x": 0.5}, 3: {"e": 0.4, "f": 0.3}, 4: {"g": 0.2}}


def test_regions_that_were_not_read_are_said() -> None:
    tail = "not read: the image holds more text than is read"
    assert explain_unread(0) == ""
    assert explain_unread(1) == f"1 region of text was {tail}"
    assert explain_unread(2) == f"2 regions of text were {tail}"
