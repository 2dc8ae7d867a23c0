"""Captions with several lines, as OCR returns them."""

from __future__ import annotations

import pytest

from memantics.understanding.phonetics.caption import join_fragments
from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.lines import MOST_LINES, place_lines
from memantics.understanding.phonetics.reading import Settings

SETTINGS = Settings(model="dictionary")


@pytest.mark.parametrize(
    ("caption", "intended"),
    [
        ("年\n年\n有\n鱼", "年年有余"),  # one character per line
        ("年年有“鱼”", "年年有余"),
        ("年年 有 鱼", "年年有余"),
        ("COLA\n年年有鱼", "年年有余"),  # a label in the drawing
        ("年年有鱼\nhc\n0", "年年有余"),
    ],
)
def test_a_pun_is_found_among_fragments_and_stray_lines(caption: str, intended: str) -> None:
    found = read_homophones(caption, settings=SETTINGS)
    assert intended in [reading.text for reading in found.readings]
    assert found.intended is not None
    assert intended in found.intended.text


def test_spans_are_offsets_into_the_whole_caption() -> None:
    found = read_homophones("COLA\n年年有鱼", settings=SETTINGS)
    assert found.caption == "COLA 年年有鱼"
    for reading in found.readings:
        for change in reading.changes:
            assert found.caption[change.start : change.end] == change.written


def test_readings_are_limited_and_distinct() -> None:
    found = read_homophones(
        "压力山大\n年年有鱼\n压力山大", settings=Settings(model="dictionary", limit=3)
    )
    texts = [reading.text for reading in found.readings]
    assert len(texts) == 3
    assert len(set(texts)) == 3


def test_a_single_line_is_read_once() -> None:
    plain = read_homophones("年年有鱼", settings=SETTINGS)
    assert read_homophones("年年有鱼\n", settings=SETTINGS) == plain
    assert place_lines("年年有鱼\n \n") == []


def test_the_number_of_lines_read_alone_is_bounded() -> None:
    lines = [f"第{n}行文字{'长' * n}" for n in range(40)]
    alone = [line for line, _ in place_lines("\n".join(lines))]
    assert len(alone) == MOST_LINES
    assert alone[0] == join_fragments(lines[-1])


def test_an_empty_caption_and_lines_without_characters_have_no_readings() -> None:
    assert read_homophones("\n\n", settings=SETTINGS).readings == ()
    assert read_homophones("！\n？", settings=SETTINGS).readings == ()


def test_english_words_keep_their_blanks() -> None:
    assert join_fragments("I am a cat") == "I am a cat"
    assert read_homophones("I am\na cat", settings=Settings(language="en")).caption.split() == [
        "I",
        "am",
        "a",
        "cat",
    ]
