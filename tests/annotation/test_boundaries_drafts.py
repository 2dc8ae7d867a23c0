"""Where a stage starts from, which fields count, and what a resolved item tells about its votes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from memantics.annotation.aggregation import (
    AggregationCase,
    StageAnnotation,
    aggregate,
    state_before,
)
from memantics.annotation.workflow import Workflow, parse_workflow, read_workflow

FIELD = '[[fields]]\nid = "{}"\nkind = "text"\nlabel = {{ en = "Text" }}\n'
STAGE = """
[[stages]]
id = "{}"
kind = "{}"
title = {{ en = "Stage" }}
start = "{}"
fields = ["first", "second"]
"""


def chain(*stages: tuple[str, str]) -> Workflow:
    """Two texts that pass through stages of some kind, each with its start."""
    text = 'name = "chain"\ntitle = { en = "Chain" }\n'
    text += FIELD.format("first") + FIELD.format("second")
    for place, (kind, start) in enumerate(stages):
        text += STAGE.format(f"s{place}", kind, start)
    last = len(stages) - 1
    text += f'[[aggregate]]\nfields = ["first", "second"]\nstage = "s{last}"\nrule = "last"\n'
    return parse_workflow(text, "chain.toml")


DRAFT = {"first": "draft", "second": "draft"}


def start_of(
    flow: Workflow, stage: int, *annotations: StageAnnotation, prelabels: bool = True
) -> object:
    return state_before(
        flow, stage, AggregationCase("i", "g", DRAFT, annotations), prelabels=prelabels
    )


@pytest.mark.parametrize(
    ("start", "shown", "hidden"),
    [("empty", {}, {}), ("prelabels", DRAFT, {}), ("drafts", DRAFT, DRAFT)],
)
def test_a_stage_starts_from_what_it_says(start: str, shown: object, hidden: object) -> None:
    flow = chain(("sequential", start))
    assert start_of(flow, 0, prelabels=True) == shown
    assert start_of(flow, 0, prelabels=False) == hidden


def test_drafts_that_an_earlier_stage_started_from_stay_and_those_of_a_later_one_do_not_come() -> (
    None
):
    assert start_of(chain(("sequential", "drafts"), ("sequential", "empty")), 1) == DRAFT
    later = chain(("sequential", "empty"), ("sequential", "drafts"))
    assert start_of(later, 0) == {}
    assert start_of(later, 1) == DRAFT


def test_only_sequential_answers_up_to_the_stage_are_laid_over() -> None:
    flow = chain(("sequential", "drafts"), ("independent", "drafts"), ("sequential", "drafts"))
    said = [StageAnnotation(n, 0, {"first": f"by {n}", "second": f"by {n}"}) for n in range(3)]
    assert start_of(flow, 0, *said) == {"first": "by 0", "second": "by 0"}
    assert start_of(flow, 1, *said) == {"first": "by 0", "second": "by 0"}
    assert start_of(flow, 2, *said) == {"first": "by 2", "second": "by 2"}


def test_what_an_editor_emptied_is_gone() -> None:
    flow = chain(("sequential", "drafts"))
    assert start_of(flow, 0, StageAnnotation(0, 0, {"first": "mine"})) == {"first": "mine"}
    found = aggregate(
        flow, AggregationCase("i", "g", DRAFT, [StageAnnotation(0, 0, {"second": "mine"})])
    )
    assert found.values == {"second": "mine"}


def test_prelabels_count_unless_the_project_hides_them() -> None:
    case = AggregationCase("i", "g", DRAFT, [])
    flow = chain(("sequential", "prelabels"))
    assert aggregate(flow, case).values == DRAFT
    assert aggregate(flow, case, prelabels=False).values == {}
    rated: list[JsonValue] = [4, 5]
    reviews = [
        StageAnnotation(1, assignment, {"correctness": rated, "completeness": rated})
        for assignment in range(2)
    ]
    drafted = AggregationCase("i", "g", {"intents": ["a", "b"]}, reviews)
    edit = read_workflow("collect-and-edit")
    assert aggregate(edit, drafted).values == {"intents": ["a", "b"]}
    assert aggregate(edit, drafted, prelabels=False).values == {}


def settle(
    name: str, *answers: Mapping[str, JsonValue], labels: tuple[str, ...] = ()
) -> tuple[Mapping[str, JsonValue], Mapping[str, JsonValue]]:
    annotations = [StageAnnotation(0, slot, own) for slot, own in enumerate(answers)]
    found = aggregate(
        read_workflow(name), AggregationCase("i", "g", {}, annotations, labels=frozenset(labels))
    )
    return found.values, found.details


def test_a_field_counts_only_beside_the_text_that_it_needs() -> None:
    rated: dict[str, JsonValue] = {
        "completeness": 5,
        "relevance": 4,
        "correctness": 3,
        "preference": "a",
    }
    assert settle("rate-outputs", rated, labels=("pair",))[0] == {"preference": "a"}
    assert "preference" not in settle("rate-outputs", rated, labels=("output",))[0]
    assert settle("rate-outputs", rated)[0] == {}


def test_a_box_that_was_not_ticked_is_a_no() -> None:
    judged = {"question": "yes", "answer": "yes"}
    assert settle("validate", judged)[0] == judged
    assert settle("validate", {**judged, "unclear": False})[0] == {**judged, "unclear": False}
    assert settle("validate", {**judged, "unclear": True})[0] == {"unclear": True}


def test_a_choice_that_was_not_made_is_no_no() -> None:
    # The type is asked where harmful is "yes": without a word on harm there is no type.
    assert settle("label-by-vote", {"type": "offence"})[0] == {}


def test_votes_are_told_value_by_value() -> None:
    _, told = settle("label-by-vote", {"harmful": "no"}, {"harmful": "no"}, {"harmful": "yes"})
    assert told == {"counts:harmful": {"no": 2, "yes": 1}}
    _, told = settle("validate", {"unclear": True}, {"unclear": True}, {"unclear": False})
    assert told["counts:unclear"] == {"true": 2, "false": 1}
    one = {"sentiment_target": "self", "sentiment_type": "negative"}
    other = {"sentiment_target": "other", "sentiment_type": "neutral"}
    _, told = settle("pun-form", one, one, other)
    name = "counts:sentiment_target+sentiment_type"
    assert told[name] == {"self-negative": 2, "other-neutral": 1}


def test_a_tie_is_told_and_does_not_hide_another() -> None:
    both = [{"sentiment_target": own, "sentiment_type": "neutral"} for own in ("self", "other")]
    values, told = settle("pun-form", *both)
    assert told["tie:sentiment_target+sentiment_type"] is True
    assert told["tied"] is True
    assert values == {}
    # The caption's tie goes to nobody, the one before it to the adjudicator: the item waits.
    votes = [{"harmful": own} for own in ("yes", "no")]
    assert settle("label-by-vote", *votes)[1] == {"tie:harmful": True, "tied": True}


def test_a_required_field_that_nobody_filled_in_is_a_tie_only_where_somebody_voted() -> None:
    assert settle("label-by-vote")[1] == {}
    assert settle("label-by-vote", {"type": "offence"})[1]["tied"] is True


def test_a_list_is_voted_on_whatever_the_order_of_its_keys() -> None:
    flow = parse_workflow(
        'name = "t"\ntitle = { en = "T" }\n'
        + FIELD.format("first")
        + '[[stages]]\nid = "s"\nkind = "independent"\nannotators = 3\ntitle = { en = "S" }\n'
        'fields = ["first"]\n'
        '[[aggregate]]\nfields = ["first"]\nstage = "s"\nrule = "majority"\n',
        "t.toml",
    )
    one: JsonValue = {"a": 1, "b": 2}
    same: JsonValue = {"b": 2, "a": 1}
    votes = [
        StageAnnotation(0, assignment, {"first": own})
        for assignment, own in enumerate([one, same, "x"])
    ]
    assert aggregate(flow, AggregationCase("i", "g", {}, votes)).values == {"first": one}


def test_what_reviewers_drop_is_told_with_the_means() -> None:
    edited = StageAnnotation(0, 0, {"intents": ["one", "two", "three"], "background": []})
    marks: list[list[JsonValue]] = [[5, 2, 4], [4, 5, 5]]
    reviews = [
        StageAnnotation(1, assignment, {"correctness": own, "completeness": [5, 5, 5]})
        for assignment, own in enumerate(marks)
    ]
    found = aggregate(
        read_workflow("collect-and-edit"), AggregationCase("i", "g", {}, [edited, *reviews])
    )
    assert found.values["intents"] == ["one", "three"]
    assert found.details["means:correctness"] == [4.5, 3.5, 4.5]
    assert found.details["dropped:intents"] == ["two"]
    assert found.details["restored:intents"] == []


def test_a_ruling_adds_to_what_the_voters_agreed_on() -> None:
    agreed = {"caption": "c", "pun": "no", "explanation": "why"}
    split = [
        {**agreed, "sentiment_target": own, "sentiment_type": "neutral"}
        for own in ("self", "other")
    ]
    annotations = [StageAnnotation(0, slot, own) for slot, own in enumerate(split)]
    ruling = StageAnnotation(1, 0, {"sentiment_target": "self", "sentiment_type": "neutral"})
    found = aggregate(
        read_workflow("pun-form"), AggregationCase("i", "g", {}, [*annotations, ruling])
    )
    assert found.values == split[0]
    assert found.kept


def test_numbers_that_are_none_give_no_mean() -> None:
    assert settle("rate-outputs", {"completeness": "?"}, labels=("output",))[0] == {}
