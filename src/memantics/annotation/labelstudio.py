"""Import and export of Label Studio tasks, as JSON or ZIP.

A task's ``data`` holds the item under ``memantics``. The results of an annotation hold the answer
field by field in Label Studio's format; stage, slot and earlier versions are extra fields. Values
are read from the results, which Label Studio may have changed. Its own tasks can be imported too.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Self
from xml.sax.saxutils import quoteattr

import orjson
import sqlalchemy as sa
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError, model_validator
from pydantic import Field as Limit

from memantics.annotation import schema
from memantics.annotation.aggregation import state_before
from memantics.annotation.consensus import AssignedItem
from memantics.annotation.context import Visit, dump, iso, load_optional
from memantics.annotation.errors import AnswerError, UnsupportedFormat
from memantics.annotation.export import Snapshot, describe_item, file_name, images_of, name_of
from memantics.annotation.leasing import insert_training_assignment
from memantics.annotation.membership import find_user, insert_member, insert_user
from memantics.annotation.tasks import Assignment, lock_assignments, make_case, settle
from memantics.annotation.values import check, clean_text
from memantics.annotation.workflow import Workflow, WorkflowField
from memantics.core.data import conform, inside
from memantics.core.errors import DataError, first_fault
from memantics.core.images import DEFAULT_BOUNDS
from memantics.core.queue import QueueItem, Shown

_SIDES = {"a": "left", "b": "right", "tie": "tie"}
_LATEST = 253_402_300_799  # the end of the year 9999, the limit of datetime
_BACK = {side: letter for letter, side in _SIDES.items()}
TASKS = "tasks.json"
IMAGES = "images"
MAX_TASKS = 60 * 1024 * 1024
MAX_IMAGES = 4 * 1024 * 1024 * 1024
_NAME = re.compile(r"\w[\w.-]{0,199}")
# Python raises the last two for an unsupported compression method and an encrypted file.
DAMAGE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


class Past(BaseModel, extra="ignore"):
    """An earlier version of an answer."""

    version: Annotated[int, Limit(ge=1, le=2**31 - 1)]
    action: str
    values: dict[str, JsonValue] | None = None
    at: Annotated[float, Limit(ge=0, le=_LATEST)]
    seconds: Annotated[float, Limit(ge=0, le=_LATEST)] | None = None
    person: str = ""


class KeptFields(BaseModel, extra="ignore"):
    """Extra fields of an annotation that Label Studio stores but does not interpret."""

    stage: str
    slot: int = 0
    person: str = ""
    revisions: list[Past] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len({past.version for past in self.revisions}) != len(self.revisions):
            raise ValueError("two versions of one annotation have the same number")
        return self


class ImageName(BaseModel, extra="ignore"):
    """An image of a task: its original name and its file name in the export."""

    name: str
    file: str = ""


class ImportedItem(BaseModel, extra="ignore"):
    """An item in the form in which it was first imported."""

    id: str
    group: str
    shown: list[Shown] = []
    values: dict[str, JsonValue] = {}
    gold: dict[str, JsonValue] | None = None
    hidden: dict[str, JsonValue] = {}
    images: list[ImageName] = []


class Annotation(BaseModel, extra="ignore"):
    """Results of one annotator or one model."""

    id: int | str | None = None
    completed_by: int | str | dict[str, JsonValue] | None = None
    result: list[dict[str, JsonValue]] = []
    was_cancelled: bool = False
    lead_time: Annotated[float, Limit(ge=0, le=_LATEST)] | None = None
    memantics: KeptFields | None = None


class LabelStudioTask(BaseModel, extra="ignore"):
    """One task of a Label Studio export."""

    id: int | str | None = None
    data: dict[str, JsonValue]
    annotations: list[Annotation] = []
    predictions: list[Annotation] = []


def write_tasks(snapshot: Snapshot, form: str, media: Path) -> bytes:
    """Write a project as Label Studio tasks: JSON, or a ZIP file with images."""
    if form not in ("json", "zip"):
        raise UnsupportedFormat("labelstudio", form, ("json", "zip"))
    made = [_write_task(snapshot, item) for item in snapshot.items]
    tasks = orjson.dumps(made, option=orjson.OPT_INDENT_2)
    return tasks if form == "json" else _pack_tasks(snapshot, tasks, media)


def _write_task(snapshot: Snapshot, item: AssignedItem) -> dict[str, JsonValue]:
    origin = describe_item(snapshot, item)
    names = [file_name(image) for image in images_of(snapshot, item)]
    data: dict[str, JsonValue] = {
        "image": f"images/{names[0]}" if names else "",
        "text": "\n".join(_show(entry) for entry in item.shown),
        "memantics": origin,
    }
    prelabels = origin["values"]
    assert isinstance(prelabels, dict)
    prediction: dict[str, JsonValue] = {
        "model_version": "prelabels",
        "result": list(write_results(snapshot.workflow, prelabels)),
    }
    return {
        "id": item.row.number,
        "data": data,
        "annotations": [
            _write_annotation(snapshot, item, assignment) for assignment in item.answered()
        ],
        "predictions": [prediction] if prelabels else [],
    }


def _show(entry: Shown) -> str:
    value = entry.value if isinstance(entry.value, str) else "; ".join(entry.value)
    return f"{entry.label}: {value}"


def _write_annotation(
    snapshot: Snapshot, item: AssignedItem, assignment: Assignment
) -> dict[str, JsonValue]:
    person = name_of(snapshot, assignment.user)
    history: list[JsonValue] = [
        {
            "version": row.version,
            "action": row.action,
            "values": load_optional(row.answer),
            "at": row.at,
            "seconds": row.seconds,
            "person": snapshot.people[row.user_id].pseudonym,
        }
        for row in snapshot.revisions.get(item.row.id, ())
        if row.assignment_id == assignment.id
    ]
    return {
        "id": assignment.id,
        "completed_by": {"email": f"{person}@memantics.invalid"},
        "created_at": iso(assignment.submitted_at or 0.0),
        "lead_time": assignment.seconds,
        "was_cancelled": False,
        "result": list(write_results(snapshot.workflow, assignment.answer or {})),
        "memantics": {
            "stage": snapshot.workflow.stages[assignment.stage].id,
            "slot": 0 if assignment.training_round else assignment.slot,
            "person": person,
            "revisions": history,
        },
    }


def write_results(workflow: Workflow, values: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Convert an answer to Label Studio results: one per field, or one per list element."""
    results: list[JsonValue] = []
    for field in workflow.fields:
        if field.id not in values:
            continue
        value = values[field.id]
        many = value if field.each and isinstance(value, list) else [value]
        for place, one in enumerate(many):
            kind, shape = _write_value(field, one)
            results.append(
                {
                    "id": f"{field.id}-{place}" if field.each else field.id,
                    "from_name": field.id,
                    "to_name": "image",
                    "type": kind,
                    "value": shape,
                    **({"item_index": place} if field.each else {}),
                }
            )
    return results


def _write_value(field: WorkflowField, value: JsonValue) -> tuple[str, dict[str, JsonValue]]:
    match field.kind:
        case "choice":
            return "choices", {"choices": [value]}
        case "boolean":
            return "choices", {"choices": ["true" if value else "false"]}
        case "scale":
            return "rating", {"rating": value}
        case "pairwise":
            return "pairwise", {"selected": _SIDES.get(str(value), str(value))}
        case _:
            return "textarea", {"text": value if isinstance(value, list) else [value]}


def read_results(
    workflow: Workflow, results: list[dict[str, JsonValue]]
) -> tuple[dict[str, JsonValue], list[str]]:
    """Return the answer in Label Studio results, and the names of unknown fields."""
    known = {field.id: field for field in workflow.fields}
    values: dict[str, JsonValue] = {}
    unknown: list[str] = []
    for result in results:
        name, shape = str(result.get("from_name", "")), result.get("value")
        field = known.get(name)
        if field is None or not isinstance(shape, dict):
            unknown.append(name)
            continue
        value = _read_value(field, shape)
        if field.each:
            former = values.get(name)
            values[name] = [*(former if isinstance(former, list) else []), value]
        else:
            values[name] = value
    return values, unknown


def _read_value(field: WorkflowField, shape: Mapping[str, JsonValue]) -> JsonValue:
    chosen, text = shape.get("choices"), shape.get("text")
    match field.kind:
        case "choice":
            return chosen[0] if isinstance(chosen, list) and chosen else None
        case "boolean":
            return isinstance(chosen, list) and chosen == ["true"]
        case "scale":
            return shape.get("rating")
        case "pairwise":
            return _BACK.get(str(shape.get("selected")), "")
        case "list" | "ranked":
            return text
        case _:
            return "\n".join(map(str, text)) if isinstance(text, list) else text


def write_config(workflow: Workflow) -> str:
    """Return a Label Studio labelling interface with the fields of a workflow.

    >>> from memantics.annotation.workflow import read_workflow
    >>> print(write_config(read_workflow("validate")).splitlines()[1])
      <Image name="image" value="$image"/>
    """
    lines = [
        "<View>",
        '  <Image name="image" value="$image"/>',
        '  <Text name="text" value="$text"/>',
    ]
    for field in workflow.fields:
        lines += [f"  <Header value={quoteattr(field.label.en)}/>", *_write_control(field)]
    return "\n".join([*lines, "</View>"]) + "\n"


def _write_control(field: WorkflowField) -> list[str]:
    head = f'name="{field.id}" toName="image"'
    match field.kind:
        case "choice" | "boolean":
            options = field.allowed or ("true", "false")
            inner = [f"    <Choice value={quoteattr(value)}/>" for value in options]
            return [f"  <Choices {head}>", *inner, "  </Choices>"]
        case "scale":
            return [f'  <Rating {head} maxRating="{field.high}"/>']
        case "pairwise":
            return [f'  <Pairwise name="{field.id}" toName="image,text"/>']
        case _:
            return [f'  <TextArea {head} maxSubmissions="{field.max_items}"/>']


def _pack_tasks(snapshot: Snapshot, tasks: bytes, media: Path) -> bytes:
    """Pack tasks, labelling interface and images into a ZIP file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(TASKS, tasks)
        archive.writestr("interface.xml", write_config(snapshot.workflow))
        for key, image in snapshot.images.items():
            archive.write(media / str(key), f"{IMAGES}/{file_name(image)}")
    return packed.getvalue()


def unpack_tasks(file: IO[bytes], folder: Path) -> bytes:
    """Return the tasks of a ZIP file and write its images into a folder."""
    left = MAX_IMAGES
    try:
        with zipfile.ZipFile(file) as archive:
            if TASKS not in archive.namelist():
                raise DataError(
                    "the ZIP file",
                    f"does not contain {TASKS}",
                    hint="export from Label Studio as JSON",
                )
            for entry in archive.infolist():
                name = entry.filename.removeprefix(f"{IMAGES}/")
                if name == entry.filename or not _NAME.fullmatch(name):
                    continue
                # The sizes in the ZIP directory may be wrong, so the read is limited.
                with archive.open(entry) as image:
                    data = image.read(min(left, DEFAULT_BOUNDS.max_bytes) + 1)
                left -= len(data)
                if left < 0:
                    raise DataError(
                        "the ZIP file",
                        "contains too many images (limit 4 GB)",
                        hint="import it in parts",
                    )
                (folder / name).write_bytes(data)
            with archive.open(TASKS) as tasks:
                return read_bounded(tasks)
    except DAMAGE as error:
        raise DataError(
            "the ZIP file", f"cannot be read: {error}", hint="create the ZIP file again"
        ) from error


def read_bounded(file: IO[bytes]) -> bytes:
    """Read tasks from an open file; raise DataError above the size limit."""
    text = file.read(MAX_TASKS + 1)
    if len(text) > MAX_TASKS:
        raise DataError("the tasks", "are larger than 60 MB", hint="import them in parts")
    return text


_FILE = "tasks"
_TASKS = TypeAdapter(list[LabelStudioTask])
_items, _assignments = schema.items, schema.assignments


@dataclass(frozen=True, slots=True)
class Incoming:
    """An imported task: item, images, annotations, and missing fields or images."""

    item: QueueItem
    images: tuple[Path, ...]
    annotations: tuple[Annotation, ...]
    missing: tuple[str, ...]


def read_tasks(text: str | bytes, images: Path | None, workflow: Workflow) -> list[Incoming]:
    """Read tasks from a Label Studio export; errors name the task."""
    try:
        raw = orjson.loads(text)
        tasks = _TASKS.validate_python(raw)
    except orjson.JSONDecodeError as error:
        raise DataError(_FILE, f"not valid JSON: {error}") from error
    except ValidationError as error:
        raise DataError(_FILE, first_fault(error), hint="export as JSON") from error
    found = [_read_task(task, row, images, workflow) for row, task in enumerate(tasks, 1)]
    seen: set[str] = set()
    for row, one in enumerate(found, 1):
        if one.item.id in seen:
            raise DataError(
                _FILE,
                f"id {one.item.id!r} occurs twice",
                row=row,
                hint="give each task a unique id",
            )
        seen.add(one.item.id)
    return found


def _read_task(
    task: LabelStudioTask, row: int, folder: Path | None, workflow: Workflow
) -> Incoming:
    missing: list[str] = []
    if "memantics" in task.data:
        origin = conform(ImportedItem, task.data["memantics"], _FILE, row)
        names = [image.file or image.name for image in origin.images]
    else:
        origin, names, missing = _read_foreign(task, row, workflow)
    item = conform(QueueItem, origin.model_dump(exclude={"images"}), _FILE, row)
    paths, lost = _find_images(folder, names)
    missing += [f"image {name} is missing" for name in lost]
    kept = tuple(entry for entry in task.annotations if not entry.was_cancelled)
    return Incoming(item, paths, kept, tuple(missing))


def _read_foreign(
    task: LabelStudioTask, row: int, workflow: Workflow
) -> tuple[ImportedItem, list[str], list[str]]:
    """Convert a task that was created in Label Studio: texts are shown, other data is hidden.

    The first prediction becomes the pre-labels.
    """
    data = task.data
    key = str(task.id if task.id is not None else row)
    image = data.get("image") or data.get("img")
    shown = [
        Shown(label=name, value=value)
        for name, value in data.items()
        if isinstance(value, str) and value and value != image
    ]
    hidden: dict[str, JsonValue] = {
        name: value for name, value in data.items() if not isinstance(value, str)
    }
    names = [PurePosixPath(image).name] if isinstance(image, str) and image else []
    results = task.predictions[0].result if task.predictions else []
    values, unknown = read_results(workflow, results)
    values = {name: value for name, value in values.items() if value not in (None, "")}
    problems = [f"prediction for unknown field {name or '(no name)'}" for name in unknown]
    key = f"task-{key}"
    return (
        ImportedItem(id=key, group=key, shown=shown, values=values, hidden=hidden),
        names,
        problems,
    )


def _find_images(folder: Path | None, names: Sequence[str]) -> tuple[tuple[Path, ...], list[str]]:
    paths: list[Path] = []
    missing: list[str] = []
    for name in names:
        path = inside(folder, name) if folder is not None else None
        if path is not None and path.is_file():
            paths.append(path)
        else:
            missing.append(name)
    return tuple(paths), missing


class Returning:
    """Writes imported annotations under the pseudonyms of their annotators."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._connection = visit.connection
        self._rights = visit.rights
        self._ghosts: dict[str, int] = {}

    def write(self, key: str, annotations: Sequence[Annotation]) -> tuple[int, list[str]]:
        """Fill the assignments of an item; return the number filled, and what was skipped."""
        query = sa.select(_items).where(
            _items.c.project_id == self._rights.id, _items.c.item_key == key
        )
        item = self._connection.execute(query).one()
        order = {stage.id: place for place, stage in enumerate(self._rights.workflow.stages)}
        count, skipped = 0, []
        for entry in sorted(annotations, key=lambda one: _order(one, order)):
            assignments = lock_assignments(self._connection, item.id)
            problem = self._fill(item, assignments, entry, order)
            if problem:
                skipped.append(f"{key}: {problem}")
                continue
            count += 1
            if not item.training_round:
                fresh = lock_assignments(self._connection, item.id)
                state = settle(self._connection, self._rights.workflow, item, fresh)
                item = self._connection.execute(query).one() if state != item.state else item
        return count, skipped

    def _fill(
        self,
        item: Any,
        assignments: Sequence[Assignment],
        entry: Annotation,
        order: Mapping[str, int],
    ) -> str:
        workflow = self._rights.workflow
        kept = entry.memantics
        stage = order.get(kept.stage, 0) if kept else 0
        values, unknown = read_results(workflow, entry.result)
        if unknown:
            return f"results for unknown fields: {', '.join(unknown)}"
        shown = self._rights.settings.prelabels == "shown"
        case, fields = make_case(item, assignments), workflow.stages[stage].fields
        state = state_before(workflow, stage, case, prelabels=shown)
        try:
            answer = check(workflow, fields, values, labels=case.labels, state=state)
        except AnswerError as error:
            return str(error)
        user = self._ghost(_person(entry))
        if item.training_round:
            assignment = self._training_assignment(item, user)
        else:
            assignment = _free_assignment(assignments, stage, kept.slot if kept else 0, user)
        if assignment is None:
            return f"all assignments are taken at stage {workflow.stages[stage].id}"
        past = self._past(entry, answer)
        self._write_past(item, assignment, stage, past, user)
        last = past[-1]
        change = {
            "state": "done",
            "user_id": user,
            "answer": dump(answer),
            "version": last.version,
            "submitted_at": last.at,
            "seconds": last.seconds,
            "lease_until": None,
        }
        self._connection.execute(
            sa.update(_assignments).where(_assignments.c.id == assignment).values(**change)
        )
        return ""

    def _past(self, entry: Annotation, answer: Mapping[str, JsonValue]) -> list[Past]:
        """Return the earlier versions of an answer; a changed answer adds one version."""
        kept = entry.memantics
        past = sorted(kept.revisions, key=lambda one: one.version) if kept else []
        if not past or past[-1].values != dict(answer):
            version = past[-1].version + 1 if past else 1
            past.append(
                Past(
                    version=version,
                    action="import",
                    values=dict(answer),
                    at=self._visit.now,
                    seconds=entry.lead_time,
                )
            )
        return past

    def _write_past(
        self, item: Any, assignment: int, stage: int, past: Sequence[Past], user: int
    ) -> None:
        rows = [
            {
                "project_id": self._rights.id,
                "item_id": item.id,
                "assignment_id": assignment,
                "user_id": self._ghost(clean_text(one.person, lines=False)[:40])
                if one.person
                else user,
                "stage": stage,
                "version": one.version,
                "action": one.action[:10],
                "answer": dump(one.values) if one.values is not None else None,
                "at": one.at,
                "seconds": one.seconds,
            }
            for one in past
        ]
        self._connection.execute(sa.insert(schema.revisions), rows)

    def _training_assignment(self, item: Any, user: int) -> int | None:
        taken = sa.select(_assignments.c.id).where(
            _assignments.c.item_id == item.id, _assignments.c.user_id == user
        )
        if self._connection.execute(taken).first():
            return None
        return insert_training_assignment(self._visit, item, user)

    def _ghost(self, person: str) -> int:
        """Add a member without a usable account, under the same pseudonym if it is free."""
        if person in self._ghosts:
            return self._ghosts[person]
        project = self._rights.id
        found = find_user(self._connection, name := f"import.{project}.{person}"[:80])
        if found is None:
            found = insert_user(self._connection, name, None, admin=False, now=self._visit.now).id
            insert_member(self._connection, project, found, (), self._visit.now, wanted=person)
        self._ghosts[person] = found
        return found


def _order(entry: Annotation, order: Mapping[str, int]) -> tuple[int, int]:
    kept = entry.memantics
    return (order.get(kept.stage, 0), kept.slot) if kept else (0, 0)


def _person(entry: Annotation) -> str:
    if entry.memantics and entry.memantics.person:
        return clean_text(entry.memantics.person, lines=False)[:40]
    who = entry.completed_by
    named = (who.get("email") or who.get("id")) if isinstance(who, dict) else who
    return clean_text(f"LS-{'unknown' if named is None else named}", lines=False)[:40]


def _free_assignment(given: Sequence[Assignment], stage: int, wanted: int, user: int) -> int | None:
    """Return the original assignment of an answer, or the first free one."""
    mine = [one for one in given if one.stage == stage]
    if any(one.user == user for one in mine):
        return None
    free = [one for one in mine if one.state in ("open", "waiting", "closed")]
    exact = [one for one in free if one.slot == wanted]
    return (exact or free)[0].id if free else None
