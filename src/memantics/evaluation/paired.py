"""Compare two runs of one task item by item: differences, confidence intervals, changed items.

Interval and p-value of a difference come from one test (:mod:`memantics.metrics.paired`). Most main
metrics are means or F1 scores; they are recognized by their values and computed in arrays. Any
other metric is scored again without each of at most fifty blocks of memes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from memantics.evaluation.facts import name_groups
from memantics.evaluation.judging.setups import compare_judging
from memantics.evaluation.main_metric import (
    BLOCKS,
    Recognized,
    find_main,
    leave_out_blocks,
    recognize_metric,
)
from memantics.evaluation.scoring import DEVIATION, REPEATS, counts, keep_scored, read_outcomes
from memantics.metrics import comparison
from memantics.metrics.paired import (
    BY_MEME,
    FEWEST_MEMES,
    Clusters,
    PairedTest,
    compare_auroc,
    compare_blocks,
    compare_hits,
    compare_means,
    compare_ratios,
    macro_auroc,
)
from memantics.metrics.rounding import Floats

RIGHT, AUROC = "right", "auroc"
# Called with the number of finished comparisons and their total.
CompareProgress = Callable[[int, int], None]
PERMUTED = "options=permuted"


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric on the shared items: the second run's value minus the first's.

    ``p`` is the p-value of the named test; without a p-value, ``test`` says why. ``t_test`` is the
    p-value of a paired t-test over memes, if the metric is a mean. The corrected values are
    Holm-corrected over all metrics of all pairs. ``memes`` counts what the items are grouped by,
    which ``grouped`` names (groups of memes, if an item is a meme).
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
    grouped: str = "memes"

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
        sizes = dict.fromkeys((row.items, row.memes, row.grouped) for row in self.differences)
        title = "; ".join(f"{items:,} items of {memes:,} {name}" for items, memes, name in sizes)
        return Table(columns, tuple(rows), title)

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
class Side:
    """One run of a comparison, with the task that parses its answers."""

    folder: Path
    facts: RunFacts
    task: Task
    outcomes: tuple[Outcome, ...]


OutcomePair = tuple[Outcome, Outcome]
Pairs = Sequence[OutcomePair]


def open_side(folder: Path, facts: RunFacts, task: Task) -> Side:
    """Read the outcomes of a run for a comparison."""
    return Side(folder, facts, task, tuple(read_outcomes(folder, task)))


def show_nothing(_done: int, _total: int) -> None:
    """Ignore the progress of comparisons."""


def compare_sides(
    sides: Sequence[Side],
    metrics: Sequence[str] = (),
    *,
    against_first: bool = False,
    progress: CompareProgress = show_nothing,
) -> list[Comparison]:
    """Compare every pair of runs, or each with the first; p-values are corrected over all pairs.

    All runs are scored by the task of the first run, so that metrics have the same definition in
    every run.
    """
    places = list(combinations(range(len(sides)), 2))
    if against_first:
        places = [(0, place) for place in range(1, len(sides))]
    return compare_pairs(sides, places, metrics, progress)


def compare_pairs(
    sides: Sequence[Side],
    places: Sequence[tuple[int, int]],
    metrics: Sequence[str] = (),
    progress: CompareProgress = show_nothing,
) -> list[Comparison]:
    """Compare the given pairs of runs, by index; p-values are corrected over all of them."""
    _check(sides)
    task = sides[0].task
    form = None
    if task.marks is None:
        kept = [keep_scored(side.outcomes, side.task.invalid) for side in sides]
        form = recognize_metric(task, kept)
    marked = [_mark(task, side) for side in sides]
    found = []
    for done, (a, b) in enumerate(places):
        progress(done, len(places))
        found.append(_compare_two(_Scorer(task, form), marked[a], marked[b], metrics))
    progress(len(places), len(places))
    return correct(found)


@dataclass(frozen=True, slots=True)
class _Scorer:
    """The task that scores all runs, and the array form of its main metric if it has one."""

    task: Task
    form: Recognized | None


@dataclass(frozen=True, slots=True)
class _Marked:
    """A run with per-item values, by metric and item; None if the task defines no such values.

    ``without_blocks`` keeps the values of :func:`leave_out_blocks` by the compared items.
    """

    side: Side
    marks: Mapping[str, Mapping[str, float | None]] | None
    without_blocks: dict[tuple[str, ...], tuple[float, Floats] | None] = field(default_factory=dict)


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
    repaired = iter(
        replace(row, corrected=p, t_test_corrected=t)
        for row, p, t in zip(rows, tests, t_tests, strict=True)
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


def _compare_two(
    scorer: _Scorer, one: _Marked, other: _Marked, metrics: Sequence[str]
) -> Comparison:
    first, second = one.side, other.side
    pairs, skipped = _match(first, second)
    if not pairs:
        raise InputError(
            f"{first.folder} and {second.folder} have no scored item in common",
            hint="compare runs on the same data and split",
        )
    if one.marks is not None and other.marks is not None:
        marks = (one.marks, other.marks)
        differences, changes = _measure_marks(scorer.task, pairs, marks, metrics)
    else:
        differences, changes = _measure(scorer, pairs, (one, other), metrics)
    return Comparison(
        first=str(first.folder),
        second=str(second.folder),
        task=first.facts.task,
        shared=len(pairs),
        skipped={reason: count for reason, count in skipped.items() if count},
        differences=tuple(_name_groups(row, first.facts.unit) for row in differences),
        changes=tuple(changes),
        notes=(
            *_note(first.facts, second.facts),
            *filter(None, [compare_judging([first.folder, second.folder])]),
            *_note_repeats(first),
            *_note_repeats(second),
        ),
    )


def _name_groups(row: Difference, unit: str) -> Difference:
    return replace(row, grouped=name_groups(unit, row.items, row.memes))


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
    scorer: _Scorer, pairs: Pairs, sides: tuple[_Marked, _Marked], metrics: Sequence[str]
) -> tuple[list[Difference], list[Change]]:
    """Compare the main metric, the proportion of correct answers and AUROC, if they are defined."""
    task = scorer.task
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    right = None
    if all(isinstance(outcome.item.gold, str | int | float) for outcome in first):
        right = hits(first), hits(second)
    main = _compare_main(scorer, pairs, sides)
    same = right is not None and main is not None and _is_mean(main, right)
    odds = _stack_odds(first, second)
    known = [task.main] if right is None or same else [task.main, RIGHT]
    rows = []
    for key in _choose(metrics, [*known, AUROC] if odds is not None else known):
        if right is not None and (same or key == RIGHT) and key != AUROC:
            rows.append(_compare_hits(key, pairs, *right))
        elif key == AUROC and odds is not None:
            rows += _compare_odds(pairs, *odds)
        elif main is not None:
            rows.append(main)
    changes = _list_flips(pairs, *right) if right is not None else _list_values(pairs)
    return rows, changes


def _is_mean(main: Difference, right: tuple[Sequence[bool], Sequence[bool]]) -> bool:
    return _same(main.first, right[0]) and _same(main.second, right[1])


def _compare_main(
    scorer: _Scorer, pairs: Pairs, sides: tuple[_Marked, _Marked]
) -> Difference | None:
    """Compare the main metric in arrays, or by scoring again without each block of memes."""
    parts = [[pair[side] for pair in pairs] for side in (0, 1)]
    if scorer.form is not None:
        one, two = (scorer.form(part) for part in parts)
        if one.value is None or two.value is None:
            return None
        found = compare_ratios(one, two, Clusters.of(_memes(pairs)), bound=1.0)
        return _describe(scorer.task.main, (one.value, two.value), found, pairs)
    values = [_leave_out(scorer.task, *both) for both in zip(sides, parts, strict=True)]
    if values[0] is None or values[1] is None:
        mains = [find_main(scorer.task, part) for part in parts]
        if mains[0] is None or mains[1] is None:
            return None
        return _describe(scorer.task.main, (mains[0], mains[1]), None, pairs)
    (before, left), (after, right) = values[0], values[1]
    name = BY_MEME if len(left) < BLOCKS else f"jackknife over {len(left)} blocks of memes"
    found = compare_blocks(after - before, right - left, name)
    return _refuse_few(_describe(scorer.task.main, (before, after), found, pairs))


def _leave_out(
    task: Task, marked: _Marked, outcomes: Sequence[Outcome]
) -> tuple[float, Floats] | None:
    """Values without each block of memes, computed once for all comparisons of a run."""
    names = tuple(outcome.item.id for outcome in outcomes)
    if names not in marked.without_blocks:
        marked.without_blocks[names] = leave_out_blocks(task, outcomes)
    return marked.without_blocks[names]


def _describe(
    key: str, values: tuple[float, float], found: PairedTest | None, pairs: Pairs
) -> Difference:
    """Make the row of a metric without an effect size."""
    return Difference(
        key=key,
        first=values[0],
        second=values[1],
        difference=values[1] - values[0],
        low=found.low if found else None,
        high=found.high if found else None,
        test=found.name if found else "",
        p=found.p if found else None,
        effect="",
        size=None,
        items=len(pairs),
        memes=len(set(_memes(pairs))),
    )


def _stack_odds(
    first: Sequence[Outcome], second: Sequence[Outcome]
) -> tuple[Floats, Floats, Floats] | None:
    """Probabilities of both runs (items × labels) and the gold columns; None if there are none.

    Every item must have the same options. Lettered answers that differ between items are not
    classes, so they have no AUROC.
    """
    odds = [outcome.odds for outcome in (*first, *second)]
    stated = [one.stated for one in odds if one is not None]
    if not stated or len(stated) < len(odds) or len({frozenset(one) for one in stated}) > 1:
        return None
    some = [first[place].item for place in sorted({0, len(first) // 2, len(first) - 1})]
    if len({tuple(option.text for option in item.form.fields[0].options) for item in some}) > 1:
        return None
    keys = list(stated[0])
    rows = np.array([[one[key] for key in keys] for one in stated])
    gold = np.array([keys.index(one.gold) for one in odds[: len(first)] if one is not None])
    return rows[: len(first)], rows[len(first) :], gold


def _compare_odds(pairs: Pairs, first: Floats, second: Floats, gold: Floats) -> list[Difference]:
    """Compare the AUROC of stated probabilities; with three labels or more, its mean over them."""
    columns = gold.astype(np.int64)
    one, two = macro_auroc(first, columns), macro_auroc(second, columns)
    if one is None or two is None:
        return []
    found = compare_auroc(first, second, columns, _memes(pairs))
    return [_refuse_few(_describe(AUROC, (one[0], two[0]), found, pairs))]


def _refuse_few(row: Difference) -> Difference:
    """Say why a test gave no p-value."""
    if row.p is not None:
        return row
    why = f"too few memes for this test: {row.memes}, at least {FEWEST_MEMES}"
    return replace(row, test=why)


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
    """Compare correct and wrong answers: McNemar's test, or a jackknife for clustered items."""
    lost = sum(a and not b for a, b in zip(first, second, strict=True))
    won = sum(b and not a for a, b in zip(first, second, strict=True))
    found = compare_hits(first, second, _memes(pairs))
    values = sum(first) / len(first), sum(second) / len(second)
    row = _describe(key, values, found, pairs)
    return replace(row, effect="odds ratio", size=comparison.odds_ratio(lost, won))


def _compare_means(
    key: str, pairs: Pairs, first: Sequence[float | None], second: Sequence[float | None]
) -> Difference | None:
    """Compare means of per-item values by a jackknife over memes, plus a t-test of meme means."""
    kept = [
        (a, b, meme)
        for a, b, meme in zip(first, second, _memes(pairs), strict=True)
        if a is not None and b is not None
    ]
    if not kept:
        return None
    before, after, memes = [a for a, _, _ in kept], [b for _, b, _ in kept], [m for *_, m in kept]
    gains = [b - a for a, b, _ in kept]
    found = compare_means(before, after, memes)
    means = comparison.mean_by_cluster(before, memes), comparison.mean_by_cluster(after, memes)
    student = comparison.paired_t_test(*means)
    values = sum(before) / len(before), sum(after) / len(after)
    return replace(
        _describe(key, values, found, pairs),
        difference=sum(gains) / len(gains),
        effect="Cohen's d (paired)",
        size=comparison.cohen_d_z(comparison.mean_by_cluster(gains, memes)),
        items=len(kept),
        memes=len(set(memes)),
        t_test=student.p if student else None,
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
