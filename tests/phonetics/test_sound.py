from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.understanding.phonetics.pinyin import (
    KNOWN_SYLLABLES,
    MERGED,
    SyllableSound,
    describe_difference,
    list_sounds,
    measure_distance,
    parse_marked,
    parse_syllable,
    phrase_sounds,
    read_in_context,
    write_marked,
)

syllables = st.sampled_from(sorted(KNOWN_SYLLABLES))


@given(syllables, syllables)
def test_distance_is_symmetric_and_zero_only_for_one_sound(first: str, second: str) -> None:
    distance = measure_distance(first, second)
    assert distance == measure_distance(second, first)
    assert (distance == 0) == (parse_syllable(first) == parse_syllable(second))


def test_no_two_syllables_have_the_same_parts() -> None:
    parts = {parse_syllable(s) for s in KNOWN_SYLLABLES}
    assert len(parts) == len(KNOWN_SYLLABLES)


@pytest.mark.parametrize(
    "pair",
    ["ni li", "fa hua", "zi zhi", "su shu", "ci chi", "xin xing", "ben beng", "lan lang"],
)
def test_dialect_mergers_are_near(pair: str) -> None:
    first, second = pair.split()
    assert 0 < measure_distance(first, second) <= MERGED
    assert describe_difference(first, second).endswith("merged")


@pytest.mark.parametrize("pair", ["ma shi", "zheng lu", "bao qi"])
def test_unlike_syllables_are_far(pair: str) -> None:
    assert measure_distance(*pair.split()) > 1.5


@given(syllables, st.integers(1, 5))
def test_marked_pinyin_round_trip(syllable: str, tone: int) -> None:
    assert parse_marked(write_marked(SyllableSound(syllable, tone))) == SyllableSound(
        syllable, tone
    )


def test_marks_stand_on_the_right_vowel() -> None:
    written = [
        write_marked(SyllableSound(s, 4)) for s in ("liu", "gui", "xue", "zhuang", "nve", "hou")
    ]
    assert written == ["liù", "guì", "xuè", "zhuàng", "nüè", "hòu"]


def test_context_chooses_among_readings() -> None:
    said = [s.syllable if s else "" for s in read_in_context("音乐很快乐！")]
    assert said == ["yin", "yue", "hen", "kuai", "le", ""]
    assert {s.syllable for s in list_sounds("乐")} >= {"le", "yue"}


def test_words_with_unusual_readings_are_known() -> None:
    assert [s.syllable for s in phrase_sounds()["银行"]] == ["yin", "hang"]
    assert "今天" not in phrase_sounds()
