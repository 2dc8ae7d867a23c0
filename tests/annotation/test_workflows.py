"""The rules as data: the files, strict errors, and answers against their form."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from memantics.annotation.errors import AnswerError
from memantics.annotation.project_settings import LocalizedText
from memantics.annotation.values import check, clean_text, turn_pairs, visible
from memantics.annotation.web.fields import RESERVED
from memantics.annotation.workflow import (
    Workflow,
    list_workflows,
    parse_workflow,
    read_workflow,
    workflow_text,
)
from memantics.core.errors import DataError, InputError, UnknownName

OURS = (
    "code-errors",
    "collect-and-edit",
    "edit-chats",
    "find-emotions",
    "label-by-vote",
    "pun-form",
    "questionnaire",
    "questionnaire-zh",
    "rate-answers",
    "rate-edits",
    "rate-outputs",
    "rate-questions",
    "review",
    "review-harm",
    "review-labels",
    "review-policy",
    "review-text",
    "validate",
    "verify-stages",
)
SMALL = """
name = "small"
title = { en = "Small" }
[[fields]]
id = "good"
kind = "boolean"
label = { en = "Good?" }
[[stages]]
id = "say"
kind = "independent"
title = { en = "Say" }
fields = ["good"]
[[aggregate]]
fields = ["good"]
rule = "majority"
stage = "say"
"""


def texts(workflow: Workflow) -> list[LocalizedText]:
    found = [workflow.title, workflow.instructions, *workflow.examples]
    found += [stage.title for stage in workflow.stages]
    for field in workflow.fields:
        found += [field.label, *field.anchors, *(option.label for option in field.options)]
        found += [field.help] if field.help.en else []
    return found


def test_there_are_no_others() -> None:
    assert list_workflows() == OURS


@pytest.mark.parametrize("name", OURS)
def test_each_is_sound_and_speaks_both_languages(name: str) -> None:
    workflow = read_workflow(name)
    assert workflow.name == name
    assert all(words.en and words.zh for words in texts(workflow))
    assert len(workflow.examples) >= 2
    resolved = {field for rule in workflow.aggregate for field in rule.fields}
    reviewed = {rule.by for rule in workflow.aggregate}
    asked = {field for stage in workflow.stages for field in stage.fields}
    assert asked == {field.id for field in workflow.fields}
    assert asked - resolved - reviewed <= {"completeness"}


@pytest.mark.parametrize("name", OURS)
def test_keys_are_unique_among_what_is_open_at_once(name: str) -> None:
    """A key may serve several fields, but not two options of one field."""
    for field in read_workflow(name).fields:
        keys = [option.key for option in field.options]
        assert all(keys)
        assert not set(keys) & set(RESERVED), "these keys show, go back, undo and write"
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', "", r"own.toml: key 'name': Field required"),
        ('name = "small"', 'name = "Not OK"', "key 'name'"),
        ('kind = "boolean"', 'kind = "bool"', r"key 'fields.0.kind'"),
        ('kind = "boolean"', 'kind = "choice"', "kind 'choice' needs options"),
        ('kind = "boolean"', 'kind = "boolean"\nqueue_options = true', "other kinds have none"),
        (
            '"boolean"',
            '"choice"\nqueue_options = true\noptions = [{ value = "a", label = { en = "A" } }]',
            "either options or queue_options",
        ),
        ('kind = "boolean"', 'kind = "boolean"\ncolour = "red"', r"'fields.0.colour': unknown key"),
        ('fields = ["good"]\n[[aggregate', 'fields = ["god"]\n[[aggregate', "unknown name 'god'"),
        ('stage = "say"', 'stage = "sing"', "unknown name 'sing'"),
        ('rule = "majority"', 'rule = "lottery"', r"key 'aggregate.0.rule'"),
        ('rule = "majority"', 'rule = "reviewed"', "rule 'reviewed' needs 'by'"),
        ('stage = "say"', 'stage = "say"\ntie = "adjudicate"', "such a stage needs such a rule"),
        ("label = {", "show_if = { later = [true] }\nlabel = {", "unknown name 'later'"),
        ('kind = "boolean"', 'kind = "scale"\nlow = 5\nhigh = 1', "a scale needs low < high"),
        ('kind = "boolean"', 'kind = "text"\neach = "good"', "'each' needs kind"),
        ("[[stages]]", "[[stages]", "not valid TOML"),
    ],
)
def test_errors_name_file_and_key(old: str, new: str, message: str) -> None:
    assert parse_workflow(SMALL, "own.toml").name == "small"
    with pytest.raises(DataError, match=message) as caught:
        parse_workflow(SMALL.replace(old, new, 1), "own.toml")
    assert str(caught.value).startswith("own.toml: ")


def test_own_files_are_read_by_path(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    assert read_workflow(path).name == "small"
    assert read_workflow(str(path)).name == "small"
    with pytest.raises(UnknownName, match="did you mean pun-form"):
        workflow_text("punform")
    with pytest.raises(InputError, match="cannot be read"):
        workflow_text(tmp_path / "none.toml")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        workflow_text(path)


def test_what_is_asked_depends_on_answers_and_on_what_is_shown() -> None:
    form = read_workflow("validate")
    fields = form.stages[0].fields
    assert visible(form, fields, {}, frozenset()) == ("unclear", "question", "answer")
    assert visible(form, fields, {"unclear": True}, frozenset({"knowledge"})) == ("unclear",)
    labels = frozenset({"knowledge", "element", "options", "second question"})
    assert visible(form, fields, {"unclear": False}, labels) == fields


def test_a_chain_of_conditions_falls_together() -> None:
    form = read_workflow("label-by-vote")
    answer: dict[str, JsonValue] = {"harmful": "no", "type": "targeted", "target": "age"}
    assert check(form, form.stages[0].fields, answer) == {"harmful": "no"}


CORRECT: dict[str, JsonValue] = {"correctness": [4, 5], "completeness": [1, 2]}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"correctness": [4]}, "correctness"),
        ({"correctness": [4, 6]}, "correctness"),
        ({"correctness": [4, None]}, "correctness"),
        ({"correctness": [4, True]}, "correctness"),
        ({"correctness": [4, 4.0]}, "correctness"),
        ({"completeness": "5"}, "completeness"),
        ({"intents": ["mine"]}, "intents"),
    ],
)
def test_ratings_of_each_element(changed: dict[str, JsonValue], field: str) -> None:
    form = read_workflow("collect-and-edit")
    fields = form.stages[1].fields
    state: dict[str, JsonValue] = {"intents": ["x", "y"]}
    assert check(form, fields, CORRECT, state=state) == CORRECT
    with pytest.raises(AnswerError) as caught:
        check(form, fields, CORRECT | changed, state=state)
    assert set(caught.value.problems) == {field}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ([" a  b ", "", "c"], ["a b", "c"]),
        (["a", "a "], None),
        ([], None),
        ("a", None),
        ([1], None),
        (["x" * 501], None),
        ([str(n) for n in range(11)], None),
    ],
)
def test_lists_are_cleaned_and_bounded(value: JsonValue, kept: list[str] | None) -> None:
    form = read_workflow("collect-and-edit")
    if kept is not None:
        assert check(form, form.stages[0].fields, {"intents": value}) == {"intents": kept}
        return
    with pytest.raises(AnswerError):
        check(form, form.stages[0].fields, {"intents": value})


@pytest.mark.slow
@given(text=st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    for lines in (True, False):
        once = clean_text(text, lines=lines)
        assert clean_text(once, lines=lines) == once
        assert lines or "\n" not in once


@given(side=st.sampled_from(["a", "b", "tie"]), swapped=st.booleans())
def test_pairs_turn_there_and_back(side: str, swapped: bool) -> None:
    form = read_workflow("rate-outputs")
    seen = turn_pairs(form, {"preference": side}, swapped=swapped, outward=True)
    assert seen["preference"] in ("first", "second", "tie")
    assert turn_pairs(form, seen, swapped=swapped, outward=False) == {"preference": side}


def test_a_side_that_is_none_is_refused() -> None:
    form = read_workflow("rate-outputs")
    kept = turn_pairs(form, {"preference": "a"}, swapped=False, outward=False)
    with pytest.raises(AnswerError):
        check(form, ("preference",), kept, labels=frozenset({"pair"}))


def test_a_text_that_nobody_sees_is_no_answer() -> None:
    form = read_workflow("verify-stages")
    with pytest.raises(AnswerError, match="note: an answer is needed"):
        check(form, ("edit_check", "note"), {"edit_check": "revise", "note": "\u202e \u200b"})
