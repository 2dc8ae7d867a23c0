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
from memantics.tasks.factories import hits

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
                contrast.setting,
                f"{contrast.first} → {contrast.second}",
                row.key,
                row.span,
                *map(show_p, (row.p, row.corrected, row.t_test_corrected)),
                show_p(row.t_unpaired_corrected),
            )
            for contrast in self.contrasts
            for row in contrast.comparison.differences
        ]
        columns = ("setting", self.factor, "figure", "difference (95 %)", ">p", ">Holm")
        return Table((*columns, ">t paired", ">t unpaired"), tuple(rows))

    def effect_table(self) -> Table:
        """The effect over all settings."""
        rows = []
        for effect in self.effects:
            span = "" if effect.low is None else f" ({effect.low:+.3f} to {effect.high:+.3f})"
            levels = f"{effect.first} → {effect.second}"
            ps = (show_p(effect.p), show_p(effect.corrected))
            rows.append(
                (levels, effect.key, f"{effect.difference:+.3f}{span}", str(effect.settings), *ps)
            )
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
        (name, first, second, (counts[first], counts[second]))
        for first, second in combinations(known, 2)
        for name, counts in grid.items()
        if first in counts and second in counts
    ]
    if not cells:
        raise InputError(
            f"no two runs differ in {factor} alone", hint="run the grid with one --set for each"
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
    """All that is chosen besides the factor; what every run shares is left unsaid."""
    chosen = [
        {**fact.options, MODEL: fact.model, "split": fact.split, "probe": fact.probe}
        for fact in facts
    ]
    names = [name for name in dict.fromkeys(n for texts in chosen for n in texts) if name != factor]
    told = [name for name in names if len({texts.get(name) for texts in chosen}) > 1]
    return [", ".join(f"{n}={texts[n]}" for n in told if n in texts) or "all" for texts in chosen]


def _pool(
    sides: Sequence[Side],
    cells: Sequence[tuple[str, str, str, tuple[int, int]]],
    wanted: set[str],
) -> tuple[FactorEffect, ...]:
    values = [_find_values(sides[0], side, wanted) for side in sides]
    keys = [key for key in values[0] if key in wanted]
    effects = []
    for first, second in dict.fromkeys((names[1], names[2]) for names in cells):
        pairs = [names[-1] for names in cells if (names[1], names[2]) == (first, second)]
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
    corrected = correct_known([effect.p for effect in effects])
    return tuple(replace(effect, corrected=p) for effect, p in zip(effects, corrected, strict=True))


def _find_values(
    first: Side, side: Side, wanted: set[str]
) -> Mapping[str, Mapping[str, tuple[float, str]]]:
    """Each item's own figures with its meme; right or wrong where the task has no marks."""
    kept = [outcome for outcome in side.outcomes if counts(outcome, side.task.invalid)]
    if first.task.marks is not None:
        marks = first.task.marks(kept)
    elif all(isinstance(outcome.item.gold, str | int | float) for outcome in kept):
        right: list[float | None] = [float(hit) for hit in hits(kept)]
        # Where the main figure is the share of right answers, the comparison calls it so.
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
