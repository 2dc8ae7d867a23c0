"""Annotation queues: items for annotators, and the annotations that come back.

A queue is a folder: ``queue.json`` (a :class:`QueueCard`), ``items.jsonl`` (one :class:`QueueItem`
per line) and the images of the items. Annotations are in ``annotations.jsonl``, one
:class:`AggregatedAnnotation` per line. Field values are plain JSON; the annotation workflow named
in ``queue.json`` defines the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from memantics.core.data import conform, dump_json, inside, read_json, read_jsonl
from memantics.core.errors import DataError, InputError
from memantics.core.files import replace_file, whole_file
from memantics.core.ids import find_id_fault
from memantics.core.images import read_bytes
from memantics.core.language import language_of
from memantics.core.memes import CAPTIONS, Meme, read_captions, read_memes, with_captions

CARD, ITEMS, ANNOTATIONS = "queue.json", "items.jsonl", "annotations.jsonl"
_CLOSED = ConfigDict(extra="forbid", frozen=True)


class QueueOption(BaseModel):
    """One option of a choice: its value, and its label in English and Chinese (optional)."""

    model_config = _CLOSED

    value: str = Field(min_length=1, max_length=100)
    en: str = ""
    zh: str = ""


class QueueCard(BaseModel):
    """Metadata of an annotation queue. ``origin`` names the command that created it and its input.

    ``annotators_per_item`` overrides the number in the annotation workflow (0: no override).
    ``options`` maps each workflow field marked ``queue_options`` to its options. ``policy`` is the
    policy file in the folder that is the guideline of the project.
    """

    model_config = _CLOSED

    title: str
    workflow: str
    language: str = "en"
    warning: str = ""
    licence: str = ""
    origin: str = ""
    annotators_per_item: int = Field(default=0, ge=0, le=50)
    options: dict[str, list[QueueOption]] = {}
    policy: str = ""

    @field_validator("options")
    @classmethod
    def _check_options(cls, options: dict[str, list[QueueOption]]) -> dict[str, list[QueueOption]]:
        for name, listed in options.items():
            if len({option.value for option in listed}) != len(listed):
                raise ValueError(f"options of {name!r}: two options have the same value")
        return options


class Shown(BaseModel):
    """A text shown to annotators: ``kind`` is its layout (``text``, ``list``, ``options``)."""

    model_config = _CLOSED

    label: str
    value: str | list[str]
    kind: str = "text"


class QueueItem(BaseModel):
    """One item to annotate.

    ``group`` is the meme. ``values`` are drafts for the fields of the annotation workflow
    (pre-labels; a setting shows or hides them). ``gold`` are known answers for training rounds.
    ``hidden`` is never shown to annotators (such as the model behind an output) and is returned
    with the annotation.
    """

    model_config = _CLOSED

    id: str = Field(min_length=1, max_length=300)
    group: str = Field(min_length=1, max_length=300)
    images: list[str] = []
    shown: list[Shown] = []
    values: dict[str, JsonValue] = {}
    gold: dict[str, JsonValue] | None = None
    hidden: dict[str, JsonValue] = {}


class IndividualAnnotation(BaseModel):
    """The annotation of one person at one stage of the workflow; ``person`` is a pseudonym.

    ``guideline`` is the version of the guideline that the person read; 1 is the version in the
    workflow. ``roles`` are the person's roles in the project; only reviews by a policy have them.
    """

    model_config = _CLOSED

    annotator: str
    stage: str
    values: dict[str, JsonValue]
    at: str = ""
    guideline: int = 1
    roles: list[str] = []

    @model_serializer(mode="wrap")
    def _leave_out_roles(self, write: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        row: dict[str, JsonValue] = write(self)
        if not self.roles:
            row.pop("roles", None)
        return row


class AggregatedAnnotation(BaseModel):
    """The final annotation of an item: kept or not, the agreed values, and the votes."""

    model_config = _CLOSED

    item: str
    group: str
    workflow: str
    kept: bool
    values: dict[str, JsonValue]
    reason: str = ""
    annotations: list[IndividualAnnotation] = []
    hidden: dict[str, JsonValue] = {}


def copy_picture(image: Path, queue: Path, name: str) -> str:
    """Copy an image into a queue folder and return its file name there."""
    place = f"images/{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}{image.suffix.lower()}"
    target = inside(queue, place)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(read_bytes(image))
    return place


def write_queue(folder: Path, card: QueueCard, items: Iterable[QueueItem]) -> int:
    """Write an annotation queue and return its number of items. Images must be in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    with whole_file(folder / ITEMS) as file:
        for row, item in enumerate(items, 1):
            _check_ids(item, folder / ITEMS, row)
            for image in item.images:
                inside(folder, image)
            file.write(orjson.dumps(item.model_dump(exclude_defaults=True)) + b"\n")
            count += 1
    # queue.json is written last: a folder without it is not a queue.
    replace_file(folder / CARD, dump_json(card.model_dump()).encode(), "queue")
    return count


def _check_ids(item: QueueItem, where: Path, row: int) -> None:
    for name, text in (("id", item.id), ("group", item.group)):
        if fault := find_id_fault(text):
            raise DataError(
                where, f"{name} {text[:60]!a} {fault}", row=row, hint="change it in the source data"
            )


def read_queue(folder: Path, *, any_id: bool = False) -> tuple[QueueCard, list[QueueItem]]:
    """Read an annotation queue; an error names an invalid line or a duplicate id.

    With ``any_id``, invalid ids are returned: the annotation app skips such items and lists them.
    """
    if not (folder / CARD).is_file():
        raise DataError(
            folder, f"is not a queue: {CARD} is missing", hint="create one with 'memantics build'"
        )
    card = conform(QueueCard, read_json(folder / CARD), folder / CARD)
    items: list[QueueItem] = []
    seen: set[str] = set()
    for row, line in read_jsonl(folder / ITEMS):
        item = conform(QueueItem, line, folder / ITEMS, row)
        if not any_id:
            _check_ids(item, folder / ITEMS, row)
        if item.id in seen:
            raise DataError(folder / ITEMS, f"id {item.id!r} occurs twice", row=row)
        for image in item.images:
            inside(folder, image)
        seen.add(item.id)
        items.append(item)
    return card, items


def write_annotations(path: Path, annotations: Iterable[AggregatedAnnotation]) -> int:
    """Write annotations, one per line, and return their number."""
    count = 0
    with whole_file(path) as file:
        for annotation in annotations:
            file.write(orjson.dumps(annotation.model_dump(exclude_defaults=False)) + b"\n")
            count += 1
    return count


def read_annotations(path: Path) -> Iterator[AggregatedAnnotation]:
    """Yield annotations; an error names an invalid line."""
    for row, line in read_jsonl(path):
        yield conform(AggregatedAnnotation, line, path, row)


# Merging model drafts with annotations: agreed values replace the drafts of the model.


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A queue item with its final values; ``aggregated`` is None if it has no annotations."""

    item: QueueItem
    values: Mapping[str, JsonValue]
    aggregated: AggregatedAnnotation | None

    @property
    def kept(self) -> bool:
        """Whether the item is kept; items without annotations are kept too."""
        return self.aggregated is None or self.aggregated.kept


@dataclass(frozen=True, slots=True)
class Review:
    """An annotation queue with its annotations."""

    folder: Path
    card: QueueCard
    items: tuple[Reviewed, ...]

    @property
    def annotated(self) -> tuple[Reviewed, ...]:
        """The items that have annotations."""
        return tuple(reviewed for reviewed in self.items if reviewed.aggregated is not None)


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """An annotated question: its dimension, its meme, and whether it was accepted."""

    dimension: str
    meme: str
    accepted: bool
    first: bool


def list_judged_questions(review: Review) -> tuple[JudgedQuestion, ...]:
    """Return the questions of a validated queue with their dimensions; empty for other queues.

    The second question of a queue item asks for the element of the meme that causes the toxicity.
    """
    found: list[JudgedQuestion] = []
    for reviewed in review.annotated:
        hidden, values = reviewed.item.hidden, reviewed.values
        dimension, element = hidden.get("dimension"), hidden.get("element")
        if not isinstance(dimension, str) or "questions" not in hidden:
            continue
        found.append(JudgedQuestion(dimension, reviewed.item.group, reviewed.kept, first=True))
        asked = "second_question" in values and isinstance(element, str) and element
        if asked:
            yes = all(values.get(name) == "yes" for name in ("second_question", "second_answer"))
            kind = str(element).partition("/")[0]
            found.append(
                JudgedQuestion(kind, reviewed.item.group, reviewed.kept and yes, first=False)
            )
    return tuple(found)


def read_review(queue: Path, annotations: Path | None, *, unreviewed: bool = False) -> Review:
    """Read a queue and its annotations (default: ``annotations.jsonl`` beside the items).

    Items without an annotation are excluded, unless ``unreviewed`` is set. A folder of annotated
    memes is read like a queue.
    """
    given = annotations or queue / ANNOTATIONS
    plain = given.is_file() and not (queue / CARD).is_file()
    card, items = _read_folder(queue, given) if plain else read_queue(queue)
    found: dict[str, AggregatedAnnotation] = {}
    if given.is_file():
        found = _match(list(read_annotations(given)), {item.id: item for item in items}, given)
    elif annotations is not None or not unreviewed:
        raise InputError(
            f"{given}: no annotations",
            hint="annotate the queue and export the result, or use --unreviewed",
        )
    merged = tuple(
        Reviewed(
            item, item.values | (found[item.id].values if item.id in found else {}), annotation
        )
        for item in items
        if (annotation := found.get(item.id)) is not None or unreviewed
    )
    if not merged:
        raise DataError(
            given, "no item of the queue has an annotation", hint="finish the review first"
        )
    return Review(queue, card, merged)


def _read_folder(folder: Path, annotations: Path) -> tuple[QueueCard, list[QueueItem]]:
    """Read the memes of a folder as queue items; the annotations name the workflow."""
    first = next(read_annotations(annotations), None)
    if first is None:
        raise DataError(annotations, "contains no annotation", hint="finish the review first")
    mined = folder / CAPTIONS
    memes = with_captions(read_memes(folder), read_captions(mined) if mined.is_file() else {})
    card = QueueCard(
        title=folder.resolve().name, workflow=first.workflow, warning="Memes may be offensive."
    )
    return card, [_make_item(meme, folder) for meme in memes]


def _make_item(meme: Meme, folder: Path) -> QueueItem:
    facts: dict[str, JsonValue] = {
        "text": meme.text,
        "language": meme.language or language_of(meme),
        "template_cluster": meme.template_cluster,
        "description": meme.notes.get("description", ""),
        "meaning": meme.notes.get("meaning", ""),
    }
    image = meme.image.relative_to(folder).as_posix()
    return QueueItem(id=meme.id, group=meme.id, images=[image], hidden=facts)


def _match(
    annotations: Sequence[AggregatedAnnotation], known: Mapping[str, QueueItem], where: Path
) -> dict[str, AggregatedAnnotation]:
    found: dict[str, AggregatedAnnotation] = {}
    for row, annotation in enumerate(annotations, 1):
        if annotation.item not in known:
            raise DataError(
                where,
                f"item {annotation.item!r} is not in this queue",
                row=row,
                hint="give the queue that the item belongs to",
            )
        if annotation.item in found:
            raise DataError(where, f"item {annotation.item!r} has two annotations", row=row)
        hidden = known[annotation.item].hidden
        if any(hidden.get(name, value) != value for name, value in annotation.hidden.items()):
            # A repeated dataset build may give the same ids to other questions.
            raise DataError(
                where,
                f"item {annotation.item!r} has changed since it was annotated",
                row=row,
                hint="remove the old annotations and annotate the changed queue",
            )
        found[annotation.item] = annotation
    return found


def find_queues(folder: Path) -> list[Path]:
    """Return the annotation queues of a dataset build in creation order, or a given queue."""
    if (folder / CARD).is_file():
        return [folder]
    found = [path for path in folder.glob("queue*") if (path / CARD).is_file()]
    # Numeric order of the folder names: queue, queue-2, … queue-10.
    return sorted(found, key=lambda path: (len(path.name), path.name))


def read_reviews(queues: Sequence[Path], *, unreviewed: bool = False) -> Review:
    """Merge the annotations of several rounds; the last annotation of a meme counts."""
    reviews = [read_review(path, None, unreviewed=unreviewed) for path in queues]
    if not reviews:
        raise InputError("no queue was found", hint=f"give a folder with {CARD}")
    if len(reviews) == 1:
        return reviews[0]
    merged = {reviewed.item.id: reviewed for review in reviews for reviewed in _rebase(review)}
    return Review(queues[0].parent, reviews[0].card, tuple(merged.values()))


def _rebase(review: Review) -> Iterator[Reviewed]:
    """Yield the items with image paths relative to the folder above that of the queue."""
    name = review.folder.name
    for reviewed in review.items:
        hidden = dict(reviewed.item.hidden)
        if isinstance(edits := hidden.get("edits"), dict):
            hidden["edits"] = {editor: f"{name}/{image}" for editor, image in edits.items()}
        images = [f"{name}/{image}" for image in reviewed.item.images]
        item = reviewed.item.model_copy(update={"images": images, "hidden": hidden})
        yield Reviewed(item, reviewed.values, reviewed.aggregated)
