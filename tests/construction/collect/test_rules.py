"""Each filter turns away what it is for, and nothing else; languages by script, model, words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memantics.construction.collect.looks import FileLook
from memantics.construction.collect.rules import MemeCandidate, RuleSet, read_thresholds
from memantics.core.errors import InputError, UnknownName
from memantics.core.language import Guess, guess_language
from memantics.understanding.vision.regions import is_signature

GOOD = FileLook(
    "0" * 64, "v", 400, 300, "0" * 16, "a fine caption here", 0.97, 30, covered=0.2, variety=0.6
)


def judge(look: FileLook, rules: RuleSet | None = None, *, given: bool = False) -> str:
    guess = guess_language(look.text)
    dropped = (rules or RuleSet()).judge(MemeCandidate(look, look.text, guess, given))
    return dropped.rule if dropped else ""


def test_a_good_meme_stays() -> None:
    assert judge(GOOD) == ""
    assert judge(replace(GOOD, text="我好难")) == ""


@pytest.mark.parametrize(
    ("rule", "look"),
    [
        ("decode", replace(GOOD, error="truncated")),
        ("text", replace(GOOD, text="")),
        ("text", replace(GOOD, text="12:30 !!!")),
        ("meaning", replace(GOOD, text="haha haha HAHA")),
        ("meaning", replace(GOOD, text="@some.body www.example.com")),
        ("meaning", replace(GOOD, text="好好好")),
        ("size", replace(GOOD, width=80)),
        ("certainty", replace(GOOD, certainty=0.4)),
        ("height", replace(GOOD, line_height=6)),
        ("picture", replace(GOOD, covered=0.95)),
        ("variety", replace(GOOD, variety=0.001)),
    ],
)
def test_each_rule_turns_away_what_it_is_for(rule: str, look: FileLook) -> None:
    assert judge(look) == rule


def test_a_text_that_a_person_gave_needs_no_sure_ocr() -> None:
    blurred = replace(GOOD, certainty=0.0, line_height=0)
    assert judge(blurred) == "certainty"
    assert judge(blurred, given=True) == ""


def test_thresholds_are_settings() -> None:
    assert judge(GOOD, RuleSet(thresholds=read_thresholds(["meaning=9"]))) == "meaning"
    with pytest.raises(UnknownName, match="did you mean meaning"):
        read_thresholds(["meening=1"])
    with pytest.raises(InputError, match="is not a valid threshold"):
        read_thresholds(["meaning=lots"])


def test_other_languages_are_turned_away_only_where_one_is_wanted() -> None:
    chinese = replace(GOOD, text="今天晚上又失眠了")
    assert judge(chinese) == ""
    assert judge(chinese, RuleSet(languages=frozenset({"zh"}))) == ""
    assert judge(chinese, RuleSet(languages=frozenset({"en"}))) == "language"
    assert judge(GOOD, RuleSet(languages=frozenset({"zh"}))) == "language"


def test_a_text_too_short_to_tell_is_given_the_benefit_of_the_doubt() -> None:
    short = replace(GOOD, text="brr zzz")
    assert guess_language(short.text).language == "und"
    assert judge(short, RuleSet(languages=frozenset({"en"}))) == ""
    assert judge(short, RuleSet(languages=frozenset({"zh"}))) == "language"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PEOPLE WHO POUR THE MILK FIRST", "en"),
        ("OK 我知道了", "zh"),
        ("これは何ですか", "ja"),
        ("爱情的カ量很强大", "zh"),
        ("안녕하세요", "ko"),
        ("12:30", "und"),
        ("", "und"),
    ],
)
def test_languages_of_captions(text: str, expected: str) -> None:
    assert guess_language(text).language == expected


def test_a_language_is_told_by_script_by_the_model_or_by_little_words() -> None:
    assert guess_language("今天又失眠了") == Guess("zh", 1.0, "script")
    assert guess_language("wir haben schon wieder montag").language == "de"
    assert guess_language("wir haben schon wieder montag").method == "model"
    assert guess_language("when you are the only one").method == "model"
    assert guess_language("PEOPLE WHO POUR THE MILK FIRST") == Guess("en", 0.5, "words")


def test_a_watermark_drops_only_where_that_is_asked() -> None:
    marked = replace(GOOD, watermark="@somebody")
    strict = RuleSet(thresholds=read_thresholds(["watermark=1"]))
    assert judge(marked) == ""
    assert judge(marked, strict) == "watermark"
    assert judge(GOOD, strict) == ""


@pytest.mark.parametrize(
    ("text", "height", "marked"),
    [
        ("@somebody", 21, True),
        ("@somebody", 22, False),
        ("小红书", 12, True),
        ("imgflip.com", 9, True),
        ("plain words", 9, False),
    ],
)
def test_a_signature_is_small_and_names_a_site(text: str, height: int, marked: bool) -> None:
    assert is_signature(text, height, 300) is marked
