"""The main metric of a task as a function of outcomes: in arrays, or by the task's own scorer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from memantics.benchmarks.factories import hits
from memantics.core.records import Outcome
from memantics.core.task import Task
from memantics.metrics.paired import RatioMetric, f1_metric, macro_f1_metric, mean_metric
from memantics.metrics.rounding import Floats

BLOCKS = 50
_MOST_CLASSES = 20


def find_main(task: Task, outcomes: Sequence[Outcome]) -> float | None:
    """Compute the main metric of a task over these outcomes."""
    for row in task.score(outcomes):
        if row.key == task.main and not row.by:
            return row.value
    return None


Recognized = Callable[[Sequence[Outcome]], RatioMetric]


def recognize_metric(task: Task, runs: Sequence[Sequence[Outcome]]) -> Recognized | None:
    """Find the array form of a task's main metric; None if it is none of the known ones.

    A form is accepted only if it has the value of the task's own scorer on all items of each run,
    and on two random halves of them.
    """
    parts = [part for outcomes in runs for part in _halve(outcomes) if part]
    if not parts:
        return None
    wanted = [find_main(task, part) for part in parts]
    for form in _list_forms(runs):
        if all(_equals(form, part, value) for part, value in zip(parts, wanted, strict=True)):
            return form
    return None


def _halve(outcomes: Sequence[Outcome]) -> tuple[Sequence[Outcome], ...]:
    """All outcomes, and two random halves of them."""
    order = random.Random(0).sample(range(len(outcomes)), len(outcomes))
    middle = len(order) // 2
    halves = (sorted(order[:middle]), sorted(order[middle:]))
    return (outcomes, *([outcomes[place] for place in half] for half in halves))


def _list_forms(runs: Sequence[Sequence[Outcome]]) -> list[Recognized]:
    """Array forms of metrics: proportion correct, macro-F1, and F1 of each class."""
    forms: list[Recognized] = [lambda outcomes: mean_metric([float(hit) for hit in hits(outcomes)])]
    golds = [outcome.item.gold for outcomes in runs for outcome in outcomes]
    names = {gold for gold in golds if isinstance(gold, str)}
    if len(names) > _MOST_CLASSES or not all(isinstance(gold, str) for gold in golds):
        return forms
    forms.append(lambda outcomes: macro_f1_metric(*_list_labels(outcomes)))
    return [*forms, *(partial(_measure_f1, name) for name in sorted(names))]


def _measure_f1(positive: str, outcomes: Sequence[Outcome]) -> RatioMetric:
    return f1_metric(*_list_labels(outcomes), positive)


def _list_labels(outcomes: Sequence[Outcome]) -> tuple[list[str], list[str | None]]:
    said = [str(o.value) if o.status == "answered" else None for o in outcomes]
    return [str(outcome.item.gold) for outcome in outcomes], said


def _equals(form: Recognized, outcomes: Sequence[Outcome], wanted: float | None) -> bool:
    value = form(outcomes).value
    if value is None or wanted is None:
        return value is wanted
    return abs(value - wanted) < 1e-9


def leave_out_blocks(task: Task, outcomes: Sequence[Outcome]) -> tuple[float, Floats] | None:
    """Main metric of a task, and its values without each block of memes; None if undefined."""
    memes = list(dict.fromkeys(outcome.item.group for outcome in outcomes))
    order = random.Random(0).sample(range(len(memes)), len(memes))
    blocks = min(BLOCKS, len(memes))
    whole = find_main(task, outcomes)
    if whole is None or blocks < 2:
        return None
    values = []
    for block in range(blocks):
        skipped = {memes[place] for place in order[block::blocks]}
        value = find_main(task, [o for o in outcomes if o.item.group not in skipped])
        if value is None:
            return None
        values.append(value)
    return whole, np.array(values)
