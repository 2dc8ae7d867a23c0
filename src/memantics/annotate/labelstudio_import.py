"""Tasks that come back from Label Studio, or come from it for the first time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import orjson
import sqlalchemy as sa
from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.annotate import schema
from memantics.annotate.context import Visit, dump
from memantics.annotate.errors import AnswerError
from memantics.annotate.labelstudio import Annotation, LabelStudioTask, Origin, Past, read_results
from memantics.annotate.leasing import insert_training_seat
from memantics.annotate.membership import find_user, insert_member, insert_user
from memantics.annotate.resolution import state_before
from memantics.annotate.tasks import Seat, make_case, read_seats, settle
from memantics.annotate.values import check, clean_text
from memantics.annotate.workflow import Workflow
from memantics.core.data import conform, inside
from memantics.core.errors import DataError, first_fault
from memantics.core.queue import QueueItem, Shown

_FILE = "tasks"
_TASKS = TypeAdapter(list[LabelStudioTask])
_items, _seats = schema.items, schema.seats


@dataclass(frozen=True, slots=True)
class Incoming:
    """A task as an item of ours, with the answers it brings, and what it names in vain."""

    item: QueueItem
    images: tuple[Path, ...]
    annotations: tuple[Annotation, ...]
    missing: tuple[str, ...]


def read_tasks(text: str | bytes, images: Path | None, workflow: Workflow) -> list[Incoming]:
    """Tasks from a Label Studio export; an error names the task."""
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
                _FILE, f"id {one.item.id!r} comes twice", row=row, hint="name each task once"
            )
        seen.add(one.item.id)
    return found


def _read_task(
    task: LabelStudioTask, row: int, folder: Path | None, workflow: Workflow
) -> Incoming:
    missing: list[str] = []
    if "memantics" in task.data:
        origin = conform(Origin, task.data["memantics"], _FILE, row)
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
) -> tuple[Origin, list[str], list[str]]:
    """A task that somebody else made: texts are shown, everything else is kept out of sight.

    Its first prediction is what a model labelled it with.
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
    return Origin(id=key, group=key, shown=shown, values=values, hidden=hidden), names, problems


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
    """Writes the answers that tasks bring, under the pseudonyms of those who gave them."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._connection = visit.connection
        self._rights = visit.rights
        self._ghosts: dict[str, int] = {}

    def write(self, key: str, annotations: Sequence[Annotation]) -> tuple[int, list[str]]:
        """Fill the seats of an item; how many, and what could not be kept."""
        query = sa.select(_items).where(
            _items.c.project_id == self._rights.id, _items.c.item_key == key
        )
        item = self._connection.execute(query).one()
        order = {stage.id: place for place, stage in enumerate(self._rights.workflow.stages)}
        count, skipped = 0, []
        for entry in sorted(annotations, key=lambda one: _order(one, order)):
            seats = read_seats(self._connection, item.id)
            problem = self._fill(item, seats, entry, order)
            if problem:
                skipped.append(f"{key}: {problem}")
                continue
            count += 1
            if not item.training_round:
                fresh = read_seats(self._connection, item.id)
                state = settle(self._connection, self._rights.workflow, item, fresh)
                item = self._connection.execute(query).one() if state != item.state else item
        return count, skipped

    def _fill(
        self, item: Any, seats: Sequence[Seat], entry: Annotation, order: Mapping[str, int]
    ) -> str:
        workflow = self._rights.workflow
        kept = entry.memantics
        stage = order.get(kept.stage, 0) if kept else 0
        values, unknown = read_results(workflow, entry.result)
        if unknown:
            return f"results for unknown fields: {', '.join(unknown)}"
        shown = self._rights.settings.prelabels == "shown"
        case, fields = make_case(item, seats), workflow.stages[stage].fields
        state = state_before(workflow, stage, case, prelabels=shown)
        try:
            answer = check(workflow, fields, values, labels=case.labels, state=state)
        except AnswerError as error:
            return str(error)
        user = self._ghost(_person(entry))
        if item.training_round:
            seat = self._training_seat(item, user)
        else:
            seat = _free_seat(seats, stage, kept.seat if kept else 0, user)
        if seat is None:
            return f"no seat is left at stage {workflow.stages[stage].id}"
        past = self._past(entry, answer)
        self._write_past(item, seat, stage, past, user)
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
        self._connection.execute(sa.update(_seats).where(_seats.c.id == seat).values(**change))
        return ""

    def _past(self, entry: Annotation, answer: Mapping[str, JsonValue]) -> list[Past]:
        """The versions that led to an answer; what was changed elsewhere is a version more."""
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
        self, item: Any, seat: int, stage: int, past: Sequence[Past], user: int
    ) -> None:
        rows = [
            {
                "project_id": self._rights.id,
                "item_id": item.id,
                "seat_id": seat,
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

    def _training_seat(self, item: Any, user: int) -> int | None:
        taken = sa.select(_seats.c.id).where(_seats.c.item_id == item.id, _seats.c.user_id == user)
        if self._connection.execute(taken).first():
            return None
        return insert_training_seat(self._visit, item, user)

    def _ghost(self, person: str) -> int:
        """A member without an account that anybody could use, under the same pseudonym if free."""
        if person in self._ghosts:
            return self._ghosts[person]
        project = self._rights.id
        name = f"import.{project}.{person}"[:80]
        found = find_user(self._connection, name)
        if found is None:
            found = insert_user(self._connection, name, None, admin=False, now=self._visit.now).id
            insert_member(self._connection, project, found, (), self._visit.now, wanted=person)
        self._ghosts[person] = found
        return found


def _order(entry: Annotation, order: Mapping[str, int]) -> tuple[int, int]:
    kept = entry.memantics
    return (order.get(kept.stage, 0), kept.seat) if kept else (0, 0)


def _person(entry: Annotation) -> str:
    if entry.memantics and entry.memantics.person:
        return clean_text(entry.memantics.person, lines=False)[:40]
    who = entry.completed_by
    if isinstance(who, dict):
        who = str(who.get("email") or who.get("id") or "unknown")
    return clean_text(f"LS-{who if who is not None else 'unknown'}", lines=False)[:40]


def _free_seat(seats: Sequence[Seat], stage: int, wanted: int, user: int) -> int | None:
    """The seat an answer had, else the first free one; nobody answers twice."""
    mine = [seat for seat in seats if seat.stage == stage]
    if any(seat.user == user for seat in mine):
        return None
    free = [seat for seat in mine if seat.state in ("open", "waiting", "closed")]
    exact = [seat for seat in free if seat.seat == wanted]
    return (exact or free)[0].id if free else None
