"""``memantics report``, ``gallery`` and ``export-inspect``: runs shown elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from memantics.actions import report as reports
from memantics.actions.options import Folders
from memantics.cli.expose import expose, spread
from memantics.cli.terminal import console, plain, print_data, tell
from memantics.core.parameters import Flag
from memantics.report.model_table_forms import TableStyle


@spread
def report(
    folders: Folders,
    out: Annotated[
        Path | None,
        Flag("File to write. Default: report.html; other formats go to the terminal."),
    ] = None,
    form: Annotated[
        str,
        Flag("What to write: html, markdown, latex, csv, json, or an installed form.", "--format"),
    ] = "html",
    table: Annotated[
        bool, Flag("Only the table of models × tasks; LaTeX is always that.", "--table")
    ] = False,
    style: Annotated[TableStyle | None, Flag("How LaTeX sets it.")] = None,
    images: Annotated[bool, Flag("Put small copies of the images into the page.")] = True,
) -> None:
    """Compare runs on one self-contained page, or as a table."""
    folders, left = reports.split_unfinished(folders)
    for reason in left.values():
        tell(f"left out: {reason}")
    if out is None and (form != "html" or table or style):
        print_data(reports.render_report(folders, form, table=table, style=style))
        return
    path = reports.report(
        folders, out or "report.html", form=form, images=images, table=table, style=style
    )
    if form == "html":
        console().print(plain(f"report: {path}"))


@expose(reports.write_gallery, json=None)
def show_gallery(page: Path) -> None:
    """Show what editors made of memes: source, outputs, scores, failures, on one page."""
    console().print(plain(f"page: {page}"))


@expose(reports.export_inspect)
def export_inspect(paths: list[Path], out: Path) -> None:
    """Write runs as logs of Inspect, one file each (extra: inspect)."""
    for path in paths:
        console().print(plain(str(path)), soft_wrap=True)
    console().print(plain(f"look at them: inspect view --log-dir {out}"), soft_wrap=True)
