"""Import of images and items into a project, and creation of assignments."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotation import queries, schema
from memantics.annotation.context import Visit, dump, keep_settings
from memantics.annotation.errors import AnswerError, Forbidden
from memantics.annotation.policy import list_deciders
from memantics.annotation.records import Media, Rights
from memantics.annotation.tasks import first_states, labels_of, read_assignment, settle_all
from memantics.annotation.values import check, clean_text
from memantics.annotation.workflow import (
    Workflow,
    apply_settings,
    settings_of,
    with_settings,
    workflow_of,
)
from memantics.core.errors import DataError, InputError
from memantics.core.files import whole_file
from memantics.core.ids import find_id_fault
from memantics.core.images import ImageFacts, decode, probe
from memantics.core.memes import read_memes
from memantics.core.queue import ITEMS, QueueItem, Shown

_media = schema.media
ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Stored:
    """An image file that is saved on disk but not yet registered in the database."""

    key: str
    path: Path
    name: str
    digest: str
    size: int
    facts: ImageFacts


def store_image(root: Path, project: int, name: str, data: bytes) -> Stored:
    """Check an image and save it outside any transaction; raise ImageError if it is invalid.

    The first frame is decoded completely, so images that no browser can show are rejected here.
    """
    facts = probe(data, name)
    with decode(data, name) as image:  # rotated upright, as browsers show it
        facts = replace(facts, width=image.width, height=image.height)
    key = secrets.token_hex(16)
    folder = root / str(project)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / key
    with whole_file(path, masked=False) as file:
        file.write(data)
    digest = hashlib.sha256(data).hexdigest()
    return Stored(
        key, path, clean_text(Path(name).name, lines=False)[:300], digest, len(data), facts
    )


def register_image(connection: Connection, project: int, stored: Stored) -> str:
    """Register a saved image and return its id; identical images are stored once per project."""
    known = sa.select(_media.c.id).where(
        _media.c.project_id == project, _media.c.sha256 == stored.digest
    )
    if found := connection.execute(known).scalar_one_or_none():
        stored.path.unlink(missing_ok=True)
        return str(found)
    entry = {
        "id": stored.key,
        "project_id": project,
        "sha256": stored.digest,
        "media_type": stored.facts.mime,
        "width": stored.facts.width,
        "height": stored.facts.height,
        "size": stored.size,
        "name": stored.name,
    }
    connection.execute(sa.insert(_media), entry)
    return stored.key


def find_image(connection: Connection, root: Path, key: str) -> tuple[int, Media]:
    """Return the project and file of an image id; raise Forbidden for unknown ids."""
    row = None
    if ID.fullmatch(key):
        row = connection.execute(sa.select(_media).where(_media.c.id == key)).one_or_none()
    if row is None:
        raise Forbidden
    path = root / str(row.project_id) / str(row.id)
    return row.project_id, Media(row.id, path, row.media_type, row.width, row.height, row.size)


_items, _assignments = schema.items, schema.assignments
_CHUNK = 500


def read_folder(folder: Path) -> Iterator[tuple[QueueItem, Path]]:
    """Yield the memes of a folder as items that show the printed text and all notes."""
    for meme in read_memes(folder):
        shown = [Shown(label="text", value=meme.text)] if meme.text else []
        shown += [Shown(label=name, value=text) for name, text in meme.notes.items() if text]
        yield QueueItem(id=meme.id, group=meme.id, images=[], shown=shown), meme.image


def find_id_problem(item: QueueItem) -> str:
    r"""Return what is wrong with the id or group of an item; empty if nothing is.

    >>> find_id_problem(QueueItem(id="m\t1", group="m1"))
    "id 'm\\t1' contains U+0009"
    """
    for name, text in (("id", item.id), ("group", item.group)):
        if fault := find_id_fault(text):
            return f"{name} {text[:60]!a} {fault}"
    return ""


def check_item(workflow: Workflow, item: QueueItem, where: str, row: int) -> None:
    """Raise an error if the known values of an item do not match the workflow's fields."""
    labels = labels_of(item.shown)
    if problem := find_id_problem(item):
        raise DataError(where, problem, row=row)
    known = {field.id for field in workflow.fields}
    if unknown := sorted(set(item.values) - known):
        raise DataError(
            where,
            f"item {item.id!r} has values for unknown fields: {', '.join(unknown)}",
            row=row,
            hint=f"workflow {workflow.name} has {', '.join(sorted(known))}",
        )
    if item.gold is not None:
        # Free text is not graded, so that it needs no known answer.
        closed = {field.id for field in workflow.fields if field.scale_level != "none"}
        fields = [name for name in workflow.stages[0].fields if name in closed | item.gold.keys()]
        try:
            check(workflow, fields, item.gold, labels=labels, state=item.values)
        except AnswerError as error:
            raise DataError(where, f"gold of item {item.id!r}: {error}", row=row) from error


def check_items(
    items: Sequence[QueueItem], workflow: Workflow, folder: Path
) -> tuple[list[QueueItem], list[str]]:
    """Return the items that can be imported, and the rows of those that cannot.

    An id with control characters concerns one row. Other problems concern the queue as a whole,
    such as a field that the workflow does not have, so that an error is raised.
    """
    usable: list[QueueItem] = []
    problems: list[str] = []
    for row, item in enumerate(items, 1):
        if problem := find_id_problem(item):
            problems.append(f"{ITEMS} row {row}: {problem}")
            continue
        check_item(workflow, item, ITEMS, row)
        usable.append(item)
    if problems and not usable:
        raise DataError(folder, f"no item can be imported: {problems[0]}")
    return usable, problems


def known_keys(connection: Connection, project: int) -> set[str]:
    """Return the keys of a project's items."""
    query = sa.select(_items.c.item_key).where(_items.c.project_id == project)
    return {str(key) for (key,) in connection.execute(query)}


def add_items(
    visit: Visit,
    items: Sequence[tuple[QueueItem, Sequence[str]]],
    *,
    owner: int | None = None,
    rounds: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Insert items with their assignments; each comes with the ids of its images.

    ``rounds`` gives the training round per item. The caller holds the lock of the project, so that
    one import at a time numbers items.
    """
    connection, rights = visit.connection, visit.rights
    count, gold = _present(connection, rights.id)
    for start in range(0, len(items), _CHUNK):
        rows: list[dict[str, object]] = []
        for item, images in items[start : start + _CHUNK]:
            count += 1
            training = rounds.get(item.id, 0)
            if item.gold is not None and not training:
                gold += 1
                training = _training_round(rights, gold)
            rows.append(_item_row(rights.id, count, item, images, training))
            rows[-1] |= {"owner_id": owner, "created_at": visit.now}
        insert = sa.insert(_items).returning(_items.c.id, sort_by_parameter_order=True)
        ids = connection.execute(insert, rows).scalars().all()
        assignments = [
            _new_assignment(row | {"item_id": key, "place": _place(rights, row)}, stage, assignment)
            | {"state": state}
            for key, row in zip(ids, rows, strict=True)
            if not row["training_round"]
            for stage, assignment, state in first_states(rights.workflow, str(row["item_key"]))
        ]
        if assignments:
            connection.execute(sa.insert(_assignments), assignments)
        if any(row["training_round"] for row in rows):
            queries.PASS_EXPERIENCED.run(connection, {"project": rights.id})
    _keep_deciders_out(visit, [item for item, _ in items])
    return len(items)


def _keep_deciders_out(visit: Visit, items: Sequence[QueueItem]) -> None:
    """Skip the memes of appeals for the people who decided on them before."""
    pairs = list_deciders(items)
    users = schema.users.c.id
    known = set(
        visit.connection.execute(sa.select(users).where(users.in_({one for one, _ in pairs})))
        .scalars()
        .all()
    )
    for user, group in pairs:
        if user in known:
            row = {"project_id": visit.rights.id, "user_id": user, "group_key": group}
            queries.ADD_SKIP.run(visit.connection, {**row, "at": visit.now})


def _present(connection: Connection, project: int) -> tuple[int, int]:
    query = sa.select(sa.func.max(_items.c.number), sa.func.count(_items.c.gold)).where(
        _items.c.project_id == project
    )
    row = connection.execute(query).one()
    return int(row[0] or 0), int(row[1] or 0)


def _training_round(rights: Rights, nth: int) -> int:
    """Return the training round of an item, or 0.

    Items with known answers after the last round measure how an annotator's accuracy changes over
    time.
    """
    training = rights.workflow.training
    if training is None or not rights.settings.training:
        return 0
    number = (nth - 1) // training.size + 1
    return number if number <= training.rounds else 0


def spread_rounds(flow: Workflow, items: Sequence[QueueItem]) -> dict[str, int]:
    """Distribute a training set over rounds of equal size and return the round per item.

    >>> from memantics.annotation.workflow import read_workflow
    >>> items = [QueueItem(id=str(number), group="m", gold={}) for number in range(300)]
    >>> rounds = spread_rounds(read_workflow("label-by-vote"), items)
    >>> [rounds[number] for number in ("0", "99", "100", "299")]
    [1, 1, 2, 3]
    """
    rules = flow.training
    if rules is None:
        raise InputError(f"workflow {flow.name} has no training", hint="set a pass mark as well")
    if unknown := [item.id for item in items if item.gold is None]:
        raise InputError(f"item {unknown[0]!r} has no known answer", hint="add 'gold' to each item")
    used = min(rules.rounds, -(-len(items) // rules.size))
    return {item.id: 1 + place * used // len(items) for place, item in enumerate(items)}


def _item_row(
    project: int, number: int, item: QueueItem, images: Sequence[str], training: int
) -> dict[str, object]:
    return {
        "project_id": project,
        "number": number,
        "item_key": item.id,
        "group_key": item.group,
        "images": dump(list(images)),
        "shown": dump([entry.model_dump() for entry in item.shown]),
        "prelabels": dump(item.values),
        "gold": dump(item.gold) if item.gold is not None else None,
        "hidden": dump(item.hidden),
        "training_round": training,
        "state": "open",
    }


def _new_assignment(like: Mapping[str, Any], stage: int, number: int) -> dict[str, object]:
    """Return the columns of a free assignment, copied from a row of the same item."""
    kept = {name: like[name] for name in ("project_id", "item_id", "group_key", "place")}
    return kept | {"stage": stage, "slot": number, "training_round": 0, "version": 0}


def _place(rights: Rights, row: Mapping[str, Any]) -> int:
    shuffle = rights.workflow.shuffle
    return shuffled(rights.id, row["item_key"]) if shuffle else int(row["number"])


def shuffled(project: int, key: str) -> int:
    """Return a pseudo-random position of an item that is the same for every annotator."""
    digest = hashlib.sha256(f"{project}:{key}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def adjust_assignments(connection: Connection, project: int, *, joined: bool = False) -> None:
    """Add missing assignments after a change of settings, and open or close free ones.

    Answers are never deleted. With ``joined``, only the team has changed. That matters only if the
    whole team annotates a part of the items (the setting ``overlap``). The caller holds the lock
    of the project.
    """
    query = sa.select(schema.projects).where(schema.projects.c.id == project)
    row = connection.execute(query).one()
    settings = settings_of(row.settings)
    if joined and not settings.overlap:
        return
    flow = with_settings(row.workflow, row.settings)
    roles = connection.execute(
        sa.select(schema.memberships.c.roles).where(schema.memberships.c.project_id == project)
    )
    team = sum(flow.admits(flow.main_stage, text.split(",")) for text in roles.scalars())
    changed = settings.model_copy(update={"team": team})
    keep_settings(connection, project, changed)
    _add_assignments(connection, project, apply_settings(workflow_of(row.workflow), changed))


def _add_assignments(connection: Connection, project: int, flow: Workflow) -> None:
    mine = sa.select(_assignments).where(
        _assignments.c.project_id == project, _assignments.c.training_round == 0
    )
    ordered = mine.order_by(_assignments.c.id)
    present = _by_item(connection.execute(ordered.with_for_update(key_share=True)).all())
    items = [
        item
        for item in queries.ITEMS.all(connection, {"project": project})
        if not item.training_round and present[item.id]
    ]
    missing = [
        _new_assignment(present[item.id][0]._mapping, stage, number) | {"state": "waiting"}
        for item in items
        for stage in range(len(flow.stages))
        for number in range(
            sum(row.stage == stage for row in present[item.id]),
            flow.annotators_at(stage, item.item_key),
        )
    ]
    if missing:
        connection.execute(sa.insert(_assignments), missing)
        present = _by_item(connection.execute(ordered).all())
    whole = [(item, [read_assignment(row) for row in present[item.id]]) for item in items]
    for _, assignments in whole:
        assignments.sort(key=lambda assignment: (assignment.stage, assignment.slot))
    settle_all(connection, flow, whole)


def _by_item(rows: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.item_id].append(row)
    return found
