"""Publish annotations of a user's own workflow as a data set that runs without a plugin.

The workflow file names the fields. A choice, a yes/no field and a scale become a question with
options; a list whose ``level`` is nominal becomes a question with several labels; texts become
references of a free-text task. Individual annotations of independent stages are kept as votes. The
published data are a table and a dataset config, which the reader of data sets evaluates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue

from memantics.benchmarks.card import CardLanguage
from memantics.benchmarks.dataset_config import (
    Columns,
    DatasetConfig,
    LabelConfig,
    TextConfig,
    VotesConfig,
)
from memantics.benchmarks.dataset_tasks import make_card
from memantics.benchmarks.registry import CONFIG, DATASET, Benchmark
from memantics.benchmarks.writing import (
    Made,
    PublishedMeme,
    Record,
    gather_memes,
    take_text,
    walk_kept,
)
from memantics.core.data import read_toml
from memantics.core.errors import DataError
from memantics.core.queue import IndividualAnnotation, QueueCard, Review, Reviewed
from memantics.evaluation.own_data import dump_config

ITEMS = "items.jsonl"
_OPEN = ConfigDict(extra="ignore", frozen=True)
_PRINTED = ("text", "caption")
_TEXTS = ("text", "longtext", "ranked")


class FormText(BaseModel):
    """A text of a workflow file, in English and optionally Chinese."""

    model_config = _OPEN

    en: str = ""
    zh: str = ""

    def say(self, language: str) -> str:
        """Return the text in a language, or in English if it is missing."""
        return (self.zh if language == "zh" else "") or self.en


class FormOption(BaseModel):
    """An option of a choice."""

    model_config = _OPEN

    value: str
    label: FormText = FormText()


class FormField(BaseModel):
    """What publishing needs of a workflow field; the annotation app checks the whole file."""

    model_config = _OPEN

    id: str
    kind: str
    label: FormText
    options: tuple[FormOption, ...] = ()
    low: int = 1
    high: int = 5
    anchors: tuple[FormText, ...] = ()
    each: str = ""
    level: str = ""


class FormStage(BaseModel):
    """A stage of a workflow: people answer independently, or build on earlier answers."""

    model_config = _OPEN

    id: str
    kind: Literal["independent", "sequential", "review", "adjudicate"]


class PublishedForm(BaseModel):
    """A workflow file: its name, fields and stages."""

    model_config = _OPEN

    name: str
    fields: tuple[FormField, ...]
    stages: tuple[FormStage, ...]

    @property
    def independent(self) -> frozenset[str]:
        """The stages whose annotations are votes."""
        return frozenset(stage.id for stage in self.stages if stage.kind == "independent")


def read_form(path: Path) -> PublishedForm:
    """Read a workflow file; an error names the invalid key."""
    return read_toml(
        path,
        PublishedForm,
        "the workflow file is not UTF-8 TOML",
        "see docs/how-to/write-a-workflow.md",
    )


def write_items(review: Review, form: PublishedForm, licence: str) -> tuple[Benchmark, Made]:
    """Return the published files, and the benchmark that reads them."""
    _check_workflow(review, form)
    memes, skipped = gather_memes(review), Counter[str]()
    rows = list(_list_rows(review, form, memes, skipped))
    config = _make_config(review.card, form, rows, memes, licence)
    card = make_card(DATASET, config)
    lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    made = Made(
        format=DATASET,
        tasks=tuple(task.name for task in card.task),
        memes=tuple(memes.values()),
        files={ITEMS: lines, CONFIG: dump_config(config).encode()},
        tables=_make_tables(rows),
        skipped=_count_unused(form, config, skipped),
    )
    return Benchmark(review.folder, card), made


def _check_workflow(review: Review, form: PublishedForm) -> None:
    for reviewed in review.annotated:
        used = reviewed.aggregated.workflow if reviewed.aggregated else form.name
        if used != form.name:
            raise DataError(
                review.folder,
                f"annotated with the workflow {used!r}, but the file describes {form.name!r}",
                hint="give the file of the project with --workflow",
            )


def _list_rows(
    review: Review, form: PublishedForm, memes: Mapping[str, PublishedMeme], skipped: Counter[str]
) -> Iterator[dict[str, JsonValue]]:
    """Yield one row per kept item: its meme, the texts shown, aggregated and individual values."""
    first: dict[str, str] = {}
    for reviewed, meme in walk_kept(review, memes):
        images = reviewed.item.images
        if len(images) > 1 or first.setdefault(meme.id, images[0]) != images[0]:
            skipped["shows several images, or another image of its meme"] += 1
            continue
        row: dict[str, JsonValue] = {
            "id": reviewed.item.id,
            "meme": meme.id,
            "image": f"images/{meme.file}",
            "text": _show_text(reviewed),
            "language": meme.language,
        }
        for field in form.fields:
            value = reviewed.values.get(field.id)
            row[field.id] = value
            if field.kind == "scale" and not field.each:
                row[f"{field.id}_step"] = _find_step(field, value)
        votes = reviewed.aggregated.annotations if reviewed.aggregated else []
        independent = form.independent
        row["annotations"] = [_keep(vote) for vote in votes if vote.stage in independent]
        row["later_annotations"] = [_keep(vote) for vote in votes if vote.stage not in independent]
        yield row


def _keep(vote: IndividualAnnotation) -> dict[str, JsonValue]:
    return {
        "annotator": vote.annotator,
        "stage": vote.stage,
        "guideline": vote.guideline,
        "values": dict(vote.values),
    }


def _show_text(reviewed: Reviewed) -> str:
    """Return the printed text, then the other texts that annotators saw, each with its label."""
    shown = {
        entry.label: entry.value if isinstance(entry.value, str) else " / ".join(entry.value)
        for entry in reviewed.item.shown
    }
    printed = take_text(reviewed, "text", default="")
    for label in [label for label in shown if label.casefold() in _PRINTED]:
        printed = shown.pop(label)
    return "\n".join(filter(None, [printed, *(f"{k}: {v}" for k, v in shown.items())]))


def _find_step(field: FormField, value: JsonValue) -> str | None:
    """Return the step of a scale that is nearest to an aggregated value; halves go up."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(min(max(math.floor(value + 0.5), field.low), field.high))


def _make_config(
    card: QueueCard,
    form: PublishedForm,
    rows: Sequence[Mapping[str, JsonValue]],
    memes: Mapping[str, PublishedMeme],
    licence: str,
) -> DatasetConfig:
    """Return the dataset config: a label or a free-text task for each field with values."""
    labels: dict[str, LabelConfig] = {}
    texts: dict[str, TextConfig] = {}
    for field in form.fields:
        question = field.label.say(card.language)
        if field.each or not any(_is_used(row, field.id) for row in rows):
            continue
        if field.kind in _TEXTS or (field.kind == "list" and field.level != "nominal"):
            if any(row[field.id] for row in rows):
                texts[field.id] = TextConfig(what=question, question=question, column=field.id)
        elif field.kind != "pairwise":
            labels[field.id] = _make_label(card, field, question, rows)
    if not labels and not texts:
        raise DataError(
            card.title, "no field has annotations that can be published", hint="finish the review"
        )
    known = {meme.language for meme in memes.values()}
    spoken = [name for name in get_args(CardLanguage) if name in known]
    return DatasetConfig.model_validate(
        {
            "title": card.title,
            "summary": card.title,
            "languages": spoken,
            "source": card.origin or "annotated with memantics annotate",
            "licence": licence,
            "citation": "",
            "warning": card.warning,
            "files": {"test": (ITEMS,)},
            "columns": Columns(
                id="id", text="text", image="image", language="language", group="meme"
            ),
            "counts": {"test": len(rows)},
            "label": labels,
            "free_text": texts,
        }
    )


def _is_used(row: Mapping[str, JsonValue], name: str) -> bool:
    """Return whether a field has an aggregated or an individual value in a row."""
    return row[name] not in (None, "", []) or any(True for _ in _list_votes(row, name))


def _list_votes(row: Mapping[str, JsonValue], name: str) -> Iterator[JsonValue]:
    votes = row["annotations"]
    for vote in votes if isinstance(votes, list) else ():
        values = vote["values"] if isinstance(vote, dict) else None
        if isinstance(values, dict) and values.get(name) is not None:
            yield values[name]


def _make_label(
    card: QueueCard, field: FormField, question: str, rows: Sequence[Mapping[str, JsonValue]]
) -> LabelConfig:
    several, scale = field.kind == "list", field.kind == "scale"
    voted = any(any(True for _ in _list_votes(row, field.id)) for row in rows)
    aggregated = any(row[field.id] is not None for row in rows)
    column = f"{field.id}_step" if scale else field.id
    votes = VotesConfig(
        column="annotations",
        value=f"values.{field.id}",
        annotators="annotator",
        unanswered=("",),
    )
    return LabelConfig(
        what=question,
        question=question,
        # Without an aggregation rule, the reader takes the majority of the votes.
        column=column if aggregated else "",
        values={} if several else _name_options(card, field),
        several=several,
        every_option=not several,
        votes=votes if voted else None,
    )


def _name_options(card: QueueCard, field: FormField) -> dict[str, str]:
    """Return the options by value, with the labels that annotators saw."""
    if field.kind == "boolean":
        return {"true": "yes", "false": "no"}
    if field.kind == "scale":
        steps = range(field.low, field.high + 1)
        told = [anchor.say(card.language) for anchor in field.anchors] or [""] * len(steps)
        return {str(n): f"{n} ({t})" if t else str(n) for n, t in zip(steps, told, strict=True)}
    named = {one.value: one.label.say(card.language) for one in field.options}
    for option in card.options.get(field.id, ()):
        named[option.value] = (option.zh if card.language == "zh" else "") or option.en
    named = {value: label or value for value, label in named.items()}
    # Options with equal labels stay apart by their values.
    return named if len(set(named.values())) == len(named) else {value: value for value in named}


def _make_tables(rows: Sequence[Mapping[str, JsonValue]]) -> dict[str, Sequence[Record]]:
    """Return the items with aggregated values, and one record per individual value."""
    nested = ("annotations", "later_annotations")
    items = [{n: v for n, v in row.items() if n not in (*nested, "image")} for row in rows]
    votes = [
        {
            "meme": row["meme"],
            "item": row["id"],
            **{name: vote[name] for name in ("annotator", "stage", "guideline")},
            "field": field,
            "value": value if isinstance(value, str) else orjson.dumps(value).decode(),
        }
        for row in rows
        for vote in _walk_votes(row, nested)
        for field, value in _map(vote["values"]).items()
    ]
    tables: dict[str, Sequence[Record]] = {"items": items, "annotations": votes}
    return {name: records for name, records in tables.items() if records}


def _walk_votes(
    row: Mapping[str, JsonValue], columns: Sequence[str]
) -> Iterator[dict[str, JsonValue]]:
    for column in columns:
        votes = row[column]
        yield from (
            (vote for vote in votes if isinstance(vote, dict)) if isinstance(votes, list) else ()
        )


def _map(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _count_unused(
    form: PublishedForm, config: DatasetConfig, skipped: Counter[str]
) -> dict[str, int]:
    """Count items that are left out, and fields that become no task."""
    unused = [
        field.id
        for field in form.fields
        if field.id not in config.label and field.id not in config.free_text
    ]
    named = {f"fields without a task ({', '.join(unused)})": len(unused)} if unused else {}
    return {**skipped, **named}
