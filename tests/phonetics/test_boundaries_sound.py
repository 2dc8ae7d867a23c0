"""Sounds, evidence in pictures and languages: a case on each side of every threshold."""

from __future__ import annotations

import pytest

from memantics.understanding.phonetics.evidence import (
    clean_description,
    find_double_meanings,
    find_evidence,
    find_in_description,
)
from memantics.understanding.phonetics.homophones import read_homophones, read_many
from memantics.understanding.phonetics.lattice import Lattice, Path, PathWord
from memantics.understanding.phonetics.pinyin import (
    KNOWN_SYLLABLES,
    Syllable,
    describe_difference,
    measure_distance,
    parse_syllable,
)
from memantics.understanding.phonetics.ranking import Linear
from memantics.understanding.phonetics.reading import Settings


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("yi", ("", "", "i", "")),
        ("you", ("", "i", "o", "u")),
        ("wu", ("", "", "u", "")),
        ("weng", ("", "u", "e", "ng")),
        ("yong", ("", "v", "e", "ng")),
        ("yue", ("", "v", "e", "")),
        ("er", ("", "", "e", "r")),
        ("ju", ("j", "", "v", "")),
        ("xuan", ("x", "v", "a", "n")),
        ("lv", ("l", "", "v", "")),
        ("dong", ("d", "u", "e", "ng")),
        ("xiong", ("x", "v", "e", "ng")),
        ("gao", ("g", "", "a", "u")),
        ("liao", ("l", "i", "a", "u")),
        ("gui", ("g", "u", "e", "i")),
        ("liu", ("l", "i", "o", "u")),
        ("chun", ("ch", "u", "e", "n")),
        ("si", ("s", "", "z", "")),
        ("ri", ("r", "", "z", "")),
        ("bi", ("b", "", "i", "")),
        ("mo", ("m", "", "o", "")),
        ("guo", ("g", "u", "o", "")),
    ],
)
def test_syllables_have_their_parts(text: str, parts: tuple[str, str, str, str]) -> None:
    assert parse_syllable(text) == Syllable(*parts)


@pytest.mark.parametrize(
    ("first", "second", "distance", "words"),
    [
        ("zi", "zhi", 0.35, "z/zh merged"),
        ("lan", "nan", 0.45, "l/n merged"),
        ("lan", "ran", 0.7, "l/r near"),
        ("ban", "pan", 0.8, "b/p near"),
        ("ma", "a", 1.5, "m/no initial near"),
        ("a", "ma", 1.5, "no initial/m near"),
        ("jin", "jing", 0.35, "in/ing merged"),
        ("hua", "fa", 0.45, "hua/fa merged"),
        ("fei", "hui", 0.45, "fei/hui merged"),
        ("gua", "ga", 0.6, "ua/a near"),
        ("ba", "bo", 0.6, "a/o near"),
        ("ba", "bu", 0.9, "a/u near"),
        ("da", "dan", 0.8, "a/an near"),
        ("zhang", "zan", 0.7, "zhang/zan near"),
    ],
)
def test_distances_add_up_over_parts(first: str, second: str, distance: float, words: str) -> None:
    assert measure_distance(first, second) == distance == measure_distance(second, first)
    assert describe_difference(first, second) == words


def test_every_syllable_is_apart_from_every_other_but_its_spelling() -> None:
    names = sorted(KNOWN_SYLLABLES)
    assert len(names) > 390
    same = [(a, b) for a in names for b in names if a < b and measure_distance(a, b) == 0]
    assert same == []


def test_words_of_a_description_name_characters() -> None:
    # "steam" may be up to three letters longer, if it has four of its own.
    assert find_in_description("蒸", "a steamer") == "steamer"
    assert find_in_description("蒸", "steaming") == "steaming"
    assert find_in_description("蒸", "steamboat") == ""
    assert find_in_description("鱼", "two fishs") == "fishs"
    assert find_in_description("猫", "cats and a catalogue") == "cats"
    assert find_in_description("猫", "catalogue") == ""
    assert find_in_description("鱼", "") == ""


def test_what_is_quoted_is_no_description() -> None:
    assert clean_description('a sign "fish" here', "x") == "a sign   here"
    assert clean_description("鱼鱼鱼", "鱼") == "鱼鱼鱼"
    assert clean_description("大鱼吃鱼", "大鱼") == " 吃鱼"
    assert len(clean_description("a" * 5000, "x")) == 4000


def path(*words: str) -> Path:
    pieces, start = [], 0
    for word in words:
        pieces.append(PathWord(word, start, start + len(word), False))
        start += len(word)
    return Path("".join(words), tuple(pieces), 0.0, 0.0)


def test_words_with_two_meanings_are_in_caption_and_picture(lattice: Lattice) -> None:
    (fish,) = find_double_meanings(path("鱼"), "一条鱼在水里", "有鱼", lattice)
    assert (fish.word, fish.inside) == ("鱼", "")
    (inside,) = find_double_meanings(path("鱼竿"), "一条鱼在水里", "有鱼竿", lattice)
    assert (inside.word, inside.inside) == ("鱼", "鱼竿")
    assert inside.strength == pytest.approx(min(1.0, fish.strength + 0.2))
    assert 0 < fish.strength <= 1
    # The whole word is in the picture: its characters are image was not used again.
    found = find_double_meanings(path("鱼竿"), "一根鱼竿", "鱼竿", lattice)
    assert [(one.word, one.inside) for one in found][:1] in ([("鱼竿", "")], [])
    # Everyday words prove nothing, and letters are no Chinese words.
    assert find_double_meanings(path("的"), "红的", "我的", lattice) == ()
    assert find_double_meanings(path("fish"), "a fish", "fish", lattice) == ()
    assert find_evidence("有鱼的", "a fish", lattice) == {"鱼": "fish"}
    assert find_evidence("有鱼的", "a cat", lattice) == {}


def test_a_linear_model_is_bounded() -> None:
    assert Linear({"a": 1.0}).probability({"a": 0.0}) == 0.5
    assert Linear({"a": 1.0}).probability({"a": 1000.0}) == Linear({"a": 1.0}).probability(
        {"a": 30.0}
    )
    assert Linear({}, -1e9).probability({}) == pytest.approx(9.357622968840175e-14)
    assert Linear({"a": 2.0, "b": -1.0}, 0.5).score({"a": 1.0, "b": 3.0}) == -0.5


DICTIONARY = Settings(model="dictionary")


@pytest.mark.parametrize(
    ("text", "language"), [("a", "zh"), ("ab", "en"), ("a鱼bcd", "zh"), ("12", "zh"), ("", "zh")]
)
def test_a_caption_without_chinese_but_two_letters_is_english(text: str, language: str) -> None:
    assert read_homophones(text, settings=DICTIONARY).language == language


def test_long_captions_are_cut_and_it_is_said() -> None:
    short = Settings(model="dictionary", max_characters=4)
    assert read_homophones("年年有鱼", settings=short).notes == ()
    (note,) = read_homophones("年年有鱼吃", settings=short).notes
    assert note == "the caption was truncated to 4 of 5 characters"
    assert read_homophones("年年有鱼吃", settings=short).caption == "年年有鱼"
    (dropped,) = read_homophones("年年\x07有", settings=short).notes
    assert "removed" in dropped
    assert any("of 17" in note for note in read_homophones("年" * 17, settings=short).notes)
    assert (
        read_homophones("！？", settings=DICTIONARY).notes[-1]
        == "the caption contains nothing that can be pronounced"
    )


def test_readings_stop_at_the_limit() -> None:
    many = read_homophones("压力山大", settings=Settings(model="dictionary", limit=9))
    (two,) = read_many(["压力山大"], settings=Settings(model="dictionary", limit=2))
    assert len(two.readings) == 2
    assert two.readings == many.readings[:2]
    scores = [reading.score for reading in many.readings]
    assert scores == sorted(scores, reverse=True)
    assert all(score == round(score, 4) for score in scores)
    assert any(score != round(score, 1) for score in scores)
