"""``memantics paper``: a benchmark's paper, redone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions.paper import PaperForm, PaperSettings, redo
from memantics.cli import flags
from memantics.cli.terminal import console, plain, print_data

Name = Annotated[
    str, typer.Argument(help="A benchmark, or one that you published in its family's format.")
]
Runs = Annotated[list[Path] | None, typer.Argument(help="Run directories.", metavar="[RUN]...")]
Verdicts = Annotated[
    list[Path] | None,
    typer.Option(help="A reviewed queue, or its verdicts.jsonl; may be repeated."),
]
Detectors = Annotated[
    list[Path] | None,
    typer.Option(help="A trained detector, or the folder of a 'detector study'; may be repeated."),
]
Parts = Annotated[
    list[str] | None,
    typer.Option("--part", help="Only this table or figure ('Table 5'); may be repeated."),
]
Traits = Annotated[
    Path | None,
    typer.Option(help="A CSV table of models and their traits; results are grouped by them."),
]
Figures = Annotated[
    list[Path] | None,
    typer.Option(help="Figures that another command measured (JSON); may be repeated."),
]
Out = Annotated[
    Path | None,
    typer.Option(help="File to write. Default: NAME-paper.html; other formats go to the terminal."),
]
Form = Annotated[PaperForm, typer.Option("--format", help="What to write.")]


def show_paper(
    name: Name,
    runs: Runs = None,
    data: flags.Data = None,
    verdicts: Verdicts = None,
    detectors: Detectors = None,
    traits: Traits = None,
    figures: Figures = None,
    parts: Parts = None,
    out: Out = None,
    form: Form = "html",
) -> None:
    """Redo a paper: all its tables and figures from your data, runs, verdicts and detectors."""
    settings = PaperSettings(
        data, verdicts or (), detectors or (), traits, figures or (), parts or ()
    )
    sheet = redo(name, runs or [], settings)
    if form != "html" and out is None:
        print_data(sheet.render(form))
        return
    path = sheet.save(out or f"{name}-paper.html", form if form != "html" else "")
    counts = ", ".join(f"{n} {status}" for status, n in sheet.counts.items() if n)
    console().print(plain(f"cells: {counts or 'none'}"))
    console().print(plain(f"paper: {path}"), soft_wrap=True)
