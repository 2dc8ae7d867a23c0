"""What one factor of a grid of runs does: runs that differ in it alone, side by side.

A factor is an option of the task, or the model. For each pair of its levels, runs that are alike
in everything else are compared; the effect over the whole grid is the mean of these differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

from memantics.core.errors import InputError
from memantics.core.result import Result, Table
from memantics.core.rundir import RunFacts
from memantics.metrics.comparison import correct_known, paired_bootstrap
from memantics.run.compare import RIGHT, Side, compare_pairs
from memantics.run.differences import Comparison, show_p
from memantics.run.score import counts
from memantics.tasks.choices import hits

MODEL = "model"


@dataclass(frozen=True, slots=True)
class FactorEffect:
    """A figure's mean difference between two levels, over all settings of the other factors.

    Memes are resampled with all their differences; ``corrected`` is Holm's over all effects.
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
    """Two levels of a factor under one setting of all others."""

    setting: str
    first: str
    second: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class FactorContrasts(Result):
    """What a factor does: setting by setting, and over the whole grid."""

    factor: str
    contrasts: tuple[SettingContrast, ...]
    effects: tuple[FactorEffect, ...]

    def table(self) -> Table:
        """Every contrast with its tests, all corrected together."""
        rows = [
            (
                own.setting,
                f"{own.first} → {own.second}",
                row.key,
                row.span,
                *map(show_p, (row.p, row.corrected, row.t_test_corrected)),
                show_p(row.t_unpaired_corrected),
            )
            for own in self.contrasts
            for row in own.comparison.differences
        ]
        columns = ("setting", self.factor, "figure", "difference (95 %)", ">p", ">Holm")
        return Table((*columns, ">t paired", ">t unpaired"), tuple(rows))

    def effect_table(self) -> Table:
        """The effect over all settings."""
        rows = []
        for own in self.effects:
            span = "" if own.low is None else f" ({own.low:+.3f} to {own.high:+.3f})"
            levels = f"{own.first} → {own.second}"
            ps = (show_p(own.p), show_p(own.corrected))
            rows.append((levels, own.key, f"{own.difference:+.3f}{span}", str(own.settings), *ps))
        columns = (self.factor, "figure", "mean difference (95 %)", ">settings", ">p", ">Holm")
        return Table(columns, tuple(rows), "Over all settings")

    def _repr_html_(self) -> str:
        return self.effect_table()._repr_html_() + self.table()._repr_html_()


def contrast(sides: Sequence[Side], factor: str, metrics: Sequence[str] = ()) -> FactorContrasts:
    """Contrast the levels of a factor over a grid of runs of one task."""
    levels = [_find_level(side.facts, factor) for side in sides]
    grid: dict[str, dict[str, int]] = {}
    names = _name_settings([side.facts for side in sides], factor)
    for place, (level, name) in enumerate(zip(levels, names, strict=True)):
        if level in grid.setdefault(name, {}):
            raise InputError(
                f"two runs have {factor} = {level} and are alike in everything else",
                hint="give each setting once",
            )
        grid[name][level] = place
    known = list(dict.fromkeys(levels))
    if len(known) < 2:
        raise InputError(
            f"all runs have {factor} = {known[0] if known else 'nothing'}",
            hint="give runs that differ in it",
        )
    cells = [
        (name, first, second, (own[first], own[second]))
        for first, second in combinations(known, 2)
        for name, own in grid.items()
        if first in own and second in own
    ]
    if not cells:
        raise InputError(
            f"no two runs differ in {factor} alone", hint="run the grid with one --set for each"
        )
    found = compare_pairs(sides, [own[-1] for own in cells], metrics)
    rows = tuple(
        SettingContrast(name, first, second, own)
        for (name, first, second, _), own in zip(cells, found, strict=True)
    )
    wanted = {row.key for own in found for row in own.differences}
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
    """All that is chosen besides the factor; what every run shares is left unsaid."""
    chosen = [
        {**own.options, MODEL: own.model, "split": own.split, "probe": own.probe} for own in facts
    ]
    names = [name for name in dict.fromkeys(n for own in chosen for n in own) if name != factor]
    told = [name for name in names if len({own.get(name) for own in chosen}) > 1]
    return [", ".join(f"{n}={own[n]}" for n in told if n in own) or "all" for own in chosen]


def _pool(
    sides: Sequence[Side],
    cells: Sequence[tuple[str, str, str, tuple[int, int]]],
    wanted: set[str],
) -> tuple[FactorEffect, ...]:
    values = [_find_values(sides[0], side, wanted) for side in sides]
    keys = [key for key in values[0] if key in wanted]
    effects = []
    for first, second in dict.fromkeys((own[1], own[2]) for own in cells):
        pairs = [own[-1] for own in cells if (own[1], own[2]) == (first, second)]
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
            span = paired_bootstrap(gains, memes)
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
    corrected = correct_known([own.p for own in effects])
    return tuple(replace(own, corrected=p) for own, p in zip(effects, corrected, strict=True))


def _find_values(
    first: Side, side: Side, wanted: set[str]
) -> Mapping[str, Mapping[str, tuple[float, str]]]:
    """Each item's own figures with its meme; right or wrong where the task has no marks."""
    kept = [own for own in side.outcomes if counts(own, side.task.invalid)]
    if first.task.marks is not None:
        marks = first.task.marks(kept)
    elif all(isinstance(own.item.gold, str | int | float) for own in kept):
        right: list[float | None] = [float(own) for own in hits(kept)]
        # Where the main figure is the share of right answers, the comparison calls it so.
        marks = {RIGHT if RIGHT in wanted else first.task.main: right}
    else:
        return {}
    return {
        key: {
            own.item.id: (value, own.item.group)
            for own, value in zip(kept, values, strict=True)
            if value is not None
        }
        for key, values in marks.items()
    }
