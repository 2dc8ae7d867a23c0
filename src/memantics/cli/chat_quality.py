"""``memantics build chat-quality``: a table of chat data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from memantics.actions.chat_quality import ChatFigures, measure_chats
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain, show_table
from memantics.core.parameters import Flag

Out = Annotated[
    Path | None,
    Flag("Write the figures for 'paper --figures', the benchmark's own chats first."),
]


def _save(found: ChatFigures, out: Out = None) -> None:
    if out is not None:
        found.save(out)


@expose(measure_chats, dump=lambda found: found.files, save=_save)
def show_quality(found: ChatFigures) -> None:
    """Measure files of chats: perplexity, coherence of neighbouring turns, distinct words."""
    show_table(found.table())
    console().print(plain(found.note))
