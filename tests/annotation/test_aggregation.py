"""Votes, drops and restores, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import pytest
from pydantic import JsonValue

from memantics.annotation.aggregation import AggregationCase, StageAnnotation, aggregate
from memantics.annotation.workflow import Workflow, parse_workflow, read_workflow

Answer = Mapping[str, JsonValue]


def case(
    *stages: list[Answer],
    labels: frozenset[str] = frozenset(),
    prelabels: Answer | None = None,
) -> AggregationCase:
    annotations = [
        StageAnnotation(stage, assignment, answer)
        for stage, answers in enumerate(stages)
        for assignment, answer in enumerate(answers)
    ]
    return AggregationCase("i", "g", prelabels or {}, annotations, labels=labels)


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
    found = aggregate(read_workflow("label-by-vote"), case(votes))
    assert found.values == values
    assert found.kept == (not tied)
    assert found.reason == ("no majority" if tied else "")


def test_an_adjudicator_decides_the_whole_record() -> None:
    votes: list[Answer] = [harm("offence"), harm("innuendo"), harm("dispirited")]
    ruled = aggregate(read_workflow("label-by-vote"), case(votes, [NO]))
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
    found = aggregate(read_workflow("validate"), case([answer], labels=labels))
    assert found.kept == kept
    assert found.values == answer


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, ""),
        ({"also_right": False, "absurd": False}, ""),
        ({"also_right": True, "absurd": False}, "another option is also right"),
        ({"also_right": False, "absurd": True}, "an option is absurd"),
    ],
)
def test_other_options_must_be_wrong_and_plausible(said: Answer, reason: str) -> None:
    answer = {**JUDGED, **said}
    said_by_three = case([answer] * 3, labels=frozenset({"options"}))
    found = aggregate(read_workflow("validate"), said_by_three)
    assert (found.kept, found.reason) == (not reason, reason)


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
    found = aggregate(read_workflow("collect-and-edit"), case(chain, reviews))
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
    found = aggregate(
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
            "to be regenerated",
        ),
    ],
)
def test_a_removal_ends_an_item(stages: list[list[Answer]], reason: str) -> None:
    found = aggregate(read_workflow("verify-stages"), case(*stages, prelabels=DRAFTS))
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
    found = aggregate(read_workflow("pun-form"), case(votes))
    assert found.reason == "no majority"
    assert "sentiment_target" not in found.values
    assert found.values["explanation"] == "the longest one"


def test_pun_words_are_voted_on_among_those_who_see_a_pun() -> None:
    votes: list[Answer] = [
        pun("self", "negative", "x", pun="yes", pun_word="堡", homophone="饱"),
        pun("self", "negative", "x", pun="yes", pun_word="堡", homophone="饱"),
        pun("self", "negative", "x"),
    ]
    found = aggregate(read_workflow("pun-form"), case(votes))
    assert (found.kept, found.values["pun_word"], found.values["homophone"]) == (True, "堡", "饱")


def test_ratings_are_averaged_and_preferences_counted() -> None:
    workflow = read_workflow("rate-outputs")
    rated: list[Answer] = [
        {"completeness": 5, "relevance": 4, "correctness": 2},
        {"completeness": 4, "relevance": 4, "correctness": 5},
    ]
    found = aggregate(workflow, case(rated, labels=frozenset({"output"})))
    assert found.values == {"completeness": 4.5, "relevance": 4.0, "correctness": 3.5}
    pairs: list[Answer] = [{"preference": "a"}, {"preference": "a"}]
    assert aggregate(workflow, case(pairs, labels=frozenset({"pair"}))).values == {
        "preference": "a"
    }
    split: list[Answer] = [{"preference": "a"}, {"preference": "b"}]
    undecided = aggregate(workflow, case(split, labels=frozenset({"pair"})))
    assert (undecided.values, undecided.kept) == ({}, True)


def test_an_unfinished_item_is_not_kept() -> None:
    open_case = AggregationCase("i", "g", {}, [StageAnnotation(0, 0, JUDGED)], complete=False)
    found = aggregate(read_workflow("validate"), open_case)
    assert (found.kept, found.reason, found.complete) == (False, "not finished", False)


def vote_on(rule: str, tie: str = "none") -> Workflow:
    """A workflow of one free text, decided by a rule."""
    return parse_workflow(
        f"""
name = "one-word"
title = {{ en = "One word" }}

[[fields]]
id = "word"
kind = "text"
label = {{ en = "Word" }}

[[stages]]
id = "vote"
kind = "independent"
title = {{ en = "Vote" }}
fields = ["word"]
annotators = 6

[[aggregate]]
fields = ["word"]
rule = "{rule}"
stage = "vote"
tie = "{tie}"
""",
        "one-word.toml",
    )


@pytest.mark.parametrize(
    ("votes", "majority", "plurality"),
    [
        ("a", "a", "a"),
        ("ab", None, None),
        ("aab", "a", "a"),
        ("aabc", None, "a"),  # exactly half is no majority
        ("aaab", "a", "a"),
        ("aaabc", "a", "a"),
        ("aabbc", None, None),
        ("aaabcd", None, "a"),
        ("aaaabc", "a", "a"),
    ],
)
def test_a_majority_is_more_than_half(
    votes: str, majority: str | None, plurality: str | None
) -> None:
    answers: list[Answer] = [{"word": word} for word in votes]
    for rule, winner in (("majority", majority), ("plurality", plurality)):
        found = aggregate(vote_on(rule), case(answers))
        assert found.values.get("word") == winner, rule


@pytest.mark.parametrize(
    ("tie", "winner"), [("none", None), ("first", "short"), ("longest", "longest")]
)
def test_answers_count_by_their_assignments_in_whatever_order_they_are_read(
    tie: str, winner: str | None
) -> None:
    words = ["short", "longest", "longer"]
    annotations = [StageAnnotation(0, slot, {"word": word}) for slot, word in enumerate(words)]
    for order in permutations(annotations):
        found = aggregate(vote_on("majority", tie), AggregationCase("i", "g", {}, order))
        assert found.values.get("word") == winner


def test_the_earlier_of_two_equally_long_answers_wins() -> None:
    annotations = [
        StageAnnotation(0, assignment, {"word": word})
        for assignment, word in enumerate(["ab", "cd"])
    ]
    for order in permutations(annotations):
        assert aggregate(vote_on("longest"), AggregationCase("i", "g", {}, order)).values == {
            "word": "ab"
        }


def test_chains_and_ends_follow_stages_and_assignments() -> None:
    chain = read_workflow("collect-and-edit")
    annotations = [
        StageAnnotation(0, assignment, intents(text))
        for assignment, text in enumerate(["one", "two", "three"])
    ]
    for order in permutations(annotations):
        found = aggregate(chain, AggregationCase("i", "g", {}, order))
        assert found.values["intents"] == ["three"]
    removed = [
        StageAnnotation(0, 0, {"emotion_check": "remove"}),
        StageAnnotation(1, 0, {"plan_check": "remove"}),
    ]
    for order in permutations(removed):
        ended = aggregate(read_workflow("verify-stages"), AggregationCase("i", "g", DRAFTS, order))
        assert ended.reason == "removed at emotion"


def test_the_last_ruling_stands() -> None:
    votes = [
        StageAnnotation(0, assignment, answer)
        for assignment, answer in enumerate([NO, harm("offence")])
    ]
    rulings = [StageAnnotation(1, 0, NO), StageAnnotation(1, 1, harm("offence"))]
    for order in permutations([*votes, *rulings]):
        found = aggregate(read_workflow("label-by-vote"), AggregationCase("i", "g", {}, order))
        assert found.values == harm("offence")
