"""Rows of a file meet the items of a task: by id, image and question, place, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.records import Field, Form, Image, Item, Option, Reply
from memantics.evaluation.exchange import GivenAnswer, join, join_epochs


def make_item(name: str, gold: str = "A", question: str = "Why?") -> Item:
    options = (Option("A", "A cat"), Option("b", "a dog"))
    form = Form(question, (Field("answer", "choice", options),))
    return Item(name, name, gold, form, (Image(Path(f"{name[:3]}.png")),))


def give(row: int = 1, text: str = "A", **more: object) -> GivenAnswer:
    return GivenAnswer(row, Reply(text), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("here", ["A", "b"])
@pytest.mark.parametrize("there", ["A", "a", " a ", "B", "b", ""])
def test_the_case_of_a_gold_answer_has_no_say(here: str, there: str) -> None:
    joined = join([make_item("one", here)], [give(id="one", gold=there)])
    same = there.strip().upper() in ("", here.upper())
    assert set(joined.answers) == ({"one"} if same else set())
    assert [left.reason for left in joined.skipped] == (
        []
        if same
        else [f"gold answers differ: {there.strip()!r} in the file, {here!r} in the task"]
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a CAT ", ""),
        ("a cow", "the text of the correct option differs"),
        ("", ""),
    ],
)
def test_the_text_of_the_right_option_must_be_ours(text: str, reason: str) -> None:
    joined = join([make_item("one")], [give(id="one", gold_text=text)])
    assert [left.reason for left in joined.skipped] == ([reason] if reason else [])


def test_a_row_finds_its_item_or_the_reason() -> None:
    items = [make_item("cat1"), make_item("cat2", question="How?"), make_item("dog1")]
    rows = [
        give(1, id="dog1"),
        give(2, id="cow1"),
        give(3, id="unknown", image="cat.png", question=" why? "),
        give(4, image="cat"),
        give(5, image="cat", question="Where?"),
        give(6, image="cow"),
        give(7, place=1),
        give(8, place=3),
        give(9),
    ]
    joined = join(items, rows)
    assert {name: row.row for name, row in joined.answers.items()} == {
        "dog1": 1,
        "cat1": 3,
        "cat2": 7,
    }
    assert [(left.row, left.reason) for left in joined.skipped] == [
        (2, "no item has this id"),
        (4, "ambiguous: 2 items match"),
        (5, "no item has this image and this question"),
        (6, "no item has this image"),
        (8, "no item has this index"),
        (9, "no id and no image"),
    ]
    assert (joined.rows, joined.repeated) == (9, 0)


def test_an_answer_wins_over_a_failed_call_whichever_came_first() -> None:
    failed, said = give(1, "", id="one", failure="timed out"), give(2, "A", id="one")
    for rows in ([failed, said], [said, failed]):
        joined = join([make_item("one")], rows)
        assert joined.answers == {"one": said}
        assert [(left.row, left.reason) for left in joined.skipped] == [(1, "timed out")]


def test_rows_that_disagree_are_all_left_out_and_equal_ones_are_counted() -> None:
    rows = [give(n, text, id="one") for n, text in ((1, "A"), (2, "A"), (3, "b"), (4, "c"))]
    joined = join([make_item("one")], rows)
    assert (joined.answers, joined.rows, joined.repeated) == ({}, 4, 1)
    reason = "ambiguous: 3 rows answer item one differently"
    assert [(left.row, left.reason) for left in joined.skipped] == [(n, reason) for n in (1, 3, 4)]


def test_epochs_are_joined_apart_in_their_order() -> None:
    rows = [give(1, "b", id="one", epoch=2), give(2, "A", id="one", epoch=1)]
    first, second = join_epochs([make_item("one")], rows)
    assert (first.answers["one"].row, second.answers["one"].row) == (2, 1)
    (nothing,) = join_epochs([make_item("one")], [])
    assert (nothing.answers, nothing.rows) == ({}, 0)


def test_what_is_shown_of_a_row_is_bounded_and_printable() -> None:
    (left,) = join([], [give(id="x" * 300, image="a\x1b[31m", question="q" * 201)]).skipped
    assert (len(left.id), len(left.question), "\x1b" in left.image) == (200, 200, False)
