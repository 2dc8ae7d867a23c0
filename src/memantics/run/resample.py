"""The difference of any figure between two runs, by scoring both on other sets of memes.

Up to ``SMALL`` items a bootstrap over memes; beyond, where that would take minutes, a jackknife
that leaves out one of fifty random blocks of memes at a time.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from memantics.core.records import Outcome
from memantics.core.task import Task
from memantics.metrics.comparison import resampled_p, student_bound, student_tails
from memantics.metrics.interval import percentile_span

SMALL = 300
_DRAWS, _BLOCKS = 1000, 50
Pair = tuple[Outcome, Outcome]


@dataclass(frozen=True, slots=True)
class Moved:
    """How surely a figure differs: 95 % interval and p-value of the difference, and the test."""

    low: float
    high: float
    p: float
    test: str


def find_main(task: Task, outcomes: Sequence[Outcome]) -> float | None:
    """The main figure of a task over these outcomes."""
    for row in task.score(outcomes):
        if row.key == task.main and not row.by:
            return row.value
    return None


def resample_figure(task: Task, pairs: Sequence[Pair], main: tuple[float, float]) -> Moved | None:
    """Interval and p-value of the difference of the main figures; None with a single meme."""
    groups: dict[str, list[Pair]] = {}
    for before, bare in zip(pairs, _drop_groups(task, pairs, main), strict=True):
        groups.setdefault(before[0].item.group, []).append(bare)
    if len(groups) < 2:
        return None
    difference = main[1] - main[0]
    if len(pairs) <= SMALL:
        return _bootstrap(task, list(groups.values()), difference)
    return _jackknife(task, list(groups.values()), difference)


def _bootstrap(task: Task, memes: Sequence[Sequence[Pair]], difference: float) -> Moved | None:
    """Draw memes with replacement, the same for both runs; p as in ``paired_bootstrap``."""
    chance = random.Random(0)
    drawn = []
    for _ in range(_DRAWS):
        counts = Counter(chance.choices(range(len(memes)), k=len(memes)))
        sample = [
            _rename(pair, copy) if copy else pair
            for place, count in counts.items()
            for copy in range(count)
            for pair in memes[place]
        ]
        value = _differ(task, sample)
        if value is not None:
            drawn.append(value)
    if not drawn:
        return None
    values = np.array(drawn)
    p = resampled_p(values, difference)
    return Moved(*percentile_span(values), p, "bootstrap of the figure over memes")


def _jackknife(task: Task, memes: Sequence[Sequence[Pair]], difference: float) -> Moved | None:
    """Leave out one block of memes at a time; Student's distribution over the blocks."""
    order = random.Random(0).sample(range(len(memes)), len(memes))
    blocks = min(_BLOCKS, len(memes))
    values = []
    for block in range(blocks):
        left_out = set(order[block::blocks])
        kept = [pair for n, meme in enumerate(memes) if n not in left_out for pair in meme]
        value = _differ(task, kept)
        if value is None:
            return None
        values.append(value)
    error = math.sqrt((blocks - 1) / blocks * float(np.var(values)) * blocks)
    reach = student_bound(blocks - 1) * error
    alike = 0.0 if difference else 1.0
    p = student_tails(difference / error, blocks - 1) if error > 1e-12 else alike
    return Moved(difference - reach, difference + reach, p, f"jackknife over {blocks} meme blocks")


def _differ(task: Task, pairs: Sequence[Pair]) -> float | None:
    first = find_main(task, [pair[0] for pair in pairs])
    second = find_main(task, [pair[1] for pair in pairs])
    return None if first is None or second is None else second - first


def _drop_groups(task: Task, pairs: Sequence[Pair], main: tuple[float, float]) -> Sequence[Pair]:
    """Put all items into one group where that leaves the main figures as they are.

    Scoring spends most of its time on its own intervals, which need groups and are not wanted.
    """
    bare = [_regroup(pair, "") for pair in pairs]
    for side in (0, 1):
        value = find_main(task, [pair[side] for pair in bare])
        if value is None or abs(value - main[side]) > 1e-12:
            return pairs
    return bare


def _regroup(pair: Pair, group: str) -> Pair:
    first, second = (replace(outcome, item=replace(outcome.item, group=group)) for outcome in pair)
    return first, second


def _rename(pair: Pair, copy: int) -> Pair:
    """Tell the copies of a meme apart, for tasks that look at ids or groups."""
    first, second = (
        replace(
            outcome,
            item=replace(
                outcome.item,
                id=f"{outcome.item.id}#{copy}",
                group=outcome.item.group and f"{outcome.item.group}#{copy}",
            ),
        )
        for outcome in pair
    )
    return first, second
