"""``memantics data``: register, check and describe official dataset releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from memantics import evaluation
from memantics.cli.expose import expose, save_page
from memantics.cli.terminal import console, plain, show_table
from memantics.core.data import Statistic
from memantics.core.registry import Registered

app = typer.Typer(help="Register, check and describe official releases.", no_args_is_help=True)


@contextmanager
def _wait(name: str) -> Iterator[dict[str, object]]:
    """Show a spinner in a terminal while files are read."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        transient=True,
        console=console(),
        disable=not console().is_terminal,
    ) as bar:
        bar.add_task(f"reading {name} and recomputing the paper's statistics")
        yield {}


def _show_found(survey: evaluation.Survey) -> None:
    head, *lines = evaluation.describe_found(survey)
    console().print(plain(head, "bold"))
    for line in lines:
        style = "yellow" if line.startswith("note: ") else ""
        # Paths are not wrapped, so that they can be copied.
        console().print(plain(f"  {line}", style), soft_wrap="/" in line)


def _printed(survey: evaluation.Survey) -> list[Statistic]:
    """Return the statistics that the paper prints; 'data stats' shows the others."""
    rows, kept = survey.statistics, [row for row in survey.statistics if row.paper is not None]
    if not kept:
        return []
    stats = f"all {len(rows)}: memantics data stats {survey.benchmark.card.name}"
    console().print(plain(f"The {len(kept)} values printed in the paper follow; {stats}", "dim"))
    return kept


def _show_statistics(rows: Sequence[Statistic]) -> None:
    if rows:
        show_table(evaluation.tabulate_statistics(rows))
    if any(row.paper is None and row.known is not None for row in rows):
        note = "* not printed in the paper: value of the complete release"
        console().print(note, style="dim")
    if any(row.verdict == "computed from the paper" for row in rows):
        note = "computed from the paper: derived from other printed values, without data"
        console().print(note, style="dim")


@app.command("add")
@expose(evaluation.add_release, json=None, watch=_wait)
def add(survey: evaluation.Survey) -> None:
    """Register a release, check it, and compare its statistics with the paper's.

    For your own data, give a path: memantics data add PATH --label COLUMN. PATH is a table, a
    folder of tables, or a folder of images in subfolders that are named by labels. In a tree of
    folders, each folder with tables is registered as one data set.
    """
    if survey.sets:
        show_table(evaluation.tabulate_sets(survey.sets))
        for one in survey.sets:
            if one.problem:
                problem = f"{one.folder} is not registered: {one.problem}"
                console().print(plain(problem, "yellow"), soft_wrap=True)
            if one.note:
                console().print(plain(f"{one.folder}: {one.note}", "yellow"), soft_wrap=True)
        console().print(plain(f"run one: {survey.command}"), soft_wrap=True)
        if survey.page is not None:
            console().print(plain(f"pages: {survey.page.parent}"), soft_wrap=True)
        return
    _show_found(survey)
    _show_statistics(_printed(survey))
    console().print(plain(f"registered: {survey.command}"), soft_wrap=True)
    if survey.page is not None:
        console().print(plain(f"page: {survey.page}"), soft_wrap=True)


@app.command("page")
@expose(evaluation.profile_dataset, json=None, save=save_page)
def page(found: evaluation.DatasetProfile) -> None:
    """Describe a data set: counts, languages, duplicates, failing images and annotators."""
    counts = ", ".join(f"{split} {count:,}" for split, count in found.splits.items())
    for line in (f"{found.title}: {found.memes:,} memes ({counts})", *found.lines()):
        console().print(plain(line))


@app.command("list")
@expose(evaluation.list_benchmarks)
def show_list(known: list[evaluation.BenchmarkInfo]) -> None:
    """List the benchmarks, their tasks, and whether a release is registered."""
    show_table(evaluation.tabulate_benchmarks(known))


@app.command("check")
@expose(evaluation.check_release, json=None, watch=_wait)
def check(found: tuple[evaluation.Survey, Registered]) -> None:
    """Check whether a registered release has changed."""
    survey, entry = found
    _show_found(survey)
    _show_statistics(_printed(survey))
    evaluation.refuse_changed(survey, entry)
    console().print(f"unchanged since {entry.added} (checksum {entry.checksum[:12]})")


@app.command("stats")
@expose(evaluation.survey_data, watch=_wait)
def stats(survey: evaluation.Survey) -> None:
    """Recompute the paper's statistics from your copy of the data."""
    _show_found(survey)
    _show_statistics(survey.statistics)
