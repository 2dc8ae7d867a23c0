"""Thresholds of language detection, with a language model of known answers."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from memantics.core import language
from memantics.core.errors import InputError
from memantics.core.language import (
    Guess,
    Understood,
    count_scripts,
    find_converter,
    guess_language,
    has_dense_script,
    language_of,
    read_language,
    read_script,
    settle_language,
    understand,
)
from memantics.core.memes import Meme


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The probabilities that the language model returns for any text."""
    found: dict[str, float] = {}
    monkeypatch.setattr(language, "_share_languages", lambda _: dict(found))
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("一二三abcdefg", Guess("zh", 0.5, "script")),  # 3 of 10 characters
        ("一二三abcdefgh", None),  # 3 of 11
        ("一二三四五六ab", Guess("zh", 0.75, "script")),
        ("一二三の", Guess("ja", 1.0, "script")),  # 1 of 4 characters is kana
        ("一二三四の", Guess("zh", 0.8, "script")),
        ("カのab", Guess("ja", 0.5, "script")),
        ("カ一ab", Guess("ja", 0.5, "script")),
        ("안녕", Guess("ko", 1.0, "script")),
        ("สวัสดี", Guess("th", 1.0, "script")),
        ("שלום", Guess("he", 1.0, "script")),
        ("καλημέρα", Guess("el", 1.0, "script")),
        ("გამარჯობა", Guess("ka", 1.0, "script")),
        ("բարեւ", Guess("hy", 1.0, "script")),
    ],
)
def test_scripts_of_one_language(text: str, found: Guess | None, shares: dict[str, float]) -> None:
    expected = found or Guess("und", 0.0, "none")
    assert guess_language(text) == expected
    assert read_script(text) == (found.language if found else "")


@pytest.mark.parametrize(
    ("found", "text", "guess"),
    [
        ({"de": 0.3}, "abc", Guess("de", 0.3, "model")),
        ({"de": 0.29}, "abc", Guess("und", 0.29, "none")),
        ({"de": 0.4, "fr": 0.5}, "abc", Guess("fr", 0.5, "model")),
        ({}, "abc", Guess("und", 0.0, "none")),
        # One of four words is a function word of English.
        ({"de": 0.9}, "the abc abc abc", Guess("en", 0.5, "words")),
        ({"de": 0.9}, "the abc abc abc abc", Guess("de", 0.9, "model")),
        ({"en": 0.9}, "the", Guess("en", 0.9, "model")),
        ({"de": 0.9}, "I’M abc abc abc", Guess("en", 0.5, "words")),
        ({"de": 0.9}, "12 !", Guess("und", 0.0, "none")),
    ],
)
def test_scripts_of_many_languages(
    found: dict[str, float], text: str, guess: Guess, shares: dict[str, float]
) -> None:
    shares |= found
    assert guess_language(text) == guess


@pytest.mark.parametrize(
    ("found", "text", "foreign"),
    [
        ({"de": 0.3, "en": 0.19}, "abc abc abc", "de"),
        ({"de": 0.29, "en": 0.1}, "abc abc abc", ""),
        ({"de": 0.5, "en": 0.2}, "abc abc abc", ""),
        ({"de": 0.5, "en": 0.1, "fr": 0.1}, "abc abc abc", "de"),
        # Two words may be a name.
        ({"de": 0.59, "en": 0.1}, "abc abc", ""),
        ({"de": 0.6, "en": 0.1}, "abc abc", "de"),
        ({"en": 0.9, "de": 0.1}, "abc abc abc", ""),
    ],
)
def test_a_text_is_foreign_from_a_probability_on(
    found: dict[str, float], text: str, foreign: str, shares: dict[str, float]
) -> None:
    shares |= found
    assert understand(text, ["en"]).foreign == foreign
    if not foreign and max(found, key=lambda name: found[name]) == "de":
        assert understand(text, ["en"]).language == "und"


def test_languages_that_are_supported_together_count_together(shares: dict[str, float]) -> None:
    shares |= {"de": 0.5, "en": 0.1, "fr": 0.1}
    assert understand("abc abc abc", ["en"]).foreign == "de"
    assert understand("abc abc abc", ["en", "fr"]).foreign == "", "0.1 and 0.1 are 0.2"


def test_declared_languages_hold_if_the_script_allows_it(shares: dict[str, float]) -> None:
    shares |= {"fr": 0.9}
    cases = {
        ("abc", "de-AT"): "de",
        ("abc", "DE_at"): "de",
        ("abc", ""): "fr",
        ("abc", "und"): "fr",
        ("abc", "german"): "fr",
        ("abc", "zh"): "fr",
        ("abc", "ja"): "fr",
        ("123", "de"): "und",
        ("一二", "ja"): "ja",
        ("一二", "zh"): "zh",
        ("一二", "ko"): "zh",
        ("の", "zh"): "ja",
        ("の一二三四五", "zh"): "zh",
        ("一abcdefghijk", "de"): "de",
        ("一abcdefghijk", "zh"): "zh",
        ("一二", "de"): "zh",
    }
    for (text, given), expected in cases.items():
        assert settle_language(text, given) == expected, (text, given)


def test_a_declared_language_is_foreign_if_it_is_not_supported(shares: dict[str, float]) -> None:
    shares |= {"en": 0.9}
    assert understand("abc", ["en"], "de") == Understood("de", foreign="de")
    assert understand("abc", ["de"], "de") == Understood("de")
    assert understand("abc", ["ru"], "de") == Understood("de", foreign="de", legible=False)
    assert understand("", ["en"], "de") == Understood("und")
    assert understand("12", ["ru"]) == Understood("und")


@pytest.mark.parametrize(
    ("text", "name", "legible"),
    [
        ("привет", "ru", True),
        ("привет", "uk", True),
        ("привет", "ar", False),
        ("مرحبا", "fa", True),
        ("नमस्ते", "mr", True),
        ("abc", "vi", True),
        ("abc", "hi", False),
        ("안녕", "ko", True),
    ],
)
def test_letters_of_supported_languages(
    text: str, name: str, legible: bool, shares: dict[str, float]
) -> None:
    shares |= {"xx": 0.9}
    assert understand(text, [name]).legible is legible


@pytest.mark.parametrize(
    ("text", "also"),
    [
        ("一二三四五六 abc abc abc", "de"),
        ("一二三四五六 abc abc", ""),  # two words are too few
        ("一二三四五六\nabc abc abc", "de"),
        ("一二三四五六", ""),
        ("一二三四五六. 안녕", "ko"),
        ("一二三四五六. 안", ""),
    ],
)
def test_parts_in_another_language(text: str, also: str, shares: dict[str, float]) -> None:
    shares |= {"de": 0.8}
    assert understand(text, ["zh"]) == Understood("zh", also=also)
    shares["de"] = 0.79
    assert understand(text, ["zh"]).also == (also if also == "ko" else "")


def test_a_part_in_a_supported_language_makes_a_text_legible(shares: dict[str, float]) -> None:
    shares |= {"en": 0.9}
    text = "一二三四五六七八 abc abc abc"
    assert understand(text, ["en"]) == Understood("zh", also="zh")
    shares["en"] = 0.5
    assert understand(text, ["en"]) == Understood("zh", foreign="zh")
    assert understand("一二三四", ["en"]) == Understood("zh", foreign="zh", legible=False)


def test_language_codes() -> None:
    for given, code in {"": "", "  ": "", "EN": "en", "zh-Hans-CN": "zh", "ckb_x": "ckb"}.items():
        assert read_language(given) == code
    for wrong in ("und", "-en", "en-", "abcd", "e"):
        with pytest.raises(InputError) as caught:
            read_language(wrong)
        assert str(caught.value) == (
            f"{wrong!r} is not a valid language code; for example en, zh or de"
        )


def test_the_language_of_a_meme(shares: dict[str, float]) -> None:
    path = Path("a.png")
    assert language_of(Meme("a", path, "一二", "de")) == "de"
    assert language_of(Meme("a", path, "一二", "und")) == "zh"
    assert language_of(Meme("a", path, "abc")) == "en"
    assert language_of(Meme("a", path, ""), default="fr") == "fr"


def test_letters_are_counted_by_script() -> None:
    assert count_scripts("aé 1!一のカ") == {"LATIN": 2, "CJK": 1, "HIRAGANA": 1, "KATAKANA": 1}
    assert count_scripts("１２ 😀") == {}
    for text, dense in {"一": True, "の": True, "カ": True, "안": True, "ก": True}.items():
        assert has_dense_script(text) is dense
    assert not has_dense_script("abc привет שלום 1！")


def test_the_model_reads_one_line_in_lower_case(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, int, float]] = []

    class Model:
        def predict(self, line: str, k: int, threshold: float) -> tuple[list[str], list[float]]:
            read.append((line, k, threshold))
            return ["__label__de", "__label__en"], [1.00001, 0.1234567]

    monkeypatch.setattr(language, "_load_model", Model)
    assert language._share_languages(" GUTEN \n Tag\ud800 ") == {"de": 1.0, "en": 0.12346}
    language._share_languages("x" * 3000)
    assert read == [("guten tag?", -1, 0.001), ("x" * 2000, -1, 0.001)]


def test_without_the_model_only_scripts_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(language, "find_spec", lambda _: None)
    language._load_model.cache_clear()
    find_converter.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert guess_language("guten Tag zusammen") == Guess("und", 0.0, "none")
            assert guess_language("好的").language == "zh"
            assert guess_language("this is how it is").language == "en"
        (record,) = caplog.records
        assert record.name == "memantics"
        assert record.getMessage() == (
            "note: languages that share a script cannot be distinguished;"
            " pip install 'memantics[offline]'"
        )
        assert find_converter("t2s") is None
    finally:
        language._load_model.cache_clear()
        find_converter.cache_clear()


def test_traditional_and_simplified_characters() -> None:
    simplify, restore = find_converter("t2s"), find_converter("s2t")
    assert simplify is not None
    assert restore is not None
    assert (simplify("漢語"), restore("汉语")) == ("汉语", "漢語")
