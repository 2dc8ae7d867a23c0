"""Seats of an item, and the task that a person sees: nothing of others that could sway them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotation import queries, resolution
from memantics.annotation.context import (
    ServiceContext,
    Visit,
    load,
    load_list,
    load_optional,
    read_rights,
)
from memantics.annotation.errors import FieldValues, Forbidden
from memantics.annotation.records import Actor, AnnotationTask, HistoryStep, SeatState, record_of
from memantics.annotation.resolution import Ballot, ResolutionCase
from memantics.annotation.values import turn_pairs
from memantics.annotation.workflow import Stage, Workflow
from memantics.core.queue import Shown


@dataclass(frozen=True, slots=True)
class Seat:
    """One place for one answer; those of a training round are numbered by the person."""

    id: int
    stage: int
    seat: int
    state: SeatState
    user: int | None = None
    lease_until: float | None = None
    version: int = 0
    answer: dict[str, JsonValue] | None = None
    submitted_at: float | None = None
    seconds: float | None = None
    training_round: int = 0

    @property
    def done(self) -> bool:
        """Whether its answer counts."""
        return self.state == "done"


def read_seats(connection: Connection, item: int) -> list[Seat]:
    """All seats of an item, in order."""
    return [read_seat(row) for row in queries.SEATS.all(connection, {"item": item})]


def read_seat(row: Any, **given: object) -> Seat:
    """A seat from its row."""
    answer = load_optional(row.answer)
    return record_of(Seat, row, user=row.user_id, answer=answer, **given)


def make_case(item: Any, seats: Sequence[Seat]) -> ResolutionCase:
    """What resolution needs to know of an item; training answers are left out."""
    ballots = [
        Ballot(seat.stage, seat.seat, seat.answer)
        for seat in seats
        if seat.done and seat.answer is not None and not seat.training_round
    ]
    return ResolutionCase(
        item=item.item_key,
        group=item.group_key,
        prelabels=load(item.prelabels),
        ballots=ballots,
        complete=item.state == "done",
        labels=labels_of(read_shown(item.shown)),
    )


def plan_states(
    workflow: Workflow, seats: Sequence[Seat], case: ResolutionCase
) -> dict[int, SeatState]:
    """The state that every seat should have; seats that are leased or done keep theirs."""
    wanted: dict[int, SeatState] = {}
    ended = bool(resolution.find_end(workflow, case))
    reached = True
    for place, stage in enumerate(workflow.stages):
        mine = [seat for seat in seats if seat.stage == place]
        free = [seat for seat in mine if seat.state not in ("done", "leased")]
        state: SeatState = "open" if reached else "waiting"
        if ended or (
            stage.kind == "adjudicate"
            and reached
            and not resolution.needs_adjudication(workflow, case)
        ):
            state = "closed"
        # A project may ask fewer people than once: their answers stay, free seats are closed.
        room = max(workflow.people_at(place, case.item) - len(mine) + len(free), 0)
        wanted |= {seat.id: state for seat in free[:room]}
        wanted |= {seat.id: "closed" for seat in free[room:]}
        if stage.kind == "sequential" and state == "open":
            busy = any(seat.state == "leased" for seat in mine)
            for number, seat in enumerate(free[:room]):
                wanted[seat.id] = "open" if number == 0 and not busy else "waiting"
        reached = reached and all(
            seat.done or wanted.get(seat.id, seat.state) == "closed" for seat in mine
        )
    return wanted


def settle(connection: Connection, workflow: Workflow, item: Any, seats: Sequence[Seat]) -> str:
    """Bring the states of an item's seats in line with its answers; returns the item's state."""
    wanted = plan_states(workflow, seats, make_case(item, seats))
    moves = [
        {"seat": seat.id, "new": wanted[seat.id], "old": seat.state, "seen": seat.version}
        for seat in seats
        if seat.id in wanted and wanted[seat.id] != seat.state
    ]
    queries.MOVE_SEAT.run_each(connection, moves)
    finished = all(wanted.get(seat.id, seat.state) in ("done", "closed") for seat in seats)
    state = "done" if finished else "open"
    if state != item.state:
        queries.SET_ITEM_STATE.run(connection, {"item": item.id, "new": state})
    return state


def first_states(workflow: Workflow, item: str) -> list[tuple[int, int, SeatState]]:
    """Stage, seat and state of every seat of a fresh item."""
    seats = [
        Seat(number, place, seat, "waiting")
        for number, (place, seat) in enumerate(
            (place, seat)
            for place in range(len(workflow.stages))
            for seat in range(workflow.people_at(place, item))
        )
    ]
    wanted = plan_states(workflow, seats, ResolutionCase(item, "", {}, ()))
    return [(seat.stage, seat.seat, wanted[seat.id]) for seat in seats]


def find_later(workflow: Workflow, seats: Sequence[Seat], mine: Seat) -> list[Seat]:
    """The seats whose people start from the answer of this one."""
    chained = workflow.stages[mine.stage].kind == "sequential"
    return [
        seat
        for seat in seats
        if seat.stage > mine.stage
        or (chained and seat.stage == mine.stage and seat.seat > mine.seat)
    ]


def rests_on(workflow: Workflow, seats: Sequence[Seat], mine: Seat, now: float) -> bool:
    """Whether somebody else's work builds on an answer, so that it must not change any more."""
    return any(
        seat.done or (seat.state == "leased" and (seat.lease_until or 0) > now)
        for seat in find_later(workflow, seats, mine)
    )


def reset_seats(connection: Connection, seats: Sequence[Seat]) -> None:
    """Let answers and leases go; what was said stays in history."""
    queries.RESET_SEAT.run_each(connection, [{"seat": seat.id} for seat in seats])


@dataclass(frozen=True, slots=True)
class OpenSeat:
    """A seat of an item with everything around it, as one transaction read it."""

    visit: Visit
    item: Any
    seat: Seat
    seats: Sequence[Seat]

    @property
    def shown(self) -> tuple[Shown, ...]:
        """The texts of the item."""
        return read_shown(self.item.shown)

    @property
    def labels(self) -> frozenset[str]:
        """The labels of what is shown."""
        return labels_of(self.shown)

    @property
    def stage(self) -> Stage:
        """The stage at which the seat stands."""
        return self.visit.flow.stages[self.seat.stage]

    @property
    def may_work(self) -> bool:
        """Whether the person's roles cover the stage, in a project that is open for work."""
        rights = self.visit.rights
        return self.stage.role in rights.roles and not rights.archived

    def state(self) -> FieldValues:
        """What stands before the answer of this seat."""
        if self.seat.training_round:
            return {}
        mine = (self.seat.stage, self.seat.seat)
        case = make_case(self.item, self.seats)
        earlier = [b for b in case.ballots if (b.stage, b.seat) < mine]
        shown = self.visit.rights.settings.prelabels == "shown"
        before = ResolutionCase(case.item, case.group, case.prelabels, earlier)
        return resolution.state_before(self.visit.flow, self.seat.stage, before, prelabels=shown)

    def settle(self, seats: Sequence[Seat]) -> None:
        """Bring the seats, as they are after a change, in line with their answers."""
        settle(self.visit.connection, self.visit.flow, self.item, seats)

    def turn(self, values: FieldValues) -> dict[str, JsonValue]:
        """An answer as its person sees it: pairs in the order that was drawn for them."""
        return turn_pairs(self.visit.flow, values, swapped=self.swapped, outward=True)

    @property
    def swapped(self) -> bool:
        """Whether the person sees the second of a pair first."""
        return is_swapped(self.item.id, self.visit.actor.id)


def find_place(
    context: ServiceContext, connection: Connection, actor: Actor, seat: int, *, lock: bool = False
) -> OpenSeat:
    """A seat with its surroundings, for a member of its project; anybody else is refused.

    A training seat stands alone.
    """
    key = {"seat": seat, "user": actor.id}
    if lock and not context.db.sqlite:
        queries.LOCK_MEMBER.all(connection, key)
        lock_item(connection, seat)
    row = queries.PLACE.one(connection, key)
    if row is None:
        raise Forbidden
    visit = Visit(context, connection, actor, read_rights(row), context.clock())
    mine = read_seat(row, id=row.seat_id, state=row.seat_state, training_round=row.seat_round)
    return OpenSeat(visit, row, mine, [mine] if row.seat_round else read_seats(connection, row.id))


def own_place(
    context: ServiceContext, connection: Connection, actor: Actor, seat: int, *, lock: bool = False
) -> OpenSeat:
    """The place of a seat that a person holds or answered, and may still work at."""
    place = find_place(context, connection, actor, seat, lock=lock)
    if place.seat.user != actor.id or not place.may_work:
        raise Forbidden
    return place


def lock_item(connection: Connection, seat: int) -> None:
    """Make everybody else wait who changes a seat of the same item; SQLite has one writer."""
    if connection.dialect.name != "sqlite":
        queries.LOCK_ITEM.all(connection, {"seat": seat})


@lru_cache(maxsize=4096)
def read_shown(text: str) -> tuple[Shown, ...]:
    """The texts of an item."""
    return tuple(Shown.model_validate(entry) for entry in load_list(text))


def labels_of(shown: Sequence[Shown]) -> frozenset[str]:
    """The labels by which conditions ask what an item shows."""
    return frozenset(entry.label.casefold() for entry in shown)


def make_task(place: OpenSeat) -> AnnotationTask:
    """The task of a seat as its person sees it."""
    rights, seat, item, stage = place.visit.rights, place.seat, place.item, place.stage
    shown, images = _order_pairs(place)
    prelabels = rights.settings.prelabels == "shown" and stage.kind == "independent"
    suggestions = place.turn(load(item.prelabels)) if prelabels else {}
    return AnnotationTask(
        assignment=seat.id,
        project=rights.id,
        number=item.number,
        stage=stage.id,
        kind=stage.kind,
        title=stage.title,
        fields=stage.fields,
        images=images,
        shown=shown,
        state=place.turn(place.state()),
        suggestions={k: v for k, v in suggestions.items() if k in stage.fields},
        draft=_read_draft(place),
        answer=place.turn(seat.answer) if seat.answer is not None else None,
        version=seat.version,
        lease_until=seat.lease_until or 0.0,
        seat=seat.seat if not seat.training_round else 0,
        people=stage.people,
        training=bool(seat.training_round),
        history=_read_history(place),
        votes=_read_votes(place),
        labels=place.labels,
    )


def is_swapped(item: int, user: int) -> bool:
    """Which of a pair a person sees first: drawn once for each person and item."""
    return bool(hashlib.sha256(f"{item}:{user}".encode()).digest()[0] & 1)


def _order_pairs(place: OpenSeat) -> tuple[tuple[Shown, ...], tuple[str, ...]]:
    images = tuple(load_list(place.item.images))
    fields = place.visit.flow.stage_fields(place.seat.stage)
    compared = {field.of.casefold() for field in fields if field.kind == "pairwise"}
    if not place.swapped or not compared:
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


def _read_draft(place: OpenSeat) -> FieldValues | None:
    """A draft counts while it is newer than the answer."""
    row = place.item
    if row.draft is None or row.saved_at < (row.submitted_at or 0):
        return None
    return load(row.draft)


def _read_history(place: OpenSeat) -> tuple[HistoryStep, ...]:
    """What the people of a chain did before, with all of its stages."""
    flow = place.visit.flow
    if place.stage.kind != "sequential" or place.seat.training_round:
        return ()
    rows = queries.HISTORY.all(place.visit.connection, {"item": place.item.id})
    return tuple(
        read_step(flow, row) for row in rows if flow.stages[row.stage].kind == "sequential"
    )


def _read_votes(place: OpenSeat) -> tuple[HistoryStep, ...]:
    """What an adjudicator decides between: the last answers, the names left out."""
    stages = place.visit.flow.stages
    if place.stage.kind != "adjudicate" or place.stage.blind:
        return ()
    return tuple(
        HistoryStep(
            f"{number}", stages[seat.stage].id, "submit", seat.answer or {}, 0.0, seat.version
        )
        for number, seat in enumerate((s for s in place.seats if s.done), 1)
        if stages[seat.stage].kind != "adjudicate"
    )


def read_step(workflow: Workflow, row: Any) -> HistoryStep:
    """One entry of a history from its row."""
    stage = workflow.stages[row.stage].id
    return record_of(HistoryStep, row, person=row.pseudonym, stage=stage, values=load(row.answer))
