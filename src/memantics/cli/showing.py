"""``memantics report``, ``gallery`` and ``export-inspect``: runs shown elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import report as reports
from memantics.cli import flags
from memantics.cli.terminal import console, plain, print_data, print_json, tell

Judged = Annotated[
    Path, typer.Argument(help="A run of MER-Bench's judge, or of one that is like it.")
]


def report(
    folders: flags.Folders,
    out: flags.Page = None,
    form: flags.Format = "html",
    images: flags.Pictures = True,
) -> None:
    """Compare runs on one self-contained page, or as a table."""
    folders, left = reports.split_unfinished(folders)
    for reason in left.values():
        tell(f"left out: {reason}")
    if form != "html" and out is None:
        print_data(reports.render_report(folders, form))
        return
    path = reports.report(folders, out or "report.html", form=form, images=images)
    if form == "html":
        console().print(plain(f"report: {path}"))


def show_gallery(
    run: Judged,
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("gallery.html"),
) -> None:
    """Show what editors made of memes: source, outputs, scores, failures, on one page."""
    console().print(plain(f"page: {reports.write_gallery(run, out)}"))


def export_inspect(
    folders: flags.Folders,
    out: Annotated[Path, typer.Option(help="The folder for the logs.")] = Path("logs"),
    images: Annotated[bool, typer.Option(help="Put the images into the logs.")] = True,
    as_json: flags.AsJson = False,
) -> None:
    """Write runs as logs of Inspect, one file each (extra: inspect)."""
    paths = reports.export_inspect(folders, out, images=images)
    if as_json:
        print_json(paths)
        return
    for path in paths:
        console().print(plain(str(path)), soft_wrap=True)
    console().print(plain(f"look at them: inspect view --log-dir {out}"), soft_wrap=True)
