"""``memantics humans``: replies to a blind queue, and people's ratings to figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import humans as action
from memantics.cli import flags
from memantics.cli.terminal import console, plain, print_json, show_table

app = typer.Typer(
    help="Replies rated by people: export a blind queue, and score what came back.",
    no_args_is_help=True,
)
Queue = Annotated[Path, typer.Option(help="Folder for the queue and its key.")]
Exported = Annotated[Path, typer.Argument(help="The folder that was exported.")]
Runs = Annotated[
    list[Path] | None,
    typer.Argument(help="The runs that were exported: then metrics are compared with people."),
]


@app.command("export")
def export(
    folders: flags.Folders,
    out: Queue = Path("humans"),
    memes: Annotated[int, typer.Option(min=1, help="How many memes to draw.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
) -> None:
    """Export answers for rating by people: a blind queue, and the key that tells who said what."""
    done = action.export_humans(folders, out, memes=memes, seed=seed)
    written = f"{done.rows} ratings of {done.memes} memes: {done.queue}"
    console().print(plain(f"{written}; keep {done.key} from the raters"))


@app.command("score")
def score(
    folder: Exported,
    runs: Runs = None,
    verdicts: Annotated[
        Path | None, typer.Option(help="Verdicts. Default: verdicts.jsonl in the queue.")
    ] = None,
    as_json: flags.AsJson = False,
) -> None:
    """Join ratings with the key: means by setting, tests, agreement, metrics against people."""
    done = action.score_humans(folder, runs or (), verdicts=verdicts)
    if as_json:
        print_json(done)
        return
    show_table(done.table())
    if done.contrasts:
        show_table(done.contrast_table())
    show_table(done.agreement_table())
    if done.followed:
        show_table(done.metric_table())
