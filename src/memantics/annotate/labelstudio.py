"""Label Studio's JSON and ZIP files, both ways.

A task's ``data`` carries the whole item under ``memantics``, an annotation's results carry the
answer field by field in the shapes of Label Studio. What Label Studio does not know (stage, seat,
earlier versions) is kept beside it and used when it comes back; values are always read from the
results, because those are what somebody may have changed there.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Annotated, Self
from xml.sax.saxutils import quoteattr

import orjson
from pydantic import BaseModel, JsonValue, model_validator
from pydantic import Field as Limit

from memantics.annotate.consensus import SeatedItem
from memantics.annotate.context import iso, load_optional
from memantics.annotate.errors import NoSuchForm
from memantics.annotate.export import Snapshot, describe_item, file_name, images_of, name_of
from memantics.annotate.tasks import Seat
from memantics.annotate.workflow import Workflow, WorkflowField
from memantics.core.errors import DataError
from memantics.core.images import DEFAULT_BOUNDS
from memantics.core.queue import Shown

_SIDES = {"a": "left", "b": "right", "tie": "tie"}
_LATEST = 253_402_300_799  # the end of the year 9999: later than any calendar here goes
_BACK = {side: letter for letter, side in _SIDES.items()}


class Past(BaseModel, extra="ignore"):
    """An earlier version of an answer."""

    version: Annotated[int, Limit(ge=1, le=2**31 - 1)]
    action: str
    values: dict[str, JsonValue] | None = None
    at: Annotated[float, Limit(ge=0, le=_LATEST)]
    seconds: Annotated[float, Limit(ge=0, le=_LATEST)] | None = None
    person: str = ""


class KeptFields(BaseModel, extra="ignore"):
    """Fields that Label Studio keeps with an annotation and does not interpret."""

    stage: str
    seat: int = 0
    person: str = ""
    revisions: list[Past] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len({past.version for past in self.revisions}) != len(self.revisions):
            raise ValueError("two revisions have one version")
        return self


class ImageName(BaseModel, extra="ignore"):
    """An image of a task: the name it came with, and the one it goes out with."""

    name: str
    file: str = ""


class Origin(BaseModel, extra="ignore"):
    """The item as it was imported here."""

    id: str
    group: str
    shown: list[Shown] = []
    values: dict[str, JsonValue] = {}
    gold: dict[str, JsonValue] | None = None
    hidden: dict[str, JsonValue] = {}
    images: list[ImageName] = []


class Annotation(BaseModel, extra="ignore"):
    """One person's results, or a model's."""

    id: int | str | None = None
    completed_by: int | str | dict[str, JsonValue] | None = None
    result: list[dict[str, JsonValue]] = []
    was_cancelled: bool = False
    lead_time: Annotated[float, Limit(ge=0, le=_LATEST)] | None = None
    memantics: KeptFields | None = None


class LabelStudioTask(BaseModel, extra="ignore"):
    """One task of a project's export."""

    id: int | str | None = None
    data: dict[str, JsonValue]
    annotations: list[Annotation] = []
    predictions: list[Annotation] = []


def write_tasks(snapshot: Snapshot, form: str, media: Path) -> bytes:
    """A project as Label Studio tasks: JSON, or a ZIP that holds its images, too."""
    if form not in ("json", "zip"):
        raise NoSuchForm("labelstudio", form, ("json", "zip"))
    made = [_write_task(snapshot, item) for item in snapshot.items]
    tasks = orjson.dumps(made, option=orjson.OPT_INDENT_2)
    return tasks if form == "json" else _pack_tasks(snapshot, tasks, media)


def _write_task(snapshot: Snapshot, item: SeatedItem) -> dict[str, JsonValue]:
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
        "annotations": [_write_annotation(snapshot, item, seat) for seat in item.answered()],
        "predictions": [prediction] if prelabels else [],
    }


def _show(entry: Shown) -> str:
    value = entry.value if isinstance(entry.value, str) else "; ".join(entry.value)
    return f"{entry.label}: {value}"


def _write_annotation(snapshot: Snapshot, item: SeatedItem, seat: Seat) -> dict[str, JsonValue]:
    person = name_of(snapshot, seat.user)
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
        if row.seat_id == seat.id
    ]
    return {
        "id": seat.id,
        "completed_by": {"email": f"{person}@memantics.invalid"},
        "created_at": iso(seat.submitted_at or 0.0),
        "lead_time": seat.seconds,
        "was_cancelled": False,
        "result": list(write_results(snapshot.workflow, seat.answer or {})),
        "memantics": {
            "stage": snapshot.workflow.stages[seat.stage].id,
            "seat": 0 if seat.training_round else seat.seat,
            "person": person,
            "revisions": history,
        },
    }


def write_results(workflow: Workflow, values: Mapping[str, JsonValue]) -> list[JsonValue]:
    """An answer as results, one a field; a field asked of each element has one an element."""
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
    """The answer in an annotation's results, and what in them has no field here."""
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
    """A labelling interface for Label Studio that asks the same.

    >>> from memantics.annotate.workflow import read_workflow
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


TASKS = "tasks.json"
IMAGES = "images"
MAX_TASKS = 60 * 1024 * 1024
MAX_IMAGES = 4 * 1024 * 1024 * 1024
_NAME = re.compile(r"\w[\w.-]{0,199}")
# The last two: a method or a password that we never use.
DAMAGE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


def _pack_tasks(snapshot: Snapshot, tasks: bytes, media: Path) -> bytes:
    """Tasks, an interface that asks the same, and all images."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(TASKS, tasks)
        archive.writestr("interface.xml", write_config(snapshot.workflow))
        for key, image in snapshot.images.items():
            archive.write(media / str(key), f"{IMAGES}/{file_name(image)}")
    return packed.getvalue()


def unpack_tasks(file: IO[bytes], folder: Path) -> bytes:
    """The tasks of an archive; its images are written into a folder under their plain names."""
    left = MAX_IMAGES
    try:
        with zipfile.ZipFile(file) as archive:
            if TASKS not in archive.namelist():
                raise DataError("the ZIP file", f"holds no {TASKS}", hint="export it as JSON")
            for entry in archive.infolist():
                name = entry.filename.removeprefix(f"{IMAGES}/")
                if name == entry.filename or not _NAME.fullmatch(name):
                    continue
                # What the archive says about sizes is not believed.
                with archive.open(entry) as image:
                    data = image.read(min(left, DEFAULT_BOUNDS.max_bytes) + 1)
                left -= len(data)
                if left < 0:
                    raise DataError(
                        "the ZIP file", "holds too many images", hint="import it in parts"
                    )
                (folder / name).write_bytes(data)
            with archive.open(TASKS) as tasks:
                return read_bounded(tasks)
    except DAMAGE as error:
        raise DataError("the ZIP file", f"cannot be read: {error}", hint="pack it again") from error


def read_bounded(file: IO[bytes]) -> bytes:
    """Tasks from an open file, within bounds."""
    text = file.read(MAX_TASKS + 1)
    if len(text) > MAX_TASKS:
        raise DataError("the tasks", "are larger than 60 MB", hint="import them in parts")
    return text
