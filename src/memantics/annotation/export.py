"""Export of revisions, aggregated values, annotations and the audit log."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import sqlalchemy as sa
from pydantic import JsonValue

from memantics.annotation import schema
from memantics.annotation.aggregation import aggregate
from memantics.annotation.consensus import AssignedItem, Person, gather, read_people
from memantics.annotation.context import (
    Visit,
    iso,
    load,
    load_list,
    load_optional,
    ordered_roles,
)
from memantics.annotation.errors import UnsupportedFormat
from memantics.annotation.policy import name_reviewer
from memantics.annotation.records import AggregatedItem, Rights
from memantics.annotation.tasks import Assignment
from memantics.annotation.workflow import Workflow
from memantics.core.files import refuse_unwritable
from memantics.core.queue import AggregatedAnnotation, IndividualAnnotation
from memantics.core.tables import guard_cell, need_parquet

ExportRow = Mapping[str, JsonValue]
TYPES: Mapping[str, str] = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "zip": "application/zip",
    "tex": "application/x-tex",
}
FORMS = ("jsonl", "json", "csv", "parquet")


def write_rows(rows: Sequence[ExportRow], columns: Sequence[str], form: str) -> bytes:
    r"""Write rows as jsonl, json, csv or parquet; every row has every column.

    >>> write_rows([{"a": "x", "b": [1]}], ["a", "b"], "csv")
    b'a,b\r\nx,[1]\r\n'
    """
    match form:
        case "jsonl":
            return b"".join(orjson.dumps(row) + b"\n" for row in rows)
        case "json":
            return orjson.dumps(rows, option=orjson.OPT_INDENT_2)
        case "csv":
            return _write_csv(rows, columns)
        case "parquet":
            return _write_parquet(rows, columns)
        case _:
            raise UnsupportedFormat("tables", form, FORMS)


def _write_csv(rows: Sequence[ExportRow], columns: Sequence[str]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([guard_cell(name) for name in columns])
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return text.getvalue().encode()


def _cell(value: JsonValue) -> str:
    """Format a cell; texts that a spreadsheet would run as a formula get an apostrophe.

    >>> _cell("=1+1"), _cell("ok"), _cell(None), _cell(["a"])
    ("'=1+1", 'ok', '', '["a"]')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return str(guard_cell(value))
    return orjson.dumps(value).decode()


def _write_parquet(rows: Sequence[ExportRow], columns: Sequence[str]) -> bytes:
    need_parquet()
    import pyarrow as arrow
    from pyarrow import parquet

    arrays = {name: _column([row.get(name) for row in rows]) for name in columns}
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(arrays), sink)
    return bytes(sink.getvalue().to_pybytes())


def _column(values: list[JsonValue]) -> Any:
    """Convert a column to a single Arrow type, a list of texts, or JSON."""
    import pyarrow as arrow

    given = [value for value in values if value is not None]
    for kind, to in ((bool, arrow.bool_()), (int, arrow.int64()), (str, arrow.string())):
        if given and all(type(value) is kind for value in given):
            return arrow.array(values, type=to)
    if given and all(type(value) in (int, float) for value in given):
        return arrow.array(values, type=arrow.float64())
    if given and all(_is_texts(value) for value in given):
        return arrow.array(values, type=arrow.list_(arrow.string()))
    texts = [None if value is None else orjson.dumps(value).decode() for value in values]
    return arrow.array(texts, type=arrow.string())


def _is_texts(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


# Unused optional keys are left out of the export.
_LATER = ("examples", "personal", "test")
RAW = ("item", "group", "stage", "slot", "annotator", "version", "action", "at", "seconds")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All data of a project at one time."""

    rights: Rights
    items: Sequence[AssignedItem]
    people: Mapping[int, Person]
    revisions: Mapping[int, Sequence[Any]]
    images: Mapping[str, Any]

    @property
    def workflow(self) -> Workflow:
        """Return the workflow of the project."""
        return self.rights.workflow

    @property
    def field_names(self) -> list[str]:
        """Return all field ids in order."""
        return [field.id for field in self.workflow.fields]


def take_snapshot(visit: Visit) -> Snapshot:
    """Read all data of a project."""
    revisions: dict[int, list[Any]] = defaultdict(list)
    for row in _read_all(visit, schema.revisions):
        revisions[row.item_id].append(row)
    images = {row.id: row for row in _read_all(visit, schema.media)}
    return Snapshot(visit.rights, gather(visit), read_people(visit), revisions, images)


def _read_all(visit: Visit, table: sa.Table) -> sa.CursorResult[Any]:
    """Select the rows of a project in a table, ordered by id."""
    query = sa.select(table).where(table.c.project_id == visit.rights.id).order_by(table.c.id)
    return visit.connection.execute(query)


def write_export(snapshot: Snapshot, what: str, form: str) -> bytes:
    """Write revisions, aggregated values or annotations as a file."""
    match what:
        case "raw" if form == "jsonl":
            return write_rows(_raw_lines(snapshot), (), form)
        case "raw":
            columns = [*RAW, "guideline", "training", "current", *snapshot.field_names]
            return write_rows(_raw_rows(snapshot), columns, form)
        case "aggregated":
            columns = ["item", "group", "kept", "reason", "complete", *snapshot.field_names]
            return write_rows(_aggregated_rows(snapshot), [*columns, "details", "hidden"], form)
        case "annotations" if form == "jsonl":
            return write_rows([one.model_dump() for one in list_annotations(snapshot)], (), form)
        case _:
            raise UnsupportedFormat(what, form, ("jsonl",))


def write_audit(visit: Visit, form: str) -> bytes:
    """Write all entries of a project's audit log, oldest first."""
    people = read_people(visit)
    rows: list[ExportRow] = [
        {
            "id": row.id,
            "at": iso(row.at),
            "person": people[row.user_id].pseudonym if row.user_id in people else "",
            "action": row.action,
            "subject": row.subject,
            "detail": load(row.detail),
        }
        for row in _read_all(visit, schema.audit)
    ]
    return write_rows(rows, ["id", "at", "person", "action", "subject", "detail"], form)


def aggregate_all(snapshot: Snapshot) -> list[tuple[AssignedItem, AggregatedItem]]:
    """Aggregate every item that is not a training item."""
    prelabels = snapshot.rights.settings.prelabels == "shown"
    return [
        (item, aggregate(snapshot.workflow, item.case, prelabels=prelabels))
        for item in snapshot.items
        if not item.row.training_round
    ]


def list_annotations(snapshot: Snapshot) -> list[AggregatedAnnotation]:
    """Return the finished items with aggregated values and individual annotations.

    For questionnaires in which people answer about themselves (``personal``), the annotators are
    removed and the items are sorted by content, because item numbers would reveal the order in
    which people answered.
    """
    made = _annotations_of(snapshot)
    if not snapshot.workflow.personal:
        return made
    names = sorted(annotation.item for annotation in made)
    made.sort(key=lambda annotation: orjson.dumps(annotation.values, option=orjson.OPT_SORT_KEYS))
    return [
        annotation.model_copy(
            update={
                "item": name,
                "annotations": [
                    one.model_copy(update={"annotator": "", "at": ""})
                    for one in annotation.annotations
                ],
            }
        )
        for annotation, name in zip(made, names, strict=True)
    ]


def _annotations_of(snapshot: Snapshot) -> list[AggregatedAnnotation]:
    return [
        AggregatedAnnotation(
            item=found.item,
            group=found.group,
            workflow=snapshot.workflow.name,
            kept=found.kept,
            values=dict(found.values),
            reason=found.reason,
            annotations=[_individual(snapshot, assignment) for assignment in item.answered()],
            hidden=load(item.row.hidden),
        )
        for item, found in aggregate_all(snapshot)
        if found.complete
    ]


def _individual(snapshot: Snapshot, assignment: Assignment) -> IndividualAnnotation:
    return IndividualAnnotation(
        annotator=name_of(snapshot, assignment.user),
        stage=snapshot.workflow.stages[assignment.stage].id,
        values=assignment.answer or {},
        at=iso(assignment.submitted_at or 0.0),
        guideline=snapshot.rights.settings.guideline_at(assignment.submitted_at or 0.0),
        roles=_list_roles(snapshot, assignment.user),
    )


def _list_roles(snapshot: Snapshot, user: int | None) -> list[str]:
    """Return the roles of a member; only reviews by a policy need them."""
    person = snapshot.people.get(user) if user is not None and snapshot.workflow.policy else None
    return list(ordered_roles(person.roles)) if person is not None else []


def name_of(snapshot: Snapshot, user: int | None) -> str:
    """Return the pseudonym of a member; in policy reviews, the same one in all projects."""
    if snapshot.workflow.policy and user is not None:
        return name_reviewer(user)
    person = snapshot.people.get(user) if user is not None else None
    return person.pseudonym if person else ""


def outcome(snapshot: Snapshot, found: AggregatedItem) -> dict[str, JsonValue]:
    """Return the result columns of an item: kept, reason, complete, and each field's value."""
    row: dict[str, JsonValue] = {"kept": found.kept, "reason": found.reason}
    row["complete"] = found.complete
    return row | {name: found.values.get(name) for name in snapshot.field_names}


def _aggregated_rows(snapshot: Snapshot) -> list[ExportRow]:
    return [
        {"item": found.item, "group": found.group}
        | outcome(snapshot, found)
        | {"details": dict(found.details), "hidden": load(item.row.hidden)}
        for item, found in aggregate_all(snapshot)
    ]


def _raw_rows(snapshot: Snapshot) -> list[ExportRow]:
    rows: list[ExportRow] = []
    for item in snapshot.items:
        for revision in snapshot.revisions.get(item.row.id, ()):
            row = _revision(snapshot, item, revision)
            values = load(revision.answer)
            rows.append(row | {name: values.get(name) for name in snapshot.field_names})
    return rows


def _revision(snapshot: Snapshot, item: AssignedItem, row: Any) -> dict[str, JsonValue]:
    assignment = next(
        assignment for assignment in item.assignments if assignment.id == row.assignment_id
    )
    training = bool(assignment.training_round)
    return {
        "item": item.row.item_key,
        "group": item.row.group_key,
        "stage": snapshot.workflow.stages[row.stage].id,
        "slot": 0 if training else assignment.slot,
        "annotator": name_of(snapshot, row.user_id),
        "version": row.version,
        "action": row.action,
        "at": iso(row.at),
        "seconds": row.seconds,
        "guideline": snapshot.rights.settings.guideline_at(row.at),
        "training": training,
        "current": assignment.done and assignment.version == row.version,
    }


def _raw_lines(snapshot: Snapshot) -> list[ExportRow]:
    """Return the project, its members, its items and all revisions as rows."""
    rights = snapshot.rights
    unused = {name for name in _LATER if not getattr(rights.workflow, name)}
    lines: list[ExportRow] = [
        {
            "kind": "project",
            "title": rights.title,
            "workflow": rights.workflow.model_dump(mode="json", exclude=unused),
            "settings": rights.settings.model_dump(
                mode="json", exclude=set() if rights.settings.clarifications else {"clarifications"}
            ),
            "language": rights.language,
        }
    ]
    lines += [
        {"kind": "member", "annotator": person.pseudonym, "training": person.training}
        for person in snapshot.people.values()
    ]
    for item in snapshot.items:
        lines.append({"kind": "item", **describe_item(snapshot, item)})
        for row in snapshot.revisions.get(item.row.id, ()):
            values = load_optional(row.answer)
            line = _revision(snapshot, item, row)
            lines.append({"kind": "revision", **line, "values": values})
    return lines


def describe_item(snapshot: Snapshot, item: AssignedItem) -> dict[str, JsonValue]:
    """Return all imported data of an item; images by name, checksum and id."""
    row = item.row
    return {
        "id": row.item_key,
        "group": row.group_key,
        "number": row.number,
        "shown": [entry.model_dump() for entry in item.shown],
        "values": load(row.prelabels),
        "gold": load_optional(row.gold),
        "hidden": load(row.hidden),
        "training_round": row.training_round,
        "images": [
            {
                "media": image.id,
                "name": image.name,
                "sha256": image.sha256,
                "file": file_name(image),
            }
            for image in images_of(snapshot, item)
        ],
    }


def images_of(snapshot: Snapshot, item: AssignedItem) -> list[Any]:
    """Return the rows of an item's images, in order."""
    keys = [str(key) for key in load_list(item.row.images)]
    return [snapshot.images[key] for key in keys if key in snapshot.images]


def file_name(image: Any) -> str:
    """Return a unique file name for an exported image, independent of its original name."""
    return f"{image.sha256[:20]}.{str(image.media_type).rpartition('/')[2]}"


def unpack_images(data: bytes, folder: Path) -> None:
    """Write the images of a packed table into a folder, where the table names them."""
    hint = "choose another folder"
    with (
        refuse_unwritable(f"folder {folder}", hint=hint),
        zipfile.ZipFile(io.BytesIO(data)) as archive,
    ):
        archive.extractall(folder, [n for n in archive.namelist() if n.startswith("images/")])


def unpack_folder(data: bytes, out: Path) -> None:
    """Unpack an export into a folder that appears only when it is complete."""
    with refuse_unwritable(f"folder {out}", hint="choose another folder"):
        out.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                archive.extractall(part / "whole")
            if out.is_dir():
                out.rmdir()  # empty, as checked before
            (part / "whole").rename(out)
        finally:
            shutil.rmtree(part, ignore_errors=True)
