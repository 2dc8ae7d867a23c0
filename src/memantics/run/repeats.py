"""Figures of several runs that differ in their seed alone, noted beside the scores of the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from memantics.core.records import Outcome, Score
from memantics.core.rundir import read_facts, read_scores, write_scores
from memantics.core.task import Task
from memantics.metrics.repeats import majority, pass_at_k, repeat_deviation, split_variance
from memantics.run.score import counts, read_outcomes
from memantics.tasks.choices import hits

REPEATS, DEVIATION = "repeats", "deviation between repeats"


def group_repeats(folders: Sequence[Path]) -> list[list[Path]]:
    """Runs that repeat one another, in the order of their numbers; others stand alone."""
    found: dict[str, list[tuple[int, Path]]] = {}
    for folder in folders:
        facts = read_facts(folder)
        found.setdefault(facts.repeat_of or facts.fingerprint, []).append((facts.repeat, folder))
    return [[folder for _, folder in sorted(pairs)] for pairs in found.values()]


def note_repeats(folders: Sequence[Path], task: Task) -> None:
    """Write what repeats say together into the scores of the first."""
    first = read_scores(folders[0])
    scores = tuple(score for score in first.scores if score.by != REPEATS)
    if len(folders) > 1:
        runs = [{o.item.id: o for o in read_outcomes(folder, task)} for folder in folders]
        means = [
            next((s.value for s in read_scores(f).scores if _is_main(s, first.main)), None)
            for f in folders
        ]
        scores += tuple(score_repeats(task, first.main, runs, means))
    write_scores(folders[0], replace(first, scores=scores))


def _is_main(score: Score, main: str) -> bool:
    return score.key == main and not score.by


def score_repeats(
    task: Task,
    main: str,
    runs: Sequence[dict[str, Outcome]],
    means: Sequence[float | None],
) -> Iterator[Score]:
    """Mean and deviation of the main figure; of right answers the split of variance and votes.

    Items count that every repeat answered or counts as wrong.
    """
    count = len(runs)
    known = [value for value in means if value is not None]
    deviation = repeat_deviation([known]) if len(known) > 1 else None

    def figure(label: str, value: float | None, n: int, key: str = main) -> Score:
        return Score(key, value, n, by=REPEATS, label=label)

    yield figure(f"mean of {count}", fmean(known) if known else None, len(known))
    yield figure(DEVIATION, deviation, len(known))
    shared = [
        [run[name] for run in runs]
        for name in runs[0]
        if all(name in run and counts(run[name], task.invalid) for run in runs)
    ]
    if not shared or not all(isinstance(o.item.gold, str | int) for row in shared for o in row):
        return
    marks = [[float(hit) for hit in hits(row)] for row in shared]
    n = len(marks)
    split = split_variance(marks)
    yield figure("variance between items", split.items if split else None, n, "right")
    yield figure("variance between repeats", split.repeats if split else None, n, "right")
    for k in range(1, count + 1):
        yield figure(f"pass@{k}", pass_at_k(marks, k), n, "right")
    votes = [majority([_vote(o) for o in row]) == row[0].item.gold for row in shared]
    yield figure(f"majority@{count}", fmean(votes), n, "right")


def _vote(outcome: Outcome) -> str | int | None:
    value = outcome.value
    return value if outcome.status == "answered" and isinstance(value, str | int) else None
