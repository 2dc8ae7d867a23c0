"""Rows of a file meet the items of a task: by id, image and question, place, or not at all."""

from __future__ import annotations

import pytest

from memantics.core.records import Field, Form, Item, Option, Reply
from memantics.exchange.joining import join
from memantics.exchange.records import GivenAnswer


def make_item(name: str, gold: str = "A", question: str = "Why?") -> Item:
    options = (Option("A", "A cat"), Option("b", "a dog"))
    return Item(name, name, gold, Form(question, (Field("answer", "choice", options),)))


def give(row: int = 1, text: str = "A", **more: object) -> GivenAnswer:
    return GivenAnswer(row, Reply(text), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("here", ["A", "b"])
@pytest.mark.parametrize("there", ["A", "a", " a ", "B", "b", ""])
def test_the_case_of_a_gold_answer_has_no_say(here: str, there: str) -> None:
    joined = join([make_item("one", here)], [give(id="one", gold=there)])
    same = there.strip().upper() in ("", here.upper())
    assert set(joined.answers) == ({"one"} if same else set())
    assert [left.reason for left in joined.left_out] == (
        [] if same else [f"gold answers differ: {there.strip()!r} there, {here!r} here"]
    )
