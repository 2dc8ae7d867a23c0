"""``memantics import-answers`` and ``export-task``: other tools' answers, and tasks for them."""

from __future__ import annotations

from pathlib import Path

import typer

from memantics.actions import answers as action
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain, tell
from memantics.report import table as tabulate


def _end(done: action.Imported, file: Path) -> None:
    if done.without_answer:
        asked = f"{done.without_answer} of {done.answers + done.without_answer} items"
        tell(f"{asked} are not in {file.name}: figures are over those that are")
    if done.left_out:
        tell(f"{len(done.left_out)} of {done.rows} rows were left out: {done.listed}")
    if done.left_out or any(run.counts["failed"] for run in (done.run, *done.repeats)):
        raise typer.Exit(1)


@expose(action.import_answers, end=_end, first=("task", "model", "format", "columns", "values"))
def bring_in(done: action.Imported) -> None:
    """Make a run of answers that another tool wrote: joined to the items, scored, marked imported.

    Rows that fit no item, or several, are listed in the run's left_out.jsonl.
    """
    console().print(tabulate([done.run, *done.repeats]))
    for run in (done.run, *done.repeats):
        console().print(plain(str(run.folder)), soft_wrap=True)


@expose(action.export_task, hide=("invalid",), first=("format", "out", "model", "params"))
def send_out(done: action.Exported) -> None:
    """Write a task for another tool to ask: OpenAI's batches, lmms-eval, lm-eval, VLMEvalKit."""
    console().print(plain(f"{done.items} items of {done.task}"))
    for path in done.files:
        console().print(plain(str(path)), soft_wrap=True)
