"""Assignments of an item, and the task that an annotator sees."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotation import aggregation, queries
from memantics.annotation.aggregation import AggregationCase, StageAnnotation
from memantics.annotation.context import (
    ServiceContext,
    Visit,
    load,
    load_list,
    load_optional,
    read_rights,
)
from memantics.annotation.errors import FieldValues, Forbidden
from memantics.annotation.policy import refuse_others
from memantics.annotation.records import (
    Actor,
    AnnotationTask,
    AssignmentState,
    HistoryStep,
    record_of,
)
from memantics.annotation.values import turn_pairs
from memantics.annotation.workflow import Stage, Workflow
from memantics.core.queue import Shown


@dataclass(frozen=True, slots=True)
class Assignment:
    """One slot for one answer; the slot of a training assignment is the account id."""

    id: int
    stage: int
    slot: int
    state: AssignmentState
    user: int | None = None
    lease_until: float | None = None
    version: int = 0
    answer: dict[str, JsonValue] | None = None
    submitted_at: float | None = None
    seconds: float | None = None
    training_round: int = 0

    @property
    def done(self) -> bool:
        """Return whether the assignment has a submitted answer."""
        return self.state == "done"


def read_assignments(connection: Connection, item: int) -> list[Assignment]:
    """Return all assignments of an item, in order."""
    return [read_assignment(row) for row in queries.ASSIGNMENTS.all(connection, {"item": item})]


def read_assignment(row: Any, **given: object) -> Assignment:
    """Build an assignment from its row."""
    answer = load_optional(row.answer)
    return record_of(Assignment, row, user=row.user_id, answer=answer, **given)


def make_case(item: Any, assignments: Sequence[Assignment]) -> AggregationCase:
    """Build the input of the aggregation, without training answers."""
    annotations = [
        StageAnnotation(assignment.stage, assignment.slot, assignment.answer)
        for assignment in assignments
        if assignment.done and assignment.answer is not None and not assignment.training_round
    ]
    return AggregationCase(
        item=item.item_key,
        group=item.group_key,
        prelabels=load(item.prelabels),
        annotations=annotations,
        complete=item.state == "done",
        labels=labels_of(read_shown(item.shown)),
    )


def plan_states(
    workflow: Workflow, assignments: Sequence[Assignment], case: AggregationCase
) -> dict[int, AssignmentState]:
    """Return the state of every assignment; leased and answered ones keep theirs."""
    wanted: dict[int, AssignmentState] = {}
    ended = bool(aggregation.find_exclusion(workflow, case))
    reached = True
    for place, stage in enumerate(workflow.stages):
        mine = [assignment for assignment in assignments if assignment.stage == place]
        free = [assignment for assignment in mine if assignment.state not in ("done", "leased")]
        state: AssignmentState = "open" if reached else "waiting"
        if ended or (
            stage.kind == "adjudicate"
            and reached
            and not aggregation.needs_adjudication(workflow, case)
        ):
            state = "closed"
        # With fewer annotators per item than before, answers stay and free assignments close.
        room = max(workflow.annotators_at(place, case.item) - len(mine) + len(free), 0)
        wanted |= {assignment.id: state for assignment in free[:room]}
        wanted |= {assignment.id: "closed" for assignment in free[room:]}
        if stage.kind == "sequential" and state == "open":
            busy = any(assignment.state == "leased" for assignment in mine)
            for number, assignment in enumerate(free[:room]):
                wanted[assignment.id] = "open" if number == 0 and not busy else "waiting"
        reached = reached and all(
            assignment.done or wanted.get(assignment.id, assignment.state) == "closed"
            for assignment in mine
        )
    return wanted


def settle(
    connection: Connection, workflow: Workflow, item: Any, assignments: Sequence[Assignment]
) -> str:
    """Update the states of an item's assignments after a change; return the item's state."""
    return settle_all(connection, workflow, [(item, assignments)])[0]


def settle_all(
    connection: Connection, workflow: Workflow, items: Sequence[tuple[Any, Sequence[Assignment]]]
) -> list[str]:
    """Update the states of the assignments of many items; return the states of the items."""
    plans = [_plan_moves(workflow, item, assignments) for item, assignments in items]
    queries.MOVE_ASSIGNMENT.run_each(connection, [move for moves, _ in plans for move in moves])
    changed = [
        {"item": item.id, "new": state}
        for (item, _), (_, state) in zip(items, plans, strict=True)
        if state != item.state
    ]
    queries.SET_ITEM_STATE.run_each(connection, changed)
    return [state for _, state in plans]


def _plan_moves(
    workflow: Workflow, item: Any, assignments: Sequence[Assignment]
) -> tuple[list[dict[str, object]], str]:
    """Return the changes of an item's assignments as query parameters, and the item's state."""
    wanted = plan_states(workflow, assignments, make_case(item, assignments))
    moves: list[dict[str, object]] = [
        {
            "assignment": assignment.id,
            "new": wanted[assignment.id],
            "old": assignment.state,
            "seen": assignment.version,
        }
        for assignment in assignments
        if assignment.id in wanted and wanted[assignment.id] != assignment.state
    ]
    finished = all(
        wanted.get(assignment.id, assignment.state) in ("done", "closed")
        for assignment in assignments
    )
    return moves, "done" if finished else "open"


def first_states(workflow: Workflow, item: str) -> list[tuple[int, int, AssignmentState]]:
    """Return stage, slot and state of every assignment of a new item."""
    assignments = [
        Assignment(number, place, assignment, "waiting")
        for number, (place, assignment) in enumerate(
            (place, assignment)
            for place in range(len(workflow.stages))
            for assignment in range(workflow.annotators_at(place, item))
        )
    ]
    wanted = plan_states(workflow, assignments, AggregationCase(item, "", {}, ()))
    return [
        (assignment.stage, assignment.slot, wanted[assignment.id]) for assignment in assignments
    ]


def find_later(
    workflow: Workflow, assignments: Sequence[Assignment], mine: Assignment
) -> list[Assignment]:
    """Return the assignments that start from the answer of this one."""
    chained = workflow.stages[mine.stage].kind == "sequential"
    return [
        assignment
        for assignment in assignments
        if assignment.stage > mine.stage
        or (chained and assignment.stage == mine.stage and assignment.slot > mine.slot)
    ]


def rests_on(
    workflow: Workflow, assignments: Sequence[Assignment], mine: Assignment, now: float
) -> bool:
    """Return whether later answers depend on an answer, so that it is locked."""
    return any(
        assignment.done
        or (
            assignment.state == "leased"
            and now < (assignment.lease_until or 0) <= now + queries.LONGEST_LEASE
        )
        for assignment in find_later(workflow, assignments, mine)
    )


def reset_assignments(connection: Connection, assignments: Sequence[Assignment]) -> None:
    """Clear answers and leases; the history is kept."""
    queries.RESET_ASSIGNMENT.run_each(
        connection, [{"assignment": assignment.id} for assignment in assignments]
    )


@dataclass(frozen=True, slots=True)
class OpenAssignment:
    """An assignment with its item and the item's other assignments, from one transaction."""

    visit: Visit
    item: Any
    assignment: Assignment
    assignments: Sequence[Assignment]

    @property
    def shown(self) -> tuple[Shown, ...]:
        """Return the texts shown with the item."""
        return read_shown(self.item.shown)

    @property
    def labels(self) -> frozenset[str]:
        """Return the labels of the shown texts."""
        return labels_of(self.shown)

    @property
    def stage(self) -> Stage:
        """Return the stage of the assignment."""
        return self.visit.flow.stages[self.assignment.stage]

    @property
    def may_work(self) -> bool:
        """Return whether the person has a role for the stage and the project is open."""
        rights = self.visit.rights
        return self.visit.flow.admits(self.assignment.stage, rights.roles) and not rights.archived

    def check_work(self) -> None:
        """Raise Forbidden unless the person may work; RoleRefused if a policy is the reason."""
        refuse_others(self.visit.flow, self.visit.rights.roles, self.visit.rights.pseudonym)
        if not self.may_work:
            raise Forbidden

    def state(self) -> FieldValues:
        """Return the field values before the answer of this assignment."""
        if self.assignment.training_round:
            return {}
        mine = (self.assignment.stage, self.assignment.slot)
        case = make_case(self.item, self.assignments)
        earlier = [b for b in case.annotations if (b.stage, b.slot) < mine]
        shown = self.visit.rights.settings.prelabels == "shown"
        before = AggregationCase(case.item, case.group, case.prelabels, earlier)
        return aggregation.state_before(
            self.visit.flow, self.assignment.stage, before, prelabels=shown
        )

    def settle(self, assignments: Sequence[Assignment]) -> None:
        """Update the states of all assignments after a change."""
        settle(self.visit.connection, self.visit.flow, self.item, assignments)

    def turn(self, values: FieldValues) -> dict[str, JsonValue]:
        """Return an answer in the display order of pairs for this person."""
        return turn_pairs(self.visit.flow, values, swapped=self.swapped, outward=True)

    @property
    def swapped(self) -> bool:
        """Return whether this person sees the second element of a pair first."""
        return is_swapped(self.item.id, self.visit.actor.id)


def find_place(
    context: ServiceContext,
    connection: Connection,
    actor: Actor,
    assignment: int,
    *,
    lock: bool = False,
) -> OpenAssignment:
    """Return an assignment with its item for a project member; raise Forbidden otherwise.

    A training assignment is returned without the item's other assignments.
    """
    key = {"assignment": assignment, "user": actor.id}
    if lock and not context.db.sqlite:
        queries.LOCK_MEMBER.all(connection, key)
        lock_item(connection, assignment)
    row = queries.PLACE.one(connection, key)
    if row is None:
        raise Forbidden
    visit = Visit(context, connection, actor, read_rights(row), context.clock())
    mine = read_assignment(
        row, id=row.assignment_id, state=row.assignment_state, training_round=row.assignment_round
    )
    return OpenAssignment(
        visit, row, mine, [mine] if row.assignment_round else read_assignments(connection, row.id)
    )


def own_place(
    context: ServiceContext,
    connection: Connection,
    actor: Actor,
    assignment: int,
    *,
    lock: bool = False,
) -> OpenAssignment:
    """Return an assignment that the person holds or answered; raise Forbidden otherwise."""
    place = find_place(context, connection, actor, assignment, lock=lock)
    if place.assignment.user != actor.id:
        raise Forbidden
    place.check_work()
    return place


def lock_item(connection: Connection, assignment: int) -> None:
    """Lock an item, so that changes of its assignments are sequential (PostgreSQL only)."""
    if connection.dialect.name != "sqlite":
        queries.LOCK_ITEM.all(connection, {"assignment": assignment})


def lock_assignments(connection: Connection, item: int) -> list[Assignment]:
    """Lock an item as :func:`lock_item` does, and return its assignments."""
    if connection.dialect.name != "sqlite":
        queries.LOCK_ASSIGNMENTS.all(connection, {"item": item})
    return read_assignments(connection, item)


@lru_cache(maxsize=4096)
def read_shown(text: str) -> tuple[Shown, ...]:
    """Parse the texts shown with an item (cached)."""
    return tuple(Shown.model_validate(entry) for entry in load_list(text))


def labels_of(shown: Sequence[Shown]) -> frozenset[str]:
    """Return the labels of the shown texts in lower case."""
    return frozenset(entry.label.casefold() for entry in shown)


def make_task(place: OpenAssignment) -> AnnotationTask:
    """Build the task of an assignment as the annotator sees it."""
    rights, assignment, item, stage = place.visit.rights, place.assignment, place.item, place.stage
    shown, images = _order_pairs(place)
    prelabels = rights.settings.prelabels == "shown" and stage.kind == "independent"
    suggestions = place.turn(load(item.prelabels)) if prelabels else {}
    return AnnotationTask(
        assignment=assignment.id,
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
        answer=place.turn(assignment.answer) if assignment.answer is not None else None,
        version=assignment.version,
        lease_until=assignment.lease_until or 0.0,
        slot=assignment.slot if not assignment.training_round else 0,
        annotators=stage.annotators,
        training=bool(assignment.training_round),
        history=_read_history(place),
        annotations=_read_annotations(place),
        labels=place.labels,
    )


def is_swapped(item: int, user: int) -> bool:
    """Return whether a person sees a pair in reverse order; random per person and item."""
    return bool(hashlib.sha256(f"{item}:{user}".encode()).digest()[0] & 1)


def _order_pairs(place: OpenAssignment) -> tuple[tuple[Shown, ...], tuple[str, ...]]:
    images = tuple(load_list(place.item.images))
    fields = place.visit.flow.stage_fields(place.assignment.stage)
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


def _read_draft(place: OpenAssignment) -> FieldValues | None:
    """Return the draft if it is newer than the answer."""
    row = place.item
    if row.draft is None or row.saved_at < (row.submitted_at or 0):
        return None
    return load(row.draft)


def _read_history(place: OpenAssignment) -> tuple[HistoryStep, ...]:
    """Return the earlier steps of all sequential stages."""
    flow = place.visit.flow
    if place.stage.kind != "sequential" or place.assignment.training_round:
        return ()
    rows = queries.HISTORY.all(place.visit.connection, {"item": place.item.id})
    return tuple(
        read_step(flow, row) for row in rows if flow.stages[row.stage].kind == "sequential"
    )


def _read_annotations(place: OpenAssignment) -> tuple[HistoryStep, ...]:
    """Return the answers that an adjudicator decides between, without names."""
    stages = place.visit.flow.stages
    if place.stage.kind != "adjudicate" or place.stage.blind:
        return ()
    return tuple(
        HistoryStep(
            f"{number}",
            stages[assignment.stage].id,
            "submit",
            assignment.answer or {},
            0.0,
            assignment.version,
        )
        for number, assignment in enumerate((s for s in place.assignments if s.done), 1)
        if stages[assignment.stage].kind != "adjudicate"
    )


def read_step(workflow: Workflow, row: Any) -> HistoryStep:
    """Build a history entry from its row."""
    stage = workflow.stages[row.stage].id
    return record_of(HistoryStep, row, person=row.pseudonym, stage=stage, values=load(row.answer))
