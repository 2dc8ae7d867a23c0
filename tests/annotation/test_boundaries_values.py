"""Answers at the bounds of each kind of field, with the words that a person reads."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from memantics.annotation.errors import AnswerError
from memantics.annotation.project_settings import LocalizedText
from memantics.annotation.tasks import is_swapped
from memantics.annotation.values import _check_field, check, clean_text
from memantics.annotation.workflow import (
    WorkflowChoice,
    WorkflowField,
    WorkflowFieldKind,
    read_workflow,
)

NEEDED = "an answer is needed"


def test_the_form_checks_what_publishing_needs() -> None:
    """The pun word must occur in the caption, as ``publish`` requires."""
    form = read_workflow("pun-form")
    given: dict[str, JsonValue] = {
        "pun": "yes", "caption": "fish and ships", "pun_word": "ships", "homophone": "chips",
        "meaning": "food", "sentiment_target": "self", "sentiment_type": "neutral",
    }  # fmt: skip
    fields = tuple(field.id for field in form.fields)
    known = {name: value for name, value in given.items() if name in fields}

    def list_problems(word: str) -> dict[str, str]:
        try:
            check(form, fields, known | {"pun_word": word})
        except AnswerError as error:
            return dict(error.problems)
        return {}

    assert "pun_word" not in list_problems("ships")
    assert list_problems("boats")["pun_word"].startswith("must occur in the field")


PROBLEMS: list[tuple[WorkflowFieldKind, JsonValue, str]] = [
    ("choice", "no", ""),
    ("choice", "maybe", "choose one of the options"),
    ("choice", None, NEEDED),
    ("boolean", False, ""),
    ("boolean", 0, "choose yes or no"),
    ("boolean", None, NEEDED),
    ("pairwise", "tie", ""),
    ("pairwise", "c", "choose one of the two"),
    ("scale", 1, "choose 2 to 4"),
    ("scale", 2, ""),
    ("scale", 4, ""),
    ("scale", 5, "choose 2 to 4"),
    ("scale", 3.0, "choose 2 to 4"),
    ("scale", True, "choose 2 to 4"),
    ("text", "abcd", ""),
    ("text", "abcde", "at most 4 characters"),
    ("text", "  ", NEEDED),
    ("text", 4, "a text is needed"),
    ("text", "\u200b", NEEDED),
    ("longtext", "a\nb", ""),
    ("list", ["abcd", "b"], ""),
    ("list", ["a", "b", "c"], "at most 2 entries"),
    ("list", ["a", "b", " "], ""),
    ("list", ["abcde"], "at most 4 characters each"),
    ("list", ["a", " a "], "an entry occurs twice"),
    ("list", ["a", 1], "a list of texts is needed"),
    ("list", "a", "a list of texts is needed"),
    ("list", [" "], NEEDED),
    ("ranked", [], NEEDED),
]


def make_field(kind: WorkflowFieldKind, **more: object) -> WorkflowField:
    options = tuple(WorkflowChoice(value=v, label=LocalizedText(en=v)) for v in ("yes", "no"))
    facts: dict[str, object] = {
        "id": "f",
        "kind": kind,
        "label": LocalizedText(en="F"),
        "max_length": 4,
    }
    facts |= {"low": 2, "high": 4} if kind == "scale" else {}
    facts |= {"options": options} if kind == "choice" else {}
    return WorkflowField.model_validate(facts | {"max_items": 2} | more)


@pytest.mark.parametrize(("kind", "value", "problem"), PROBLEMS)
def test_what_an_answer_may_be(kind: WorkflowFieldKind, value: JsonValue, problem: str) -> None:
    found, kept = _check_field(make_field(kind), value, None)
    assert found == problem
    assert (kept is None) == bool(problem)


@pytest.mark.parametrize(("kind", "value", "problem"), PROBLEMS)
def test_what_need_not_be_answered_may_be_empty(
    kind: WorkflowFieldKind, value: JsonValue, problem: str
) -> None:
    found, kept = _check_field(make_field(kind, required=False), value, None)
    assert found == ("" if problem == NEEDED else problem)
    if problem == NEEDED:
        assert kept is (False if kind == "boolean" else None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([2, 4], ""),
        ([2], "2 answers are needed, one per part of the item"),
        ([2, 3, 4], "2 answers are needed, one per part of the item"),
        (None, "2 answers are needed, one per part of the item"),
        ([None, 3], "number 1 has no answer"),
        ([3, ""], "number 2 has no answer"),
        ([3, 5], "number 2: choose 2 to 4"),
    ],
)
def test_one_answer_for_each_element(value: JsonValue, problem: str) -> None:
    field = make_field("scale", each="intents")
    assert _check_field(field, value, ["x", "y"]) == (problem, None if problem else value)


def test_without_a_tie_one_of_two_is_chosen() -> None:
    field = make_field("pairwise", ties=False)
    assert [_check_field(field, side, None)[0] for side in ("a", "b", "tie")] == [
        "",
        "",
        "choose one of the two",
    ]


def test_line_breaks_of_every_system_are_kept_as_one() -> None:
    assert clean_text(" a\r\nb\rc\n", lines=True) == "a\nb\nc"
    assert clean_text(" a\r\nb\rc\td\n", lines=False) == "a b c d"
    assert clean_text("e\u0301 👩\u200d🚀", lines=False) == "é 👩\u200d🚀"


def test_the_order_of_a_pair_stays_what_it_was_drawn_as() -> None:
    """Answers that are kept say which of two was first: another draw would turn them around."""
    drawn = [is_swapped(item, user) for item in (1, 2) for user in (1, 2, 3, 4)]
    assert drawn == [False, True, True, True, False, True, False, False]


def test_a_pun_word_must_occur_in_the_caption() -> None:
    """Otherwise the annotation cannot be published."""
    form = read_workflow("pun-form")
    values: dict[str, JsonValue] = {
        "caption": "年年有鱼", "pun": "yes", "pun_word": "鱼", "homophone": "余",
        "sentiment_target": "other", "sentiment_type": "positive", "explanation": "a fish",
    }  # fmt: skip
    fields = form.stages[0].fields
    assert check(form, fields, values)["pun_word"] == "鱼"
    with pytest.raises(AnswerError) as caught:
        check(form, fields, values | {"pun_word": "猫"})
    assert caught.value.problems == {
        "pun_word": "must occur in the field 'Caption, exactly as printed'"
    }
    assert "pun_word" not in check(form, fields, values | {"pun": "no", "pun_word": "猫"})
