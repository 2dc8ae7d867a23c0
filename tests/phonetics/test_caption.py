from __future__ import annotations

import pytest

from memantics.understanding.phonetics.caption import (
    clean_text,
    find_phonemes,
    simplify,
    speak_phonemes,
    split_tokens,
    write_scripts,
)
from memantics.understanding.phonetics.pinyin import KNOWN_SYLLABLES


def syllables(caption: str, variant: int = 0) -> list[list[str]]:
    script = list(write_scripts(caption))[variant]
    return [sorted({s.syllable for s in slot.sounds}) for slot in script.slots]


def test_tokens_cover_the_caption() -> None:
    caption = "我5了，OK？🎉 لا"
    tokens = split_tokens(caption)
    assert "".join(token.text for token in tokens) == caption
    assert [t.kind for t in tokens[:5]] == ["han", "digit", "han", "other", "latin"]


def test_digits_and_letters_are_read_aloud() -> None:
    assert syllables("1") == [["yao", "yi"]]
    assert syllables("D") == [["di"]]
    assert syllables("C") == [["si", "xi"]]
    assert syllables("+") == syllables(clean_text("＋")) == [["jia"]]
    assert syllables("@") == [["ai"], ["te"]]
    assert syllables("！") == [[]]


def test_plain_numbers_are_silent() -> None:
    assert syllables("8点") == [[], ["dian"]]
    assert syllables("第8")[1] == []
    assert [s for s in syllables("8:30") if s] == []
    assert syllables("50%")[:2] == [[], []]
    assert syllables("8啊") == [["ba"], ["a"]]
    assert syllables("520") == [["wu"], ["er", "liang"], ["ling"]]


def test_letters_that_are_pinyin_are_cut_into_syllables() -> None:
    if find_phonemes("nihao"):
        pytest.skip("an English word by now")
    assert syllables("nihao") == [["ni"], ["hao"]]
    assert len(syllables("yyds")) == 5  # by name: wai, wai, di, ai si


def test_pinyin_in_letters_is_pinyin() -> None:
    assert "yue" in syllables("我yue")[1]


def test_english_words_become_mandarin_syllables() -> None:
    if not find_phonemes("blue"):
        pytest.skip("no English dictionary installed")
    spoken = speak_phonemes(find_phonemes("blue"), KNOWN_SYLLABLES)
    assert [min(s) for s in spoken] in (["bu", "lou"], ["bu", "lu"])
    assert find_phonemes("../etc") == ()


def test_fused_syllables_have_a_variant_in_full() -> None:
    assert syllables("酱", 0) == [["jiang"]]
    assert syllables("酱", 1) == [["zhe"], ["yang"]]


def test_traditional_characters_are_simplified() -> None:
    if simplify("馬") == "馬":
        pytest.skip("no converter installed")
    script = next(write_scripts("馬"))
    assert script.slots[0].simple == "马"
    assert script.tokens[0].text == "馬"


def test_cleaning_keeps_what_is_seen() -> None:
    assert clean_text("好\u200b吗\ud800\x07") == "好吗"
    assert clean_text("👍🏽") == "👍🏽"
