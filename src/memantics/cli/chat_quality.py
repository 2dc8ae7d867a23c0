"""``memantics build chat-quality``: a table of chat data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions.chat_quality import measure_chats
from memantics.cli import flags
from memantics.cli.build_drafts import BertFolder, Perplexity
from memantics.cli.terminal import console, plain, print_json, show_table

Files = Annotated[
    list[Path],
    typer.Argument(help="Chats: PunMemeCN's, ours, or any JSON with lists of utterances."),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Write the figures for 'paper --figures', the benchmark's own chats first."),
]


def show_quality(
    files: Files,
    perplexity: Perplexity = None,
    bert: BertFolder = None,
    out: Out = None,
    as_json: flags.AsJson = False,
) -> None:
    """Measure files of chats: perplexity, coherence of neighbouring turns, distinct words."""
    found = measure_chats(files, perplexity=perplexity, bert=bert)
    if out is not None:
        found.save(out)
    if as_json:
        print_json(found.files)
        return
    show_table(found.table())
    console().print(plain(found.note))
