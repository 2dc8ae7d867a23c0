"""Answers to figures. Reads a run directory, calls no model but the trivial baselines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from memantics.core.errors import StoreError
from memantics.core.model import Model
from memantics.core.records import STATUSES, Answer, Item, Message, Outcome, Request
from memantics.core.rundir import (
    Baseline,
    Scores,
    Usage,
    last_answers,
    read_answers,
    read_facts,
    read_items,
    write_scores,
)
from memantics.core.task import InvalidPolicy, Task, Unparsed


async def score_run(folder: Path, task: Task, baselines: Sequence[Model]) -> Scores:
    """Parse the raw answers of a run anew, score them, and write ``scores.json``."""
    facts = read_facts(folder)
    items = {line.item.id: line.item for line in read_items(folder)}
    if not items:
        raise StoreError(
            f"{folder} holds no items yet", hint="run the command that made it once more"
        )
    attempts = list(read_answers(folder))
    last = {answer.item: answer for answer in attempts}
    outcomes = [_outcome(item, last[item.id], task) for item in items.values() if item.id in last]
    scores = Scores(
        main=task.main,
        counts=count_statuses(outcomes),
        scores=task.score(keep_scored(outcomes, task.invalid)),
        baselines=tuple(
            [
                Baseline(model.name, task.score(await _ask_baseline(items.values(), task, model)))
                for model in baselines
                if model.name != facts.model
            ]
        ),
        usage=add_up(attempts, facts.prices),
    )
    write_scores(folder, scores)
    return scores


def read_outcomes(folder: Path, task: Task) -> list[Outcome]:
    """How every item of a run ended, in the order of asking, parsed anew."""
    last = last_answers(folder)
    items = (line.item for line in read_items(folder))
    return [_outcome(item, last[item.id], task) for item in items if item.id in last]


def count_statuses(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """The four counts; each is always there.

    >>> count_statuses([])
    {'answered': 0, 'refused': 0, 'unparsed': 0, 'failed': 0}
    """
    counts = dict.fromkeys(STATUSES, 0)
    for outcome in outcomes:
        counts[outcome.status] += 1
    return {str(status): count for status, count in counts.items()}


def keep_scored(outcomes: Iterable[Outcome], policy: InvalidPolicy) -> list[Outcome]:
    """What the policy leaves to score. A failed call says nothing about a model: never scored."""
    return [
        outcome
        for outcome in outcomes
        if outcome.status == "answered" or (outcome.status != "failed" and policy.then == "wrong")
    ]


def add_up(attempts: Iterable[Answer], prices: tuple[float, float] | None) -> Usage:
    """Calls, tokens, seconds and cost; ``prices`` are per million tokens in and out.

    Tokens are those the answers took, whenever; what came from the cache costs nothing again.

    >>> from dataclasses import replace
    >>> paid = Answer("a", 0, "answered", tokens_in=1000, tokens_out=10)
    >>> add_up([paid, replace(paid, item="b", cached=True)], (2.0, 8.0)).cost
    0.00208
    """
    answers = list(attempts)
    paid = [answer for answer in answers if not answer.cached]
    spent = [sum(a.tokens_in for a in paid), sum(a.tokens_out for a in paid)]
    return Usage(
        calls=sum(answer.calls for answer in paid),
        cached=len(answers) - len(paid),
        attempts=len(answers),
        tokens_in=sum(answer.tokens_in for answer in answers),
        tokens_out=sum(answer.tokens_out for answer in answers),
        seconds=round(sum(answer.seconds for answer in answers), 4),
        cost=None if prices is None else round(_price(spent, prices), 6),
    )


def _price(tokens: Sequence[int], prices: Sequence[float]) -> float:
    return sum(count * price for count, price in zip(tokens, prices, strict=True)) / 1e6


def _outcome(item: Item, answer: Answer, task: Task) -> Outcome:
    """Parse again what was answered: a mended parser needs no new call."""
    attempts = answer.attempt + 1
    if answer.status in ("refused", "failed"):
        return Outcome(item, answer.status, None, attempts)
    try:
        return Outcome(item, "answered", task.parse(answer.text, item.form), attempts)
    except Unparsed:
        return Outcome(item, "unparsed", None, attempts)


async def _ask_baseline(items: Iterable[Item], task: Task, model: Model) -> list[Outcome]:
    outcomes = []
    for item in items:
        # The images go along for their names: a seeded draw must differ between like forms.
        reply = await model.answer(Request((Message("user", item.images),), item.form))
        try:
            outcomes.append(Outcome(item, "answered", task.parse(reply.text, item.form)))
        except Unparsed:
            outcomes.append(Outcome(item, "unparsed"))
    return outcomes
