"""Answers to figures. Reads a run directory, calls no model but the trivial baselines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path

from memantics.core.errors import StoreError
from memantics.core.model import Model
from memantics.core.records import (
    STATUSES,
    Answer,
    Item,
    Message,
    Outcome,
    Reply,
    Request,
    Score,
)
from memantics.core.rundir import (
    Baseline,
    Scores,
    Usage,
    read_answers,
    read_bare_items,
    read_facts,
    write_scores,
)
from memantics.core.task import InvalidPolicy, Task, Unparsed
from memantics.run.engine import read_reply

# The baseline that draws, the most draws of it, and how many drawn answers are enough.
RANDOM, MOST_DRAWS, _ENOUGH = "baseline/random", 40, 2000


async def score_run(folder: Path, task: Task, baselines: Sequence[Model]) -> Scores:
    """Parse the raw answers of a run anew, score them, and write ``scores.json``."""
    facts = read_facts(folder)
    items = {item.id: item for item in read_bare_items(folder)}
    if not items:
        raise StoreError(
            f"{folder} holds no items yet", hint="run the command that made it once more"
        )
    ended: dict[str, Outcome] = {}
    usage = add_up(_note_outcomes(folder, items, task, ended), facts.prices)
    outcomes = [ended[name] for name in items if name in ended]
    scores = Scores(
        main=task.main,
        counts=count_statuses(outcomes),
        scores=task.score(keep_scored(outcomes, task.invalid)),
        baselines=await _score_baselines(list(items.values()), task, baselines, facts.model),
        usage=usage,
    )
    write_scores(folder, scores)
    return scores


def read_outcomes(folder: Path, task: Task) -> list[Outcome]:
    """How every item of a run ended, in the order of asking, parsed anew."""
    items = {item.id: item for item in read_bare_items(folder)}
    ended: dict[str, Outcome] = {}
    for _ in _note_outcomes(folder, items, task, ended):
        pass
    return [ended[name] for name in items if name in ended]


def _note_outcomes(
    folder: Path, items: Mapping[str, Item], task: Task, ended: dict[str, Outcome]
) -> Iterator[Answer]:
    """Every attempt; the outcome of each item's last is noted, and no answer is kept in memory.

    What was answered is parsed again: a mended parser needs no new call.
    """
    for answer in read_answers(folder):
        if answer.item in items:
            ended[answer.item] = _outcome(items[answer.item], answer, task)
        yield answer


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
    """What the policy leaves to score."""
    return [outcome for outcome in outcomes if counts(outcome, policy)]


def counts(outcome: Outcome, policy: InvalidPolicy) -> bool:
    """Whether an outcome is scored. A failed call says nothing about a model: it never is."""
    if outcome.status == "answered":
        return True
    return outcome.status != "failed" and policy.then == "wrong"


def add_up(attempts: Iterable[Answer], prices: tuple[float, float] | None) -> Usage:
    """Calls, tokens, seconds and cost; ``prices`` are per million tokens in and out.

    Tokens are those the answers took, whenever; what came from the cache costs nothing again.

    >>> paid = Answer("a", 0, "answered", tokens_in=1000, tokens_out=10)
    >>> add_up([paid, replace(paid, item="b", cached=True)], (2.0, 8.0)).cost
    0.00208
    """
    calls = cached = count = tokens_in = tokens_out = paid_in = paid_out = 0
    seconds = 0.0
    for answer in attempts:
        count += 1
        tokens_in += answer.tokens_in
        tokens_out += answer.tokens_out
        seconds += answer.seconds
        if answer.cached:
            cached += 1
        else:
            calls += answer.calls
            paid_in += answer.tokens_in
            paid_out += answer.tokens_out
    cost = None
    if prices is not None:
        cost = round((paid_in * prices[0] + paid_out * prices[1]) / 1e6, 6)
    return Usage(calls, cached, count, tokens_in, tokens_out, round(seconds, 4), cost)


def _outcome(item: Item, answer: Answer, task: Task) -> Outcome:
    attempts = answer.attempt + 1
    if answer.status in ("refused", "failed"):
        return Outcome(item, answer.status, None, attempts)
    status, value, _ = read_reply(Reply(answer.text), lambda text: task.parse(text, item.form))
    return Outcome(item, status, value, attempts)


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
