"""``memantics run``, ``score`` and ``report``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import typer

from memantics.actions.asking import Asking, read_pairs, read_price
from memantics.cli import flags, suite
from memantics.cli.terminal import console, plain, print_json
from memantics.core.errors import InputError
from memantics.core.journal import replace_file
from memantics.core.rundir import Scores, read_facts
from memantics.registry import (
    Wish,
    find_published,
    find_tasks,
    list_choices,
    make_choice,
    open_baselines,
    open_model,
    open_task_of_run,
)
from memantics.report import (
    ReportSettings,
    build_report,
    load_runs,
    render_csv,
    render_json,
    render_markdown,
    table,
)
from memantics.run.grid import Setting, check_settings, read_settings
from memantics.run.plan import SuiteDesk, TaskChoice, plan_suite
from memantics.run.score import score_run

__all__ = ["read_pairs", "read_price", "report", "run", "score"]

RENDERERS = {"md": render_markdown, "csv": render_csv, "json": render_json}


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
    out: flags.Out = Path("runs"),
    *,
    asking: Asking,
    dry_run: flags.DryRun = False,
    as_json: flags.AsJson = False,
) -> None:
    """Ask models the questions of benchmarks, and score the answers.

    Running the same command again goes on where it stopped.
    """
    check_sample(limit, sample, seed)
    wish = Wish(data, split, limit, sample, seed or 0, invalid)
    settings = read_settings("--set", option)
    choices = list_choices(names, wish)
    check_options(settings, choices)
    models = {
        name: open_model(name, asking.settings)
        for name in (*dict.fromkeys(model), *([captioner] if captioner else []))
    }
    desk = SuiteDesk(
        out=out,
        find=lambda name: make_choice(find_tasks([name])[0], wish),
        open_baselines=open_baselines,
        settings=settings,
        prices=asking.prices,
        captioner=models[captioner] if captioner else None,
    )
    plan = plan_suite(choices, [models[name] for name in dict.fromkeys(model)], desk)
    for skipped in plan.skipped:
        typer.echo(f"skipped {skipped.task}: {skipped.error}", err=True)
    if dry_run:
        suite.show_estimates(plan, asking, as_json=as_json)
        return
    results = suite.conduct(plan, asking)
    suite.show_results(plan, results, as_json=as_json)
    suite.finish(results)


def score(
    folders: flags.Folders, invalid: flags.Invalid = None, as_json: flags.AsJson = False
) -> None:
    """Score finished answers again; no model is asked."""
    results: list[tuple[Path, Scores]] = []
    for folder in folders:
        facts = read_facts(folder)
        ref, task = open_task_of_run(facts, invalid)
        trivial = open_baselines(ref.card)
        results.append((folder, asyncio.run(score_run(folder, task, trivial))))
    if as_json:
        print_json([{"folder": folder, "scores": scores} for folder, scores in results])
        return
    console().print(table(load_runs([folder for folder, _ in results])))


def report(
    folders: flags.Folders,
    out: flags.Page = None,
    form: flags.Format = "html",
    images: flags.Pictures = True,
) -> None:
    """Compare runs on one self-contained page, or as a table."""
    runs = load_runs(folders)
    published = find_published(run.task for run in runs)
    if form != "html":
        text = RENDERERS[form](runs, published)
        if out is None:
            typer.echo(text, nl=False)
        else:
            replace_file(out, text.encode("utf-8", "replace"), "report")
        return
    path = out or Path("report.html")
    build_report(folders, path, ReportSettings(images=images, published=published))
    console().print(plain(f"report: {path}"))


def check_options(settings: Sequence[Setting], choices: Sequence[TaskChoice]) -> None:
    """Refuse options and values that the tasks do not have."""
    asked = {choice.name: choice.card for choice in choices}
    known = {ref.name: ref.card for ref in find_tasks(["suite"])} if settings else {}
    check_settings(settings, asked, known)


def check_sample(limit: int | None, sample: int | None, seed: int | None) -> None:
    """Refuse what contradicts itself."""
    if limit is not None and sample is not None:
        raise InputError("--limit and --sample exclude each other", hint="leave one of them out")
    if seed is not None and sample is None:
        raise InputError("--seed is the seed of a sample", hint="add --sample N, or leave it out")
