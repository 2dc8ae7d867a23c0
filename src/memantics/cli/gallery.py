"""``memantics gallery``: judged edits side by side, with their scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.cli.terminal import console, plain
from memantics.core.errors import InputError
from memantics.core.journal import replace_file
from memantics.core.records import Outcome
from memantics.core.rundir import last_answers, read_facts, read_items
from memantics.registry import open_task_of_run
from memantics.report.gallery import make_gallery, render_gallery

Run = Annotated[Path, typer.Argument(help="A run of MER-Bench's judge, or of one that is like it.")]
Page = Annotated[Path, typer.Option(help="File to write.")]


def show_gallery(run: Run, out: Page = Path("gallery.html")) -> None:
    """Show what editors made of memes: source, outputs, scores, failures, on one page."""
    body = render_gallery(make_gallery(run, read_figures(run)))
    replace_file(out, body.encode("utf-8", "replace"), "page")
    console().print(plain(f"page: {out}"))


def read_figures(run: Path) -> dict[str, dict[str, float | None]]:
    """Every item's own figures, as its task marks them."""
    facts = read_facts(run)
    items = [line.item for line in read_items(run)]
    if not items or any(len(item.images) != 2 or "editor" not in item.tags for item in items):
        raise InputError(
            f"{run} judges no edited memes", hint="give a run of mer_bench/judge or one like it"
        )
    _, task = open_task_of_run(facts, None)
    answers = last_answers(run)
    outcomes = [
        Outcome(item, answers[item.id].status, answers[item.id].value)
        for item in items
        if item.id in answers
    ]
    marks = task.marks(outcomes) if task.marks else {}
    return {
        outcome.item.id: {key: values[place] for key, values in marks.items()}
        for place, outcome in enumerate(outcomes)
    }
