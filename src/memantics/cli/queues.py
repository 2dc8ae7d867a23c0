"""``memantics annotate questionnaire``, ``texts``, ``apply-texts`` and ``errors``."""

from __future__ import annotations

from memantics.actions import queues as action
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain


@expose(action.make_questionnaire, json=None)
def make_questionnaire(done: action.MadeQueue) -> None:
    """Write a questionnaire for annotators: consent and demographics, apart from votes."""
    _show(done, "forms", " --db people.db")


@expose(action.make_text_queue, json=None)
def make_texts(done: action.MadeQueue) -> None:
    """Write what OCR read of memes as a queue in which people correct it."""
    _show(done, "texts")


@expose(action.apply_texts, json=None)
def apply_texts(done: action.AppliedTexts) -> None:
    """Put texts that people corrected back into the folder of memes."""
    told = f"{done.changed} texts changed, {done.unreadable} memes cannot be read"
    console().print(plain(f"{done.folder}: {told}"))


@expose(action.make_error_queue, json=None)
def make_errors(done: action.MadeQueue) -> None:
    """Write items that most runs got wrong as a queue in which people say why."""
    _show(done, "items")


def _show(done: action.MadeQueue, what: str, more: str = "") -> None:
    """Folders may be called as a command of ours: 'annotate open' takes them by any name."""
    where = f"{done.folder}; next: memantics annotate open {done.folder}{more}"
    console().print(plain(f"{done.items} {what}: {where}"), soft_wrap=True)
