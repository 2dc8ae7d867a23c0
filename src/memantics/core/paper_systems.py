"""Tables of systems: the paper's rows with their runs, the user's other runs, trivial baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from memantics.core import paper
from memantics.core.paper_file import DeclaredPart, DeclaredRow, Metric, show_cells
from memantics.core.paper_parts import Cell, PaperRow
from memantics.core.published import PublishedRow
from memantics.core.records import Score

R = TypeVar("R")
# What a system reached where no run did: by its row and the column's task and figure.
Aside = Callable[[DeclaredRow, Metric], Score | None]


def find_published(
    material: paper.PaperMaterial[R], part: DeclaredPart, row: DeclaredRow, metric: Metric
) -> PublishedRow | None:
    """What the paper prints of a row's system in a column."""
    wanted = row.options | metric.options
    for published in material.rows_of(metric.task, part.label):
        named = published.system == row.system and metric.figure in published.figures
        if named and wanted.items() <= published.options.items():
            return published
    return None


def write_command(
    material: paper.PaperMaterial[R], part: DeclaredPart, row: DeclaredRow, metric: Metric
) -> str:
    """The command that fills a cell of a system's row."""
    options = row.options | metric.options
    system = material.systems.get(row.system)
    chosen = " ".join(f"--set {name}={value}" for name, value in options.items())
    return part.command(
        row.fill,
        task=metric.task,
        model=system.model if system else "",
        extra=system.extra if system else "",
        options=chosen,
        input=options.get("input", ""),
    )


def fill_systems(
    material: paper.PaperMaterial[R], part: DeclaredPart, aside: Aside | None = None
) -> tuple[list[PaperRow], set[Path]]:
    """The declared rows, each with the run of its system; and the folders of those runs."""
    rows, taken = list[PaperRow](), set[Path]()
    for row in part.rows:
        if row.cells and not row.system:  # what the paper prints of no system that is known
            told = show_cells(material, part, row)
            rows.append(PaperRow(row.label, told, row.kind, row.section))
            continue
        cells = []
        for metric in part.metrics:
            published = find_published(material, part, row, metric)
            asked = published.options if published else row.options | metric.options
            run = material.find_run(
                metric.task, row.system, asked, published.split if published else ""
            )
            score, sd = aside(row, metric) if aside else None, None
            if run:
                repeats = material.repeats_of(run)
                score, sd = paper.mean_repeats(repeats, metric.figure)
                # A run that fills no cell here was asked otherwise: it gets a row of its own.
                taken |= {repeat.folder for repeat in repeats if score is not None}
            cell = show_system(material, part, metric, published, run, score)
            if sd is not None and score is not None:
                cell = replace(cell, sd=part.scale * sd, note=cell.note or score.note)
            if not (cell.reason or cell.fill):
                more = metric.extra if run else ""
                fill = f"{write_command(material, part, row, metric)} {more}".strip()
                cell = replace(cell, fill=fill)
            cells.append(cell)
        rows.append(PaperRow(row.label, tuple(cells), row.kind, row.section))
    return rows, taken


def show_system(
    material: paper.PaperMaterial[R],
    part: DeclaredPart,
    metric: Metric,
    published: PublishedRow | None,
    run: paper.ScoredRun | None,
    score: Score | None,
) -> Cell:
    """The paper's figure of a system beside that of a run of it."""
    printed = published.figures.get(metric.figure) if published else None
    said = score.note if score and part.score_notes else ""
    reason = published.reason if published else part.unprinted
    return replace(
        spread_cell(score, part.digits, part.scale),
        paper=None if printed is None else round(part.scale * printed, part.digits),
        compared=material.compares(run, published, metric.figure, score),
        origin=run.facts.origin if run and score else "",
        reason=part.lacking if run or score else "",
        note="; ".join(text for text in (said, reason) if text),
    )


def spread_cell(score: Score | None, digits: int = 2, scale: float = 100.0) -> Cell:
    """A figure with its standard deviation, which a note that begins with it holds.

    >>> spread_cell(Score("f1", 0.5, 10, note="± 1.25 over 5 seeds")).sd
    1.25
    """
    note = score.note if score else ""
    sd = float(note.split()[1]) if note.startswith("± ") else None
    return replace(paper.score_cell(score, digits, scale), sd=sd)


def show_scores(
    part: DeclaredPart, scores: Mapping[str, Sequence[Score]], origin: str = ""
) -> tuple[Cell, ...]:
    """The cells of a system that is none of the paper's; ``scores`` are by task."""
    found = (
        paper.find_score(scores.get(metric.task, ()), metric.figure) for metric in part.metrics
    )
    return tuple(
        replace(paper.score_cell(score, part.digits, part.scale), origin=origin if score else "")
        for score in found
    )


def list_others(
    material: paper.PaperMaterial[R],
    part: DeclaredPart,
    taken: set[Path],
    sections: tuple[str, str] = ("", ""),
) -> Iterator[PaperRow]:
    """Runs that stand in no row of the paper's, all tasks of one side by side; then baselines.

    Repeats of a run are one row: their mean with its deviation.
    """
    found: dict[str, dict[str, Sequence[paper.ScoredRun]]] = {}
    baselines: dict[str, dict[str, Sequence[Score]]] = {}
    models = set[str]()
    for task in dict.fromkeys(metric.task for metric in part.metrics):
        every = material.of_task(task)
        models |= {run.model for run in every}
        runs = [run for run in every if material.repeats_of(run)[0] is run]
        for run, label in zip(runs, paper.name_runs(runs), strict=True):
            for baseline in run.figures.baselines:
                baselines.setdefault(baseline.model, {})[task] = baseline.scores
            if run.folder not in taken:
                found.setdefault(label, {})[task] = material.repeats_of(run)
    for label, asked in found.items():
        yield PaperRow(label, tuple(_list_means(part, asked)), "own", sections[0])
    for model, scores in baselines.items():
        if model not in models:
            yield PaperRow(model, show_scores(part, scores), "baseline", sections[1])


def _list_means(
    part: DeclaredPart, asked: Mapping[str, Sequence[paper.ScoredRun]]
) -> Iterator[Cell]:
    for metric in part.metrics:
        runs = asked.get(metric.task, ())
        score, sd = paper.mean_repeats(runs, metric.figure)
        origin = next((run.facts.origin for run in runs if score and run.facts.origin), "")
        cell = replace(paper.score_cell(score, part.digits, part.scale), origin=origin)
        yield (
            cell
            if sd is None or score is None
            else replace(cell, sd=part.scale * sd, note=score.note)
        )
