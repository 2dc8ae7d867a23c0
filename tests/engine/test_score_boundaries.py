"""Scoring: which outcomes count, what a run cost, and what a baseline is worth."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from memantics.core.errors import StoreError
from memantics.core.records import (
    NO_REPLY,
    Answer,
    Form,
    Item,
    Outcome,
    Reply,
    Request,
    Score,
    Status,
)
from memantics.core.rundir import RunWriter, read_scores
from memantics.core.task import InvalidPolicy, Task, Unparsed
from memantics.evaluation.scoring import (
    add_up,
    average,
    count_statuses,
    keep_scored,
    read_outcomes,
    score_run,
)
from memantics.models.fake import FakeModel
from tests.runs import make_facts, pick

STATUSES: tuple[Status, ...] = ("answered", "refused", "unparsed", "failed")
ITEMS = [Item(name, name, "A", pick("A", "B")) for name in "abcde"]


def parse(text: str, form: Form) -> str:
    if text not in ("A", "B"):
        raise Unparsed("no letter")
    return text


def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    hits = sum(outcome.value == outcome.item.gold for outcome in outcomes)
    return (Score("accuracy", hits / len(outcomes) if outcomes else None, len(outcomes)),)


def make_task(invalid: str = "wrong") -> Task:
    def ask(item: Item, complaint: str | None) -> Request:
        raise AssertionError("nothing is asked")

    policy = InvalidPolicy.read(invalid)
    return Task("toy/letters", lambda: iter(ITEMS), ask, parse, score, "accuracy", policy)


def write(folder: Path, answers: Sequence[Answer]) -> Path:
    with RunWriter(folder, make_facts("toy/letters", "fake/model", {})) as writer:
        for item in ITEMS:
            writer.add_item(item, ())
        for answer in answers:
            writer.add_answer(answer)
    return folder


ANSWERS = [
    Answer("a", 0, "unparsed", Reply("?")),
    Answer("a", 1, "answered", Reply("A", tokens_in=4)),
    Answer("b", 0, "answered", Reply("B")),
    Answer("c", 0, "refused", NO_REPLY),
    Answer("d", 0, "failed", NO_REPLY),
]


@pytest.mark.parametrize(("policy", "kept"), [("wrong", 3), ("drop", 1), ("retry:2", 3)])
def test_failed_calls_are_never_scored(policy: str, kept: int) -> None:
    outcomes = [Outcome(item, status) for item, status in zip(ITEMS, STATUSES, strict=False)]
    left = keep_scored(outcomes, InvalidPolicy.read(policy))
    assert [outcome.status for outcome in left] == list(STATUSES[:kept])
    assert count_statuses(outcomes) == dict.fromkeys(STATUSES, 1)


@pytest.mark.parametrize(
    ("policy", "value", "n"), [("wrong", 1 / 3, 3), ("drop", 1 / 2, 2), ("retry:2,drop", 1 / 2, 2)]
)
def test_a_run_is_scored_by_its_last_answers(
    tmp_path: Path, policy: str, value: float, n: int
) -> None:
    folder = write(tmp_path / "run", ANSWERS)
    found = asyncio.run(score_run(folder, make_task(policy), []))
    assert found.counts == {"answered": 2, "refused": 1, "unparsed": 0, "failed": 1}
    assert found.scores[0].value == pytest.approx(value)
    assert found.scores[0].n == n
    assert (found.usage.attempts, found.usage.tokens_in) == (5, 4)
    assert read_scores(folder) == found


def test_outcomes_are_in_the_order_of_asking_and_parsed_anew(tmp_path: Path) -> None:
    later = [*ANSWERS, Answer("e", 2, "answered", Reply("neither"))]
    folder = write(tmp_path / "run", later)
    found = read_outcomes(folder, make_task())
    assert [(o.item.id, o.status, o.value, o.attempts) for o in found] == [
        ("a", "answered", "A", 2),
        ("b", "answered", "B", 1),
        ("c", "refused", None, 1),
        ("d", "failed", None, 1),
        ("e", "unparsed", None, 3),
    ]
    assert len(read_outcomes(write(tmp_path / "part", ANSWERS), make_task())) == 4


def test_a_run_without_items_cannot_be_scored(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", make_facts("toy/letters", "fake/model", {})):
        pass
    with pytest.raises(StoreError, match="no items yet"):
        asyncio.run(score_run(tmp_path / "run", make_task(), []))


def test_cost_is_of_what_was_paid() -> None:
    reply = Reply("", tokens_in=1_000_001, tokens_out=7)
    paid = Answer("a", 0, "answered", reply, seconds=0.12345, calls=2)
    cached = Answer("b", 0, "answered", Reply("", tokens_in=5, tokens_out=1), cached=True)
    usage = add_up([paid, cached], (0.5, 3.0))
    assert usage.cost == 0.500022  # 0.5000215 to six digits
    assert (usage.calls, usage.cached, usage.attempts) == (2, 1, 2)
    assert (usage.tokens_in, usage.tokens_out) == (1_000_006, 8)
    assert usage.seconds in (0.1234, 0.1235)
    assert add_up([], (0.5, 3.0)).cost == 0
    assert add_up([paid], None).cost is None


def test_baselines_are_scored_with_what_they_cannot_answer(tmp_path: Path) -> None:
    """One that always says A, one that says nothing; the model that was asked is left out."""
    folder = write(tmp_path / "run", ANSWERS)
    models = [
        FakeModel(lambda _: "A", "always"),
        FakeModel(lambda _: "?", "never"),
        FakeModel(lambda _: "A", "model"),
    ]
    seen: list[Sequence[Outcome]] = []

    def keep(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
        seen.append(outcomes)
        return score(outcomes)

    task = Task("toy/letters", lambda: iter(ITEMS), make_task().ask, parse, keep, "accuracy")
    found = asyncio.run(score_run(folder, task, models))
    assert [(b.model, b.scores[0].value) for b in found.baselines] == [
        ("fake/always", 1.0),
        ("fake/never", 0.0),
    ]
    assert {outcome.status for outcome in seen[-1]} | {o.status for o in seen[-2]} == {
        *("answered", "unparsed"),
    }


def test_draws_are_averaged_where_they_are_defined() -> None:
    one = (Score("f1", 0.2, 9, 0.1, 0.4, note="x"), Score("f1", None, 3, by="kind", label="k"))
    two = (Score("f1", 0.4, 9, None, 0.8, note="y"), Score("f1", 0.5, 3, by="kind", label="k"))
    whole, part = average([one, two])
    assert (whole.value, whole.low, whole.high, whole.note) == (0.3, 0.1, 0.6, "")
    assert (part.value, part.low) == (0.5, None)
    assert average([one]) == one
    assert average([one, one])[0].note == "x"
