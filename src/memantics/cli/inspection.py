"""``memantics export-inspect``: runs as logs that Inspect's viewer opens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.cli import flags
from memantics.cli.terminal import console, plain, print_json
from memantics.registry import open_task_of_run
from memantics.report.inspection import check_inspect, write_log
from memantics.report.runs import Run, load_runs
from memantics.run.score import read_outcomes

Logs = Annotated[Path, typer.Option(help="The folder for the logs.")]
Images = Annotated[bool, typer.Option(help="Put the images into the logs.")]


def export(
    folders: flags.Folders,
    out: Logs = Path("logs"),
    images: Images = True,
    as_json: flags.AsJson = False,
) -> None:
    """Write runs as logs of Inspect, one file each (extra: inspect)."""
    check_inspect()
    paths = [write_log(run, out, _mark(run), images=images) for run in load_runs(folders)]
    if as_json:
        print_json(paths)
        return
    for path in paths:
        console().print(plain(str(path)), soft_wrap=True)
    console().print(plain(f"look at them: inspect view --log-dir {out}"), soft_wrap=True)


def _mark(run: Run) -> dict[str, float | None]:
    """Each item's own value of the main figure, where the task gives one."""
    _, task = open_task_of_run(run.facts, None)
    if task.marks is None:
        return {}
    outcomes = read_outcomes(run.folder, task)
    marks = task.marks(outcomes).get(task.main)
    if marks is None:
        return {}
    return {outcome.item.id: mark for outcome, mark in zip(outcomes, marks, strict=True)}
