"""``memantics audit``: what a benchmark measures besides what it means to measure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding

from memantics.actions.asking import Asking, read_pairs
from memantics.cli import flags
from memantics.cli.progress import Watcher
from memantics.cli.terminal import console, plain, print_json, table
from memantics.core.cache import Cache
from memantics.core.card import TaskCard, resolve_options
from memantics.core.data import Source
from memantics.core.errors import InputError, UnknownName
from memantics.core.finding import Finding
from memantics.core.home import home
from memantics.core.model import Model
from memantics.core.published import PublishedRow, read_published
from memantics.core.task import Task
from memantics.registry import (
    Benchmark,
    ModelSettings,
    TaskRef,
    describe_data,
    find_benchmark,
    find_source,
    open_model,
)
from memantics.report.leaderboard import show_figure, show_span
from memantics.report.pages.audit import Sheet, write_page
from memantics.run.ask import AskSettings
from memantics.run.audit.asking import Asker
from memantics.run.audit.audit import Audit, Inquiry, Trivial, audit, order_findings
from memantics.run.audit.subject import AuditSubject
from memantics.run.audit.tables import check_tables
from memantics.run.progress import Progress

STRATEGIES = ("constant", "longest", "majority", "positive")
COINS = 5
STYLES = {"broken": "red", "worth knowing": "yellow", "sound": "green"}

Name = Annotated[str, typer.Argument(help="A benchmark or one of its tasks, NAME or NAME/TASK.")]
Asked = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="Also ask this model; may be repeated."),
]
Most = Annotated[
    int | None, typer.Option(min=1, help="Ask models about N items at most, spread over memes.")
]
Table = Annotated[
    Path | None,
    typer.Option(help="Also check this published table (JSON, as in expected/published.json)."),
]
Runs = Annotated[Path, typer.Option(help="Where the answers of asked models go.")]
Page = Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")]


@flags.asks_models(price=False)
def audit_benchmark(
    name: Name,
    model: Asked = None,
    data: flags.Data = None,
    split: flags.Split = None,
    option: flags.Options = None,
    limit: Most = 200,
    published: Table = None,
    out: Page = None,
    runs: Runs = Path("runs/audit"),
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Audit a benchmark: shortcuts, dead options, leaks, infeasible tables.

    With a model also: blind run, order of options, consistency of judges. Each finding has a
    figure, a verdict in plain words, and what to do about it.
    """
    benchmark, cards = _find(name)
    options = read_pairs("--set", option)
    _check(options, split, cards)
    subject = _open(benchmark, find_source(benchmark, data), split, options)
    models = tuple(open_model(own, asking.settings) for own in dict.fromkeys(model or ()))
    extra = check_tables(_read_table(published), published.name) if published else None
    cache = Cache(home() / "cache.sqlite") if models and asking.use_cache else None
    try:
        with ExitStack() as bars:
            asker = Asker(
                subject.card,
                subject.data,
                runs,
                cache,
                AskSettings(concurrency=asking.concurrency),
                _watch(bars),
            )
            inquiry = Inquiry(models, asker, limit) if models else None
            found = asyncio.run(_audit(subject, cards, inquiry))
    except KeyboardInterrupt:
        typer.echo("interrupted: answers are kept; run the same command to go on", err=True)
        raise typer.Exit(130) from None
    finally:
        if cache is not None:
            cache.close()
    if extra is not None:
        found.add(extra)
    _show(subject, found, tuple(own.name for own in models), out, as_json)
    if found.failed:
        typer.echo(f"{found.failed} calls failed; run the same command to ask again", err=True)
        raise typer.Exit(1)


def audit_data(name: str) -> Audit:
    """What a benchmark's data say by themselves: no model is asked."""
    benchmark, cards = _find(name)
    subject = _open(benchmark, find_source(benchmark, None), None, {})
    return asyncio.run(_audit(subject, cards, None))


async def _audit(
    subject: AuditSubject, cards: Sequence[TaskCard], inquiry: Inquiry | None
) -> Audit:
    plain_settings = ModelSettings()
    trivial = Trivial(
        tuple(open_model(f"baseline/{own}", plain_settings) for own in STRATEGIES),
        tuple(open_model(f"baseline/random?seed={n}", plain_settings) for n in range(COINS)),
    )
    models: tuple[Model, ...] = inquiry.models if inquiry else ()
    try:
        return await audit(subject, cards, trivial, inquiry)
    finally:
        for own in models:
            await own.close()


def _find(name: str) -> tuple[Benchmark, tuple[TaskCard, ...]]:
    head, _, tail = name.partition("/")
    benchmark = find_benchmark(head)
    cards = (benchmark.card.find_task(tail),) if tail else benchmark.card.task
    return benchmark, cards if benchmark.runnable else ()


def _check(options: Mapping[str, str], split: str | None, cards: Sequence[TaskCard]) -> None:
    """Refuse what none of the tasks knows."""
    known = {option.name for card in cards for option in card.option}
    for name in options:
        if name not in known:
            raise UnknownName("option", name, known)
    splits = {own for card in cards for own in card.splits}
    if split is not None and split not in splits:
        raise UnknownName("split", split, splits)
    for card in cards:
        own = {option.name for option in card.option}
        resolve_options(card, {name: value for name, value in options.items() if name in own})


def _read_table(path: Path) -> tuple[PublishedRow, ...]:
    if not path.is_file():
        raise InputError(f"no such file: {path}", hint="give a JSON file of published rows")
    return read_published(path, hint="docs/audit-a-benchmark.md shows what a row looks like")


def _open(
    benchmark: Benchmark, source: Source, split: str | None, options: Mapping[str, str]
) -> AuditSubject:
    release = benchmark.open(source)
    found = benchmark.survey(release)

    def make(card: TaskCard, chosen: Mapping[str, str], part: str, place: Source) -> Task:
        return TaskRef(benchmark, card).make(chosen, part, place, None)

    return AuditSubject(
        card=benchmark.card,
        source=source,
        data=describe_data(benchmark, source),
        release=release,
        complete=found.images_found >= found.images_expected,
        make=make,
        hooks=benchmark.plugin.audit,
        published=read_published(benchmark.folder / "expected" / "published.json"),
        split=split,
        options=options,
    )


def _watch(bars: ExitStack) -> Callable[[str, int], Callable[[Progress], None]]:
    """A progress bar for each thing that is asked; the one before it ends."""

    def begin(title: str, total: int) -> Callable[[Progress], None]:
        bars.close()
        return bars.enter_context(Watcher(title, total, None)).show

    return begin


def _show(
    subject: AuditSubject, found: Audit, models: tuple[str, ...], out: Path | None, as_json: bool
) -> None:
    ordered = order_findings(found.findings)
    sheet = Sheet(subject.card, subject.data, ordered, found.gaps, models)
    if out is not None:
        write_page(sheet, out)
    if as_json:
        print_json(sheet.dump())
        return
    _show_table(sheet)
    if out is not None:
        console().print(plain(f"audit: {out}"))


def _show_table(sheet: Sheet) -> None:
    to = console()
    to.print(plain(f"Audit of {sheet.card.title}, {sheet.data.kind} data", "bold"))
    counts = ", ".join(f"{n} {verdict}" for verdict, n in sheet.counts.items())
    to.print(plain(f"  {len(sheet.findings)} findings: {counts}"))
    for finding in sheet.findings:
        to.print()
        to.print(plain(f"{finding.verdict:<14}{finding.title}", STYLES[finding.verdict]))
        to.print(_indent(_describe(finding)))
        to.print(_indent(finding.meaning))
        if finding.verdict != "sound":
            to.print(_indent(f"To do: {finding.advice}", "dim"))
    if sheet.gaps:
        rows = table([("not measured", "left"), ("why", "left")])
        for gap in sheet.gaps:
            why = f"{gap.reason}; {gap.hint}" if gap.hint else gap.reason
            rows.add_row(plain(f"{gap.task} {gap.check}".strip()), plain(why))
        to.print(rows)


def _indent(text: str, style: str = "") -> Padding:
    return Padding(plain(text, style), (0, 0, 0, 2))


def _describe(finding: Finding) -> str:
    figure = finding.figure
    span = show_span(figure)
    words = [f"{figure.key.replace('_', ' ')} {show_figure(figure.value)}"]
    words.append(f"({span})" if span else "")
    words.append(f"n = {figure.n:,}" if figure.n else "")
    if finding.expected is not None:
        words.append(f"against {show_figure(finding.expected)} ({finding.reference})")
    place = " · ".join(own for own in (finding.task, finding.model) if own)
    words.append(f"[{place}]" if place else "")
    return " ".join(word for word in words if word)
