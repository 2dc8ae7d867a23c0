"""Compare runs of one task item by item, and models over several tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, overload

from pydantic import JsonValue

from memantics.benchmarks.registry import find_published, find_tasks
from memantics.core.errors import InputError, UnknownName
from memantics.core.files import replace_file
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result, Table
from memantics.core.rundir import read_facts
from memantics.core.text import cut_off
from memantics.evaluation.contrasts import (
    Contest,
    FactorContrasts,
    SuiteComparison,
    SuiteDifference,
    compare_suite,
)
from memantics.evaluation.contrasts import contrast as contrast_sides
from memantics.evaluation.facts import Scope
from memantics.evaluation.options import RunLike, find_folder
from memantics.evaluation.paired import (
    CompareProgress,
    Comparison,
    Difference,
    Side,
    compare_sides,
    open_side,
    show_nothing,
    show_p,
)
from memantics.evaluation.reports.leaderboard import Board, make_boards
from memantics.evaluation.reports.payload import show_value
from memantics.evaluation.reports.runs import Run, load_runs
from memantics.evaluation.scoring import group_repeats
from memantics.evaluation.tasks import open_task_of_run, pose_task
from memantics.metrics.comparison import Correction, clusters_needed, effect_seen
from memantics.web.plot import ForestLine, draw_forest

__all__ = [
    "Against",
    "AgainstFirst",
    "ComparedRuns",
    "Comparison",
    "CorrectionFlag",
    "FactorContrasts",
    "MetricsFlag",
    "Side",
    "SuiteComparison",
    "compare",
    "compare_sides",
    "contrast",
    "open_run",
]
ComparedRuns = Annotated[Sequence[RunLike], Argument("Two or more run directories.", "folders")]
MetricsFlag = Annotated[
    Sequence[str],
    Flag("Metric to compare; repeatable. Default: all metrics.", "--metric"),
]
Against = Annotated[
    str,
    Flag(
        "Reference model; every other model is compared with it. Default: all pairs.",
        metavar="MODEL",
    ),
]
CorrectionFlag = Annotated[
    Correction, Flag("Multiple-comparison correction over tasks: holm or bh (Benjamini-Hochberg).")
]
AgainstFirst = Annotated[bool, Flag("Compare each run with the first one only, not all pairs.")]


@overload
def compare(first: RunLike, second: RunLike, *, metrics: MetricsFlag = ()) -> Comparison: ...
@overload
def compare(
    first: Sequence[RunLike],
    second: None = None,
    *,
    against: str = "",
    correction: Correction = "holm",
) -> SuiteComparison: ...
def compare(
    first: RunLike | Sequence[RunLike],
    second: RunLike | None = None,
    *,
    metrics: MetricsFlag = (),
    against: str = "",
    correction: Correction = "holm",
) -> Comparison | SuiteComparison:
    """Compare two runs item by item, or all pairs of models over several runs.

    Two runs are compared on the items that they share, clustered by meme. Several runs, of any
    tasks, are compared by their main metrics.

    Args:
        first: A run or its folder, or a list of runs.
        second: The other run, if ``first`` is a single run.
        metrics: Compare only these metrics.
        against: For a list: compare every model with this model. Default: compare every pair.
        correction: For a list: correction of p-values, ``holm`` or ``bh`` (Benjamini-Hochberg). For
            two runs, Holm's method is used.

    Returns:
        Differences with 95% confidence intervals, p-values and the items that changed; a
        :class:`SuiteComparison` for a list.

    Raises:
        InputError: The runs share no items, or the list contains fewer than two models.

    Example:
        >>> round(mm.compare("runs/one", "runs/other").differences[0].p, 3)
        0.069
    """
    if not isinstance(first, RunLike):
        return compare_models(first, against=against, correction=correction)
    if second is None:
        raise InputError(
            "compare needs at least two runs, not one", hint="give two or more run directories"
        )
    sides = [open_run(find_folder(run)) for run in (first, second)]
    return compare_sides(sides, metrics)[0]


def group_runs(runs: Sequence[RunLike]) -> tuple[tuple[Board, ...], dict[Path, tuple[Run, ...]]]:
    """Group runs into leaderboards; a run and its repeats are one row."""
    groups = group_repeats([find_folder(run) for run in runs])
    loaded = [load_runs(group) for group in groups]
    heads = [group[0] for group in loaded]
    boards = make_boards(heads, find_published(run.task for run in heads))
    return boards, {group[0].folder: group for group in loaded}


def compare_models(
    runs: Sequence[RunLike],
    *,
    against: Against = "",
    correction: CorrectionFlag = "holm",
    progress: CompareProgress = show_nothing,
) -> SuiteComparison:
    """Compare models on every shared task; p-values are corrected over all tasks.

    Repeats of a run count as one row. Tests use the main metric, are paired by item and clustered
    by meme.
    """
    boards, repeats = group_runs(runs)
    labels = [row.label for board in boards for row in board.ours if row.run is not None]
    if against and against not in labels:
        raise UnknownName("model", against, dict.fromkeys(labels))
    contests = [open_contest(board, repeats) for board in boards if not board.judges]
    return compare_suite(contests, against=against, correction=correction, progress=progress)


def open_contest(board: Board, repeats: dict[Path, tuple[Run, ...]]) -> Contest:
    """List the models of a leaderboard, each with its repeated runs."""
    rows = [row for row in board.ours if row.source is not None]
    if len(rows) < 2:
        return board.slug, ()
    named = [(row.label, repeats[row.source.folder]) for row in rows if row.source]
    return board.slug, [(label, [open_run(run.folder) for run in runs]) for label, runs in named]


def spans_tasks(runs: Sequence[RunLike]) -> bool:
    """Whether the runs belong to more than one task."""
    return len({read_facts(find_folder(run)).task for run in runs}) > 1


def draw_comparison(found: SuiteComparison, out: Path) -> Path:
    """Write a forest plot (SVG) of all differences with their 95% confidence intervals."""
    lines = [
        ForestLine(
            row.task,
            f"{row.first} → {row.second}",
            (row.found.difference, row.found.low, row.found.high),
            sure=bool(row.better),
        )
        for row in found.rows
    ]
    replace_file(out, draw_forest(lines).encode(), "plot")
    return out


def contrast(runs: ComparedRuns, factor: str, *, metrics: MetricsFlag = ()) -> FactorContrasts:
    """Measure the effect of one factor (an option, or ``model``) over a grid of runs of one task.

    Runs that differ in this factor alone are compared; all p-values are corrected together (Holm).

    Args:
        runs: Runs of one task, or their folders.
        factor: Name of an option, or ``model``.
        metrics: Compare only these metrics.

    Returns:
        The effect of each level of the factor, with 95% confidence intervals.

    Raises:
        InputError: The factor has only one level, or no two runs differ in this factor alone.

    Example:
        >>> found = mm.contrast(["runs/one", "runs/other"], "model")
        >>> round(found.effects[0].difference, 3)
        0.111
    """
    return contrast_sides([open_run(find_folder(run)) for run in runs], factor, metrics)


def open_run(folder: Path) -> Side:
    """Open a run together with the task that parses its answers."""
    facts = read_facts(folder)
    _, task = open_task_of_run(facts, None)
    return open_side(folder, facts, task)


def tabulate_pairs(found: Sequence[Comparison], names: Mapping[str, str]) -> Table:
    """Make the table of metrics of every pair; ``names`` maps run folders to shown names."""
    tables = {f"{names[one.first]} → {names[one.second]}": one.table() for one in found}
    rows = tuple((pair, *row) for pair, table in tables.items() for row in table.rows)
    return Table(("runs", *next(iter(tables.values())).columns), rows)


def list_remarks(found: Sequence[Comparison], names: Mapping[str, str]) -> list[str]:
    """List the tests used and the warnings; a remark on every pair is listed once."""
    remarks: dict[str, list[str]] = {}
    for one in found:
        noted = [f"{row.key}: {_describe(row, brief=len(found) > 3)}" for row in one.differences]
        noted += [f"excluded: {count} items, {reason}" for reason, count in one.skipped.items()]
        noted += [f"note: {note}" for note in one.notes]
        for remark in noted:
            remarks.setdefault(remark, []).append(f"{names[one.first]} → {names[one.second]}")
    return [
        text if len(pairs) == len(found) else f"{', '.join(pairs)} {text}"
        for text, pairs in remarks.items()
    ]


def _describe(row: Difference, *, brief: bool) -> str:
    """Describe in one line how a difference was tested; shorter if there are many pairs of runs."""
    words = [f"{row.items} items of {row.memes} {row.grouped}", row.test]
    if brief:
        return ", ".join([*words, "t-tests and effect sizes with --json"])
    if row.t_test is not None:
        words.append(f"t-test p {show_p(row.t_test)} (Holm {show_p(row.t_test_corrected)})")
    if row.size is not None:
        words.append(f"{row.effect} {row.size:.2f}")
    return ", ".join(words)


def count_changes(one: Comparison, names: Mapping[str, str]) -> str:
    """Count the items whose result changed between two runs, and how many of them improved."""
    gains = sum(change.gain is not None and change.gain > 0 for change in one.changes)
    losses = sum(change.gain is not None and change.gain < 0 for change in one.changes)
    head = f"{names[one.first]} → {names[one.second]}: {len(one.changes)} of {one.shared}"
    return f"{head} items changed" + (
        f", {gains} better, {losses} worse" if gains or losses else ""
    )


def tabulate_changes(one: Comparison, names: Mapping[str, str], most: int) -> Table:
    """Make the table of the first changed items, with both answers and the gold answer."""
    rows = tuple(
        (change.item, *map(shorten_answer, (change.first, change.second, change.gold)))
        for change in one.changes[:most]
    )
    return Table(("item", names[one.first], names[one.second], "gold"), rows)


def shorten_answer(value: JsonValue) -> str:
    """Shorten an answer to at most 60 characters.

    >>> shorten_answer(["happy", "calm"]), shorten_answer(None)
    ('happy / calm', '–')
    """
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = " / ".join(str(part) for part in value)
    return cut_off(show_value(value), 60) if value is not None else "–"


# The command ``power`` estimates from pilot runs how many memes are needed to detect a difference.

# Half-width of a 95 % confidence interval, in standard errors.
_BOUND = 1.959964


@dataclass(frozen=True, slots=True)
class PowerRow:
    """Two pilot runs: the standard error of their difference and the required sample size.

    ``needed`` is the number of memes needed to detect the effect. ``whole`` is the smallest effect
    that can be detected with all memes of the task; None if the data are not available.
    """

    first: str
    second: str
    memes: int
    error: float
    needed: int
    whole: float | None


@dataclass(frozen=True, slots=True)
class PowerAnalysis(Result):
    """Number of memes needed per pair of pilot runs. ``effect`` is in percentage points."""

    task: str
    metric: str
    effect: float
    power: float
    memes: int | None
    rows: tuple[PowerRow, ...]

    @property
    def needed(self) -> int:
        """The largest number of memes that any pair of pilot runs needs."""
        return max(row.needed for row in self.rows)

    def table(self) -> Table:
        """One row per pair of pilot runs."""
        columns = (
            "models",
            ">pilot memes",
            ">standard error",
            ">memes needed",
            ">detectable with all memes",
        )
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
        return Table(columns, tuple(rows), f"{self.task}: {self.metric}, in percentage points")

    def sentence(self) -> str:
        """The result of the power analysis in one sentence."""
        whole = "" if self.memes is None else f" The data have {self.memes:,} memes."
        return (
            f"{self.needed:,} memes detect a difference of {self.effect:g} percentage points with "
            f"{100 * self.power:g} % power at the 5 % level, uncorrected.{whole}"
        )


def power(
    task: Annotated[str, Argument("NAME/TASK, or NAME if the benchmark has one task.")],
    *,
    effect: Annotated[float, Flag("Difference to detect, in percentage points.")],
    runs: Annotated[Path, Flag("Folder with pilot runs of at least two models.")] = Path("runs"),
    power: Annotated[float, Flag("Target statistical power.", min=0.5, max=0.999)] = 0.8,
) -> PowerAnalysis:
    """Estimate how many memes are needed to detect a difference between two models.

    The standard error of a paired difference, clustered by meme, is measured on the pilot runs. It
    decreases with the square root of the number of memes. The test is two-sided at the 5 % level,
    with a normal approximation.

    Args:
        task: ``NAME/TASK``, or ``NAME`` if the benchmark has one task.
        effect: The difference to detect, in percentage points.
        runs: Folder with pilot runs of at least two models.
        power: Target statistical power, from 0 to 1.

    Returns:
        The required number of memes, for each pair of models.

    Raises:
        InputError: The folder does not contain two runs of the task.

    Example:
        >>> mm.power("memeintent/intent", effect=5, runs="runs").rows[0].needed
        145
    """
    if not 0 < effect <= 100:
        raise InputError(
            f"--effect {effect:g} is not a valid effect",
            hint="give percentage points, above 0 and up to 100",
        )
    refs = find_tasks([task])
    if len(refs) > 1:
        names = ", ".join(ref.name for ref in refs)
        raise InputError(f"{task} has several tasks: {names}", hint="name one of them")
    name = refs[0].name
    folders = [path for path in sorted(Path(runs).glob("*")) if (path / "run.json").is_file()]
    pilot = [folder for folder in folders if read_facts(folder).task == name]
    if len(pilot) < 2:
        raise InputError(
            f"{runs} holds {len(pilot)} runs of {name}; the estimate needs two models",
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
        if (row := _measure(difference, effect / 100, power, total))
    ]
    if not rows:
        raise InputError(
            f"the runs of {name} in {runs} have identical results, so no variance can be estimated",
            hint="run pilot runs of two different models",
        )
    return PowerAnalysis(name, found.rows[0].found.key, effect, power, total, tuple(rows))


def _measure(
    row: SuiteDifference, effect: float, power: float, total: int | None
) -> PowerRow | None:
    found = row.found
    if found.low is None or found.high is None or found.high <= found.low:
        return None
    error = (found.high - found.low) / 2 / _BOUND
    needed = clusters_needed(error, found.memes, effect, power=power)
    whole = effect_seen(error, found.memes, total, power=power) if total else None
    return PowerRow(row.first, row.second, found.memes, error, needed, whole)
