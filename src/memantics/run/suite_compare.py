"""Runs of several tasks compared at once: pairs within each task, p-values corrected over all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from memantics.core.errors import InputError
from memantics.core.records import Outcome
from memantics.core.result import Result, Table, make_frame
from memantics.metrics.comparison import Correction
from memantics.run.compare import Side, compare_pairs, correct
from memantics.run.differences import Comparison, Difference, show_p

# One run of a model on a task with its repeats, and what it is called.
Contestant = tuple[str, Sequence[Side]]
# Those that answer the same questions, and what these are called.
Contest = tuple[str, Sequence[Contestant]]


@dataclass(frozen=True, slots=True)
class SuiteDifference:
    """The main figure of two models on one task; names are those of the table's rows.

    ``ground`` names the questions: one task may be asked on several parts of the data.
    """

    ground: str
    task: str
    first: str
    second: str
    found: Difference

    @property
    def better(self) -> str:
        """The model that is significantly better (5 %, corrected); empty where none is."""
        p = self.found.corrected
        if p is None or p >= 0.05 or not self.found.difference:
            return ""
        return self.second if self.found.difference > 0 else self.first


@dataclass(frozen=True, slots=True)
class SuiteComparison(Result):
    """All differences of a suite; ``correction`` was made over all of them together."""

    correction: Correction
    rows: tuple[SuiteDifference, ...]
    comparisons: tuple[Comparison, ...]

    def table(self) -> Table:
        """A line for each pair of models on each task."""
        name = "Holm" if self.correction == "holm" else "BH"
        columns = ("task", "figure", "models", ">first", ">second", "difference (95 %)")
        lines = [
            (
                row.task,
                row.found.key.replace("_", " "),
                f"{row.first} → {row.second}",
                f"{row.found.first:.3f}",
                f"{row.found.second:.3f}",
                row.found.span,
                *map(show_p, row.found.ps),
                "–" if row.found.size is None else f"{row.found.size:.2f}",
            )
            for row in self.rows
        ]
        return Table((*columns, ">p", f">{name}", ">effect"), tuple(lines))

    def to_pandas(self) -> Any:
        """A data frame with a row for each pair of models on each task."""
        return make_frame(
            {"task": row.task, "first_model": row.first, "second_model": row.second}
            | asdict(row.found)
            | {"better": row.better}
            for row in self.rows
        )

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def pool_repeats(runs: Sequence[Sequence[Side]]) -> list[Side]:
    """One side for each run with its repeats, which are told apart by a number.

    Repeats of an item stay with its meme, so that tests clustered by meme take account of them. A
    model that was asked less often is compared with each repeat of the other.
    """
    most = max(map(len, runs), default=1)
    if most == 1:
        return [run[0] for run in runs]
    return [
        replace(
            run[0],
            outcomes=tuple(
                _number(outcome, place)
                for place in range(most)
                for outcome in run[place % len(run)].outcomes
            ),
        )
        for run in runs
    ]


def _number(outcome: Outcome, place: int) -> Outcome:
    if not place:
        return outcome
    return replace(outcome, item=replace(outcome.item, id=f"{outcome.item.id}#{place}"))


def compare_suite(
    contests: Sequence[Contest], *, against: str = "", correction: Correction = "holm"
) -> SuiteComparison:
    """Compare the main figures of runs that answer the same questions.

    ``against`` names the one model with which all others are compared; by default every pair is.
    """
    found: list[Comparison] = []
    names: list[tuple[str, str, str]] = []
    for ground, group in contests:
        labels = [label for label, _ in group]
        places = list(combinations(range(len(group)), 2))
        if against:
            base = [place for place, label in enumerate(labels) if label == against]
            places = [(one, place) for one in base for place in range(len(group)) if place != one]
        if places:
            sides = pool_repeats([runs for _, runs in group])
            found += compare_pairs(sides, places, [sides[0].task.main])
            names += [(ground, labels[one], labels[other]) for one, other in places]
    if not found:
        what = (
            f"no run of {against} has another one beside it"
            if against
            else ("no two runs answer the same questions")
        )
        raise InputError(what, hint="give two or more runs of a task, on the same data")
    found = correct(found, correction)
    rows = [
        SuiteDifference(ground, one.task, first, second, row)
        for one, (ground, first, second) in zip(found, names, strict=True)
        for row in one.differences
    ]
    return SuiteComparison(correction, tuple(rows), tuple(found))
