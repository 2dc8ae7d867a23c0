"""A reply that repeats the text of two equal options names neither of them."""

from __future__ import annotations

import pytest

from memantics.benchmarks.parsing import parse_letter
from memantics.core.task import Unparsed

OPTIONS = {"A": "a cat", "B": "a dog", "C": "A cat."}


@pytest.mark.parametrize("reply", ["a cat", "A cat.", "**a cat**"])
def test_the_text_of_two_equal_options_is_ambiguous(reply: str) -> None:
    with pytest.raises(Unparsed, match="no option letter found"):
        parse_letter(reply, OPTIONS)


def test_the_text_of_one_option_names_it() -> None:
    assert parse_letter("a dog", OPTIONS) == "B"
    assert parse_letter("a cat", {"A": "a cat", "B": "a dog"}) == "A"


def test_a_letter_decides_between_equal_options() -> None:
    assert parse_letter("Answer: C", OPTIONS) == "C"
    assert parse_letter("option C, a cat", OPTIONS) == "C"
    with pytest.raises(Unparsed):
        parse_letter("a cat, so option A or option C", OPTIONS)
