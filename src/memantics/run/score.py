"""Answers to figures. Reads a run directory, calls no model but the trivial baselines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path

from memantics.core.errors import StoreError
from memantics.core.model import Model
from memantics.core.records import STATUSES, Answer, Item, Message, Outcome, Request, Score
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

# The baseline that draws, the most draws of it, and how many drawn answers are enough.
RANDOM, MOST_DRAWS, _ENOUGH = "baseline/random", 40, 2000


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
        baselines=await _score_baselines(list(items.values()), task, baselines, facts.model),
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


def name_baselines(models: Iterable[Model]) -> tuple[str, ...]:
    """The names under which trivial models are scored: seeds of one draw are one baseline."""
    return tuple(dict.fromkeys(model.name.partition("?")[0] for model in models))


async def _score_baselines(
    items: Sequence[Item], task: Task, models: Sequence[Model], asked: str
) -> tuple[Baseline, ...]:
    """Each baseline but the model that was asked; one that draws at random gets its expectation.

    A single draw on a few items says little, and may beat a model; on many it is near its mean.
    """
    found = []
    for name in name_baselines(models):
        if name == asked:
            continue
        draws = [model for model in models if model.name.partition("?")[0] == name]
        # Free text has nothing to draw from: every draw would be the same.
        open_ended = all(f.kind == "text" and not f.options for i in items for f in i.form.fields)
        enough = 1 if open_ended else _ENOUGH // max(1, len(items))
        wanted = draws[: max(1, min(MOST_DRAWS, enough))]
        scored = [task.score(await _ask_baseline(items, task, model)) for model in wanted]
        found.append(Baseline(name, average(scored)))
    return tuple(found)


def average(draws: Sequence[tuple[Score, ...]]) -> tuple[Score, ...]:
    """The mean of each figure, and of the ends of its interval, over draws that define it.

    >>> average([(Score("f1", 0.2, 9, 0.1, 0.4),), (Score("f1", 0.4, 9, 0.3, 0.8),)])[0].value
    0.3
    """
    if len(draws) == 1:
        return draws[0]
    found: dict[tuple[str, str, str], list[Score]] = {}
    for draw in draws:
        for score in draw:
            found.setdefault((score.key, score.by, score.label), []).append(score)
    return tuple(
        replace(
            scores[0],
            value=_mean(score.value for score in scores),
            low=_mean(score.low for score in scores),
            high=_mean(score.high for score in scores),
            # A note tells of one draw, unless all have the same.
            note=scores[0].note if len({score.note for score in scores}) == 1 else "",
        )
        for scores in found.values()
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    # Rounded where binary fractions end: the mean of equal figures is that figure.
    return round(fsum(known) / len(known), 12) if known else None


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
