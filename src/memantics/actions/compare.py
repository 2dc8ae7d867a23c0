"""``compare``: runs of one task, item by item."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memantics.actions.report import RunLike, find_folder
from memantics.core.rundir import read_facts
from memantics.registry import open_task_of_run
from memantics.run.compare import Side, open_side
from memantics.run.compare import compare as compare_sides
from memantics.run.differences import Comparison

__all__ = ["Comparison", "compare", "compare_all", "compare_sides", "open_run"]


def compare(first: RunLike, second: RunLike, *, metrics: Sequence[str] = ()) -> Comparison:
    """Say which of two runs is better, by how much and how surely, and which items changed.

    They are compared on the items they share, with items of one meme kept together. P-values are
    corrected for the number of figures (Holm).
    """
    return compare_all([first, second], metrics=metrics)[0]


def compare_all(
    runs: Sequence[RunLike], *, metrics: Sequence[str] = (), against_first: bool = False
) -> list[Comparison]:
    """Compare every pair of runs, or each with the first; corrected for all comparisons."""
    sides = [open_run(find_folder(run)) for run in runs]
    return compare_sides(sides, metrics, against_first=against_first)


def open_run(folder: Path) -> Side:
    """A run with the task that reads its answers."""
    facts = read_facts(folder)
    _, task = open_task_of_run(facts, None)
    return open_side(folder, facts, task)
