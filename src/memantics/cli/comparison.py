"""Commands over runs and benchmarks: compare, power, report, gallery, export-inspect and audits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding

from memantics import evaluation
from memantics.cli.expose import AsJson, PageLanguageFlag, expose, save_page, spread
from memantics.cli.progress import CountView, Watcher, resumable
from memantics.cli.terminal import (
    console,
    plain,
    print_data,
    print_json,
    print_lines,
    show_table,
    tell,
)
from memantics.core.parameters import Flag
from memantics.core.waiting import make_sync
from memantics.evaluation import (
    Audit,
    Folders,
    TableStyle,
    conduct_audit,
    describe_finding,
    differing_options,
    find_folder,
    tabulate_gaps,
    tabulate_reasoning,
)
from memantics.evaluation import audit_reasoning as look_at_chains
from memantics.models.engine import Progress

_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@spread
def compare(
    folders: evaluation.ComparedRuns,
    metrics: evaluation.MetricsFlag = (),
    against_first: evaluation.AgainstFirst = False,
    against: evaluation.Against = "",
    correction: evaluation.CorrectionFlag = "holm",
    plot: Annotated[
        Path | None, Flag("SVG file for a forest plot of the differences between several tasks.")
    ] = None,
    by: Annotated[
        str | None,
        Flag("Task option or 'model': compare runs that differ only in it."),
    ] = None,
    show: Annotated[
        int | None,
        Flag("Number of changed items to show per pair. Default: 10 for a single pair.", min=0),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: differences with confidence intervals and p-values, and the changed items.

    Runs are compared on their common items, clustered by meme. P-values are corrected for the
    number of comparisons (Holm). Runs of several tasks are compared by their main metrics, task by
    task, with one correction over all tasks.
    """
    if against or plot is not None or correction != "holm" or evaluation.spans_tasks(folders):
        with CountView("comparisons") as view:
            suite = evaluation.compare_models(
                folders, against=against, correction=correction, progress=view.show
            )
        if plot is not None:
            tell(f"plot: {evaluation.draw_comparison(suite, plot)}")
        if as_json:
            print_json(suite.rows)
        else:
            show_table(suite.table())
        return
    if by is not None:
        found_by = evaluation.contrast(folders, by, metrics=metrics)
        if as_json:
            print_json(found_by)
            return
        show_table(found_by.table())
        show_table(found_by.effect_table())
        return
    sides = [evaluation.open_run(find_folder(run)) for run in folders]
    with CountView("comparisons") as view:
        found = evaluation.compare_sides(
            sides, metrics, against_first=against_first, progress=view.show
        )
    if as_json:
        print_json(found)
        return
    names = {str(side.folder): _name(place) for place, side in enumerate(sides)}
    _show_runs(sides)
    _show_differences(found, names)
    shown = show if show is not None else (10 if len(found) == 1 else 0)
    for one in found:
        _show_changes(one, names, shown)


def _name(place: int) -> str:
    return _NAMES[place] if place < len(_NAMES) else f"R{place + 1}"


def _show_runs(sides: Sequence[evaluation.Side]) -> None:
    out = console()
    out.print(plain(sides[0].facts.title, "bold"))
    everything = [side.facts for side in sides]
    for place, side in enumerate(sides):
        told = [side.facts.model, *differing_options(side.facts, everything)]
        words = " · ".join([*told, *([side.facts.origin] if side.facts.origin else [])])
        out.print(plain(f"  {_name(place)}  {words}"))
        out.print(plain(f"     {side.folder}", "dim"))


def _show_differences(found: Sequence[evaluation.Comparison], names: Mapping[str, str]) -> None:
    show_table(evaluation.tabulate_pairs(found, names))
    for remark in evaluation.list_remarks(found, names):
        console().print(plain(remark, "yellow" if "note: " in remark else "dim"))


def _show_changes(one: evaluation.Comparison, names: Mapping[str, str], show: int) -> None:
    console().print(plain(evaluation.count_changes(one, names), "bold"))
    if not show or not one.changes:
        return
    show_table(evaluation.tabulate_changes(one, names, show))
    if (left := len(one.changes) - show) > 0:
        console().print(plain(f"{left} more: --show N, or --json for all", "dim"))


@expose(evaluation.power)
def show_power(done: evaluation.PowerAnalysis) -> None:
    """Estimate the number of memes needed to detect a difference, from pilot runs."""
    show_table(done.table())
    print_lines([done.sentence()])


@spread
def report(
    folders: Folders,
    out: Annotated[
        Path | None,
        Flag("File to write. Default: report.html; other formats are printed."),
    ] = None,
    form: Annotated[
        str,
        Flag("Output format: html, markdown, latex, csv, json, or one of a plug-in.", "--format"),
    ] = "html",
    table: Annotated[
        bool,
        Flag(
            "Write only the table of models × tasks; LaTeX output is always this table.", "--table"
        ),
    ] = False,
    style: Annotated[TableStyle | None, Flag("LaTeX table style.")] = None,
    images: Annotated[bool, Flag("Embed thumbnails of the images in the page.")] = True,
    language: PageLanguageFlag = "en",
) -> None:
    """Compare runs on one self-contained page, or as a table."""
    folders, left = evaluation.split_unfinished(folders)
    for reason in left.values():
        tell(f"skipped: {reason}")
    if out is None and language == "en" and (form != "html" or table or style):
        print_data(evaluation.render_report(folders, form, table=table, style=style))
        return
    path = evaluation.report(
        folders,
        out or "report.html",
        form=form,
        images=images,
        table=table,
        style=style,
        language=language,
    )
    if form == "html":
        console().print(plain(f"report: {path}"))


@expose(evaluation.write_gallery, json=None)
def show_gallery(page: Path) -> None:
    """Show edited memes on one page: source, outputs, scores and failures."""
    console().print(plain(f"page: {page}"))


@expose(evaluation.export_inspect)
def export_inspect(paths: list[Path], out: Path) -> None:
    """Export runs as Inspect logs, one file per run (extra: inspect)."""
    for path in paths:
        console().print(plain(str(path)), soft_wrap=True)
    console().print(plain(f"view them with: inspect view --log-dir {out}"), soft_wrap=True)


@expose(evaluation.export_results)
def export_results(paths: list[Path]) -> None:
    """Export the scores of runs for MLflow, Hugging Face, Weights & Biases or Every Eval Ever."""
    for path in paths:
        console().print(plain(str(path)), soft_wrap=True)


STYLES = {"broken": "red", "worth knowing": "yellow", "sound": "green"}


@contextmanager
def _watch() -> Iterator[Mapping[str, Any]]:
    """Show one progress bar for each type of model call."""
    with resumable(), ExitStack() as bars:

        def begin(title: str, total: int) -> Callable[[Progress], None]:
            bars.close()
            return bars.enter_context(Watcher(title, total, None)).show

        yield {"watch": begin}


def _end(found: Audit) -> None:
    if found.failed:
        tell(f"{found.failed} calls failed; run the same command again to retry them")
        raise typer.Exit(1)


@expose(
    make_sync(conduct_audit),
    watch=_watch,
    save=save_page,
    end=_end,
    hide=("prices",),
    first=(
        "resplit",
        "labels",
        "everything",
        "reviewed",
        "models",
        "data",
        "split",
        "options",
        "limit",
        "published",
        "perturbed",
        "out",
    ),
)
def audit_benchmark(audit: Audit, out: Path | None) -> None:
    """Audit a benchmark: shortcuts, never-correct options, leaks, impossible published values.

    With --model, the audit also asks the model without images and with other orders of options.
    Each finding has a value, a verdict and a recommendation.
    """
    to = console()
    to.print(plain(f"Audit of {audit.card.title}, {audit.data.kind} data", "bold"))
    counts = ", ".join(f"{n} {verdict}" for verdict, n in audit.counts.items())
    to.print(plain(f"  {len(audit.findings)} findings: {counts}"))
    for finding in audit.findings:
        to.print()
        to.print(plain(f"{finding.verdict:<14}{finding.title}", STYLES[finding.verdict]))
        to.print(_indent(describe_finding(finding)))
        to.print(_indent(finding.meaning))
        if finding.verdict != "sound":
            to.print(_indent(f"Advice: {finding.advice}", "dim"))
    if audit.gaps:
        show_table(tabulate_gaps(audit))
    for what, path in audit.files.items():
        to.print(plain(f"{what}: {path}"))
    if out is not None:
        console().print(plain(f"audit: {out}"))


def _indent(text: str, style: str = "") -> Padding:
    return Padding(plain(text, style), (0, 0, 0, 2))


@spread
def audit_reasoning(
    folders: Folders,
    show: Annotated[int, Flag("Number of faulty items to list.", min=0)] = 5,
    as_json: AsJson = False,
) -> None:
    """Audit chains of thought: truncated, missing required content, or contradicting the answer."""
    found = [look_at_chains(folder) for folder in folders]
    if as_json:
        print_json(found)
        return
    show_table(tabulate_reasoning(found))
    for audit in found:
        for word, items in (("silent", audit.silent), ("contrary", audit.contrary)):
            for item in items[:show]:
                console().print(plain(f"{word}: {item}"))
