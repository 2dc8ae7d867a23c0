"""Seats: who may answer when. The states of all seats of an item follow from its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotate.context import load, load_optional
from memantics.annotate.records import SeatState
from memantics.annotate.resolution import Ballot, Case, find_end, needs_adjudication
from memantics.annotate.statement import Statement
from memantics.annotate.workflow import Workflow

_SEATS = Statement(
    "SELECT id, stage, seat, state, user_id, lease_until, version, answer, submitted_at"
    " FROM seats WHERE item_id = :item AND training_round = 0 ORDER BY stage, seat"
)
# Only what nobody holds is moved: a lease or an answer that came in between stays.
_MOVE = Statement(
    "UPDATE seats SET state = :new, user_id = NULL, lease_until = NULL"
    " WHERE id = :id AND state = :old AND version = :version"
)
_RESET = Statement(
    "UPDATE seats SET state = 'waiting', user_id = NULL, lease_until = NULL, answer = NULL,"
    " submitted_at = NULL, seconds = NULL WHERE id = :id"
)
_FINISH = Statement("UPDATE items SET state = :state WHERE id = :id")


@dataclass(frozen=True, slots=True)
class Seat:
    """One place for one answer."""

    id: int
    stage: int
    seat: int
    state: SeatState
    user: int | None
    lease_until: float | None
    version: int
    answer: dict[str, JsonValue] | None

    @property
    def done(self) -> bool:
        """Whether its answer counts."""
        return self.state == "done"


def read_seats(connection: Connection, item: int) -> list[Seat]:
    """All seats of an item, in order."""
    return [read_seat(row) for row in _SEATS.all(connection, {"item": item})]


def read_seat(row: Any) -> Seat:
    """A seat from its row."""
    return Seat(
        row.id,
        row.stage,
        row.seat,
        row.state,
        row.user_id,
        row.lease_until,
        row.version,
        load_optional(row.answer),
    )


def make_case(item: Any, seats: Sequence[Seat], labels: frozenset[str] = frozenset()) -> Case:
    """What resolution needs to know of an item."""
    ballots = [
        Ballot(seat.stage, seat.seat, seat.answer)
        for seat in seats
        if seat.done and seat.answer is not None
    ]
    return Case(
        item=item.item_key,
        group=item.group_key,
        prelabels=load(item.prelabels),
        ballots=ballots,
        complete=item.state == "done",
        labels=labels,
    )


def plan_states(workflow: Workflow, seats: Sequence[Seat], case: Case) -> dict[int, SeatState]:
    """The state that every seat should have; seats that are leased or done keep theirs."""
    wanted: dict[int, SeatState] = {}
    ended = bool(find_end(workflow, case.ballots))
    reached = True
    for place, stage in enumerate(workflow.stages):
        mine = [seat for seat in seats if seat.stage == place]
        free = [seat for seat in mine if seat.state not in ("done", "leased")]
        state: SeatState = "open" if reached else "waiting"
        if ended or (
            stage.kind == "adjudicate" and reached and not needs_adjudication(workflow, case)
        ):
            state = "closed"
        wanted |= {seat.id: state for seat in free}
        if stage.kind == "sequential" and state == "open":
            busy = any(seat.state == "leased" for seat in mine)
            for number, seat in enumerate(free):
                wanted[seat.id] = "open" if number == 0 and not busy else "waiting"
        reached = reached and all(
            seat.done or wanted.get(seat.id, seat.state) == "closed" for seat in mine
        )
    return wanted


def settle(
    connection: Connection,
    workflow: Workflow,
    item: Any,
    seats: Sequence[Seat],
    labels: frozenset[str],
) -> str:
    """Bring the states of an item's seats in line with its answers; returns the item's state."""
    wanted = plan_states(workflow, seats, make_case(item, seats, labels))
    moves = [
        {"id": seat.id, "new": wanted[seat.id], "old": seat.state, "version": seat.version}
        for seat in seats
        if seat.id in wanted and wanted[seat.id] != seat.state
    ]
    if moves:
        _MOVE.run_each(connection, moves)
    finished = all(wanted.get(seat.id, seat.state) in ("done", "closed") for seat in seats)
    state = "done" if finished else "open"
    if state != item.state:
        _FINISH.run(connection, {"id": item.id, "state": state})
    return state


def first_states(workflow: Workflow) -> list[tuple[int, int, SeatState]]:
    """Stage, seat and state of every seat of a fresh item."""
    seats = [
        Seat(number, place, seat, "waiting", None, None, 0, None)
        for number, (place, seat) in enumerate(
            (place, seat)
            for place, stage in enumerate(workflow.stages)
            for seat in range(stage.people)
        )
    ]
    wanted = plan_states(workflow, seats, Case("", "", {}, ()))
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
    _RESET.run_each(connection, [{"id": seat.id} for seat in seats])


def with_answer(
    seats: Sequence[Seat], mine: int, answer: dict[str, JsonValue] | None, state: SeatState
) -> list[Seat]:
    """The seats as they are after one of them changed."""
    return [
        replace(seat, answer=answer, state=state, version=seat.version + 1)
        if seat.id == mine
        else seat
        for seat in seats
    ]
