"""Run all audit checks of a benchmark: its data, its published tables, and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memantics.benchmarks.card import TaskCard
from memantics.core.finding import VERDICTS, Finding, Gap
from memantics.core.model import Model
from memantics.core.records import Outcome, Score
from memantics.evaluation.audits.blind import (
    can_rotate,
    judge_blind,
    judge_consistency,
    judge_orders,
    judge_swap,
    rotate,
    swap_images,
)
from memantics.evaluation.audits.options import (
    ChanceLevel,
    find_chance_level,
    find_option_flaws,
    find_shortcuts,
    list_options,
)
from memantics.evaluation.audits.published import check_tables, judge_models, judge_published
from memantics.evaluation.audits.subject import (
    AuditAsking,
    AuditSubject,
    Exam,
    draw_items,
    find_text,
    is_judge,
    open_exams,
)
from memantics.evaluation.audits.texts import find_leaks, find_text_shortcuts

FEWEST = 20


@dataclass(slots=True)
class AuditNotes:
    """All findings of an audit, the checks that were not possible, and the written files."""

    findings: list[Finding] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    failed: int = 0
    files: dict[str, Path] = field(default_factory=dict)

    def add(self, found: tuple[list[Finding], list[Gap]]) -> None:
        """Add the result of an audit check."""
        self.findings += found[0]
        self.gaps += found[1]


@dataclass(frozen=True, slots=True)
class TrivialModels:
    """Trivial baselines: each strategy once, and random guessing with several seeds."""

    strategies: tuple[Model, ...]
    coins: tuple[Model, ...]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """The models that an audit asks, their settings, and the number of items."""

    models: tuple[Model, ...]
    asker: AuditAsking
    limit: int | None


async def audit(
    subject: AuditSubject,
    cards: Sequence[TaskCard],
    trivial: TrivialModels,
    inquiry: Inquiry | None = None,
) -> AuditNotes:
    """Audit the tasks of a benchmark; no model is called if no models are given."""
    found = AuditNotes()
    exams, gaps = open_exams(subject, cards)
    found.gaps += gaps
    found.findings += subject.hooks.across(subject.release)
    found.findings += subject.hooks.findings(subject.part)
    known: set[str] = set()
    for exam in exams:
        chance = await find_chance_level(exam, trivial.coins)
        await _audit_data(found, subject, exam, chance, trivial)
        floor = chance if chance.value is not None else _find_floor(found, exam)
        texts = {find_text(item) for item in exam.texts} - {""}
        # Tasks on the same memes would report the same leaks twice.
        if not texts <= known:
            found.add(find_leaks(exam))
        known |= texts
        if inquiry is not None:
            await _audit_models(found, subject, exam, floor, inquiry)
    found.add(check_tables(subject.published))
    found.findings = drop_repeated(found.findings)
    found.gaps = list(dict.fromkeys(found.gaps))
    if inquiry is None and exams:
        found.gaps.append(
            Gap(
                "",
                "run without images, option order, position bias, consistency of judges",
                "no model was given",
                "add --model MODEL",
            )
        )
    return found


async def _audit_data(
    found: AuditNotes,
    subject: AuditSubject,
    exam: Exam,
    chance: ChanceLevel,
    trivial: TrivialModels,
) -> None:
    if is_judge(exam.items[0]):
        reason = "its metrics describe the judged edits, not the model that judges"
        if isinstance(gold := exam.items[0].gold, dict) and "votes" in gold:
            reason = "answers are proportions of annotators, so no option is correct"
        found.gaps.append(Gap(exam.name, "shortcuts", reason))
    elif len(exam.items) < FEWEST:
        found.gaps.append(Gap(exam.name, "shortcuts, options", _few(len(exam.items))))
    else:
        found.findings += find_option_flaws(exam)
        found.findings += await find_shortcuts(exam, chance, trivial.strategies)
        found.add(find_text_shortcuts(exam, chance))
    found.findings += judge_published(exam, subject.comparable, subject.makers)


def _few(n: int) -> str:
    return (
        f"{n} items are too few for a test against the chance level; at least {FEWEST} are needed"
    )


def _find_floor(found: AuditNotes, exam: Exam) -> ChanceLevel:
    """Return the score of the best constant text, for tasks without a chance level."""
    values = [
        finding.score.value or 0.0
        for finding in found.findings
        if finding.task == exam.name and finding.key in ("shortcut.constant", "shortcut.majority")
    ]
    return ChanceLevel(max(values), "the best constant text") if values else ChanceLevel(None, "")


async def _audit_models(
    found: AuditNotes, subject: AuditSubject, exam: Exam, chance: ChanceLevel, inquiry: Inquiry
) -> None:
    scores: list[tuple[str, Score]] = []
    for model in inquiry.models:
        if is_judge(exam.items[0]):
            await _question_judge(found, subject, exam, model, inquiry)
            continue
        score = await _question(found, exam, chance, model, inquiry)
        if score is not None:
            scores.append((model.name, score))
        await _reorder(found, exam, model, inquiry)
    if subject.makers and scores:
        found.findings += judge_models(exam, subject.makers, scores)


async def _question(
    found: AuditNotes, exam: Exam, chance: ChanceLevel, model: Model, inquiry: Inquiry
) -> Score | None:
    """Run the model with images (if the task has any) and without; return the score with images."""
    items = draw_items(exam.seen or exam.items, inquiry.limit)
    seen: list[Outcome] = []
    blind: list[Outcome] = []
    if not exam.sighted:
        found.gaps.append(
            Gap(exam.name, "run without images", "the task shows no image with these options")
        )
        seen = await inquiry.asker.ask(exam, model, items, "as it is")
    elif exam.seen:
        seen = await inquiry.asker.ask(exam, model, items, "with images")
    else:
        found.gaps.append(
            Gap(
                exam.name,
                "run with images",
                "this copy of the data has no images",
                "register a copy with images (memantics data add)",
            )
        )
    if exam.sighted and len(items) < FEWEST:
        found.gaps.append(Gap(exam.name, "run without images", _few(len(items))))
    elif exam.sighted:
        blind = await inquiry.asker.ask_blind(exam, model, items)
        found.findings.append(judge_blind(exam, model.name, blind, seen, chance))
    found.failed += sum(outcome.status == "failed" for outcome in (*seen, *blind))
    return exam.score(seen or blind) if seen or blind else None


async def _reorder(found: AuditNotes, exam: Exam, model: Model, inquiry: Inquiry) -> None:
    if not exam.lettered:
        return
    items = draw_items(exam.seen or exam.items, inquiry.limit)
    if not can_rotate(items):
        reason = "its options are images, and the prompt refers to their positions"
        hint = "compare runs with --set seed=1,2,3,4 instead"
        found.gaps.append(Gap(exam.name, "option order", reason, hint))
        return
    mark = "with images" if exam.seen else "blind"
    orders = []
    for step in range(max(len(list_options(item)) for item in items)):
        turned = [rotate(item, step) for item in items]
        name = mark if step == 0 else f"{mark}, options moved by {step}"
        orders.append(await inquiry.asker.ask(exam, model, turned, name))
    found.failed += sum(outcome.status == "failed" for order in orders[1:] for outcome in order)
    found.findings += judge_orders(exam, model.name, orders)


async def _question_judge(
    found: AuditNotes, subject: AuditSubject, exam: Exam, model: Model, inquiry: Inquiry
) -> None:
    if not exam.seen:
        found.gaps.append(
            Gap(exam.name, "consistency of judges", "this copy of the data has no images")
        )
        return
    items = draw_items(exam.seen, inquiry.limit)
    asker = inquiry.asker
    first = await asker.ask(exam, model, items, "with images")
    # The first judgement may come from the cache; the second must be a new call.
    again = await asker.ask(exam, model, items, "again", fresh=True)
    unseen = await asker.ask_blind(exam, model, items)
    runs = {"again": again, "unseen": unseen}
    for way in ("placement", "rationale"):
        other = _choose_other(exam, way)
        if other is not None:
            options = {**exam.task.options, way: other}
            task = subject.make(exam.card, options, exam.split, subject.source)
            runs[way] = await asker.ask(exam, model, items, f"{way} {other}", task=task)
    found.failed += sum(
        outcome.status == "failed" for run in (first, *runs.values()) for outcome in run
    )
    found.findings += [
        judge_consistency(exam, model.name, way, (first, run), subject.hooks.rated)
        for way, run in runs.items()
    ]
    if all(len(item.images) == 2 for item in items):
        swapped = await asker.ask(exam, model, [swap_images(i) for i in items], "swapped")
        found.findings.append(judge_swap(exam, model.name, (first, swapped)))


def _choose_other(exam: Exam, name: str) -> str | None:
    """Return a value of a task option other than the current value."""
    for option in exam.card.option:
        if option.name == name:
            return next((v for v in option.choices if v != exam.task.options.get(name)), None)
    return None


def drop_repeated(findings: Sequence[Finding]) -> list[Finding]:
    """Keep the first finding of each check: a benchmark's own check replaces the general one."""
    kept: dict[tuple[str, str, str, str], Finding] = {}
    for finding in findings:
        # The title distinguishes several findings of one check, such as two recurring options.
        title = finding.title if finding.key in ("options.never_correct", "tables.feasible") else ""
        kept.setdefault((finding.task, finding.model, finding.key, title), finding)
    return list(kept.values())


def order_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings: broken ones first, otherwise in the order of the checks."""
    return sorted(findings, key=lambda finding: VERDICTS.index(finding.verdict))
