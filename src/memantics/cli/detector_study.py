"""``memantics detector study``: variants × seeds × tasks in one command (extra ``detector``)."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from memantics.actions import study as action
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain, print_lines, show_table, tell


@expose(action.study, watch=lambda as_json: nullcontext({} if as_json else {"say": tell}))
def study(done: action.Study, out: Path) -> None:
    """Train many detectors alike, test each once, and compare them: the paper's Table 5.

    A validation part of the training memes ends each training; the test part decides nothing.
    Run again, it goes on where it stopped.
    """
    show_table(done.table())
    if done.contrasts:
        show_table(done.contrast_table())
    print_lines(f"note: {note}" for note in done.notes)
    where = f"{out / action.STUDY}; its tables: memantics paper NAME --detectors {out}"
    console().print(plain(where), soft_wrap=True)
