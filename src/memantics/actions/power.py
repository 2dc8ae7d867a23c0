"""``power``: how many memes show a difference between two models, from pilot runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.actions.compare import compare_models
from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result, Table
from memantics.core.rundir import read_facts
from memantics.metrics.comparison import clusters_needed, effect_seen
from memantics.registry import find_tasks, pose_task
from memantics.run.facts import Scope
from memantics.run.suite_compare import SuiteDifference

# Half the width of a 95 % interval, in standard errors.
_BOUND = 1.959964


@dataclass(frozen=True, slots=True)
class PowerRow:
    """A pair of pilot runs: the error of their difference, and what follows from it.

    ``needed`` memes show the effect; ``whole`` is the smallest effect that all memes of the task
    show (None where its data are not here).
    """

    first: str
    second: str
    memes: int
    error: float
    needed: int
    whole: float | None


@dataclass(frozen=True, slots=True)
class PowerAnalysis(Result):
    """How many memes are needed, by pair of pilot runs. ``effect`` is in points of a hundred."""

    task: str
    figure: str
    effect: float
    chance: float
    memes: int | None
    rows: tuple[PowerRow, ...]

    @property
    def needed(self) -> int:
        """The most that any pair of pilot runs asks for."""
        return max(row.needed for row in self.rows)

    def table(self) -> Table:
        """A line for each pair."""
        columns = ("models", ">pilot memes", ">standard error", ">memes needed", ">all memes show")
        rows = [
            (
                f"{row.first} → {row.second}",
                str(row.memes),
                f"{100 * row.error:.2f}",
                f"{row.needed:,}",
                "–" if row.whole is None else f"{100 * row.whole:.2f}",
            )
            for row in self.rows
        ]
        return Table(columns, tuple(rows), f"{self.task}: {self.figure}, in points of a hundred")

    def sentence(self) -> str:
        """The answer in one sentence."""
        whole = "" if self.memes is None else f" The data hold {self.memes:,}."
        return (
            f"{self.needed:,} memes show a difference of {self.effect:g} points in "
            f"{100 * self.chance:g} % of cases, at the 5 % level, uncorrected.{whole}"
        )


def power(
    task: Annotated[str, Argument("NAME/TASK, or NAME where it has one task.")],
    *,
    effect: Annotated[float, Flag("The difference to be seen, in points of a hundred.")],
    runs: Annotated[Path, Flag("The folder with pilot runs of two models or more.")] = Path("runs"),
    chance: Annotated[float, Flag("How often it shall be seen.", min=0.5, max=0.999)] = 0.8,
) -> PowerAnalysis:
    """Say how many memes are needed to see a difference of that size, from pilot runs.

    ``effect`` is the difference in points of a hundred, ``runs`` a folder with runs of ``task`` by
    two models or more, ``chance`` how often the difference shall be seen. The error of a paired
    difference, clustered by meme, is measured on the pilot runs and falls with the root of the
    number of memes (normal approximation, two-sided test at 5 %).
    """
    if not 0 < effect <= 100:
        raise InputError(f"an effect of {effect:g} points cannot be", hint="give 0 to 100 points")
    refs = find_tasks([task])
    if len(refs) > 1:
        names = ", ".join(ref.name for ref in refs)
        raise InputError(f"{task} has several tasks: {names}", hint="name one of them")
    name = refs[0].name
    folders = [path for path in sorted(Path(runs).glob("*")) if (path / "run.json").is_file()]
    pilot = [folder for folder in folders if read_facts(folder).task == name]
    if len(pilot) < 2:
        raise InputError(
            f"{runs} holds {len(pilot)} runs of {name}",
            hint=f"memantics run {name} --model ONE --model OTHER --sample 200",
        )
    found = compare_models(pilot)
    total: int | None = None
    with suppress(InputError):
        posed = pose_task(refs[0], {}, Scope(split=read_facts(pilot[0]).split), unseen=True)
        total = len({item.group for item in posed.task.items()})
    rows = [
        row
        for difference in found.rows
        if (row := _measure(difference, effect / 100, chance, total))
    ]
    if not rows:
        raise InputError(f"the runs of {name} in {runs} never differ", hint="give other pilot runs")
    return PowerAnalysis(name, found.rows[0].found.key, effect, chance, total, tuple(rows))


def _measure(
    row: SuiteDifference, effect: float, chance: float, total: int | None
) -> PowerRow | None:
    found = row.found
    if found.low is None or found.high is None or found.high <= found.low:
        return None
    error = (found.high - found.low) / 2 / _BOUND
    needed = clusters_needed(error, found.memes, effect, power=chance)
    whole = effect_seen(error, found.memes, total, power=chance) if total else None
    return PowerRow(row.first, row.second, found.memes, error, needed, whole)
