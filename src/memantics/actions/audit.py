"""``audit``: what a benchmark measures besides what it means to measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from memantics.actions.asking import Asking, make_asking, open_cache
from memantics.actions.options import TaskOptions
from memantics.actions.progress import ProgressWish, read_wish
from memantics.core.card import TaskCard, resolve_options
from memantics.core.data import Source
from memantics.core.errors import InputError, UnknownName
from memantics.core.finding import Finding
from memantics.core.model import Model
from memantics.core.parameters import Argument, Data, Flag, MadeBy, Split
from memantics.core.published import PublishedRow, read_published
from memantics.core.result import Table
from memantics.core.task import Task
from memantics.core.waiting import make_sync, run_sync
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
from memantics.report.pages.audit import Audit
from memantics.run.ask import AskSettings
from memantics.run.audit.asking import AuditAsking
from memantics.run.audit.audit import AuditNotes, Inquiry, TrivialModels, order_findings
from memantics.run.audit.audit import audit as audit_tasks
from memantics.run.audit.published import check_tables
from memantics.run.audit.subject import AuditSubject
from memantics.run.progress import Progress

__all__ = ["Audit", "AuditSettings", "audit", "audit_async"]

STRATEGIES = ("constant", "longest", "majority", "positive")
COINS = 5
Watch = Callable[[str, int], Callable[[Progress], None]]


AuditedName = Annotated[str, Argument("A benchmark or one of its tasks, NAME or NAME/TASK.")]


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """What is audited, and whom to ask; ``limit`` is the most items a model is asked about.

    ``published`` is a further table of figures to check, in the form of
    ``expected/published.json``.
    """

    models: Annotated[
        Sequence[str], Flag("Also ask this model; may be repeated.", "--model -m")
    ] = ()
    data: Data = None
    split: Split = None
    options: TaskOptions = field(default_factory=dict)
    limit: Annotated[
        int | None, Flag("Ask models about N items at most, spread over memes.", min=1)
    ] = 200
    published: Annotated[
        Path | None,
        Flag("Also check this published table (JSON, as in expected/published.json)."),
    ] = None
    runs: Annotated[Path, Flag("Where the answers of asked models go.")] = Path("runs/audit")
    asking: Annotated[Asking, MadeBy(make_asking)] = field(default_factory=Asking)


async def audit_async(
    name: str,
    *,
    model: str | Sequence[str] = (),
    base_url: str | None = None,
    settings: AuditSettings | None = None,
    progress: ProgressWish = None,
) -> Audit:
    """Audit a benchmark: shortcuts, dead options, leaks, infeasible tables.

    With a model also: blind run, order of options, consistency of judges. Each finding has a
    figure, a verdict in plain words, and what to do about it. ``model`` names one or several,
    ``settings`` say all the rest, and ``progress`` is told how far it is (``bar`` draws it).
    """
    models = [model] if isinstance(model, str) else list(model)
    wanted = settings or AuditSettings(asking=Asking(ModelSettings(base_url, timeout=300.0)))
    wanted = replace(wanted, models=models or wanted.models)
    show = read_wish(progress)
    return await conduct_audit(name, wanted, lambda _title, _total: show)


audit = make_sync(audit_async)


async def conduct_audit(name: AuditedName, wanted: AuditSettings, watch: Watch) -> Audit:
    """Audit a benchmark or one of its tasks; ``watch`` is told of each thing that is asked."""
    benchmark, cards = _find(name)
    _check(wanted.options, wanted.split, cards)
    source = find_source(benchmark, wanted.data)
    subject = _open(benchmark, source, wanted.split, wanted.options)
    models = tuple(
        open_model(text, wanted.asking.settings) for text in dict.fromkeys(wanted.models)
    )
    table = wanted.published
    extra = check_tables(_read_table(table), table.name) if table else None
    settings = AskSettings(concurrency=wanted.asking.concurrency)
    with open_cache(bool(models) and wanted.asking.use_cache) as cache:
        asker = AuditAsking(subject.card, subject.data, wanted.runs, cache, settings, watch)
        inquiry = Inquiry(models, asker, wanted.limit) if models else None
        found = await _audit(subject, cards, inquiry)
    if extra is not None:
        found.add(extra)
    names = tuple(model.name for model in models)
    ordered = order_findings(found.findings)
    return Audit(subject.card, subject.data, ordered, found.gaps, names, found.failed)


def audit_data(name: str) -> AuditNotes:
    """What a benchmark's data say by themselves, in the order of the checks; asks no model."""
    benchmark, cards = _find(name)
    subject = _open(benchmark, find_source(benchmark, None), None, {})
    return run_sync(_audit(subject, cards, None))


async def _audit(
    subject: AuditSubject, cards: Sequence[TaskCard], inquiry: Inquiry | None
) -> AuditNotes:
    plain_settings = ModelSettings()
    trivial = TrivialModels(
        tuple(open_model(f"baseline/{text}", plain_settings) for text in STRATEGIES),
        tuple(open_model(f"baseline/random?seed={n}", plain_settings) for n in range(COINS)),
    )
    models: tuple[Model, ...] = inquiry.models if inquiry else ()
    try:
        return await audit_tasks(subject, cards, trivial, inquiry)
    finally:
        for model in models:
            await model.close()


def tabulate_gaps(audit: Audit) -> Table:
    """What was not measured, and why."""
    rows = (
        (f"{gap.task} {gap.check}".strip(), f"{gap.reason}; {gap.hint}" if gap.hint else gap.reason)
        for gap in audit.gaps
    )
    return Table(("not measured", "why"), tuple(rows))


def describe_finding(finding: Finding) -> str:
    """The figure of a finding in one line, with its interval and what was expected."""
    figure = finding.figure
    span = show_span(figure)
    words = [f"{figure.key.replace('_', ' ')} {show_figure(figure.value)}"]
    words.append(f"({span})" if span else "")
    words.append(f"n = {figure.n:,}" if figure.n else "")
    if finding.expected is not None:
        words.append(f"against {show_figure(finding.expected)} ({finding.reference})")
    place = " · ".join(value for value in (finding.task, finding.model) if value)
    words.append(f"[{place}]" if place else "")
    return " ".join(word for word in words if word)


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
    splits = {text for card in cards for text in card.splits}
    if split is not None and split not in splits:
        raise UnknownName("split", split, splits)
    for card in cards:
        names = {option.name for option in card.option}
        resolve_options(card, {name: value for name, value in options.items() if name in names})


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
