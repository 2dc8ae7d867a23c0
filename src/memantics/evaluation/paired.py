"""Compare two runs of one task item by item: differences, confidence intervals, changed items.

The confidence interval of a difference of metrics comes from resampling memes and scoring both runs
again. Up to ``SMALL`` items, a bootstrap over memes is used. Larger runs use a jackknife over fifty
random blocks of memes, since a bootstrap would take minutes.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from memantics.benchmarks.factories import hits
from memantics.core.errors import InputError, require_known
from memantics.core.records import Outcome
from memantics.core.result import Result, Table
from memantics.core.rundir import SCORES, RunFacts, read_scores
from memantics.core.task import Task
from memantics.evaluation.scoring import DEVIATION, REPEATS, counts, read_outcomes
from memantics.metrics import comparison
from memantics.metrics.comparison import resampled_p, student_bound, student_tails
from memantics.metrics.interval import percentile_span

SMALL = 300
_RESAMPLES, _BLOCKS = 1000, 50
OutcomePair = tuple[Outcome, Outcome]
RIGHT = "right"
PERMUTED = "options=permuted"


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric on the shared items: the second run's value minus the first's.

    ``p`` is the p-value of the named test. ``t_test`` is the p-value of a paired t-test over memes,
    if the metric is a mean. ``t_unpaired`` is the p-value of Welch's test, which ignores the
    pairing. The corrected values are Holm-corrected over all metrics of all pairs.
    """

    key: str
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    test: str
    p: float | None
    effect: str
    size: float | None
    items: int
    memes: int
    t_test: float | None = None
    corrected: float | None = None
    t_test_corrected: float | None = None
    t_unpaired: float | None = None
    t_unpaired_corrected: float | None = None

    @property
    def ps(self) -> tuple[float | None, float | None]:
        """The p-value, plain and corrected for multiple tests."""
        return self.p, self.corrected

    @property
    def span(self) -> str:
        """The difference with its 95% confidence interval, as text."""
        if self.low is None or self.high is None:
            return f"{self.difference:+.3f}"
        return f"{self.difference:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


@dataclass(frozen=True, slots=True)
class Change:
    """An item whose result differs between two runs; ``gain`` > 0 if the second run is better."""

    item: str
    first: JsonValue
    second: JsonValue
    gold: JsonValue
    gain: float | None


@dataclass(frozen=True, slots=True)
class Comparison(Result):
    """A comparison of two runs; ``shared`` counts the items that are scored in both."""

    first: str
    second: str
    task: str
    shared: int
    skipped: Mapping[str, int]
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """The metrics of both runs, their difference, its confidence interval and p-value."""
        columns = ("metric", ">first", ">second", "difference (95 %)", ">p", ">Holm")
        rows = (
            (row.key, f"{row.first:.3f}", f"{row.second:.3f}", row.span, *map(show_p, row.ps))
            for row in self.differences
        )
        return Table(columns, tuple(rows))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def show_p(value: float | None) -> str:
    """Format a p-value.

    >>> show_p(0.0312), show_p(0.00002), show_p(None)
    ('0.031', '<0.001', '–')
    """
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


@dataclass(frozen=True, slots=True)
class Moved:
    """95% confidence interval and p-value of a difference, and the name of the test."""

    low: float
    high: float
    p: float
    test: str


def find_main(task: Task, outcomes: Sequence[Outcome]) -> float | None:
    """Compute the main metric of a task over these outcomes."""
    for row in task.score(outcomes):
        if row.key == task.main and not row.by:
            return row.value
    return None


def resample_metric(
    task: Task, pairs: Sequence[OutcomePair], main: tuple[float, float]
) -> Moved | None:
    """Compute interval and p-value of a difference of main metrics; None for a single meme."""
    groups: dict[str, list[OutcomePair]] = {}
    for before, bare in zip(pairs, _drop_groups(task, pairs, main), strict=True):
        groups.setdefault(before[0].item.group, []).append(bare)
    if len(groups) < 2:
        return None
    difference = main[1] - main[0]
    if len(pairs) <= SMALL:
        return _bootstrap(task, list(groups.values()), difference)
    return _jackknife(task, list(groups.values()), difference)


def _bootstrap(
    task: Task, memes: Sequence[Sequence[OutcomePair]], difference: float
) -> Moved | None:
    """Bootstrap over memes, with the same resamples for both runs; p as in ``paired_bootstrap``."""
    chance = random.Random(0)
    drawn = []
    for _ in range(_RESAMPLES):
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
    return Moved(*percentile_span(values), p, "bootstrap of the metric over memes")


def _jackknife(
    task: Task, memes: Sequence[Sequence[OutcomePair]], difference: float
) -> Moved | None:
    """Jackknife: leave out one block of memes at a time; use Student's t over the blocks."""
    order = random.Random(0).sample(range(len(memes)), len(memes))
    blocks = min(_BLOCKS, len(memes))
    values = []
    for block in range(blocks):
        skipped = set(order[block::blocks])
        kept = [pair for n, meme in enumerate(memes) if n not in skipped for pair in meme]
        value = _differ(task, kept)
        if value is None:
            return None
        values.append(value)
    error = math.sqrt((blocks - 1) / blocks * float(np.var(values)) * blocks)
    reach = student_bound(blocks - 1) * error
    alike = 0.0 if difference else 1.0
    p = student_tails(difference / error, blocks - 1) if error > 1e-12 else alike
    return Moved(difference - reach, difference + reach, p, f"jackknife over {blocks} meme blocks")


def _differ(task: Task, pairs: Sequence[OutcomePair]) -> float | None:
    first = find_main(task, [pair[0] for pair in pairs])
    second = find_main(task, [pair[1] for pair in pairs])
    return None if first is None or second is None else second - first


def _drop_groups(
    task: Task, pairs: Sequence[OutcomePair], main: tuple[float, float]
) -> Sequence[OutcomePair]:
    """Put all items into one group if that does not change the main metrics, to save time.

    Scoring spends most of its time on confidence intervals, which need groups and are not used in
    this comparison.
    """
    bare = [_regroup(pair, "") for pair in pairs]
    for side in (0, 1):
        value = find_main(task, [pair[side] for pair in bare])
        if value is None or abs(value - main[side]) > 1e-12:
            return pairs
    return bare


def _regroup(pair: OutcomePair, group: str) -> OutcomePair:
    first, second = (replace(outcome, item=replace(outcome.item, group=group)) for outcome in pair)
    return first, second


def _rename(pair: OutcomePair, copy: int) -> OutcomePair:
    """Give the copies of a resampled meme distinct ids, since some tasks use ids or groups."""
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


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a comparison, with the task that parses its answers."""

    folder: Path
    facts: RunFacts
    task: Task
    outcomes: tuple[Outcome, ...]


Pairs = Sequence[tuple[Outcome, Outcome]]


def open_side(folder: Path, facts: RunFacts, task: Task) -> Side:
    """Read the outcomes of a run for a comparison."""
    return Side(folder, facts, task, tuple(read_outcomes(folder, task)))


def compare_sides(
    sides: Sequence[Side], metrics: Sequence[str] = (), *, against_first: bool = False
) -> list[Comparison]:
    """Compare every pair of runs, or each with the first; p-values are corrected over all pairs.

    All runs are scored by the task of the first run, so that metrics have the same definition in
    every run.
    """
    places = list(combinations(range(len(sides)), 2))
    if against_first:
        places = [(0, place) for place in range(1, len(sides))]
    return compare_pairs(sides, places, metrics)


def compare_pairs(
    sides: Sequence[Side], places: Sequence[tuple[int, int]], metrics: Sequence[str] = ()
) -> list[Comparison]:
    """Compare the given pairs of runs, by index; p-values are corrected over all of them."""
    _check(sides)
    task = sides[0].task
    marked = [_mark(task, side) for side in sides]
    return correct([_compare_two(task, marked[a], marked[b], metrics) for a, b in places])


@dataclass(frozen=True, slots=True)
class _Marked:
    """A run with per-item values, by metric and item; None if the task defines no such values."""

    side: Side
    marks: Mapping[str, Mapping[str, float | None]] | None


def _mark(task: Task, side: Side) -> _Marked:
    if task.marks is None:
        return _Marked(side, None)
    names = [outcome.item.id for outcome in side.outcomes]
    marks = task.marks(side.outcomes)
    return _Marked(
        side, {key: dict(zip(names, values, strict=True)) for key, values in marks.items()}
    )


def correct(
    found: Sequence[Comparison], correction: comparison.Correction = "holm"
) -> list[Comparison]:
    """Correct the p-values of all comparisons together, each type of test separately."""
    rows = [row for one in found for row in one.differences]
    tests = comparison.correct_known([row.p for row in rows], correction)
    t_tests = comparison.correct_known([row.t_test for row in rows], correction)
    apart = comparison.correct_known([row.t_unpaired for row in rows], correction)
    repaired = iter(
        replace(row, corrected=p, t_test_corrected=t, t_unpaired_corrected=u)
        for row, p, t, u in zip(rows, tests, t_tests, apart, strict=True)
    )
    return [
        replace(one, differences=tuple(next(repaired) for _ in one.differences)) for one in found
    ]


def _check(sides: Sequence[Side]) -> None:
    if len(sides) < 2:
        raise InputError(
            "compare needs at least two runs, not one", hint="give two or more run directories"
        )
    tasks = {side.facts.task for side in sides}
    if len(tasks) > 1:
        raise InputError(
            f"the runs belong to different tasks: {', '.join(sorted(tasks))}",
            hint="compare runs of one task",
        )


def _compare_two(task: Task, one: _Marked, other: _Marked, metrics: Sequence[str]) -> Comparison:
    first, second = one.side, other.side
    pairs, skipped = _match(first, second)
    if not pairs:
        raise InputError(
            f"{first.folder} and {second.folder} have no scored item in common",
            hint="compare runs on the same data and split",
        )
    if one.marks is not None and other.marks is not None:
        differences, changes = _measure_marks(task, pairs, (one.marks, other.marks), metrics)
    else:
        differences, changes = _measure(task, pairs, metrics)
    return Comparison(
        first=str(first.folder),
        second=str(second.folder),
        task=first.facts.task,
        shared=len(pairs),
        skipped={reason: count for reason, count in skipped.items() if count},
        differences=tuple(differences),
        changes=tuple(changes),
        notes=(*_note(first.facts, second.facts), *_note_repeats(first), *_note_repeats(second)),
    )


def _match(first: Side, second: Side) -> tuple[list[tuple[Outcome, Outcome]], dict[str, int]]:
    """Pair the outcomes of items that both runs have, and count the excluded ones by reason."""
    others = {outcome.item.id: outcome for outcome in second.outcomes}
    mine = {outcome.item.id for outcome in first.outcomes}
    skipped = {
        "in the first run only": len(mine - others.keys()),
        "in the second run only": len(others.keys() - mine),
        "failed or dropped": 0,
        "gold answers differ": 0,
    }
    # The perturbation options=permuted also changes the key of the correct option.
    permuted = PERMUTED in (first.facts.perturbation, second.facts.perturbation)
    pairs = []
    for outcome in first.outcomes:
        other = others.get(outcome.item.id)
        if other is None:
            continue
        if not (counts(outcome, first.task.invalid) and counts(other, second.task.invalid)):
            skipped["failed or dropped"] += 1
        elif outcome.item.gold != other.item.gold and not permuted:
            skipped["gold answers differ"] += 1
        else:
            pairs.append((outcome, other))
    return pairs, skipped


def _note(first: RunFacts, second: RunFacts) -> list[str]:
    notes = [f"{facts.model}: {facts.origin}" for facts in (first, second) if facts.origin]
    if first.perturbation != second.perturbation:
        notes.append(
            f"perturbations differ: {first.perturbation or 'none'}, {second.perturbation or 'none'}"
        )
    names = sorted({*first.options, *second.options})
    other = [name for name in names if first.options.get(name) != second.options.get(name)]
    if other:
        notes.append(
            f"options differ: {', '.join(other)}; both runs are scored with the first run's options"
        )
    if first.data.get("checksum") != second.data.get("checksum"):
        notes.append("the runs use different copies of the data")
    if first.prompts != second.prompts and not other:
        notes.append("the prompts differ")
    return notes


def _note_repeats(side: Side) -> list[str]:
    """Note how much the main metric varies between the repeats of a run, if there are repeats."""
    if not (side.folder / SCORES).is_file():
        return []
    scores = read_scores(side.folder)
    return [
        f"{side.facts.model}: {score.label} {score.value:.3f} ({score.n} repeats)"
        for score in scores.scores
        if score.by == REPEATS and score.label == DEVIATION and score.value is not None
    ]


def _measure_marks(
    task: Task,
    pairs: Pairs,
    marks: tuple[Mapping[str, Mapping[str, float | None]], ...],
    metrics: Sequence[str],
) -> tuple[list[Difference], list[Change]]:
    """Compare metrics that are means of per-item values."""
    names = [outcome.item.id for outcome, _ in pairs]
    rows = []
    for key in _choose(metrics, list(marks[0])):
        first, second = ([by_key[key][name] for name in names] for by_key in marks)
        row = _compare_means(key, pairs, first, second)
        if row is not None:
            rows.append(row)
    before, now = ([by_key[task.main][name] for name in names] for by_key in marks)
    return rows, _list_marks(pairs, before, now)


def _measure(
    task: Task, pairs: Pairs, metrics: Sequence[str]
) -> tuple[list[Difference], list[Change]]:
    """Compare the proportion of correct answers, if it is defined, and the main metric."""
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    right = None
    if all(isinstance(outcome.item.gold, str | int | float) for outcome in first):
        right = hits(first), hits(second)
    main = find_main(task, first), find_main(task, second)
    same = right is not None and _same(main[0], right[0]) and _same(main[1], right[1])
    wanted = _choose(metrics, [task.main] if right is None or same else [task.main, RIGHT])
    rows = []
    for key in wanted:
        if right is not None and (same or key == RIGHT):
            rows.append(_compare_hits(key, pairs, *right))
        elif main[0] is not None and main[1] is not None:
            rows.append(_compare_metric(task, pairs, main[0], main[1]))
    changes = _list_flips(pairs, *right) if right is not None else _list_values(pairs)
    return rows, changes


def _choose(metrics: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    for name in metrics:
        require_known("metric", name, known)
    return metrics or known


def _same(value: float | None, right: Sequence[bool]) -> bool:
    return value is not None and abs(value - sum(right) / len(right)) < 1e-9


def _memes(pairs: Pairs) -> list[str]:
    return [outcome.item.group for outcome, _ in pairs]


def _compare_hits(
    key: str, pairs: Pairs, first: Sequence[bool], second: Sequence[bool]
) -> Difference:
    """Compare correct and wrong answers by McNemar's test; exact if each meme has one item."""
    memes = _memes(pairs)
    lost = sum(a and not b for a, b in zip(first, second, strict=True))
    won = sum(b and not a for a, b in zip(first, second, strict=True))
    if len(set(memes)) == len(memes):
        test, found = "McNemar's exact test", comparison.mcnemar(lost, won)
    else:
        test, found = "McNemar's test by meme", comparison.clustered_mcnemar(first, second, memes)
    gains = [float(b) - float(a) for a, b in zip(first, second, strict=True)]
    span = comparison.paired_bootstrap(gains, memes)
    return Difference(
        key=key,
        first=sum(first) / len(first),
        second=sum(second) / len(second),
        difference=sum(gains) / len(gains),
        low=span.low if span else None,
        high=span.high if span else None,
        test=test,
        p=found.p,
        effect="odds ratio",
        size=comparison.odds_ratio(lost, won),
        items=len(pairs),
        memes=len(set(memes)),
    )


def _compare_means(
    key: str, pairs: Pairs, first: Sequence[float | None], second: Sequence[float | None]
) -> Difference | None:
    """Compare means of per-item values by a bootstrap over memes, plus a paired t-test."""
    kept = [
        (a, b, meme)
        for a, b, meme in zip(first, second, _memes(pairs), strict=True)
        if a is not None and b is not None
    ]
    if not kept:
        return None
    before, after, memes = [a for a, _, _ in kept], [b for _, b, _ in kept], [m for *_, m in kept]
    gains = [b - a for a, b, _ in kept]
    span = comparison.paired_bootstrap(gains, memes)
    means = comparison.mean_by_cluster(before, memes), comparison.mean_by_cluster(after, memes)
    student, welch = comparison.paired_t_test(*means), comparison.welch_t_test(*means)
    return Difference(
        key=key,
        first=sum(before) / len(before),
        second=sum(after) / len(after),
        difference=sum(gains) / len(gains),
        low=span.low if span else None,
        high=span.high if span else None,
        test="paired bootstrap over memes",
        p=span.p if span else None,
        effect="Cohen's d (paired)",
        size=comparison.cohen_d_z(comparison.mean_by_cluster(gains, memes)),
        items=len(kept),
        memes=len(set(memes)),
        t_test=student.p if student else None,
        t_unpaired=welch.p if welch else None,
    )


def _compare_metric(task: Task, pairs: Pairs, first: float, second: float) -> Difference:
    """Compare any other metric, such as F1, by scoring both runs on resampled memes."""
    span = resample_metric(task, pairs, (first, second))
    return Difference(
        key=task.main,
        first=first,
        second=second,
        difference=second - first,
        low=span.low if span else None,
        high=span.high if span else None,
        test=span.test if span else "",
        p=span.p if span else None,
        effect="",
        size=None,
        items=len(pairs),
        memes=len(set(_memes(pairs))),
    )


def _list_flips(pairs: Pairs, first: Sequence[bool], second: Sequence[bool]) -> list[Change]:
    """List the items that only one of two runs answered correctly, gains first."""
    changes = [
        Change(a.item.id, a.value, b.value, a.item.gold, float(now) - float(before))
        for (a, b), before, now in zip(pairs, first, second, strict=True)
        if before != now
    ]
    return sorted(changes, key=lambda change: -(change.gain or 0))


def _list_marks(
    pairs: Pairs, first: Sequence[float | None], second: Sequence[float | None]
) -> list[Change]:
    """List the items whose main metric differs between two runs, largest changes first."""
    changes = [
        Change(a.item.id, a.value, b.value, a.item.gold, now - before)
        for (a, b), before, now in zip(pairs, first, second, strict=True)
        if before is not None and now is not None and abs(now - before) > 1e-12
    ]
    return sorted(changes, key=lambda change: -abs(change.gain or 0))


def _list_values(pairs: Pairs) -> list[Change]:
    """List the items with different answers, for tasks without a single correct answer."""
    return [
        Change(a.item.id, a.value, b.value, a.item.gold, None)
        for a, b in pairs
        if a.value != b.value
    ]
