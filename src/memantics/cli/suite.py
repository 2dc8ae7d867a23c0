"""How ``memantics run`` goes about its runs, and what it says before and after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import typer
from rich.table import Table

from memantics.actions.asking import Asking, open_cache
from memantics.cli.progress import SuiteView
from memantics.cli.scoring import ScoringDesk
from memantics.cli.terminal import Justify, console, plain, print_json, table
from memantics.core.cache import Cache
from memantics.core.errors import InputError, Unavailable
from memantics.core.home import home
from memantics.report import load_runs
from memantics.report import table as show_table
from memantics.run.ask import AskSettings
from memantics.run.estimate import Estimate, estimate
from memantics.run.plan import SuitePlan
from memantics.run.suite import Result, SuiteSettings, run_suite

# Weights of several such models may not fit into one machine at a time.
_ALONE = "local/"
# More folders than this are named by the one they are in.
_FEW = 8


def conduct(plan: SuitePlan, asking: Asking) -> list[Result]:
    """Run everything; an interruption says how to go on."""
    try:
        with (
            open_cache(asking.use_cache) as cache,
            SuiteView(plan.jobs, asking.prices) as view,
        ):
            return asyncio.run(_conduct(plan, asking.concurrency, cache, view))
    except KeyboardInterrupt:
        typer.echo(
            "interrupted: what was answered is kept; run the same command to go on", err=True
        )
        raise typer.Exit(130) from None


async def _conduct(
    plan: SuitePlan, concurrency: int, cache: Cache | None, view: SuiteView
) -> list[Result]:
    models = {job.model.name for job in plan.jobs}
    desk = ScoringDesk()
    settings = SuiteSettings(
        ask=AskSettings(concurrency=concurrency),
        alone=frozenset(name for name in models if name.startswith(_ALONE)),
        score=desk.score,
    )
    try:
        return await run_suite(plan.jobs, cache, settings, view)
    finally:
        await desk.close()


def show_results(plan: SuitePlan, results: Sequence[Result], *, as_json: bool) -> None:
    """The tables of what was asked for, where the runs are, and what is missing."""
    if as_json:
        left_out = [{"task": own.task, "skipped": str(own.error)} for own in plan.skipped]
        print_json([*map(_dump, results), *left_out])
        return
    out = console()
    ended = [own for own in results if own.ended is not None and own.ended.scores is not None]
    shown = [own.job.folder for own in ended if own.job.folder in plan.asked]
    if shown:
        out.print(show_table(load_runs(shown)))
    if len(ended) > _FEW:
        out.print(plain(f"{len(ended)} runs in {ended[0].job.folder.parent}"), soft_wrap=True)
    for own in ended if len(ended) <= _FEW else ():
        note = "" if own.job.folder in plan.asked else "  (needed by others)"
        out.print(plain(f"{own.job.folder}{note}"), soft_wrap=True)
    for skipped in plan.skipped:
        out.print(plain(f"skipped: {skipped.task}: {skipped.error.what}", "yellow"))


def _dump(result: Result) -> dict[str, object]:
    row: dict[str, object] = {"folder": result.job.folder, "facts": result.job.facts}
    if result.ended is not None:
        row["scores"] = result.ended.scores
        row |= {"waiting": result.ended.waiting} if result.ended.waiting else {}
    if result.error is not None:
        row["error"] = str(result.error)
    return row


def finish(results: Sequence[Result]) -> None:
    """Say what went wrong, each thing once, and end with the exit code that fits."""
    errors = [(own.job.facts.model, own.error) for own in results if own.error is not None]
    several = len({own.job.facts.model for own in results}) > 1
    for line in dict.fromkeys(
        f"{model}: {error}" if several and isinstance(error, Unavailable) else str(error)
        for model, error in errors
    ):
        typer.echo(f"error: {line}", err=True)
    if errors and len(errors) < len(results):
        typer.echo(
            f"{len(errors)} of {len(results)} runs did not end; run the same command to go on",
            err=True,
        )
    for own in results:
        if own.fault is not None:
            raise own.fault
    failed = _tell_failed(results)
    if any(isinstance(error, InputError | Unavailable) for _, error in errors):
        raise typer.Exit(2)
    if errors or failed:
        raise typer.Exit(1)


def _tell_failed(results: Sequence[Result]) -> int:
    ended = [own.ended for own in results if own.ended is not None]
    failed = sum(own.scores.counts["failed"] for own in ended if own.scores is not None)
    waiting = sum(own.waiting for own in ended)
    if failed:
        typer.echo(f"{failed} items failed; run the same command to ask them again", err=True)
    if waiting:
        typer.echo(f"{waiting} items wait for answers of runs that failed on them", err=True)
    return failed + waiting


def show_estimates(plan: SuitePlan, asking: Asking, *, as_json: bool) -> None:
    """What the runs would send; nothing is sent and nothing written."""
    prices = asking.prices
    with open_cache(asking.use_cache and (home() / "cache.sqlite").is_file()) as cache:
        found = estimate(plan.jobs, cache)
    if as_json:
        print_json([_dump_estimate(own, prices) for own in found])
        return
    out = console()
    for model in dict.fromkeys(own.job.facts.model for own in found):
        out.print(_list_estimates(model, found, prices))
    if len({own.job.facts.model for own in found}) > 1:
        out.print(plain(f"All models: {_sum_up(found, prices)}.", "bold"))
    for note in _note(found):
        out.print(plain(note, "dim"))


def _dump_estimate(own: Estimate, prices: tuple[float, float] | None) -> dict[str, object]:
    facts = own.job.facts
    names = ("items", "done", "cached", "calls", "most_calls", "images", "tokens_in", "tokens_out")
    counts = {name: getattr(own, name) for name in names}
    return {
        "folder": own.job.folder,
        "task": facts.task,
        "model": facts.model,
        "options": facts.options,
        **counts,
        "guessed": own.guessed,
        "cost": own.cost(prices) if prices else None,
    }


def _list_estimates(
    model: str, found: Sequence[Estimate], prices: tuple[float, float] | None
) -> Table:
    columns: list[tuple[str, Justify]] = [("task", "left")]
    columns += [(name, "right") for name in ("items", "calls", "images", "tokens in", "out")]
    columns += [("cost", "right")] if prices else []
    rows = table(columns)
    rows.title = plain(model, "bold")
    own = [one for one in found if one.job.facts.model == model]
    for one in own:
        name = plain(f"{one.job.facts.task}{_tell_apart(one, found)}")
        rows.add_row(name, *_figures([one], prices))
    rows.add_section()
    rows.add_row("total", *_figures(own, prices), style="bold")
    return rows


def _sum_up(found: Sequence[Estimate], prices: tuple[float, float] | None) -> str:
    items, calls, images, first, second, *cost = _figures(found, prices)
    words = f"{items} items, {calls} calls, {images} images, {first} tokens in, {second} out"
    return f"{words}, cost {cost[0]}" if cost else words


def _figures(found: Sequence[Estimate], prices: tuple[float, float] | None) -> list[str]:
    names = ("items", "calls", "images", "tokens_in", "tokens_out")
    cells = [f"{sum(getattr(own, name) for own in found):,}" for name in names]
    return [*cells, f"{sum(own.cost(prices) for own in found):.2f}"] if prices else cells


def _tell_apart(own: Estimate, found: Sequence[Estimate]) -> str:
    """The options by which a run differs from others of its task."""
    facts = own.job.facts
    others = [other.job.facts for other in found if other.job.facts.task == facts.task]
    return "".join(
        f" {name}={value}"
        for name, value in facts.options.items()
        if len({other.options.get(name) for other in others}) > 1
    )


def _note(found: Sequence[Estimate]) -> Iterator[str]:
    done, cached = sum(own.done for own in found), sum(own.cached for own in found)
    if done or cached:
        yield f"{done:,} items are answered already, {cached:,} are in the cache."
    calls, most = sum(own.calls for own in found), sum(own.most_calls for own in found)
    if most > calls:
        yield f"Invalid answers are asked again: at most {most:,} calls."
    if any(own.guessed for own in found):
        yield "Requests that will hold other runs' answers are counted with a guess at those."
    yield "Tokens are estimated: text by length, images by tiles. Thinking models write far more."
