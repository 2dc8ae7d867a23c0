"""Readings of captions, expressions of a negative emotion, and the planner without a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memantics.understanding.reappraisal.expressions import find_expressions, load_expressions
from memantics.understanding.reappraisal.messages import say, translate
from memantics.understanding.reappraisal.records import MemeFeeling
from memantics.understanding.reappraisal.sentences import rate_fluency
from memantics.understanding.reappraisal.situation import understand
from memantics.understanding.reappraisal.stages import NoPlanner, ReappraisalSubject
from tests.reappraisal.benches import FEELING, make_page


@pytest.mark.parametrize(
    ("caption", "negative"),
    [
        ("少来这套", True),
        ("你是什么东西", True),
        ("我很椒绿", True),  # by its reading alone
        ("panic before the exam", True),
        ("what a crybaby", True),  # not listed, but rude
        ("a catastrophe of misery", True),  # not listed, but its words are negative
        ("THE GARDEN GATE IS GREEN", False),
        ("我们今天去公园看花", False),
    ],
)
def test_word_lists_find_negative_captions(caption: str, negative: bool) -> None:
    assert understand([caption]).negative is negative


def test_one_negative_caption_is_enough() -> None:
    assert understand(["THE GARDEN GATE IS GREEN", "I PANIC"]).negative
    assert not understand([]).negative


def test_a_reading_with_a_listed_expression_is_the_intended_one() -> None:
    (line,) = understand(["我很椒绿"]).lines
    assert (line.printed, line.intended) == ("我很椒绿", "我很焦虑")
    (plain,) = understand(["I PANIC"]).lines
    assert plain.intended == "I PANIC"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GARBAGE", ["GARBAGE"]),
        ("I CAN’T", ["I CAN'T"]),
        ("awkwardly", []),  # whole words only
        ("stupid little cat", ["stupid little"]),  # the longest of overlapping expressions
        ("Oh no, I panic", ["Oh no", "I panic"]),
    ],
)
def test_expressions_are_found(text: str, found: list[str]) -> None:
    assert find_expressions(text).find(text) == found


def test_expressions_that_match_the_situation_are_not_dropped() -> None:
    english = find_expressions("a")
    assert english.drop("your phone is garbage").split() == ["your", "phone"]
    assert english.drop("she hates mondays").split()[:1] == ["she"]


@pytest.mark.parametrize(("language", "least"), [("english", 200), ("chinese", 300)])
def test_every_expression_matches_something(language: str, least: int) -> None:
    patterns = load_expressions(language).patterns
    assert len(patterns) >= least
    assert len({one.pattern for one in patterns}) == len(patterns)
    assert not any(one.fullmatch("") for one in patterns)


def test_without_a_model_every_meme_is_declined(tmp_path: Path) -> None:
    subject = ReappraisalSubject("x", tmp_path / "x.png", make_page(tmp_path))
    taken = asyncio.run(NoPlanner().feel(subject))
    assert (taken.status, taken.value) == ("answered", None)
    assert "--model KIND/NAME" in taken.reason
    feeling = MemeFeeling.model_validate(FEELING)
    assert asyncio.run(NoPlanner().plan(subject, feeling)).value is None


@pytest.mark.parametrize("name", ["needs_model", "choose_model", "no_service_model"])
def test_the_reason_is_a_sentence_of_both_languages(name: str) -> None:
    assert "need a model" in say(name)
    assert translate(say(name), "zh").startswith("改写文字需要模型")


def test_usual_words_are_more_fluent_than_a_heap_of_words() -> None:
    pytest.importorskip("pocketsphinx", reason="the extra phonetics tells English sentences")
    usual, heap = rate_fluency("see you tomorrow"), rate_fluency("tomorrow you purple")
    assert usual is not None
    assert heap is not None
    assert usual > heap
