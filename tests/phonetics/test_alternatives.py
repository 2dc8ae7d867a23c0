"""Characters that OCR considered are further paths of the search for homophones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.core.lines import CharacterAlternative, ImageReading, TextLine
from memantics.models.embedded.ocr import list_alternatives
from memantics.understanding.phonetics.caption import rate_alternatives, write_scripts
from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.lines import move_alternatives
from memantics.understanding.phonetics.reading import Settings

PLAIN = Settings(model="dictionary")


def list_texts(caption: str, alternatives: dict[int, dict[str, float]]) -> list[str]:
    found = read_homophones(caption, settings=PLAIN, alternatives=alternatives)
    return [reading.text for reading in found.readings]


@pytest.mark.slow
def test_a_misread_character_no_longer_hides_the_pun() -> None:
    assert "力大无穷" not in list_texts("荔大元穷", {})
    assert list_texts("荔大元穷", {2: {"无": 0.46}})[0] == "力大无穷"


@pytest.mark.slow
def test_it_is_found_in_a_caption_of_several_lines() -> None:
    assert "力大无穷" in " ".join(list_texts("真好\n荔大元穷", {5: {"无": 0.46}}))


def test_an_improbable_alternative_changes_nothing() -> None:
    assert list_texts("年年有鱼", {3: {"猫": 0.0001}})[0] == "年年有余"


def test_an_alternative_alone_is_no_pun() -> None:
    """A caption that only reads differently has no other meaning."""
    found = read_homophones("力大元穷", settings=PLAIN, alternatives={2: {"无": 0.5}})
    assert all(reading.text != "力大无穷" for reading in found.readings)


def test_traditional_alternatives_are_simplified() -> None:
    assert set(rate_alternatives("元", {"無": 0.1})) == {"无"}


def test_without_alternatives_the_script_is_as_before() -> None:
    assert list(write_scripts("年年有鱼")) == list(write_scripts("年年有鱼", {}))


TEXT = st.text(alphabet="年有鱼元“” \nab1", max_size=12)


@given(TEXT, st.dictionaries(st.integers(0, 11), st.just({"无": 0.5}), max_size=4))
def test_alternatives_stay_with_their_character(
    caption: str, alternatives: dict[int, dict[str, float]]
) -> None:
    cleaned = "".join(character for character in caption if character not in "“” \n")
    kept = [place for place, character in enumerate(caption) if character not in "“” \n"]
    wanted = {
        place: alternatives[start]
        for place, start in enumerate(kept)
        if start in alternatives and caption[start] >= "\u3400"
    }
    assert move_alternatives(caption, cleaned, alternatives) == wanted


def test_the_search_gets_a_bounded_number_of_alternatives() -> None:
    unsure = {place: {"无": 0.1 * (place % 7), "像": 0.05, "天": 0.01} for place in range(90)}
    found = move_alternatives("元" * 90, "元" * 90, unsure)
    assert len(found) == 6
    assert all(set(others) == {"无", "像"} for others in found.values())
    assert all(others["无"] == pytest.approx(0.6) for others in found.values())


SYMBOLS = ["", "元", "无", "大", "a", "穷", "房", "像"]


@given(st.lists(st.lists(st.floats(0, 1), min_size=8, max_size=8), min_size=1, max_size=40))
def test_the_number_of_alternatives_is_bounded(rows: list[list[float]]) -> None:
    table = np.array(rows, np.float32) + 1e-6
    table /= table.sum(axis=1, keepdims=True)
    found = list_alternatives(table, SYMBOLS)
    places = [one.place for one in found]
    assert len(set(places)) <= 6
    assert all(places.count(place) <= 3 for place in places)
    assert all(one.text in "元无大穷房像" and 0 < one.score <= 1 for one in found)


def test_offsets_count_the_lines_before() -> None:
    other = CharacterAlternative(0, "无", 0.5)
    lines = (
        TextLine("一", (0, 0, 9, 9)),
        TextLine("LOGO", (0, 9, 9, 18), role="watermark"),
        TextLine("元", (0, 20, 9, 29), alternatives=(other,)),
    )
    said = ImageReading(lines)
    assert said.caption[next(iter(said.caption_alternatives))] == "元"


@pytest.mark.parametrize("score", [0.0, -1.0])
def test_scores_without_a_logarithm_are_ignored(score: float) -> None:
    assert rate_alternatives("元", {"无": score}) == {}
