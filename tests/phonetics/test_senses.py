from __future__ import annotations

import pytest

from memantics.understanding.phonetics.evidence import (
    SENSE_FEATURES,
    describe_senses,
    find_hidden_thing,
    list_second_senses,
)
from memantics.understanding.phonetics.senses import (
    has_style,
    is_informal,
    is_measure,
    list_glosses,
    list_senses,
    load_phrases,
    rate_drawable,
)


def test_senses_leave_out_names_measures_and_references() -> None:
    assert list_senses("鱼") == ("fish",)
    assert not any(sense.startswith(("CL:", "surname")) for sense in list_senses("马"))
    assert list_senses("") == list_senses("abc") == ()


@pytest.mark.parametrize(
    ("word", "style", "marked"),
    [
        ("画蛇添足", "idiom", True),
        ("苹果", "idiom", False),
        ("摸鱼", "figurative", True),
        ("苹果", "figurative", False),
        ("no word", "figurative", False),
    ],
)
def test_the_dictionary_marks_styles(word: str, style: str, marked: bool) -> None:
    assert has_style(word, style) is marked


def test_set_phrases_have_four_characters_and_more() -> None:
    phrases = load_phrases()
    assert {"画蛇添足", "年年有余"} <= phrases
    assert min(map(len, phrases)) == 4
    assert max(map(len, phrases)) == 8


def test_drawable_things_are_nouns_with_a_picture_or_a_radical() -> None:
    assert rate_drawable("鱼") == rate_drawable("猫") == 1.0
    assert rate_drawable("的") == rate_drawable("打") == rate_drawable("a") == 0.0
    assert list_glosses("猫")[0] == "cat"


def test_numbers_count_things() -> None:
    assert all(map(is_measure, "个条点年号"))
    assert not any(map(is_measure, "鱼的a"))


def test_a_thing_hides_in_a_word_that_does_not_mean_it() -> None:
    assert find_hidden_thing("混蛋") == "蛋"
    assert find_hidden_thing("鸡蛋") == find_hidden_thing("蛋") == find_hidden_thing("") == ""


def test_second_senses_say_why() -> None:
    assert [sense.word for sense in list_second_senses(["今天", "摸鱼", "摸鱼"])] == ["摸鱼"]
    assert list_second_senses([]) == ()
    assert is_informal("吃瓜")
    assert not is_informal("苹果")
    assert not is_informal("")


def test_features_are_shares_of_the_longer_words() -> None:
    found = describe_senses(["我", "摸鱼", "开会"])
    assert set(found) == set(SENSE_FEATURES)
    assert found["figurative"] == 0.5
    assert set(describe_senses([]).values()) == {0.0}
    assert describe_senses(["画蛇添足"])["set_phrase"] == 1.0
    assert describe_senses(["画蛇", "添足"])["set_phrase"] == 1.0  # cut in two, and still one
