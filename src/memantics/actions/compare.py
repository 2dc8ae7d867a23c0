"""``compare``: runs of one task, item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from memantics.actions.report import RunLike, find_folder
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Table
from memantics.core.rundir import read_facts
from memantics.registry import open_task_of_run
from memantics.report.payload import show_value
from memantics.run.compare import Side, open_side
from memantics.run.compare import compare as compare_sides
from memantics.run.contrasts import FactorContrasts
from memantics.run.contrasts import contrast as contrast_sides
from memantics.run.differences import Comparison, Difference, show_p

__all__ = [
    "AgainstFirst",
    "ComparedRuns",
    "Comparison",
    "FactorContrasts",
    "Metrics",
    "Side",
    "compare",
    "compare_all",
    "compare_sides",
    "contrast",
    "open_run",
]


ComparedRuns = Annotated[
    Sequence[RunLike], Argument("Run directories of one task, two or more.", "folders")
]
Metrics = Annotated[
    Sequence[str],
    Flag("A figure to compare, may be repeated. Default: all there are.", "--metric"),
]
AgainstFirst = Annotated[bool, Flag("Compare each run with the first only.")]


def compare(first: RunLike, second: RunLike, *, metrics: Metrics = ()) -> Comparison:
    """Say which of two runs is better, by how much and how surely, and which items changed.

    ``first`` and ``second`` are runs or their folders. They are compared on the items they share,
    with items of one meme kept together. P-values are
    corrected for the number of figures (Holm).
    """
    return compare_all([first, second], metrics=metrics)[0]


def compare_all(
    runs: ComparedRuns, *, metrics: Metrics = (), against_first: AgainstFirst = False
) -> list[Comparison]:
    """Compare every pair of runs, or each with the first; corrected for all comparisons."""
    sides = [open_run(find_folder(run)) for run in runs]
    return compare_sides(sides, metrics, against_first=against_first)


def contrast(runs: ComparedRuns, factor: str, *, metrics: Metrics = ()) -> FactorContrasts:
    """What one factor (an option, or ``model``) does over a grid of runs of one task.

    Runs that differ in ``factor`` alone are compared; all p-values are corrected together (Holm).
    """
    return contrast_sides([open_run(find_folder(run)) for run in runs], factor, metrics)


def open_run(folder: Path) -> Side:
    """A run with the task that reads its answers."""
    facts = read_facts(folder)
    _, task = open_task_of_run(facts, None)
    return open_side(folder, facts, task)


def tabulate_pairs(found: Sequence[Comparison], names: Mapping[str, str]) -> Table:
    """The figures of every pair; ``names`` are what the runs' folders are called."""
    tables = {f"{names[one.first]} → {names[one.second]}": one.table() for one in found}
    rows = tuple((pair, *row) for pair, table in tables.items() for row in table.rows)
    return Table(("runs", *next(iter(tables.values())).columns), rows)


def list_remarks(found: Sequence[Comparison], names: Mapping[str, str]) -> list[str]:
    """How it was tested and what to mind; what holds for every pair is said once."""
    remarks: dict[str, list[str]] = {}
    for one in found:
        texts = [f"{row.key}: {_describe(row, brief=len(found) > 3)}" for row in one.differences]
        texts += [f"left out: {count} items, {reason}" for reason, count in one.left_out.items()]
        texts += [f"note: {note}" for note in one.notes]
        for remark in texts:
            remarks.setdefault(remark, []).append(f"{names[one.first]} → {names[one.second]}")
    return [
        text if len(pairs) == len(found) else f"{', '.join(pairs)} {text}"
        for text, pairs in remarks.items()
    ]


def _describe(row: Difference, *, brief: bool) -> str:
    """How a difference was tested, in a line; briefly where there are many."""
    words = [f"{row.items} items of {row.memes} memes", row.test]
    if brief:
        return ", ".join([*words, "t-tests and effect sizes with --json"])
    if row.t_test is not None:
        words.append(f"t-test p {show_p(row.t_test)} (Holm {show_p(row.t_test_corrected)})")
    if row.size is not None:
        words.append(f"{row.effect} {row.size:.2f}")
    return ", ".join(words)


def count_changes(one: Comparison, names: Mapping[str, str]) -> str:
    """How many items went differently, and how many of them better."""
    gains = sum(change.gain is not None and change.gain > 0 for change in one.changes)
    losses = sum(change.gain is not None and change.gain < 0 for change in one.changes)
    head = f"{names[one.first]} → {names[one.second]}: {len(one.changes)} of {one.shared}"
    return f"{head} items changed" + (
        f", {gains} better, {losses} worse" if gains or losses else ""
    )


def tabulate_changes(one: Comparison, names: Mapping[str, str], most: int) -> Table:
    """The first items that went differently, with both answers and the gold one."""
    rows = tuple(
        (change.item, *map(shorten_answer, (change.first, change.second, change.gold)))
        for change in one.changes[:most]
    )
    return Table(("item", names[one.first], names[one.second], "gold"), rows)


def shorten_answer(value: JsonValue) -> str:
    """An answer in at most 60 characters.

    >>> shorten_answer(["happy", "calm"]), shorten_answer(None)
    ('happy / calm', '–')
    """
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = " / ".join(str(part) for part in value)
    text = " ".join(show_value(value).split()) if value is not None else "–"
    return text if len(text) <= 60 else text[:59] + "…"
