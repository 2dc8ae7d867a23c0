"""``memantics build chat-quality``: a table of chat data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import chat_quality as action
from memantics.cli import flags
from memantics.cli.build_drafts import BertFolder, Perplexity
from memantics.cli.terminal import console, plain, print_json, show_table

Files = Annotated[
    list[Path],
    typer.Argument(help="Chats: PunMemeCN's, ours, or any JSON with lists of utterances."),
]
Out = Annotated[
    Path | None, typer.Option(help="Write the figures of the first file for 'paper --figures'.")
]


def show_quality(
    files: Files,
    perplexity: Perplexity = None,
    bert: BertFolder = None,
    out: Out = None,
    as_json: flags.AsJson = False,
) -> None:
    """Measure files of chats: perplexity, coherence of neighbouring turns, distinct words."""
    found, note = action.measure_chat_files(files, perplexity=perplexity, bert=bert)
    if out is not None:
        action.write_figures(out, found[0])
    if as_json:
        print_json(found)
        return
    show_table(action.tabulate_quality(found))
    console().print(plain(note))
