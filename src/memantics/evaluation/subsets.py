"""Scores of a run by a field of its items, beside the majority baseline of each subset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.benchmarks.factories import hits, most_frequent
from memantics.core.errors import UnknownName
from memantics.core.records import Outcome
from memantics.core.result import Result, Table
from memantics.core.rundir import read_facts
from memantics.evaluation.scoring import keep_scored, read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.metrics.interval import clustered_wilson

GOLD, STATUS, IMAGES = "gold", "status", "images"


@dataclass(frozen=True, slots=True)
class SubsetScore:
    """The answers of one subset: proportion correct with its 95% interval, and baseline.

    ``majority`` is the most frequent gold answer of the subset, ``baseline`` its proportion.
    """

    value: str
    items: int
    memes: int
    correct: float
    low: float
    high: float
    majority: str
    baseline: float


@dataclass(frozen=True, slots=True)
class SubsetScores(Result):
    """Scores of a run by one field of its items, the largest subset first."""

    run: str
    by: str
    rows: tuple[SubsetScore, ...]

    def table(self) -> Table:
        """Show the proportions in per cent."""
        return Table(
            (self.by, ">items", ">memes", ">correct", ">95 % CI", "majority", ">majority baseline"),
            tuple(
                (
                    row.value,
                    f"{row.items:,}",
                    f"{row.memes:,}",
                    f"{100 * row.correct:.1f}",
                    f"{100 * row.low:.1f}–{100 * row.high:.1f}",
                    row.majority,
                    f"{100 * row.baseline:.1f}",
                )
                for row in self.rows
            ),
            title=f"{self.run} by {self.by}",
        )


def score_subsets(folder: str | Path, by: str, *, invalid: str | None = None) -> SubsetScores:
    """Score a finished run by a field of its items; no model is called and no file is written.

    Args:
        folder: The run directory.
        by: A tag of the items, such as ``dimension``; ``gold``, ``status`` of the answer, or
            ``images`` (their number).
        invalid: Policy for refused and unparsed answers. Default: that of the run.

    Returns:
        For each value: items, memes, proportion correct with its 95% interval, and the proportion
        that the most frequent gold answer of the subset reaches.

    Raises:
        UnknownName: No item has the field.

    Example:
        >>> mm.score_subsets("runs/one", "status").rows[0].value
        'answered'
    """
    facts = read_facts(Path(folder))
    _, task = open_task_of_run(facts, invalid)
    outcomes = keep_scored(read_outcomes(Path(folder), task), task.invalid)
    parts: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        fields = _list_fields(outcome)
        if by in fields:
            parts.setdefault(fields[by], []).append(outcome)
    if not parts:
        known = {name for outcome in outcomes for name in _list_fields(outcome)}
        raise UnknownName("field of items:", by, sorted(known))
    rows = sorted(
        (_score(value, part) for value, part in parts.items()),
        key=lambda row: (-row.items, row.value),
    )
    return SubsetScores(Path(folder).name, by, tuple(rows))


def _list_fields(outcome: Outcome) -> Mapping[str, str]:
    item = outcome.item
    own = {GOLD: str(item.gold), STATUS: outcome.status, IMAGES: str(len(item.images))}
    return {**own, **item.tags}


def _score(value: str, part: Sequence[Outcome]) -> SubsetScore:
    marks, memes = hits(part), [outcome.item.group for outcome in part]
    golds = [str(outcome.item.gold) for outcome in part]
    majority = most_frequent(golds) or ""
    low, high = clustered_wilson(marks, memes) or (0.0, 1.0)
    return SubsetScore(
        value,
        len(part),
        len(set(memes)),
        sum(marks) / len(part),
        low,
        high,
        majority,
        golds.count(majority) / len(part),
    )
