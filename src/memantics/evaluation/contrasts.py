"""Comparisons over a grid of runs (one factor) or a suite of tasks, with corrected p-values.

A factor is a task option or the model. For each pair of levels of a factor, runs that agree in
everything else are compared; the effect over the grid is the mean of these differences. In a suite
of tasks, runs are compared within each task, and p-values are corrected over all comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from statistics import fmean
from typing import Any

from memantics.benchmarks.factories import hits
from memantics.core.errors import InputError
from memantics.core.records import Outcome
from memantics.core.result import Result, Table, make_frame
from memantics.core.rundir import RunFacts
from memantics.evaluation.paired import (
    RIGHT,
    CompareProgress,
    Comparison,
    Difference,
    Side,
    compare_pairs,
    correct,
    show_nothing,
    show_p,
)
from memantics.evaluation.scoring import counts
from memantics.metrics.comparison import Correction, correct_known
from memantics.metrics.paired import compare_means

# A model's name, and its run on a task with the repeats of that run.
Contestant = tuple[str, Sequence[Side]]
# The name of a set of questions, and the runs on these questions.
Contest = tuple[str, Sequence[Contestant]]


@dataclass(frozen=True, slots=True)
class SuiteDifference:
    """Difference of the main metric between two models on one task.

    ``ground`` names the set of questions, since one task may be run on several parts of the data.
    """

    ground: str
    task: str
    first: str
    second: str
    found: Difference

    @property
    def better(self) -> str:
        """The significantly better model (5 % level, corrected); empty if there is none."""
        p = self.found.corrected
        if p is None or p >= 0.05 or not self.found.difference:
            return ""
        return self.second if self.found.difference > 0 else self.first


@dataclass(frozen=True, slots=True)
class SuiteComparison(Result):
    """All differences between models over a suite of tasks; ``correction`` covers all of them."""

    correction: Correction
    rows: tuple[SuiteDifference, ...]
    comparisons: tuple[Comparison, ...]

    def table(self) -> Table:
        """One row per pair of models on each task."""
        name = "Holm" if self.correction == "holm" else "BH"
        columns = ("task", "metric", "models", ">items", ">memes", ">first", ">second")
        lines = [
            (
                row.task,
                row.found.key.replace("_", " "),
                f"{row.first} → {row.second}",
                str(row.found.items),
                str(row.found.memes),
                f"{row.found.first:.3f}",
                f"{row.found.second:.3f}",
                row.found.span,
                *map(show_p, row.found.ps),
                "–" if row.found.size is None else f"{row.found.size:.2f}",
            )
            for row in self.rows
        ]
        more = ("difference (95 %)", ">p", f">{name}", ">effect")
        return Table((*columns, *more), tuple(lines))

    def to_pandas(self) -> Any:
        """Convert to a data frame with one row per pair of models on each task."""
        return make_frame(
            {"task": row.task, "first_model": row.first, "second_model": row.second}
            | asdict(row.found)
            | {"better": row.better}
            for row in self.rows
        )

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def pool_repeats(runs: Sequence[Sequence[Side]]) -> list[Side]:
    """Pool each run with its repeats into one side of the comparison; repeats are numbered.

    Repeats of an item stay with its meme, so that tests clustered by meme account for them. The
    repeats of a model with fewer of them are reused, so that each repeat has a counterpart.
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
    contests: Sequence[Contest],
    *,
    against: str = "",
    correction: Correction = "holm",
    progress: CompareProgress = show_nothing,
) -> SuiteComparison:
    """Compare the main metrics of runs that answer the same questions.

    ``against`` names the model with which all others are compared; by default every pair is
    compared.
    """
    found: list[Comparison] = []
    names: list[tuple[str, str, str]] = []
    planned = [_plan_pairs([label for label, _ in group], against) for _, group in contests]
    total = sum(map(len, planned))
    for (ground, group), places in zip(contests, planned, strict=True):
        if places:
            labels = [label for label, _ in group]
            sides = pool_repeats([runs for _, runs in group])
            count_on = partial(_count_on, progress, len(found), total)
            found += compare_pairs(sides, places, [sides[0].task.main], count_on)
            names += [(ground, labels[one], labels[other]) for one, other in places]
    if not found:
        what = (
            f"no other run answers the same questions as the runs of {against}"
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


def _count_on(progress: CompareProgress, before: int, total: int, done: int, _: int) -> None:
    """Report progress over all tasks, from that within one task."""
    progress(before + done, total)


def _plan_pairs(labels: Sequence[str], against: str) -> list[tuple[int, int]]:
    """List the pairs of models to compare, by index."""
    if not against:
        return list(combinations(range(len(labels)), 2))
    base = [place for place, label in enumerate(labels) if label == against]
    return [(one, place) for one in base for place in range(len(labels)) if place != one]


MODEL = "model"


@dataclass(frozen=True, slots=True)
class FactorEffect:
    """Mean difference of a metric between two levels, over all settings of the other factors.

    The test is a jackknife over memes, each with all its differences. ``corrected`` is the
    Holm-corrected p-value over all effects.
    """

    key: str
    first: str
    second: str
    settings: int
    memes: int
    difference: float
    low: float | None
    high: float | None
    p: float | None
    corrected: float | None = None


@dataclass(frozen=True, slots=True)
class SettingContrast:
    """The comparison of two levels of a factor with all other settings equal."""

    setting: str
    first: str
    second: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class FactorContrasts(Result):
    """The effect of a factor: for each setting of the other factors, and over the whole grid."""

    factor: str
    contrasts: tuple[SettingContrast, ...]
    effects: tuple[FactorEffect, ...]

    def table(self) -> Table:
        """Every comparison of two levels with its tests, all corrected together."""
        rows = [
            (
                contrast.setting,
                f"{contrast.first} → {contrast.second}",
                row.key,
                row.span,
                *map(show_p, (row.p, row.corrected, row.t_test_corrected)),
                str(row.items),
                str(row.memes),
            )
            for contrast in self.contrasts
            for row in contrast.comparison.differences
        ]
        columns = ("setting", self.factor, "metric", "difference (95 %)", ">p", ">Holm")
        more = (">paired t", ">items", ">memes")
        return Table((*columns, *more), tuple(rows))

    def effect_table(self) -> Table:
        """The effect of the factor over all settings."""
        rows = []
        for effect in self.effects:
            span = "" if effect.low is None else f" ({effect.low:+.3f} to {effect.high:+.3f})"
            levels = f"{effect.first} → {effect.second}"
            ps = (show_p(effect.p), show_p(effect.corrected))
            rows.append(
                (
                    levels,
                    effect.key,
                    f"{effect.difference:+.3f}{span}",
                    str(effect.settings),
                    str(effect.memes),
                    *ps,
                )
            )
        columns = (self.factor, "metric", "mean difference (95 %)", ">settings", ">memes")
        return Table((*columns, ">p", ">Holm"), tuple(rows), "Over all settings")

    def _repr_html_(self) -> str:
        return self.effect_table()._repr_html_() + self.table()._repr_html_()


def contrast(sides: Sequence[Side], factor: str, metrics: Sequence[str] = ()) -> FactorContrasts:
    """Compare the levels of a factor over a grid of runs of one task."""
    levels = [_find_level(side.facts, factor) for side in sides]
    grid: dict[str, dict[str, int]] = {}
    names = _name_settings([side.facts for side in sides], factor)
    for place, (level, name) in enumerate(zip(levels, names, strict=True)):
        if level in grid.setdefault(name, {}):
            raise InputError(
                f"two runs have {factor} = {level} and are equal in all other settings",
                hint="give one run per setting",
            )
        grid[name][level] = place
    known = list(dict.fromkeys(levels))
    if len(known) < 2:
        raise InputError(
            f"all runs have {factor} = {known[0] if known else 'nothing'}",
            hint="give runs with different values of this option",
        )
    cells = [
        (name, first, second, (by_level[first], by_level[second]))
        for first, second in combinations(known, 2)
        for name, by_level in grid.items()
        if first in by_level and second in by_level
    ]
    if not cells:
        raise InputError(
            f"no two runs differ in {factor} alone",
            hint="make one run per value of this option, with equal other options",
        )
    found = compare_pairs(sides, [cell[-1] for cell in cells], metrics)
    rows = tuple(
        SettingContrast(name, first, second, comparison)
        for (name, first, second, _), comparison in zip(cells, found, strict=True)
    )
    wanted = {row.key for comparison in found for row in comparison.differences}
    return FactorContrasts(factor, rows, _pool(sides, cells, wanted))


def _find_level(facts: RunFacts, factor: str) -> str:
    if factor == MODEL:
        return facts.model
    if factor not in facts.options:
        raise InputError(
            f"{facts.task} has no option {factor!r}",
            hint=f"factors: {MODEL}, {', '.join(facts.options)}",
        )
    return facts.options[factor]


def _name_settings(facts: Sequence[RunFacts], factor: str) -> list[str]:
    """Name the settings besides the factor that differ between the runs."""
    chosen = [
        {**fact.options, MODEL: fact.model, "split": fact.split, "perturbation": fact.perturbation}
        for fact in facts
    ]
    names = [
        name for name in dict.fromkeys(n for options in chosen for n in options) if name != factor
    ]
    told = [name for name in names if len({options.get(name) for options in chosen}) > 1]
    return [
        ", ".join(f"{n}={options[n]}" for n in told if n in options) or "all" for options in chosen
    ]


def _pool(
    sides: Sequence[Side],
    cells: Sequence[tuple[str, str, str, tuple[int, int]]],
    wanted: set[str],
) -> tuple[FactorEffect, ...]:
    values = [_find_values(sides[0], side, wanted) for side in sides]
    keys = [key for key in values[0] if key in wanted]
    effects = []
    for first, second in dict.fromkeys((cell[1], cell[2]) for cell in cells):
        pairs = [cell[-1] for cell in cells if (cell[1], cell[2]) == (first, second)]
        for key in keys:
            gains, memes = [], []
            for one, other in pairs:
                mine, theirs = values[one].get(key, {}), values[other].get(key, {})
                for item, (value, meme) in mine.items():
                    if item in theirs:
                        gains.append(theirs[item][0] - value)
                        memes.append(meme)
            if not gains:
                continue
            span = compare_means([0.0] * len(gains), gains, memes)
            effects.append(
                FactorEffect(
                    key=key,
                    first=first,
                    second=second,
                    settings=len(pairs),
                    memes=len(set(memes)),
                    difference=fmean(gains),
                    low=span.low if span else None,
                    high=span.high if span else None,
                    p=span.p if span else None,
                )
            )
    corrected = correct_known([effect.p for effect in effects])
    return tuple(replace(effect, corrected=p) for effect, p in zip(effects, corrected, strict=True))


def _find_values(
    first: Side, side: Side, wanted: set[str]
) -> Mapping[str, Mapping[str, tuple[float, str]]]:
    """Return per-item values with their memes; 1 or 0 if the task has no per-item metric."""
    kept = [outcome for outcome in side.outcomes if counts(outcome, side.task.invalid)]
    if first.task.marks is not None:
        marks = first.task.marks(kept)
    elif all(isinstance(outcome.item.gold, str | int | float) for outcome in kept):
        right: list[float | None] = [float(hit) for hit in hits(kept)]
        # If the main metric is the proportion of correct answers, the comparison uses its name.
        marks = {RIGHT if RIGHT in wanted else first.task.main: right}
    else:
        return {}
    return {
        key: {
            outcome.item.id: (value, outcome.item.group)
            for outcome, value in zip(kept, values, strict=True)
            if value is not None
        }
        for key, values in marks.items()
    }
