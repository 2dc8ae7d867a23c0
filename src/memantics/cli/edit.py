"""``memantics edit``: an editor over MER-Bench's index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import edit as action
from memantics.actions.asking import Asking
from memantics.actions.edit import EditMode
from memantics.cli import flags
from memantics.cli.progress import watching
from memantics.cli.reappraise import EditorParams, EditorUrl, reach_editor
from memantics.cli.terminal import console, plain, print_json, tell

Name = Annotated[str, typer.Argument(help="mer_bench, or a benchmark published in its format.")]
EditorName = Annotated[
    str,
    typer.Option("--editor", "-e", help="openai-images/NAME, diffusers/PATH, embedded or none."),
]
Mode = Annotated[
    EditMode,
    typer.Option(
        help="whole: the picture with one instruction that holds the exact caption, no mask; "
        "masked: repaint around the captions, which are set by us."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Write a copy of the release with the edits there. Default: the release."),
]
Called = Annotated[
    str, typer.Option("--as", help="Name of the editor's folder. Default: the editor's.")
]


@flags.asks_models(concurrency=8)
def edit_memes(
    asking: Asking,
    name: Name = "mer_bench",
    editor: EditorName = "embedded",
    mode: Mode = "whole",
    data: flags.Data = None,
    out: Out = None,
    called: Called = "",
    limit: flags.FewMemes = None,
    editor_url: EditorUrl = None,
    editor_param: EditorParams = None,
    as_json: flags.AsJson = False,
) -> None:
    """Edit every meme of MER-Bench's index by one editor, into a folder that the judge takes."""
    with watching("edit", asking.prices) as show_progress:
        done = action.edit(
            name,
            editor=editor,
            mode=mode,
            data=data,
            out=out,
            called=called,
            limit=limit,
            **reach_editor(asking, show_progress, editor_url, editor_param),
        )
    if as_json:
        print_json(done)
    else:
        text = (
            f"{done.made} made, {done.kept} there before, {len(done.failed)} failed: {done.folder}"
        )
        console().print(plain(text), soft_wrap=True)
    for meme, reason in list(done.failed.items())[:5]:
        tell(f"{meme}: {reason}"[:300])
    if done.failed:
        raise typer.Exit(1)
