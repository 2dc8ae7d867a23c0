"""What a person sees of an item: nothing hidden, nothing of others that could sway them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotate.context import Rights, load, load_list
from memantics.annotate.errors import Values
from memantics.annotate.intake import labels_of
from memantics.annotate.records import Actor, Step, Task
from memantics.annotate.resolution import Case, state_before
from memantics.annotate.seating import Seat, make_case, read_seats
from memantics.annotate.statement import Statement
from memantics.annotate.values import turn_pairs
from memantics.annotate.workflow import Workflow
from memantics.core.queue import Shown

_HISTORY = Statement(
    "SELECT r.stage, r.action, r.answer, r.at, r.version, m.pseudonym FROM revisions r"
    " JOIN memberships m ON m.project_id = r.project_id AND m.user_id = r.user_id"
    " WHERE r.item_id = :item ORDER BY r.id"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A seat of an item with everything around it, as one transaction read it."""

    rights: Rights
    item: Any
    seat: Seat
    seats: Sequence[Seat]
    training_round: int
    shown: tuple[Shown, ...]
    labels: frozenset[str]

    @property
    def case(self) -> Case:
        """The item as resolution sees it."""
        return make_case(self.item, self.seats, self.labels)

    @property
    def may_work(self) -> bool:
        """Whether the person's roles cover the stage, in a project that is open for work."""
        role = self.rights.workflow.stages[self.seat.stage].role
        return role in self.rights.roles and not self.rights.archived

    def state(self) -> Values:
        """What stands before this seat's own answer."""
        if self.training_round:
            return {}
        mine = (self.seat.stage, self.seat.seat)
        case = self.case
        earlier = [b for b in case.ballots if (b.stage, b.seat) < mine]
        shown = self.rights.settings.prelabels == "shown"
        before = Case(case.item, case.group, case.prelabels, earlier)
        return state_before(self.rights.workflow, self.seat.stage, before, prelabels=shown)


@lru_cache(maxsize=4096)
def read_shown(text: str) -> tuple[Shown, ...]:
    """The texts of an item."""
    return tuple(Shown.model_validate(entry) for entry in load_list(text))


def make_place(connection: Connection, rights: Rights, row: Any, seat: Seat) -> Place:
    """Read what surrounds a seat. A training seat stands alone."""
    seats = [seat] if row.seat_round else read_seats(connection, row.id)
    shown = read_shown(row.shown)
    return Place(rights, row, seat, seats, row.seat_round, shown, labels_of(shown))


def make_task(connection: Connection, actor: Actor, place: Place) -> Task:
    """The task of a seat as its person sees it."""
    rights, seat, item = place.rights, place.seat, place.item
    stage = rights.workflow.stages[seat.stage]
    swapped = is_swapped(item.id, actor.id)
    shown, images = _order_pairs(rights.workflow, stage.fields, place, swapped=swapped)
    state = place.state()
    prelabels = rights.settings.prelabels == "shown" and stage.kind == "independent"
    suggestions = load(item.prelabels) if prelabels else {}
    draft = _read_draft(place)

    def turn(values: Values) -> dict[str, JsonValue]:
        return turn_pairs(rights.workflow, values, swapped=swapped, outward=True)

    return Task(
        assignment=seat.id,
        project=rights.project,
        number=item.number,
        stage=stage.id,
        kind=stage.kind,
        title=stage.title,
        fields=stage.fields,
        images=images,
        shown=shown,
        state=turn(state),
        suggestions={k: v for k, v in turn(suggestions).items() if k in stage.fields},
        draft=draft,
        answer=turn(seat.answer) if seat.answer is not None else None,
        version=seat.version,
        lease_until=seat.lease_until or 0.0,
        seat=seat.seat if not place.training_round else 0,
        people=stage.people,
        training=bool(place.training_round),
        history=_read_history(connection, place, "sequential"),
        votes=_read_votes(place),
        labels=place.labels,
    )


def is_swapped(item: int, user: int) -> bool:
    """Which of a pair a person sees first: drawn once for each person and item."""
    return bool(hashlib.sha256(f"{item}:{user}".encode()).digest()[0] & 1)


def _order_pairs(
    workflow: Workflow, fields: Sequence[str], place: Place, *, swapped: bool
) -> tuple[tuple[Shown, ...], tuple[str, ...]]:
    images = tuple(load_list(place.item.images))
    compared = {
        workflow.field(name).of.casefold()
        for name in fields
        if workflow.field(name).kind == "pairwise"
    }
    if not swapped or not compared:
        return place.shown, images
    if "images" in compared and len(images) >= 2:
        images = (*images[:-2], images[-1], images[-2])
    shown = tuple(
        entry.model_copy(update={"value": list(reversed(entry.value))})
        if entry.label.casefold() in compared and isinstance(entry.value, list)
        else entry
        for entry in place.shown
    )
    return shown, images


def _read_draft(place: Place) -> Values | None:
    """A draft counts while it is newer than the answer."""
    row = place.item
    if row.draft is None or row.saved_at < (row.submitted_at or 0):
        return None
    return load(row.draft)


def _read_history(connection: Connection, place: Place, kind: str) -> tuple[Step, ...]:
    stages = place.rights.workflow.stages
    if stages[place.seat.stage].kind != kind or place.training_round:
        return ()
    rows = _HISTORY.all(connection, {"item": place.item.id})
    return tuple(
        read_step(place.rights.workflow, row) for row in rows if stages[row.stage].kind == kind
    )


def _read_votes(place: Place) -> tuple[Step, ...]:
    """What an adjudicator decides between: the last answers, the names left out."""
    stages = place.rights.workflow.stages
    if stages[place.seat.stage].kind != "adjudicate":
        return ()
    return tuple(
        Step(f"{number}", stages[seat.stage].id, "submit", seat.answer or {}, 0.0, seat.version)
        for number, seat in enumerate((s for s in place.seats if s.done), 1)
        if stages[seat.stage].kind != "adjudicate"
    )


def read_step(workflow: Workflow, row: Any) -> Step:
    """One entry of a history from its row."""
    stage = workflow.stages[row.stage].id
    return Step(row.pseudonym, stage, row.action, load(row.answer), row.at, row.version)
