"""``memantics paper``: a benchmark's paper, redone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from memantics.actions.paper import PaperForm, RedonePaper, paper
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain, print_data
from memantics.core.parameters import Flag


@expose(paper, json=None)
def show_paper(
    sheet: RedonePaper,
    name: str,
    out: Annotated[
        Path | None,
        Flag("File to write. Default: NAME-paper.html; other formats go to the terminal."),
    ] = None,
    form: Annotated[PaperForm, Flag("What to write.", "--format")] = "html",
) -> None:
    """Redo a paper: all its tables and figures from your data, runs, verdicts and detectors."""
    if form != "html" and out is None:
        print_data(sheet.render(form))
        return
    path = sheet.save(out or f"{name}-paper.html", form if form != "html" else "")
    counts = ", ".join(f"{n} {status}" for status, n in sheet.counts.items() if n)
    console().print(plain(f"cells: {counts or 'none'}"))
    console().print(plain(f"paper: {path}"), soft_wrap=True)
