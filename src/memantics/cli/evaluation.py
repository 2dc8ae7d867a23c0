"""``memantics run`` and ``score``: what they say before and after."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import evaluate
from memantics.actions.options import Folders, ScoringOptions
from memantics.actions.score import score as score_run
from memantics.cli.expose import AsJson, spread, spread_with
from memantics.cli.progress import Prices, SuiteView, wait_for
from memantics.cli.terminal import console, plain, print_json, show_table, tell
from memantics.core.errors import DataError, InputError, Unavailable
from memantics.core.parameters import Flag, Invalid
from memantics.report import load_runs
from memantics.report import table as tabulate

# More folders than this are named by the one they are in.
_FEW = 8


@spread_with(first=("models", "captioner"))
def run(
    wanted: evaluate.Evaluation,
    dry_run: Annotated[
        bool, Flag("Say how many calls and tokens it would take; send nothing.")
    ] = False,
    watch: Annotated[bool, Flag("Serve a page about the runs in --out while they go on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask models the questions of benchmarks, and score the answers.

    Running the same command again goes on where it stopped.
    """
    asking = wanted.asking
    jobs, skipped = evaluate.plan_evaluation(wanted)
    for task, error in skipped.items():
        tell(f"skipped {task}: {error}")
    if dry_run:
        _show_estimates(evaluate.estimate_plan(jobs, asking), asking.prices, as_json=as_json)
        return
    page = _serve_page(wanted.out) if watch else nullcontext()
    with page, SuiteView(jobs, asking.prices) as view:
        ends = wait_for(evaluate.conduct(jobs, asking, view))
    _show_ends(ends, skipped, as_json=as_json)
    if (took := view.conclude(ends)) and not as_json:
        console().print(plain(took, "dim"), soft_wrap=True)
    _finish(ends)


@contextmanager
def _serve_page(out: Path) -> Iterator[None]:
    """Have another process serve the page of a folder's runs until the block ends."""
    from memantics.serve import require_extra

    require_extra()
    out.mkdir(parents=True, exist_ok=True)
    again = f"memantics serve --runs {out}"
    with tempfile.TemporaryDirectory(prefix="memantics-watch-") as state:
        words = ("serve", "--runs", str(out), "--port", "0", "--state", state)
        command = [sys.executable, "-m", "memantics", *words]
        with subprocess.Popen(  # noqa: S603 - our own command
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as page:
            try:
                said = page.stdout.readline() if page.stdout else ""
                if not said:
                    raise InputError("the page could not be served", hint=f"{again} says why")
                address = said.removeprefix("Serving on ").strip()
                tell(f"watch it: {address}/browse/runs (until the run ends; later: {again})")
                yield
            finally:
                page.terminate()


@spread
def score(
    folders: Folders,
    invalid: Invalid = None,
    options: ScoringOptions | None = None,
    as_json: AsJson = False,
) -> None:
    """Score finished answers again; no model is asked."""
    runs = [score_run(folder, invalid=invalid, options=options) for folder in folders]
    if as_json:
        print_json([{"folder": run.folder, "scores": run.figures} for run in runs])
    else:
        console().print(tabulate(load_runs(folders)))


def _show_ends(
    ends: Sequence[evaluate.RunEnd], skipped: Mapping[str, DataError], *, as_json: bool
) -> None:
    """The tables of what was asked for, where the runs are, and what is missing."""
    if as_json:
        left_out = [{"task": task, "skipped": str(error)} for task, error in skipped.items()]
        print_json([*map(evaluate.dump_end, ends), *left_out])
        return
    out = console()
    scored = [end for end in ends if end.ended is not None and end.ended.scores is not None]
    shown = [end.job.folder for end in scored if end.job.asked]
    if shown:
        out.print(tabulate(load_runs(shown)))
    if len(scored) > _FEW:
        out.print(plain(f"{len(scored)} runs in {scored[0].job.folder.parent}"), soft_wrap=True)
    for end in scored if len(scored) <= _FEW else ():
        note = "" if end.job.asked else "  (needed by others)"
        out.print(plain(f"{end.job.folder}{note}"), soft_wrap=True)
    for task, error in skipped.items():
        out.print(plain(f"skipped: {task}: {error.what}", "yellow"))


def _finish(ends: Sequence[evaluate.RunEnd]) -> None:
    """Say what went wrong, each thing once, and end with the exit code that fits."""
    for line in evaluate.list_errors(ends):
        tell(line)
    for end in ends:
        if end.fault is not None:
            raise end.fault
    for line in evaluate.list_failures(ends):
        tell(line)
    errors = [end.error for end in ends if end.error is not None]
    if any(isinstance(error, InputError | Unavailable) for error in errors):
        raise typer.Exit(2)
    if errors or evaluate.count_unanswered(ends):
        raise typer.Exit(1)


def _show_estimates(found: Sequence[evaluate.Estimate], prices: Prices, *, as_json: bool) -> None:
    if as_json:
        print_json([estimate.dump(prices) for estimate in found])
        return
    for shown in evaluate.tabulate_estimates(found, prices):
        show_table(shown)
    for note in evaluate.note_estimates(found, prices):
        console().print(plain(note, "dim"))
