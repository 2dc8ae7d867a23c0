"""Lines joined into captions, and what is no caption."""

from __future__ import annotations

from memantics.core.lines import TextLine
from memantics.understanding.vision.panels import Region
from memantics.understanding.vision.regions import CaptionBlock, find_blocks

SIZE = (600, 400)
TWO = (Region(0, 0, 0.5, 1), Region(0.5, 0, 1, 1))


def texts(*lines: TextLine, panels: tuple[Region, ...] = ()) -> list[str]:
    return [block.text for block in find_blocks(lines, panels, SIZE)]


def test_rows_of_one_caption_are_joined() -> None:
    top = TextLine("WHEN THE BUILD", (100, 10, 500, 60))
    low = TextLine("IS GREEN", (200, 64, 400, 114))
    assert texts(top, low) == ["WHEN THE BUILD IS GREEN"]


def test_captions_of_two_panels_are_never_joined() -> None:
    left, right = TextLine("BEFORE", (150, 10, 295, 50)), TextLine("AFTER", (305, 10, 440, 50))
    assert texts(left, right) == ["BEFORE AFTER"]
    assert texts(left, right, panels=TWO) == ["BEFORE", "AFTER"]


def test_capitals_and_a_label_beside_them_are_two_captions() -> None:
    title = TextLine("THE EXAM", (200, 10, 400, 50))
    label = TextLine("Weigh the sun", (210, 60, 390, 95))
    assert texts(title, label) == ["THE EXAM", "Weigh the sun"]


def test_large_and_small_text_are_two_captions() -> None:
    assert texts(TextLine("HUGE", (100, 10, 400, 110)), TextLine("TINY", (150, 115, 250, 140))) == [
        "HUGE",
        "TINY",
    ]


def test_far_lines_are_two_captions() -> None:
    assert (
        len(texts(TextLine("TOP TEXT", (50, 5, 550, 45)), TextLine("END", (50, 350, 550, 390))))
        == 2
    )


def test_patterns_that_an_ocr_takes_for_letters_are_no_captions() -> None:
    assert texts(TextLine("8.8", (10, 10, 80, 60), 0.99)) == []
    assert texts(TextLine("LUD", (10, 10, 200, 90), 0.62)) == []
    assert texts(TextLine("口", (10, 10, 60, 60), 0.99)) == []
    assert texts(TextLine("oh", (10, 10, 12, 60), 0.99)) == []


def test_a_stray_character_does_not_join_a_line() -> None:
    assert texts(TextLine("山", (280, 10, 320, 50)), TextLine("蜂了是么", (220, 52, 380, 92))) == [
        "蜂了是么"
    ]


def test_a_column_of_characters_is_one_vertical_caption() -> None:
    column = [TextLine(c, (20, 10 + 50 * i, 64, 54 + 50 * i), 0.9) for i, c in enumerate("不能笑")]
    (block,) = find_blocks(column, (), SIZE)
    assert block.vertical
    assert block.text == "不能笑"


def test_latin_text_never_runs_downwards() -> None:
    assert not CaptionBlock((TextLine("il", (0, 0, 10, 60)),)).vertical


def test_captions_come_panel_by_panel_from_the_top() -> None:
    lines = [
        TextLine("RIGHT TOP", (320, 5, 580, 45)),
        TextLine("LEFT END", (20, 340, 280, 380)),
        TextLine("LEFT TOP", (20, 5, 280, 45)),
    ]
    assert texts(*lines, panels=TWO) == ["LEFT TOP", "LEFT END", "RIGHT TOP"]
