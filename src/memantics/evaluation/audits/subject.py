"""The subject of an audit: tasks with and without images, model calls, result rows.

Proportions and means have confidence intervals clustered by meme.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from memantics.benchmarks.card import Card, TaskCard
from memantics.benchmarks.plugin import AuditHooks
from memantics.benchmarks.published import PublishedRow
from memantics.benchmarks.registry import DataFacts
from memantics.core.data import Source, inside
from memantics.core.errors import DataError
from memantics.core.finding import Gap, Maker
from memantics.core.model import Model
from memantics.core.records import Field, Form, Image, Item, Outcome, Request, Score
from memantics.core.rundir import RunWriter, last_answers
from memantics.core.task import Task
from memantics.evaluation.ask import ask
from memantics.evaluation.facts import Scope, describe, folder_name
from memantics.evaluation.scoring import keep_scored
from memantics.metrics.interval import bootstrap, sum_by_cluster
from memantics.metrics.rounding import settle
from memantics.models.cache import Cache
from memantics.models.engine import AskSettings, Progress

_RESAMPLES = 10_000
_SURE = 3.291 / 1.96  # ratio of the half-widths of a 99.9 % and a 95 % confidence interval


def mean(
    values: Sequence[float], groups: Sequence[str], by: str = "", label: str = "", key: str = "mean"
) -> Score:
    """Compute a mean over items, with a 95% confidence interval.

    >>> mean([1.0, 3.0], ["a", "a"]).value
    2.0
    """
    rows = np.column_stack([np.asarray(values, float), np.ones(len(values))])
    bounds = (0.0, 1.0) if all(0 <= value <= 1 for value in values) else None
    span = bootstrap(
        sum_by_cluster(rows, groups),
        lambda sums: np.asarray(sums[:, 0] / sums[:, 1], float),
        resamples=_RESAMPLES,
        bounds=bounds,
    )
    low, high = span or (None, None)
    value = sum(values) / len(values) if values else None
    return Score(key, value, len(values), low, high, by, label)


def place(score: Score, by: str = "", label: str = "") -> Score:
    """Turn a score into a row of a breakdown, or into an overall score.

    >>> place(Score("f1", 0.5, 9, note="x"), "run", "blind").label
    'blind'
    """
    return Score(score.key, score.value, score.n, score.low, score.high, by, label)


def is_above(score: Score, bound: float) -> bool:
    """Whether a score is above a bound at the 99.9 % level, since an audit contains several tests.

    >>> is_above(Score("proportion", 0.5, 99, 0.4, 0.6), 0.33)
    True
    >>> is_above(Score("proportion", 0.5, 99, 0.4, 0.6), 0.34)
    False
    """
    if score.value is None:
        return False
    low = score.value if score.low is None else score.low
    return bool(settle(score.value - _SURE * (score.value - low)) > settle(bound))


MakeTask = Callable[[TaskCard, Mapping[str, str], str, Source], Task]


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """A benchmark on one copy of its data. The user sets ``split`` and ``options``."""

    card: Card
    source: Source
    data: DataFacts
    release: object
    complete: bool
    make: MakeTask
    hooks: AuditHooks[Any] = field(default_factory=AuditHooks)
    published: tuple[PublishedRow, ...] = ()
    split: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def part(self) -> object:
        """The data, restricted to the user's split."""
        return self.hooks.narrow(self.release, self.split) if self.split else self.release

    @property
    def comparable(self) -> tuple[PublishedRow, ...]:
        """The published rows on the same data; empty for the sample data."""
        return self.published if self.data.kind == "release" else ()

    @property
    def makers(self) -> tuple[Maker, ...]:
        """The models that wrote parts of the benchmark's data."""
        return self.hooks.makers(self.release) if self.data.kind == "release" else ()


@dataclass(frozen=True, slots=True)
class Exam:
    """One task of an audit. ``items`` are without images; ``seen`` have images in this copy.

    ``full`` is the task with images, from which ``seen`` comes; ``sighted`` is true if the task
    shows images. ``texts`` are the items with all text that the task can show. ``splits`` contains
    the items of train and test, if the task has both. ``lettered`` is true if options differ
    between items, so that their order is free.
    """

    card: TaskCard
    task: Task
    full: Task
    sighted: bool
    split: str
    items: tuple[Item, ...]
    texts: tuple[Item, ...]
    seen: tuple[Item, ...]
    splits: Mapping[str, tuple[Item, ...]]
    published: tuple[float, ...]
    lettered: bool

    @property
    def name(self) -> str:
        """The name of the task, ``BENCHMARK/TASK``."""
        return self.task.name

    @property
    def main_words(self) -> str:
        """The name of the main metric in words."""
        return self.task.main.replace("_", " ")

    def score(self, outcomes: Sequence[Outcome]) -> Score:
        """Compute the main metric of outcomes under the task's policy for invalid answers."""
        scores = self.task.score(keep_scored(outcomes, self.task.invalid))
        return next(
            candidate
            for candidate in scores
            if candidate.key == self.task.main and not candidate.by
        )


def open_exams(subject: AuditSubject, cards: Sequence[TaskCard]) -> tuple[list[Exam], list[Gap]]:
    """Open the tasks that can be audited, and give the reason for each task that cannot."""
    exams: list[Exam] = []
    gaps: list[Gap] = []
    with TemporaryDirectory(prefix="memantics-audit-") as folder:
        source = subject.source
        if not subject.complete:
            source = replace(source, images=_stand_in(subject, Path(folder)))
        for card in cards:
            try:
                exams.append(_open_exam(subject, card, source))
            except DataError as error:
                gaps.append(Gap(f"{subject.card.name}/{card.name}", "all", error.what, error.hint))
    return exams, gaps


def _stand_in(subject: AuditSubject, folder: Path) -> Path | None:
    """Make a temporary folder with an empty file for each image of the dataset.

    Dataset readers skip memes without an image file. Audit checks without images need these memes
    too, as the task asks about them. The empty files are never opened.
    """
    names = list(subject.hooks.pictures(subject.release))
    for name in names:
        inside(folder, name).touch()
    return folder if names else subject.source.images


def _open_exam(subject: AuditSubject, card: TaskCard, source: Source) -> Exam:
    options = _keep_known(card, subject.options)
    split, task, items = _find_split(subject, card, options, source)
    shown = _keep_known(card, subject.hooks.shown.get(card.name, {})) | options
    texts = items if shown == options else _read(subject.make(card, shown, split, source))
    splits = {
        name: _read(subject.make(card, shown, name, source))
        for name in ("train", "test")
        if {"train", "test"} <= set(card.splits) and _has(subject, card, name, source)
    }
    present = (
        {"images": "present"}
        if "images" in {option_card.name for option_card in card.option}
        else {}
    )
    full = subject.make(card, present | options, split, subject.source)
    return Exam(
        card=card,
        task=task,
        full=full,
        sighted=any(item.images for item in items),
        split=split,
        items=tuple(map(strip_images, items)),
        texts=tuple(map(strip_images, texts)),
        seen=_find_seen(full),
        splits={
            name: tuple(map(strip_images, split_items)) for name, split_items in splits.items()
        },
        published=tuple(
            row.metrics[card.main]
            for row in subject.comparable
            if row.task == card.name and card.main in row.metrics
        ),
        lettered=_is_lettered(items),
    )


def _keep_known(card: TaskCard, options: Mapping[str, str]) -> dict[str, str]:
    known = {option.name for option in card.option}
    return {name: value for name, value in options.items() if name in known}


def _find_split(
    subject: AuditSubject, card: TaskCard, options: Mapping[str, str], source: Source
) -> tuple[str, Task, tuple[Item, ...]]:
    """Return the split that the user asked for, else the first split that this copy contains."""
    wanted = [subject.split] if subject.split in card.splits else list(card.splits)
    fault: DataError | None = None
    for split in wanted:
        task = subject.make(card, options, split or card.splits[0], source)
        if task.needs:
            raise DataError(
                task.name,
                "the prompts of this task contain answers to another task",
                hint="choose task options that need no other task",
            )
        try:
            if items := _read(task):
                return split or card.splits[0], task, items
        except DataError as error:
            fault = fault or error
    raise fault or DataError(
        card.name, "has no items in this copy", hint="register a more complete copy"
    )


def _has(subject: AuditSubject, card: TaskCard, split: str, source: Source) -> bool:
    try:
        return any(True for _ in subject.make(card, {}, split, source).items())
    except DataError:
        return False


def _read(task: Task) -> tuple[Item, ...]:
    return tuple(task.items())


def _find_seen(task: Task) -> tuple[Item, ...]:
    """Return the items whose images are in this copy of the data, with these images."""
    try:
        return tuple(item for item in task.items() if item.images)
    except DataError:
        return ()


def strip_images(item: Item) -> Item:
    """Remove all images from an item."""
    fields = tuple(
        replace(field, options=tuple(replace(option, image=None) for option in field.options))
        for field in item.form.fields
    )
    return replace(item, images=(), form=replace(item.form, fields=fields))


def draw_items(items: Sequence[Item], limit: int | None) -> tuple[Item, ...]:
    """Select a fixed number of items, spread over the memes; the selection is deterministic.

    >>> from memantics.core.records import Form
    >>> items = [Item(str(n), str(n // 2), "", Form("", ())) for n in range(20)]
    >>> len(draw_items(items, 5)), len(draw_items(items, None))
    (5, 20)
    """
    if limit is None or limit >= len(items):
        return tuple(items)
    ordered = sorted(items, key=lambda item: hashlib.sha256(item.group.encode()).digest())
    kept = {item.id for item in ordered[:limit]}
    return tuple(item for item in items if item.id in kept)


def choice_field(item: Item) -> Field | None:
    """Return the only field that is answered by an option key; None without such a field."""
    form = item.form
    if form.reply == "key" and len(form.fields) == 1 and form.fields[0].options:
        return form.fields[0]
    return None


def is_judge(item: Item) -> bool:
    """Whether the task asks for ratings, so that answers describe the data and not the model."""
    return item.form.reply == "json" and any(field.kind == "integer" for field in item.form.fields)


def _is_lettered(items: Iterable[Item]) -> bool:
    seen: set[tuple[tuple[str, str], ...]] = set()
    for item in items:
        field = choice_field(item)
        if field is None or item.gold not in {option.key for option in field.options}:
            return False
        seen.add(tuple(sorted((option.text, str(option.image)) for option in field.options)))
    return len(seen) > 1


def find_text(item: Item) -> str:
    """Return the text of the meme: the first entry of the question's context."""
    return next(iter(item.form.context.values()), "").strip()


def find_all_text(item: Item) -> str:
    """Return all texts about the meme, without the question and the options."""
    return " ".join(item.form.context.values()).strip()


# Model calls of an audit; answers are stored in run directories.

AuditWatch = Callable[[str, int], Callable[[Progress], None]]


@dataclass(frozen=True, slots=True)
class AuditAsking:
    """Settings of the model calls of an audit, and the folder for answers.

    Each presentation (such as "without images") has its own run directory in ``out``, so an
    interrupted audit resumes. ``watch`` receives the name of the current presentation and its
    number of items.
    """

    card: Card
    data: DataFacts
    out: Path
    cache: Cache | None
    settings: AskSettings
    watch: AuditWatch

    async def ask(
        self,
        exam: Exam,
        model: Model,
        items: Sequence[Item],
        mark: str,
        *,
        task: Task | None = None,
        fresh: bool = False,
    ) -> list[Outcome]:
        """Ask the model about these items; ``mark`` is the name of the presentation.

        ``fresh`` bypasses the cache, so that a second judgement is a new call.
        """
        task = task or exam.full
        prompts = {**task.prompts, "audit": mark}
        asked = replace(task, items=lambda: iter(items), prompts=prompts)
        scope = Scope(split=exam.split, limit=len(items))
        facts = describe((self.card, exam.card), asked, model, self.data, scope)
        folder = self.out / folder_name(facts)
        settings = replace(self.settings, total=len(items))
        watch = self.watch(f"{exam.name}  {model.name}  {mark}", len(items))
        with RunWriter(folder, facts) as writer:
            await ask(asked, model, writer, None if fresh else self.cache, settings, watch)
        last = last_answers(folder)
        return [
            Outcome(item, last[item.id].status, last[item.id].value, last[item.id].attempt + 1)
            for item in items
            if item.id in last
        ]

    async def ask_blind(self, exam: Exam, model: Model, items: Sequence[Item]) -> list[Outcome]:
        """Ask the model with the same prompts but without images."""
        plain, whole = exam.full.ask, {item.id: item for item in items}

        def ask_unseeing(item: Item, complaint: str | None) -> Request:
            return drop_images(plain(whole[item.id], complaint), item.form)

        task = replace(exam.full, ask=ask_unseeing)
        return await self.ask(exam, model, [strip_images(i) for i in items], "blind", task=task)


def drop_images(request: Request, form: Form) -> Request:
    """Remove the images of a request; ``form`` is the question without images."""
    messages = tuple(
        replace(message, parts=texts)
        for message in request.messages
        if (texts := tuple(part for part in message.parts if not isinstance(part, Image)))
    )
    return replace(request, messages=messages, form=form)


def keep_both(
    first: Sequence[Outcome], second: Sequence[Outcome]
) -> tuple[list[Outcome], list[Outcome]]:
    """Return the outcomes of items answered in both presentations, in the same order."""
    other = {outcome.item.id: outcome for outcome in second if outcome.status != "failed"}
    kept = [outcome for outcome in first if outcome.status != "failed" and outcome.item.id in other]
    return kept, [other[outcome.item.id] for outcome in kept]
