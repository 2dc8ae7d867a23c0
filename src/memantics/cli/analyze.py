"""``memantics analyze``: one meme, everything at once; an analysis as a card in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.panel import Panel
from rich.table import Table

from memantics.actions import analyze as action
from memantics.actions.analysis_lines import describe
from memantics.actions.analyze import JOURNAL, Analysis
from memantics.actions.asking import Asking
from memantics.cli import flags
from memantics.cli.progress import tell_tokens, watching
from memantics.cli.terminal import console, plain, print_json, tell

Images = Annotated[list[Path], typer.Argument(help="Image files.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", help="KIND/NAME; without one only this machine's parts speak."),
]
Detector = Annotated[
    Path | None,
    typer.Option(help="A detector file. Default: a tiny one trained on the starter pack."),
]
Language = Annotated[
    str | None, typer.Option(help="Language of what the model writes. Default: the meme's.")
]
Known = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH", help="What is known of other memes: stores, builds, collections, starter."
    ),
]
Faces = Annotated[
    Path | None, typer.Option(help="The ONNX file of YuNet: faces are counted with it.")
]
Page = Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")]
Journal = Annotated[
    Path, typer.Option(help="Folder of the journal: what is in there is not asked again.")
]


@flags.asks_models()
def analyze(
    images: Images,
    asking: Asking,
    model: ModelName = None,
    detector: Detector = None,
    language: Language = None,
    known: Known = None,
    faces: Faces = None,
    out: Page = None,
    calls: Journal = JOURNAL,
    as_json: flags.AsJson = False,
) -> None:
    """Say what memes say, show, mean, intend and pun on, and whom they may hurt.

    Without a model it reads, listens and screens on this machine, and says what it left out.
    """
    with watching("analyze", asking.prices) as show_progress:
        made = action.analyze(
            images,
            model=model,
            detector=detector,
            language=language,
            known=known,
            faces=faces,
            journal=calls,
            asking=asking,
            progress=show_progress,
        )
    if out is not None and made:
        made.save(out)
    if as_json:
        print_json([one.to_dict() for one in made])
    else:
        for one in made:
            show(one)
        tell_tokens(made.tokens, len(made))
        if out is not None and made:
            console().print(plain(f"page: {out}"))
    for error in made.refused:
        tell(f"error: {error}")
    if made.refused:
        raise typer.Exit(1 if made else 2)
    if any(one.statuses.get("failed") for one in made):
        raise typer.Exit(1)


def show(found: Analysis) -> None:
    """Print a card that fits a terminal."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, line, tone in describe(found):
        grid.add_row(title, plain(line, tone))
    console().print(Panel(grid, title=plain(found.meme.image.name), title_align="left"))
