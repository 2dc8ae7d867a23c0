"""``memantics annotate questionnaire``, ``texts``, ``apply-texts`` and ``errors``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import queues as action
from memantics.cli import flags
from memantics.cli.terminal import console, plain

Queue = Annotated[Path, typer.Option(help="The queue's folder.")]
Memes = Annotated[Path, typer.Argument(help="A folder that 'memantics collect' read.")]


def make_questionnaire(
    out: Queue = Path("questionnaire"),
    people: Annotated[int, typer.Option(min=1, help="How many annotators there are.")] = 10,
) -> None:
    """Write a questionnaire for annotators: consent and demographics, apart from votes."""
    done = action.make_questionnaire(out, people)
    _show(done, "forms", " --db people.db")


def make_texts(folder: Memes, out: Queue = Path("texts")) -> None:
    """Write what OCR read of memes as a queue in which people correct it."""
    done = action.make_text_queue(folder, out)
    _show(done, "texts")


def apply_texts(
    folder: Memes,
    verdicts: Annotated[Path, typer.Argument(help="What 'annotate export' wrote.")],
) -> None:
    """Put texts that people corrected back into the folder of memes."""
    done = action.apply_texts(folder, verdicts)
    told = f"{done.changed} texts changed, {done.unreadable} memes cannot be read"
    console().print(plain(f"{done.folder}: {told}"))


def make_errors(
    folders: flags.Folders,
    out: Queue = Path("errors"),
    share: Annotated[
        float, typer.Option(min=0.01, max=1, help="Share of the runs that got an item wrong.")
    ] = 0.5,
) -> None:
    """Write items that most runs got wrong as a queue in which people say why."""
    done = action.make_error_queue(folders, out, share)
    _show(done, "items")


def _show(done: action.MadeQueue, what: str, more: str = "") -> None:
    """Folders may be called as a command of ours: 'annotate open' takes them by any name."""
    where = f"{done.folder}; next: memantics annotate open {done.folder}{more}"
    console().print(plain(f"{done.items} {what}: {where}"), soft_wrap=True)
