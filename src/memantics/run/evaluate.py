"""One task, one model, from the first question to the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from memantics.core.cache import Cache
from memantics.core.card import Card, TaskCard
from memantics.core.errors import DataError
from memantics.core.model import Model
from memantics.core.rundir import RunFacts, RunWriter, Scores, read_facts, write_facts
from memantics.core.task import Task
from memantics.run.ask import AskSettings, ask
from memantics.run.facts import DataFacts, Scope, describe, folder_name, now
from memantics.run.progress import Progress
from memantics.run.score import score_run


@dataclass(frozen=True, slots=True)
class Job:
    """A task, a model, and where its run goes."""

    facts: RunFacts
    folder: Path
    task: Task
    model: Model
    baselines: tuple[Model, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Question:
    """A task on its data, before a model is chosen."""

    cards: tuple[Card, TaskCard]
    task: Task
    data: DataFacts
    scope: Scope
    total: int


def pose(cards: tuple[Card, TaskCard], task: Task, data: DataFacts, scope: Scope) -> Question:
    """Limit a task to its scope and count its items: broken data shows before a call is paid."""
    if scope.limit is not None:
        whole = task.items
        task = replace(task, items=lambda: islice(whole(), scope.limit))
    total = sum(1 for _ in task.items())
    if not total:
        raise DataError(
            task.name, f"split {scope.split!r} has no items", hint="choose another --split"
        )
    return Question(cards, task, data, scope, total)


def plan(
    question: Question,
    model: Model,
    baselines: Sequence[Model],
    out: Path,
    prices: tuple[float, float] | None = None,
) -> Job:
    """Say what a run will be and where."""
    facts = describe(question.cards, question.task, model, question.data, question.scope, prices)
    folder = out / folder_name(facts)
    return Job(facts, folder, question.task, model, tuple(baselines), question.total)


async def evaluate(
    job: Job, cache: Cache | None, settings: AskSettings, watch: Callable[[Progress], None]
) -> tuple[Progress, Scores]:
    """Ask what is not answered yet, then score; the folder holds everything."""
    with RunWriter(job.folder, job.facts) as writer:
        settings = replace(settings, total=job.total)
        progress = await ask(job.task, job.model, writer, cache, settings, watch)
    write_facts(
        job.folder, replace(read_facts(job.folder), finished=now(), prices=job.facts.prices)
    )
    return progress, await score_run(job.folder, job.task, job.baselines)
