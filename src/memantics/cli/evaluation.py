"""``memantics run``, ``score`` and ``report``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from memantics.cli import flags
from memantics.cli.progress import Watcher
from memantics.cli.screen import console, plain, print_json
from memantics.core.cache import Cache
from memantics.core.errors import InputError, UnknownName
from memantics.core.home import home
from memantics.core.model import Model
from memantics.core.rundir import Scores, read_facts
from memantics.report import (
    ReportSettings,
    build_report,
    load_runs,
    render_csv,
    render_json,
    render_markdown,
    table,
)
from memantics.run.ask import AskSettings
from memantics.run.evaluate import Job, Question, evaluate, plan
from memantics.run.score import score_run
from memantics.wiring import (
    ModelSettings,
    TaskRef,
    find_tasks,
    open_model,
    open_task_of_run,
    pose_task,
)

RENDERERS = {"md": render_markdown, "csv": render_csv, "json": render_json}


def run(
    names: flags.Tasks,
    model: flags.Models,
    data: flags.Data = None,
    split: flags.Split = None,
    limit: flags.Limit = None,
    option: flags.Options = None,
    invalid: flags.Invalid = None,
    out: flags.Out = Path("runs"),
    base_url: flags.BaseUrl = None,
    param: flags.Params = None,
    concurrency: flags.Concurrency = 32,
    timeout: flags.Timeout = 300.0,
    price: flags.Price = None,
    no_cache: flags.NoCache = False,
    as_json: flags.AsJson = False,
) -> None:
    """Ask models the questions of benchmarks, and score the answers.

    Running the same command again goes on where it stopped.
    """
    settings = ModelSettings(base_url, concurrency, timeout, read_pairs("--param", param))
    options = read_pairs("--set", option)
    refs = find_tasks(names)
    check_options(options, refs)
    models = [open_model(name, settings) for name in dict.fromkeys(model)]
    questions = [pose_task(ref, options, (data, split, limit), invalid) for ref in refs]
    prices = _read_price(price)
    cache = None if no_cache else Cache(home() / "cache.sqlite")
    try:
        results = asyncio.run(_run_all(questions, models, (out, prices), cache, concurrency))
    except KeyboardInterrupt:
        typer.echo(
            "interrupted: what was answered is kept; run the same command to go on", err=True
        )
        raise typer.Exit(130) from None
    finally:
        if cache is not None:
            cache.close()
    _show(results, as_json)
    failed = sum(scores.counts["failed"] for _, scores in results)
    if failed:
        typer.echo(f"{failed} items failed; run the same command to ask them again", err=True)
        raise typer.Exit(1)


async def _run_all(
    questions: Sequence[Question],
    models: Sequence[Model],
    place: tuple[Path, tuple[float, float] | None],
    cache: Cache | None,
    concurrency: int,
) -> list[tuple[Job, Scores]]:
    results: list[tuple[Job, Scores]] = []
    try:
        for question in questions:
            baselines = [open_model(name, ModelSettings()) for name in question.cards[1].baselines]
            for model in models:
                job = plan(question, model, baselines, place[0], place[1])
                with Watcher(
                    f"{job.facts.task}  {job.facts.model}", job.total, place[1]
                ) as watcher:
                    settings = AskSettings(concurrency=concurrency)
                    _, scores = await evaluate(job, cache, settings, watcher.show)
                results.append((job, scores))
    finally:
        for model in models:
            await model.close()
    return results


def score(
    folders: flags.Folders, invalid: flags.Invalid = None, as_json: flags.AsJson = False
) -> None:
    """Score finished answers again; no model is asked."""
    results: list[tuple[Path, Scores]] = []
    for folder in folders:
        facts = read_facts(folder)
        ref, task = open_task_of_run(facts, invalid)
        baselines = [open_model(name, ModelSettings()) for name in ref.card.baselines]
        results.append((folder, asyncio.run(score_run(folder, task, baselines))))
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
    if form != "html":
        text = RENDERERS[form](load_runs(folders))
        if out is None:
            typer.echo(text, nl=False)
        else:
            out.write_text(text, encoding="utf-8")
        return
    path = out or Path("report.html")
    build_report(folders, path, ReportSettings(images=images))
    console().print(plain(f"report: {path}"))


def check_options(options: Mapping[str, str], refs: Sequence[TaskRef]) -> None:
    """Refuse an option that none of the tasks has."""
    known = {option.name for ref in refs for option in ref.card.option}
    for name in options:
        if name not in known:
            raise UnknownName("option", name, known)


def read_pairs(flag: str, pairs: Sequence[str] | None) -> dict[str, str]:
    """Read ``NAME=VALUE`` options.

    >>> read_pairs("--set", ["order=answer_first"])
    {'order': 'answer_first'}
    """
    read: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(
                f"{flag} {pair!r} is not NAME=VALUE", hint=f"such as {flag} name=value"
            )
        read[name] = value
    return read


def _read_price(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--price {text!r} is not IN,OUT", hint="such as --price 0.15,0.60"
        ) from None
    if not (0 <= first < float("inf") and 0 <= second < float("inf")):
        raise InputError(f"--price {text!r} must not be negative", hint="such as --price 0.15,0.60")
    return first, second


def _show(results: Sequence[tuple[Job, Scores]], as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"folder": job.folder, "facts": job.facts, "scores": scores}
                for job, scores in results
            ]
        )
        return
    out = console()
    out.print(table(load_runs([job.folder for job, _ in results])))
    for job, _ in results:
        out.print(plain(f"{job.folder}"))
