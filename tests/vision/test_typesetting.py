"""Fitting texts into boxes: breaking, shrinking, refusing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.core.errors import InputError
from memantics.core.fonts import FOLDER
from memantics.understanding.vision.lettering import Lettering
from memantics.understanding.vision.typefaces import (
    ANTON,
    BLACK,
    FACES,
    REGULAR,
    find_face,
    find_missing,
)
from memantics.understanding.vision.typesetting import (
    break_lines,
    count_fitting,
    fit_text,
    split_pieces,
)
from tests.places import ROOT

LOOK = Lettering(
    face=ANTON,
    size=40.0,
    pitch=1.16,
    fill=(255, 255, 255),
    outline=(0, 0, 0),
    outline_width=3.0,
    align="centre",
    upper=True,
    vertical=False,
    kind="overlay",
    rows=1,
)
BOX = (10, 10, 410, 60)


def test_a_text_that_fits_keeps_its_size() -> None:
    setting = fit_text("just about as wide", LOOK, BOX)
    assert setting.lines == ("JUST ABOUT AS WIDE",)
    assert setting.width <= 401
    assert setting.height <= 51


def test_a_longer_text_shrinks_and_breaks() -> None:
    tall = (10, 10, 310, 210)
    setting = fit_text("a much longer text that needs several lines to be read", LOOK, tall)
    assert len(setting.lines) > 2
    assert setting.size <= 40 * 1.3
    assert setting.height <= 201


def test_a_text_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"too long for its area; use at most about \d+ characters"
    ):
        fit_text("word " * 80, LOOK, (0, 0, 120, 30))


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        fit_text("  ", LOOK, BOX)


def test_a_column_stays_a_column() -> None:
    column = replace(LOOK, face=BLACK, vertical=True, upper=False)
    setting = fit_text("慢慢来", column, (0, 0, 50, 200))
    assert setting.lines == ("慢", "慢", "来")
    assert setting.height <= 201


@given(
    st.lists(
        st.sampled_from(["so", "am", "I", "happily", "unhurried", "x"]), min_size=1, max_size=12
    )
)
def test_english_breaks_between_words_only(words: list[str]) -> None:
    text = " ".join(words)
    for count in range(1, len(words) + 1):
        lines = break_lines(split_pieces(text), count, len)
        assert lines is not None
        assert len(lines) == count
        assert " ".join(lines) == text


@given(st.text(st.sampled_from("我你好天气（）《》，。！？“”a1"), min_size=1, max_size=30))
def test_chinese_lines_begin_and_end_as_they_may(text: str) -> None:
    pieces = split_pieces(text)
    assert "".join(pieces) == text
    for before, after in pairwise(pieces):
        assert after[0] not in "，。！？）》”"
        assert before[-1] not in "（《“"


@given(
    st.text(st.sampled_from("我们今天一起去公园看花"), min_size=2, max_size=14),
    st.integers(60, 500),
    st.integers(24, 120),
)
def test_whatever_fits_stays_in_its_box(text: str, width: int, height: int) -> None:
    look = replace(LOOK, face=BLACK, size=height * 0.9, upper=False)
    try:
        setting = fit_text(text, look, (0, 0, width, height))
    except InputError:
        return
    assert setting.width <= width + 1
    assert setting.height <= height + 1
    assert "".join(setting.lines) == text


def test_more_room_holds_more() -> None:
    assert count_fitting(LOOK, (0, 0, 800, 60)) > count_fitting(LOOK, (0, 0, 300, 60))
    assert count_fitting(LOOK, (0, 0, 400, 160)) > count_fitting(LOOK, (0, 0, 400, 60))


def test_fonts_ship_with_their_licences() -> None:
    assert {path.name for path in (FOLDER / "licences").iterdir()} >= {
        "Anton-OFL.txt",
        "Baloo2-OFL.txt",
        "NotoSansSC-OFL.txt",
    }
    assert all((FOLDER / face.file).is_file() for face in FACES)


def test_fonts_and_sample_pack_stay_small() -> None:
    folders = (FOLDER, ROOT / "src" / "memantics" / "core" / "samples", ROOT / "sample")
    size = sum(
        path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file()
    )
    assert size < 15 * 2**20


def test_common_chinese_is_covered() -> None:
    rows = (bytes((high, low)) for high in range(0xB0, 0xF8) for low in range(0xA1, 0xFF))
    common = "".join(row.decode("gb2312", errors="ignore") for row in rows)
    assert len(common) == 6763
    assert find_missing(REGULAR, common[:400]) == find_missing(BLACK, common[-400:]) == ""


def test_chinese_is_never_set_in_a_latin_font() -> None:
    assert find_face("好的 OK", ANTON).chinese
    assert find_face("OK", ANTON) is ANTON


def test_a_character_that_no_font_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memantics.understanding.vision.typefaces.shutil.which", lambda _: None)
    from memantics.understanding.vision import typefaces

    typefaces._ask_system.cache_clear()
    with pytest.raises(InputError, match="no font contains the characters"):
        find_face("\U00013080 glyph", ANTON)
    typefaces._ask_system.cache_clear()
