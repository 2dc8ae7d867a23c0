from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.understanding.phonetics.pinyin import (
    RARE_READING,
    Costs,
    PinyinLexicon,
    list_sounds,
    measure_distance,
    read_in_context,
)

WORDS = [
    "合理",
    "河里",
    "和",
    "河",
    "例",
    "理",
    "多余",
    "多雨",
    "鱼",
    "余",
    "真",
    "蒸",
    "银行",
    "行",
]
COSTS = Costs(change=1.0, tone=0.25, sound=2.0, common=1.0)


def small() -> PinyinLexicon:
    return PinyinLexicon(WORDS, [-4.0] * len(WORDS))


def list_near(lexicon: PinyinLexicon, text: str, reach: float = 1.3) -> list:  # type: ignore[type-arg]
    return [
        lexicon.list_near({s: 0.0}, ord(c), reach)
        for c, s in zip(text, read_in_context(text), strict=True)
        if s
    ]


def test_the_word_itself_costs_nothing_and_homophones_only_their_change() -> None:
    lexicon = small()
    found = lexicon.find(list_near(lexicon, "河里"), COSTS, 1.5, 50)
    two = {m.word: m.cost for m in found[1]}
    assert two["河里"] == 0.0
    assert abs(two["合理"] - 2.0) < 1e-5  # two characters changed, same sounds and tones


def test_words_are_read_as_words() -> None:
    lexicon = small()
    found = lexicon.find(list_near(lexicon, "银行"), COSTS, 1.5, 50)
    assert "银行" in {m.word for m in found[1]}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(WORDS), st.floats(0.0, 1.3))
def test_single_characters_match_a_brute_force_search(word: str, reach: float) -> None:
    lexicon = small()
    said = list_sounds(word[0])[0]
    found = lexicon.find([lexicon.list_near({said: 0.0}, 0, reach)], COSTS, reach, 50)
    expected = {
        w
        for w in WORDS
        if len(w) == 1
        for s in list_sounds(w)
        if measure_distance(said.syllable, s.syllable) <= reach
    }
    assert {m.word for m in found[0]} == expected


def test_only_the_best_are_kept() -> None:
    lexicon = PinyinLexicon(["鱼", "余", "于"], [-4.0, -9.0, -3.0])
    sounds = {list_sounds("鱼")[0]: 0.0}
    found = lexicon.find([lexicon.list_near(sounds, 0, 0.0)], COSTS, 1.0, 2)
    assert {m.word for m in found[0]} == {"鱼", "于"}


def test_second_readings_cost_more() -> None:
    lexicon = PinyinLexicon(["行"], [-3.0])
    hang = next(s for s in list_sounds("行") if s.syllable == "hang")
    (match,) = lexicon.find([lexicon.list_near({hang: 0.0}, 0, 0.0)], COSTS, 1.0, 5)[0]
    assert match.cost >= COSTS.change + COSTS.sound * RARE_READING - 1e-5
