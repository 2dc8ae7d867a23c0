"""Votes, drops and restores, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from memantics.annotate.resolution import Ballot, Case, resolve
from memantics.annotate.workflow import read_workflow

Answer = Mapping[str, JsonValue]


def case(
    *stages: list[Answer],
    labels: frozenset[str] = frozenset(),
    prelabels: Answer | None = None,
) -> Case:
    ballots = [
        Ballot(stage, seat, answer)
        for stage, answers in enumerate(stages)
        for seat, answer in enumerate(answers)
    ]
    return Case("i", "g", prelabels or {}, ballots, labels=labels)


def harm(kind: str, modality: str = "text", **more: str) -> dict[str, JsonValue]:
    return {"harmful": "yes", "type": kind, "modality": modality, **more}


NO: Answer = {"harmful": "no"}


@pytest.mark.parametrize(
    ("votes", "values", "tied"),
    [
        ([NO, NO, harm("offence")], {"harmful": "no"}, False),
        (
            [harm("offence"), harm("offence", "image"), NO],
            {"harmful": "yes", "type": "offence"},
            True,
        ),
        (
            [harm("offence"), harm("offence"), harm("innuendo")],
            {"harmful": "yes", "type": "offence", "modality": "text"},
            False,
        ),
        (
            [harm("targeted", target="age"), harm("targeted", target="age"), NO],
            {"harmful": "yes", "type": "targeted", "modality": "text", "target": "age"},
            False,
        ),
        ([harm("offence"), NO], {}, True),
    ],
)
def test_label_by_vote(votes: list[Answer], values: Answer, tied: bool) -> None:
    found = resolve(read_workflow("label-by-vote"), case(votes))
    assert found.values == values
    assert found.kept == (not tied)
    assert found.reason == ("no majority" if tied else "")


def test_an_adjudicator_decides_the_whole_record() -> None:
    votes: list[Answer] = [harm("offence"), harm("innuendo"), harm("dispirited")]
    ruled = resolve(read_workflow("label-by-vote"), case(votes, [NO]))
    assert (ruled.values, ruled.kept) == ({"harmful": "no"}, True)


JUDGED: Answer = {"unclear": False, "question": "yes", "answer": "yes"}


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (JUDGED, True),
        ({**JUDGED, "answer": "maybe"}, False),
        ({**JUDGED, "question": "no"}, False),
        ({"unclear": True}, False),
        ({**JUDGED, "second_question": "no", "second_answer": "no", "knowledge": "no"}, True),
    ],
)
def test_validate_keeps_what_is_yes_twice(answer: Answer, kept: bool) -> None:
    labels = frozenset({"knowledge", "second question"})
    found = resolve(read_workflow("validate"), case([answer], labels=labels))
    assert found.kept == kept
    assert found.values == answer


def intents(*texts: str) -> dict[str, JsonValue]:
    return {"intents": list(texts)}


@pytest.mark.parametrize(
    ("first", "second", "kept", "restored"),
    [
        ([5, 4, 3], [4, 5, 5], ["one", "two"], []),
        ([3, 3, 2], [3, 4, 2], ["two"], ["two"]),
        ([3, 3, 1], [4, 4, 1], ["one", "two"], ["one", "two"]),
        ([5, 5, 5], [5, 5, 5], ["one", "two", "three"], []),
    ],
)
def test_reviewed_intents_drop_and_come_back(
    first: list[JsonValue], second: list[JsonValue], kept: list[str], restored: list[str]
) -> None:
    chain: list[Answer] = [
        intents("one"),
        {**intents("one", "two"), "background": ["a fact", "a doubt?"]},
        {**intents("one", "two", "three"), "background": ["a fact"]},
    ]
    reviews: list[Answer] = [
        {"correctness": first, "completeness": [1, 1, 1]},
        {"correctness": second, "completeness": [1, 1, 1]},
    ]
    found = resolve(read_workflow("collect-and-edit"), case(chain, reviews))
    assert found.values == {"intents": kept, "background": ["a fact"]}
    assert found.details["restored:intents"] == restored


DRAFTS: dict[str, JsonValue] = {
    "source_emotion": "sad",
    "description": "a dog",
    "target_emotion": "happy",
    "rewritten": "a good day",
    "plan": "add sun",
}


def test_stages_fold_corrections_into_drafts() -> None:
    emotion: Answer = {
        "emotion_check": "revise",
        "source_emotion": "bored",
        "description": "a tired dog",
    }
    found = resolve(
        read_workflow("verify-stages"),
        case([emotion], [{"plan_check": "approve"}], [{"edit_check": "approve"}], prelabels=DRAFTS),
    )
    assert found.kept
    assert found.values == {
        **DRAFTS,
        **emotion,
        "plan_check": "approve",
        "edit_check": "approve",
    }


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        ([[{"emotion_check": "remove"}]], "removed at emotion"),
        ([[{"emotion_check": "approve"}], [{"plan_check": "remove"}]], "removed at plan"),
        (
            [
                [{"emotion_check": "approve"}],
                [{"plan_check": "approve"}],
                [{"edit_check": "revise", "note": "hands"}],
            ],
            "to be made again",
        ),
    ],
)
def test_a_removal_ends_an_item(stages: list[list[Answer]], reason: str) -> None:
    found = resolve(read_workflow("verify-stages"), case(*stages, prelabels=DRAFTS))
    assert (found.kept, found.reason) == (False, reason)


def pun(target: str, kind: str, explanation: str, **more: str) -> dict[str, JsonValue]:
    base: dict[str, JsonValue] = {"caption": "c", "pun": "no"}
    base |= {"sentiment_target": target, "sentiment_type": kind, "explanation": explanation}
    return base | dict(more)


def test_sentiment_is_voted_on_as_one_label() -> None:
    # Two for "self" and two for "negative", but no two for one and the same label.
    votes: list[Answer] = [
        pun("self", "negative", "short"),
        pun("self", "positive", "the longest one"),
        pun("other", "negative", "longer"),
    ]
    found = resolve(read_workflow("pun-form"), case(votes))
    assert found.reason == "no majority"
    assert "sentiment_target" not in found.values
    assert found.values["explanation"] == "the longest one"


def test_pun_words_are_voted_on_among_those_who_see_a_pun() -> None:
    votes: list[Answer] = [
        pun("self", "negative", "x", pun="yes", pun_word="堡", homophone="饱"),
        pun("self", "negative", "x", pun="yes", pun_word="堡", homophone="饱"),
        pun("self", "negative", "x"),
    ]
    found = resolve(read_workflow("pun-form"), case(votes))
    assert (found.kept, found.values["pun_word"], found.values["homophone"]) == (True, "堡", "饱")


def test_ratings_are_averaged_and_preferences_counted() -> None:
    workflow = read_workflow("rate-outputs")
    rated: list[Answer] = [
        {"completeness": 5, "relevance": 4, "correctness": 2},
        {"completeness": 4, "relevance": 4, "correctness": 5},
    ]
    found = resolve(workflow, case(rated, labels=frozenset({"output"})))
    assert found.values == {"completeness": 4.5, "relevance": 4.0, "correctness": 3.5}
    pairs: list[Answer] = [{"preference": "a"}, {"preference": "a"}]
    assert resolve(workflow, case(pairs, labels=frozenset({"pair"}))).values == {"preference": "a"}
    split: list[Answer] = [{"preference": "a"}, {"preference": "b"}]
    undecided = resolve(workflow, case(split, labels=frozenset({"pair"})))
    assert (undecided.values, undecided.kept) == ({}, True)


def test_an_unfinished_item_is_not_kept() -> None:
    open_case = Case("i", "g", {}, [Ballot(0, 0, JUDGED)], complete=False)
    found = resolve(read_workflow("validate"), open_case)
    assert (found.kept, found.reason, found.complete) == (False, "not finished", False)
