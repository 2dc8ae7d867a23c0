"""Published figures as rows beside our own: reference, never ranked as a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from memantics.core.published import PublishedRow
from memantics.metrics.feasibility import Claims, is_impossible
from memantics.report.runs import Run

Published = Mapping[str, Sequence[PublishedRow]]


def match_published(runs: Sequence[Run], published: Published) -> list[tuple[str, PublishedRow]]:
    """The published rows that belong beside runs of one task, with a distinct name each.

    Only on a release: on the starter data a paper's figures mean nothing. A row belongs where
    some run was asked as its system was.
    """
    if not runs or runs[0].kind != "release":
        return []
    rows = [
        row
        for row in published.get(runs[0].task, ())
        if any(row.fits(run.facts.options, run.facts.split) for run in runs)
    ]
    taken = {run.facts.model for run in runs}
    return list(zip(_tell_apart(rows, taken), rows, strict=True))


def show_reference(row: PublishedRow) -> str:
    """Where a row comes from, and that it cannot be right where it cannot.

    >>> show_reference(PublishedRow(task="qa", system="x", figures={"accuracy": 0.5}, digits=1,
    ...                             source="Table 2", feasible=False, reason="not k/9"))
    'published, Table 2; impossible with the stated n: not k/9'
    """
    flag = f"; {tell_fault(row)}: {row.reason}" if row.feasible is False else ""
    return f"published, {row.source}{flag}"


def tell_fault(row: PublishedRow) -> str:
    """Whether a row contradicts itself, or only the numbers of items that the paper states."""
    if row.feasible is not False:
        return ""
    certain = is_impossible(row.figures, Claims(row.digits, row.sizes, row.parts, row.classes))
    return "impossible by arithmetic" if certain else "impossible with the stated n"


def _tell_apart(rows: Sequence[PublishedRow], taken: set[str]) -> list[str]:
    """System names, made distinct by their settings, else by number."""
    shared = Counter(row.system for row in rows)
    names: list[str] = []
    for row in rows:
        settings = [f"{name}={value}" for name, value in sorted(row.options.items())]
        name = " · ".join([row.system, *settings]) if shared[row.system] > 1 else row.system
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name} ({count})"
        taken.add(unique)
        names.append(unique)
    return names
