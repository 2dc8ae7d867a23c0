"""``memantics run`` and ``score``: what they say before and after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from memantics.actions.asking import Asking
from memantics.actions.evaluate import (
    Estimate,
    Evaluation,
    RunEnd,
    SuitePlan,
    Variation,
    conduct,
    count_unanswered,
    dump_end,
    estimate_plan,
    list_errors,
    list_failures,
    note_estimates,
    plan_evaluation,
    read_settings,
    tabulate_estimates,
)
from memantics.actions.score import score as score_run
from memantics.cli import flags
from memantics.cli.progress import Prices, SuiteView, wait_for
from memantics.cli.terminal import console, plain, print_json, show_table, tell
from memantics.core.errors import InputError, Unavailable
from memantics.report import load_runs
from memantics.report import table as tabulate

# More folders than this are named by the one they are in.
_FEW = 8


@flags.asks_models()
def run(
    names: flags.Tasks,
    model: flags.Models,
    captioner: flags.Captioner = None,
    data: flags.Data = None,
    split: flags.Split = None,
    limit: flags.Limit = None,
    sample: flags.Sample = None,
    seed: flags.Seed = None,
    option: flags.Grid = None,
    invalid: flags.Invalid = None,
    probe: flags.Probe = "",
    rewordings: flags.Rewordings = None,
    prompts: flags.Prompts = None,
    shots: flags.Shots = None,
    repeat: flags.Repeat = 1,
    score_by: flags.ScoreBy = "reply",
    max_tokens: flags.MaxTokens = None,
    thinking_tokens: flags.ThinkingTokens = None,
    out: flags.Out = Path("runs"),
    *,
    asking: Asking,
    dry_run: flags.DryRun = False,
    as_json: flags.AsJson = False,
) -> None:
    """Ask models the questions of benchmarks, and score the answers.

    Running the same command again goes on where it stopped.
    """
    scope = (data, split, limit, sample, seed)
    variation = Variation(prompts, shots, repeat, score_by, max_tokens, thinking_tokens)
    settings = read_settings("--set", option)
    changed = (probe, rewordings, variation)
    wanted = Evaluation(names, model, *scope, settings, invalid, out, captioner, asking, *changed)
    plan = plan_evaluation(wanted)
    for skipped in plan.skipped:
        tell(f"skipped {skipped.task}: {skipped.error}")
    if dry_run:
        _show_estimates(estimate_plan(plan, asking), asking.prices, as_json=as_json)
        return
    with SuiteView(plan.jobs, asking.prices) as view:
        ends = wait_for(conduct(plan, asking, view))
    _show_ends(plan, ends, as_json=as_json)
    if (took := view.conclude(ends)) and not as_json:
        console().print(plain(took, "dim"), soft_wrap=True)
    _finish(ends)


def score(
    folders: flags.Folders, invalid: flags.Invalid = None, as_json: flags.AsJson = False
) -> None:
    """Score finished answers again; no model is asked."""
    runs = [score_run(folder, invalid=invalid) for folder in folders]
    if as_json:
        print_json([{"folder": run.folder, "scores": run.figures} for run in runs])
    else:
        console().print(tabulate(load_runs(folders)))


def _show_ends(plan: SuitePlan, ends: Sequence[RunEnd], *, as_json: bool) -> None:
    """The tables of what was asked for, where the runs are, and what is missing."""
    if as_json:
        left_out = [{"task": skip.task, "skipped": str(skip.error)} for skip in plan.skipped]
        print_json([*map(dump_end, ends), *left_out])
        return
    out = console()
    scored = [end for end in ends if end.ended is not None and end.ended.scores is not None]
    shown = [end.job.folder for end in scored if end.job.folder in plan.asked]
    if shown:
        out.print(tabulate(load_runs(shown)))
    if len(scored) > _FEW:
        out.print(plain(f"{len(scored)} runs in {scored[0].job.folder.parent}"), soft_wrap=True)
    for end in scored if len(scored) <= _FEW else ():
        note = "" if end.job.folder in plan.asked else "  (needed by others)"
        out.print(plain(f"{end.job.folder}{note}"), soft_wrap=True)
    for skipped in plan.skipped:
        out.print(plain(f"skipped: {skipped.task}: {skipped.error.what}", "yellow"))


def _finish(ends: Sequence[RunEnd]) -> None:
    """Say what went wrong, each thing once, and end with the exit code that fits."""
    for line in list_errors(ends):
        tell(line)
    for end in ends:
        if end.fault is not None:
            raise end.fault
    for line in list_failures(ends):
        tell(line)
    errors = [end.error for end in ends if end.error is not None]
    if any(isinstance(error, InputError | Unavailable) for error in errors):
        raise typer.Exit(2)
    if errors or count_unanswered(ends):
        raise typer.Exit(1)


def _show_estimates(found: Sequence[Estimate], prices: Prices, *, as_json: bool) -> None:
    if as_json:
        print_json([estimate.dump(prices) for estimate in found])
        return
    for shown in tabulate_estimates(found, prices):
        show_table(shown)
    for note in note_estimates(found, prices):
        console().print(plain(note, "dim"))
