"""Audit a benchmark for shortcuts, leaks and impossible tables; write a page, a badge and JSON.

The page is one HTML file without scripts or network access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from markupsafe import Markup
from pydantic import JsonValue

from memantics import __version__
from memantics.benchmarks.card import Card, TaskCard, resolve_options
from memantics.benchmarks.published import PublishedRow, read_published
from memantics.benchmarks.registry import (
    Benchmark,
    DataFacts,
    TaskRef,
    describe_data,
    find_benchmark,
    find_source,
)
from memantics.core.data import GROUP_KINDS, DataKind, GroupKind, Source, dump_json
from memantics.core.errors import InputError, UnknownName
from memantics.core.files import write_text
from memantics.core.finding import VERDICTS, Finding, FindingVerdict, Gap
from memantics.core.model import Model
from memantics.core.parameters import Argument, DataFlag, Flag, SplitFlag
from memantics.core.records import Score, format_value, show_span
from memantics.core.result import Result, Table
from memantics.core.task import Task
from memantics.core.waiting import make_sync, run_sync
from memantics.evaluation.audits import labels as label_audit
from memantics.evaluation.audits.benchmark import AuditNotes, Inquiry, TrivialModels, order_findings
from memantics.evaluation.audits.benchmark import audit as audit_tasks
from memantics.evaluation.audits.labels import audit_perturbed
from memantics.evaluation.audits.published import check_tables
from memantics.evaluation.audits.subject import AuditAsking, AuditSubject, AuditWatch
from memantics.evaluation.options import TaskOptions
from memantics.evaluation.reports.runs import SAMPLE_NOTE
from memantics.models.client import CallSettings, open_cache
from memantics.models.engine import AskSettings
from memantics.models.kinds import ModelSettings, open_model
from memantics.models.progress import ProgressWish, read_wish
from memantics.web.page import TemplateValues, fill_page
from memantics.web.phrases import PageLanguage, read_phrases
from memantics.web.plot import Mark, draw_axis, draw_curve, draw_strip, fit_scale

__all__ = ["Audit", "AuditSettings", "audit", "audit_async"]

_LINES = 5
_LEAST_P = 0.001
_TONES: dict[FindingVerdict, int] = {"broken": 1, "worth knowing": 6, "sound": 2}
# CSS classes of the badges on the audit page: correct, wrong, invalid.
_BADGES: dict[FindingVerdict, str] = {"broken": "v1", "worth knowing": "v2", "sound": "v0"}


@dataclass(frozen=True, slots=True)
class Audit(Result):
    """The result of an audit: findings, most severe first, and ``gaps``, the checks not possible.

    ``failed`` counts failed model calls; running the same audit again repeats only these. ``files``
    maps each file type to the written file.
    """

    card: Card
    data: DataFacts
    findings: Sequence[Finding]
    gaps: Sequence[Gap]
    models: tuple[str, ...]
    failed: int = 0
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def lines(self) -> tuple[str, ...]:
        """The most important findings, at most five lines."""
        return tuple(map(_say_first, [f for f in self.findings if f.verdict != "sound"][:_LINES]))

    @property
    def counts(self) -> dict[FindingVerdict, int]:
        """Number of findings per verdict."""
        return {verdict: sum(f.verdict == verdict for f in self.findings) for verdict in VERDICTS}

    def save(self, out: str | Path, language: PageLanguage = "en") -> Path:
        """Write the audit as one self-contained HTML page and return the file."""
        return write_text(out, render_page(self, language), "audit")

    def to_dict(self) -> dict[str, JsonValue]:
        """Convert the audit to plain data."""
        return {
            "benchmark": self.card.name,
            "version": __version__,
            "data": asdict(self.data),
            "models": list(self.models),
            "counts": {str(name): count for name, count in self.counts.items()},
            "findings": [asdict(finding) for finding in self.findings],
            "gaps": [asdict(gap) for gap in self.gaps],
            "lines": list(self.lines),
            "files": {what: str(path) for what, path in self.files.items()},
        }


def show_p(p: float) -> str:
    """Format a p-value.

    >>> show_p(0.0312), show_p(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    return f"p = {p:.2g}" if p >= _LEAST_P else f"p < {_LEAST_P:g}"


def _say_first(finding: Finding) -> str:
    """Describe an audit finding in one line: its meaning, score, 95% confidence interval and n."""
    score, span = finding.score, show_span(finding.score)
    words = [f"{score.key.replace('_', ' ')} {format_value(score.value)}"]
    words += [f"95 % CI {span}"] if span else []
    words += [f"n = {score.n:,}"] if score.n else []
    words += [f"Holm-corrected {show_p(finding.p)}"] if finding.p is not None else []
    return f"{finding.title}: {finding.meaning} ({', '.join(words)})"


def render_page(audit: Audit, language: PageLanguage = "en") -> str:
    """Render the audit page as HTML text."""
    say = read_phrases(language).say
    blocks = [_make_block(place, finding, say) for place, finding in enumerate(audit.findings, 1)]
    return fill_page(
        "audit.html",
        ("page.css",),
        language=language,
        first=[finding for finding in audit.findings if finding.verdict != "sound"][:_LINES],
        sheet=audit,
        blocks=blocks,
        badges=_BADGES,
        show_p=show_p,
        sample_note=SAMPLE_NOTE if audit.data.kind == "sample" else "",
        warning=audit.card.warning if audit.data.kind == "release" else "",
    )


def _make_block(place: int, finding: Finding, say: Callable[[str], str]) -> TemplateValues:
    """Make the section of the audit page for one finding, with its plots."""
    reference = None if finding.expected is None else Score("", finding.expected, 0)
    scale = fit_scale([finding.score, reference])
    # A breakdown may contain several metrics; each metric has its own scale.
    kinds = {row.key for row in finding.rows}
    scales = {
        key: fit_scale([row for row in finding.rows if row.key == key]) for key in sorted(kinds)
    }
    tone = _TONES[finding.verdict]
    title = Mark(say(finding.title), finding.score, tone)
    return {
        "finding": finding,
        "slug": f"finding-{place}",
        "badge": _BADGES[finding.verdict],
        "axis": draw_axis(scale),
        "strip": draw_strip([title], scale, finding.expected),
        "rows": [
            (row, draw_strip([Mark(say(row.label), row, tone)], scales[row.key]))
            for row in finding.rows
        ],
        "curve": _draw_nearness(finding, say),
    }


def _draw_nearness(finding: Finding, say: Callable[[str], str]) -> Markup:
    points = [row for row in finding.rows if row.by == "nearness"]
    across = say("accuracy by cosine to the nearest training meme, random folds")
    return draw_curve(points, across) if len(points) > 1 else Markup("")


# Files written with the audit page: an SVG badge, a BibTeX entry, and JSON.

_LETTER = 6.4  # average width of a letter in pixels, at a font size of 11 pixels
_COLOURS = {"broken": "#b3261e", "worth knowing": "#8a5a00", "sound": "#2e6b34"}


def draw_badge(audit: Audit) -> str:
    """Draw an SVG badge with the number of findings that are broken or worth knowing."""
    counts = audit.counts
    worst = next((name for name, count in counts.items() if count), "sound")
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    left, right = "Memantics audit", said or "nothing measured"
    widths = [round(len(text) * _LETTER + 16) for text in (left, right)]
    label, colour = f"{left} of {audit.card.title}: {right}", _COLOURS[worst]
    shown = {"label": label, "left": left, "right": right, "colour": colour}
    return fill_page("badge.svg", (), whole=sum(widths), wide=widths[0], **shown) + "\n"


def cite_audit(audit: Audit) -> str:
    """Make a BibTeX entry for the audit; the checksum identifies the data."""
    title = audit.card.title.replace("{", "").replace("}", "")
    pinned = audit.data.checksum[:12] or "none"
    return (
        f"@misc{{memantics-audit-{audit.card.name}-{pinned},\n"
        f"  title = {{Audit of {title}}},\n"
        "  author = {{Memantics}},\n"
        f"  year = {{{datetime.now(UTC).year}}},\n"
        f"  note = {{Memantics {__version__}, {len(audit.findings)} findings, data SHA-256 "
        f"{pinned}}}\n}}\n"
    )


def write_companions(audit: Audit, folder: Path) -> dict[str, Path]:
    """Write badge, citation and JSON of an audit into a folder; return the files by type."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "badge": write_text(folder / "badge.svg", draw_badge(audit), "audit"),
        "citation": write_text(folder / "audit.bib", cite_audit(audit), "audit"),
        "JSON": write_text(folder / "audit.json", dump_json(audit.to_dict()), "audit"),
    }


_UNASKED = (
    "leaks through file names, ids, dates and images, groups, label errors",
    "only --all measures them",
    "add --all",
)
STRATEGIES = ("constant", "longest", "majority", "positive")
COINS = 5


AuditedName = Annotated[
    str,
    Argument("Benchmark, one of its tasks or labels, or a table column (memes.csv/label)."),
]


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Data, checks and models of an audit.

    ``resplit`` or ``labels`` restrict the audit to that check; ``everything`` runs all checks.
    Files of these checks are written to a folder with the benchmark's name in ``runs``.

    Attributes:
        models: Models to ask, ``KIND/NAME``.
        resplit: Type of group (such as text or template) that must not be in both train and test;
            the audit reports the drop in score for such a split.
        labels: Rank labels that are probably wrong, and write an annotation queue to check them.
        everything: Run all checks; also write a badge, BibTeX and JSON.
        reviewed: Annotations of the queue written by ``labels``; the audit then reports the
            proportion of wrong labels.
        data: ``release`` or ``sample``. Default: a registered release, else the sample data.
        split: A named part of the data.
        options: Options of the task.
        perturbed: Runs of a task, plain or with a perturbation, to include.
        limit: Ask models at most N items, spread over memes.
        published: A further published table to check, in the format of ``expected/published.json``.
        runs: Folder for answers of models, splits and queues.
        calls: Settings of model calls; see :class:`CallSettings`.
    """

    models: Annotated[
        Sequence[str],
        Flag("Model to run in addition; repeatable. Default: no model.", "--model -m"),
    ] = ()
    resplit: Annotated[
        GroupKind | None,
        Flag(
            "Write a split that keeps related memes in one part, and report by how much scores "
            "drop on it."
        ),
    ] = None
    labels: Annotated[bool, Flag("Rank likely label errors and write a review queue.")] = False
    everything: Annotated[
        bool, Flag("Run all checks; also write a badge, BibTeX and JSON.", "--all")
    ] = False
    reviewed: Annotated[
        Path | None,
        Flag(
            "Exported annotations of the review queue of --labels; adds the proportion of wrong "
            "labels."
        ),
    ] = None
    data: DataFlag = None
    split: SplitFlag = None
    options: TaskOptions = field(default_factory=dict)
    perturbed: Annotated[
        Sequence[Path],
        Flag(
            "Folder of a run of the task, perturbed or not, whose answers the audit uses; "
            "repeatable.",
            "--run",
        ),
    ] = ()
    limit: Annotated[
        int | None, Flag("Maximum number of items per model, spread over memes.", min=1)
    ] = 200
    published: Annotated[
        Path | None,
        Flag(
            "JSON file with a published table of scores to check, in the format of "
            "expected/published.json."
        ),
    ] = None
    runs: Annotated[Path, Flag("Output folder for model answers, splits and queues.")] = Path(
        "runs/audit"
    )
    calls: CallSettings = field(default_factory=CallSettings)


async def audit_async(
    name: str,
    *,
    model: str | Sequence[str] = (),
    settings: AuditSettings | None = None,
    calls: CallSettings | None = None,
    progress: ProgressWish = None,
) -> Audit:
    """Audit a benchmark: shortcuts, never-correct options, leaks, impossible published values.

    With a model, it also compares runs without the image, with other option orders, and repeated
    judgements.

    Args:
        name: A benchmark, one of its tasks (``NAME/TASK``), or a table of labelled memes.
        model: One model to ask, ``KIND/NAME``, or several. Default: no model is asked.
        settings: Data, checks and folders; see :class:`AuditSettings`.
        calls: Settings of model calls; see :class:`CallSettings`. Default: those of ``settings``.
        progress: ``"bar"`` draws a progress bar; a function is called with every update.

    Returns:
        The findings, each with a metric, a verdict and advice, and the checks that were not
        possible.

    Raises:
        UnknownName: The benchmark, task or option does not exist.
        DataError: The data are missing or damaged.

    Example:
        >>> mm.audit("mquest").findings[0].title
        'Published tables'
    """
    models = [model] if isinstance(model, str) else list(model)
    wanted = settings or AuditSettings()
    wanted = replace(wanted, calls=calls or wanted.calls)
    wanted = replace(wanted, models=models or wanted.models)
    show = read_wish(progress)
    return await conduct_audit(name, wanted, lambda _title, _total: show)


audit = make_sync(audit_async)


async def conduct_audit(name: AuditedName, wanted: AuditSettings, watch: AuditWatch) -> Audit:
    """Audit a benchmark or one of its tasks; ``watch`` receives progress updates."""
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
        open_model(model_name, wanted.calls.model_settings)
        for model_name in dict.fromkeys(wanted.models)
    )
    table = wanted.published
    extra = check_tables(_read_table(table), table.name) if table else None
    settings = AskSettings(concurrency=wanted.calls.concurrency)
    with open_cache(bool(models) and wanted.calls.use_cache) as cache:
        asker = AuditAsking(subject.card, subject.data, wanted.runs, cache, settings, watch)
        inquiry = Inquiry(models, asker, wanted.limit) if models else None
        found = await _audit(subject, cards, inquiry)
    if extra is not None:
        found.add(extra)
    found.add(audit_perturbed(wanted.perturbed))
    names = tuple(model.name for model in models)
    notes = AuditNotes()
    if wanted.everything:
        notes = _audit_labels(name, benchmark, source.kind, wanted)
    elif label := label_audit.choose_label(benchmark, name.partition("/")[2]):
        # Without this line, a plain audit would look like a search for all leaks.
        notes.gaps.append(Gap(f"{benchmark.card.name}/{label}", *_UNASKED))
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
        gap = Gap(
            card.name, "groups, group-disjoint splits, label errors", "the benchmark has no label"
        )
        if wanted.everything:
            return AuditNotes(gaps=[gap])
        raise InputError(
            f"{card.name} has no label to audit",
            hint="audit a table column instead, such as memes.csv/label",
        )
    wishes = _wish(f"{card.name}-{label}", card.warning, wanted)
    return label_audit.audit_label(f"{card.name}/{label}", kind, wishes)


def _wish(name: str, warning: str, wanted: AuditSettings) -> label_audit.LabelWishes:
    kinds = GROUP_KINDS if wanted.everything else (wanted.resplit,) if wanted.resplit else ()
    doubts = wanted.labels or wanted.everything
    runs, folder = tuple(wanted.perturbed), wanted.runs / name
    return label_audit.LabelWishes(
        kinds, doubts, folder, wanted.reviewed, warning, runs, wanted.everything
    )


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
    """Run the audit checks on a benchmark's data, without calling a model."""
    benchmark, cards = _find(name)
    subject = _open(benchmark, find_source(benchmark, None), None, {})
    return run_sync(_audit(subject, cards, None))


async def _audit(
    subject: AuditSubject, cards: Sequence[TaskCard], inquiry: Inquiry | None
) -> AuditNotes:
    plain_settings = ModelSettings()
    trivial = TrivialModels(
        tuple(open_model(f"baseline/{strategy}", plain_settings) for strategy in STRATEGIES),
        tuple(open_model(f"baseline/random?seed={n}", plain_settings) for n in range(COINS)),
    )
    models: tuple[Model, ...] = inquiry.models if inquiry else ()
    try:
        return await audit_tasks(subject, cards, trivial, inquiry)
    finally:
        for model in models:
            await model.close()


def tabulate_gaps(audit: Audit) -> Table:
    """Make the table of audit checks that were not possible, with reasons."""
    rows = (
        (f"{gap.task} {gap.check}".strip(), f"{gap.reason}; {gap.hint}" if gap.hint else gap.reason)
        for gap in audit.gaps
    )
    return Table(("not measured", "why"), tuple(rows))


def describe_finding(finding: Finding) -> str:
    """Describe the score of an audit finding in one line, with interval and expected value."""
    score = finding.score
    span = show_span(score)
    words = [f"{score.key.replace('_', ' ')} {format_value(score.value)}"]
    words.append(f"({span})" if span else "")
    words.append(f"n = {score.n:,}" if score.n else "")
    if finding.expected is not None:
        words.append(f"expected {format_value(finding.expected)} ({finding.reference})")
    words.append(f"{show_p(finding.p)} (Holm)" if finding.p is not None else "")
    place = " · ".join(part for part in (finding.task, finding.model) if part)
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
    """Raise an error if none of the tasks has the given split or option."""
    known = {option.name for card in cards for option in card.option}
    for name in options:
        if name not in known:
            raise UnknownName("option", name, known)
    splits = {card_split for card in cards for card_split in card.splits}
    if split is not None and split not in splits:
        raise UnknownName("split", split, splits)
    for card in cards:
        known_to_card = {option.name for option in card.option}
        resolve_options(
            card, {name: value for name, value in options.items() if name in known_to_card}
        )


def _read_table(path: Path) -> tuple[PublishedRow, ...]:
    if not path.is_file():
        raise InputError(f"no such file: {path}", hint="give a JSON file of published rows")
    return read_published(path, hint="docs/how-to/audit-a-benchmark.md shows the format of a row")


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
