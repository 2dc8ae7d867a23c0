"""``audit``: what a benchmark measures besides what it means to measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from memantics.actions import label_audit
from memantics.actions.desk import Asking, make_asking, open_cache
from memantics.actions.label_audit import audit_probed
from memantics.actions.options import TaskOptions
from memantics.actions.progress import ProgressWish, read_wish
from memantics.core.card import Card, TaskCard, resolve_options
from memantics.core.data import DataKind, Source
from memantics.core.errors import InputError, UnknownName
from memantics.core.finding import Finding, Gap
from memantics.core.formatting import show_figure, show_span
from memantics.core.model import Model
from memantics.core.parameters import Argument, Data, Flag, MadeBy, Split
from memantics.core.published import PublishedRow, read_published
from memantics.core.result import Table
from memantics.core.splits import GROUP_KINDS, GroupKind
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
from memantics.report.pages.audit import Audit, show_p, write_companions
from memantics.run.ask import AskSettings
from memantics.run.audit.audit import AuditNotes, Inquiry, TrivialModels, order_findings
from memantics.run.audit.audit import audit as audit_tasks
from memantics.run.audit.published import check_tables
from memantics.run.audit.subject import AuditAsking, AuditSubject, Watch
from memantics.run.facts import DataFacts

__all__ = ["Audit", "AuditSettings", "audit", "audit_async"]

STRATEGIES = ("constant", "longest", "majority", "positive")
COINS = 5


AuditedName = Annotated[
    str,
    Argument("A benchmark, one of its tasks or labels, or a column of a table (memes.csv/label)."),
]


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """What is audited, and whom to ask; ``limit`` is the most items a model is asked about.

    ``published`` is a further table of figures to check, in the form of
    ``expected/published.json``. With ``resplit`` or ``labels`` that alone is looked at, with
    ``everything`` all there is; their files go to a folder of that name below ``runs``.
    """

    models: Annotated[
        Sequence[str], Flag("Also ask this model; may be repeated.", "--model -m")
    ] = ()
    resplit: Annotated[
        GroupKind | None, Flag("Split so that no such group crosses, and report the fall.")
    ] = None
    labels: Annotated[bool, Flag("Rank labels that are probably wrong; write a queue.")] = False
    everything: Annotated[bool, Flag("All of it; also a badge, BibTeX and JSON.", "--all")] = False
    reviewed: Annotated[
        Path | None, Flag("Verdicts on the queue of --labels: the share of wrong labels.")
    ] = None
    data: Data = None
    split: Split = None
    options: TaskOptions = field(default_factory=dict)
    probed: Annotated[
        Sequence[Path],
        Flag("A run of a task, plain or with --probe; may be repeated: what needs what.", "--run"),
    ] = ()
    limit: Annotated[
        int | None, Flag("Ask models about N items at most, spread over memes.", min=1)
    ] = 200
    published: Annotated[
        Path | None,
        Flag("Also check this published table (JSON, as in expected/published.json)."),
    ] = None
    runs: Annotated[Path, Flag("Where answers of asked models, splits and queues go.")] = Path(
        "runs/audit"
    )
    asking: Annotated[Asking, MadeBy(make_asking)] = field(default_factory=Asking)


async def audit_async(
    name: str,
    *,
    model: str | Sequence[str] = (),
    base_url: str | None = None,
    settings: AuditSettings | None = None,
    progress: ProgressWish = None,
) -> Audit:
    """Audit a benchmark: shortcuts, dead options, leaks, impossible tables.

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
    if label_audit.is_table(name):
        return _audit_table(name, wanted)
    benchmark, cards = _find(name)
    if _only_labels(wanted):
        source = find_source(benchmark, wanted.data)
        notes = _audit_labels(name, benchmark, source.kind, wanted)
        return _show(benchmark.card, describe_data(benchmark, source), notes, AuditNotes(), wanted)
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
    found.add(audit_probed(wanted.probed))
    names = tuple(model.name for model in models)
    notes = AuditNotes()
    if wanted.everything:
        notes = _audit_labels(name, benchmark, source.kind, wanted)
    return _show(subject.card, subject.data, notes, found, wanted, names)


def _only_labels(wanted: AuditSettings) -> bool:
    return not wanted.everything and bool(wanted.resplit or wanted.labels or wanted.reviewed)


def _audit_table(name: str, wanted: AuditSettings) -> Audit:
    card, facts = label_audit.describe_table(name)
    settings = wanted if _only_labels(wanted) else replace(wanted, everything=True)
    notes = label_audit.audit_label(name, None, _wish(card.name, "", settings))
    return _show(card, facts, notes, AuditNotes(), wanted)


def _audit_labels(
    name: str, benchmark: Benchmark, kind: DataKind, wanted: AuditSettings
) -> AuditNotes:
    card = benchmark.card
    label = label_audit.choose_label(benchmark, name.partition("/")[2])
    if not label:
        gap = Gap(card.name, "groups, disjoint splits, wrong labels", "it offers no label")
        if wanted.everything:
            return AuditNotes(gaps=[gap])
        raise InputError(f"{card.name} offers no label", hint="give a table, memes.csv/label")
    wishes = _wish(f"{card.name}-{label}", card.warning, wanted)
    return label_audit.audit_label(f"{card.name}/{label}", kind, wishes)


def _wish(name: str, warning: str, wanted: AuditSettings) -> label_audit.LabelWishes:
    kinds = GROUP_KINDS if wanted.everything else (wanted.resplit,) if wanted.resplit else ()
    doubts = wanted.labels or wanted.everything
    runs, folder = tuple(wanted.probed), wanted.runs / name
    return label_audit.LabelWishes(kinds, doubts, folder, wanted.reviewed, warning, runs)


def _show(
    card: Card,
    data: DataFacts,
    notes: AuditNotes,
    found: AuditNotes,
    wanted: AuditSettings,
    models: tuple[str, ...] = (),
) -> Audit:
    findings = order_findings([*notes.findings, *found.findings])
    gaps = [*found.gaps, *notes.gaps]
    made = Audit(card, data, findings, gaps, models, found.failed, notes.files)
    if not wanted.everything:
        return made
    return replace(made, files={**notes.files, **write_companions(made, wanted.runs / card.name)})


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
    words.append(f"{show_p(finding.p)} (Holm)" if finding.p is not None else "")
    place = " · ".join(value for value in (finding.task, finding.model) if value)
    words.append(f"[{place}]" if place else "")
    return " ".join(word for word in words if word)


def _find(name: str) -> tuple[Benchmark, tuple[TaskCard, ...]]:
    head, _, tail = name.partition("/")
    benchmark = find_benchmark(head)
    labelled = benchmark.runnable and tail in benchmark.plugin.labels
    whole = not tail or (labelled and tail not in {card.name for card in benchmark.card.task})
    cards = benchmark.card.task if whole else (benchmark.card.find_task(tail),)
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
