"""Parsers find what is there, and nothing else."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.benchmarks.mquest.plugin import parse_as_published
from memantics.benchmarks.parsing import find_object, parse_label, parse_letter
from memantics.benchmarks.punmemecn.detection import ALIASES
from memantics.core.task import Unparsed

OPTIONS = {"A": "a cat on a mat", "B": "a dog", "C": "two fish", "D": "None of the others"}


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("b.", "B"),
        (" (C) ", "C"),
        ("**D**", "D"),
        ("B. a dog", "B"),
        ("Ｂ", "B"),
        ("Answer: B", "B"),
        ("answer is (B)", "B"),
        ("The cat sits.\nAnswer: **C**", "C"),
        ("I first thought Answer: A. No. Answer: B", "B"),
        ("Final answer: D.", "D"),
        ("答案：C", "C"),
        ('{"answer": "B"}', "B"),
        ('```json\n{"answer": "D"}\n```', "D"),
        ("<think>Answer: A</think>\nAnswer: C", "C"),
        ("a dog", "B"),
        ("None of the others.", "D"),
        ("A dog barks at a cat.", None),
        ("I cannot answer that.", None),
        ("The U.S. flag and D.C.", None),
        ("Answer: all of them", None),
        ("Answer: Dogs", None),
        ("E", None),
        ("", None),
    ],
)
def test_letters(text: str, letter: str | None) -> None:
    if letter is None:
        with pytest.raises(Unparsed):
            parse_letter(text, OPTIONS)
    else:
        assert parse_letter(text, OPTIONS) == letter


def test_answer_first_takes_the_first_marker() -> None:
    text = "Answer: B\nBecause it barks; a wrong answer: A."
    assert parse_letter(text, OPTIONS, "first") == "B"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("双关", "pun"),
        ("非双关", "non-pun"),
        ("“非双关”。", "non-pun"),
        ("双关。因为谐音。", "pun"),
        ("判断：双关", "pun"),
        ("判断:非双关", "non-pun"),
        ("先看图……判断：非双关", "non-pun"),
        ("这张表情包不是双关表情包", "non-pun"),
        ("Pun", "pun"),
        ("non-pun", "non-pun"),
        ("This is not a pun.", "non-pun"),
        ("Judgment: pun", "pun"),
        ("punctual", None),
        ("可能是双关，也可能是非双关", None),
        ("抱歉，我无法判断。", None),
        ("", None),
    ],
)
def test_labels(text: str, label: str | None) -> None:
    if label is None:
        with pytest.raises(Unparsed):
            parse_label(text, ALIASES)
    else:
        assert parse_label(text, ALIASES) == label


@given(st.text())
def test_any_text_gives_a_known_value_or_unparsed(text: str) -> None:
    with contextlib.suppress(Unparsed):
        assert parse_letter(text, OPTIONS) in OPTIONS
    with contextlib.suppress(Unparsed):
        assert parse_label(text, ALIASES) in ALIASES
    assert isinstance(find_object(text), dict)


@given(st.text(max_size=40), st.sampled_from("ABCD"))
def test_a_marked_letter_is_found_behind_any_prose(prose: str, letter: str) -> None:
    assert parse_letter(f"{prose}\nAnswer: {letter}", OPTIONS) == letter


def test_the_published_rule_is_kept_with_its_faults() -> None:
    assert parse_as_published("It is the U.S.") == "S"
    assert parse_as_published("Option C, I think") == "C"
    with pytest.raises(Unparsed):
        parse_as_published("no idea")


def test_deep_nesting_does_not_break_the_reader() -> None:
    assert find_object("{" * 100_000) == {}
    assert find_object('{"a":' * 3000 + "1" + "}" * 3000) is not None
