"""The annotator's actions: take, answer, revise, undo, skip or release an item.

Every change is a new revision. A change never overwrites a version that its author has not seen.
Every change runs in a transaction that has read the assignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from typing import Any

from pydantic import JsonValue

from memantics.annotation import leasing, queries, records, tasks
from memantics.annotation.context import DAY, ServiceContext, Visit, dump, load
from memantics.annotation.errors import (
    AnswerError,
    Conflict,
    ConsentMissing,
    FieldValues,
    Forbidden,
    GuidelineChanged,
    Locked,
)
from memantics.annotation.faults import retried
from memantics.annotation.leasing import give_feedback, is_due, rearrange
from memantics.annotation.policy import refuse_others
from memantics.annotation.project_settings import LocalizedText
from memantics.annotation.records import (
    Action,
    Actor,
    AnnotationTask,
    AssignmentState,
    Rights,
    Saved,
    record_of,
)
from memantics.annotation.tasks import (
    Assignment,
    OpenAssignment,
    find_later,
    reset_assignments,
    rests_on,
)
from memantics.annotation.values import check, turn_pairs
from memantics.core.errors import StoreError
from memantics.web.logs import note_failure

LARGEST = 200_000


def submit_answer(
    place: OpenAssignment, values: FieldValues, version: int, seconds: float | None
) -> Saved | Conflict:
    """Save an answer, or return a conflict and keep the answer as a draft."""
    place.check_work()
    assignment, workflow = place.assignment, place.visit.flow
    kept = turn_pairs(workflow, values, swapped=place.swapped, outward=False)
    if assignment.user != place.visit.actor.id:
        key = place.visit.key | {"item": place.item.id}
        if queries.WAS_SEEN.one(place.visit.connection, key) is None:
            raise Forbidden
        # The lease expired and another person has the assignment: keep the input as a draft.
        return _conflict(place, values)
    if assignment.state not in ("leased", "done"):
        raise Locked("this item is no longer open")
    answer = check(workflow, place.stage.fields, kept, labels=place.labels, state=place.state())
    if version != assignment.version:
        if assignment.done and assignment.answer == answer:
            return Saved(assignment.id, assignment.version, again=True)
        return _conflict(place, values)
    if assignment.done:
        _refuse_settled(place)
        if assignment.answer == answer:
            return Saved(assignment.id, assignment.version, again=True)
    _write_revision(place, "edit" if assignment.done else "submit", answer, _plausible(seconds))
    feedback = give_feedback(place.visit, place.item, answer) if assignment.training_round else None
    return Saved(assignment.id, assignment.version + 1, feedback=feedback)


def undo_answer(place: OpenAssignment, version: int) -> None:
    """Restore the previous answer; without one, reopen the form."""
    assignment = place.assignment
    if not assignment.done:
        raise Locked("there is no answer to undo")
    stands = place.turn(assignment.answer or {})
    if version != assignment.version:
        raise Conflict(stands, stands, assignment.version, by_me=True)
    _refuse_settled(place)
    former = _former(place)
    _write_revision(place, "undo", former)
    if former is None:
        keep_draft(place, stands)


def skip_item(place: OpenAssignment) -> None:
    """Skip a meme; it is never shown to this person again."""
    visit, item = place.visit, place.item
    skipped = {"project_id": visit.rights.id, "user_id": visit.actor.id, "at": visit.now}
    queries.ADD_SKIP.run(visit.connection, skipped | {"group_key": item.group_key})
    visit.log("item.skip", f"item:{item.id}")
    if place.assignment.state == "leased":
        _let_go(place)


def release_item(place: OpenAssignment) -> None:
    """Release the lease of an item."""
    if place.assignment.state != "leased":
        raise Locked("this item is not assigned to you")
    if not place.assignment.training_round:  # training items are never reassigned
        _let_go(place)


def keep_draft(place: OpenAssignment, values: FieldValues) -> None:
    """Save the unsubmitted input of a person."""
    try:
        text = dump(dict(values))
    except TypeError as error:  # lone surrogates or infinite numbers, which browsers never send
        raise AnswerError({"draft": "contains invalid values"}) from error
    if len(text) > LARGEST:
        raise AnswerError({"draft": "is too long"})
    visit, assignment = place.visit, place.assignment
    # Newer than the answer, even if the clock was set back in between.
    at = max(visit.now, assignment.submitted_at or 0.0)
    draft = {"assignment_id": assignment.id, "user_id": visit.actor.id, "saved_at": at}
    queries.KEEP_DRAFT.run(visit.connection, draft | {"answer": text})


def _let_go(place: OpenAssignment) -> None:
    connection, mine = place.visit.connection, place.assignment
    if mine.training_round:
        queries.CLOSE_ASSIGNMENT.run(connection, {"assignment": mine.id})
        return
    reset_assignments(connection, [mine])
    place.settle(
        [
            _freed(assignment) if assignment.id == mine.id else assignment
            for assignment in place.assignments
        ]
    )


def _refuse_settled(place: OpenAssignment) -> None:
    if place.assignment.training_round:
        raise Locked("training answers cannot be changed")
    if rests_on(place.visit.flow, place.assignments, place.assignment, place.visit.now):
        raise Locked


def _conflict(place: OpenAssignment, values: FieldValues) -> Conflict:
    assignment = place.assignment
    keep_draft(place, values)
    mine = assignment.user == place.visit.actor.id
    theirs = place.turn((assignment.answer or {}) if mine else {})
    return Conflict(values, theirs, assignment.version, by_me=mine)


def _former(place: OpenAssignment) -> dict[str, JsonValue] | None:
    """Return the previous answer, ignoring undone ones."""
    pile: list[str] = []
    key = place.visit.key | {"assignment": place.assignment.id}
    for row in queries.OWN_REVISIONS.all(place.visit.connection, key):
        if row.action == "undo":
            pile = pile[:-1]
        else:
            pile.append(row.answer)
    return load(pile[-2]) if len(pile) > 1 else None


def _freed(assignment: Assignment) -> Assignment:
    return replace(assignment, state="waiting", user=None, lease_until=None, answer=None)


def _plausible(seconds: float | None) -> float | None:
    """Return the reported working time, or None if it is implausibly long."""
    return seconds if seconds is not None and 0 <= seconds <= 3600 else None


def _write_revision(
    place: OpenAssignment,
    action: Action,
    answer: dict[str, JsonValue] | None,
    seconds: float | None = None,
) -> None:
    """Save an answer and its revision, and update the dependent assignments.

    Without an answer, the assignment is leased again.
    """
    visit, assignment, item = place.visit, place.assignment, place.item
    state: AssignmentState = "leased" if answer is None else "done"
    text = dump(answer) if answer is not None else None
    row = {
        "assignment": assignment.id,
        "seen": assignment.version,
        "new": state,
        "text": text,
        "submitted": visit.now if text is not None else None,
        "took": seconds,
        "until": visit.lease_end if state == "leased" else None,
        "user": visit.actor.id,
    }
    if queries.SAVE_ANSWER.run(visit.connection, row) != 1:
        raise Conflict(answer or {}, {}, assignment.version, by_me=False)
    entry = {
        "project_id": visit.rights.id,
        "item_id": item.id,
        "assignment_id": assignment.id,
        "user_id": visit.actor.id,
        "stage": assignment.stage,
        "version": assignment.version + 1,
        "action": action,
        "answer": text,
        "at": visit.now,
        "seconds": seconds,
    }
    queries.ADD_REVISION.run(visit.connection, entry)
    assignment = replace(assignment, answer=answer, state=state, version=assignment.version + 1)
    subject = f"assignment:{assignment.id}"
    visit.log(f"answer.{action}", subject, item=item.item_key, version=assignment.version)
    if not assignment.training_round:
        # An expired lease of a later stage was based on the old state.
        later = find_later(visit.flow, place.assignments, assignment)
        stale = {one.id: _freed(one) for one in later if one.state == "leased"}
        reset_assignments(visit.connection, list(stale.values()))
        place.settle(
            [(stale | {assignment.id: assignment}).get(one.id, one) for one in place.assignments]
        )


_PAUSE = 600


class AnnotationWork:
    """Actions of annotators, reviewers and adjudicators."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._leasing = leasing.Leasing()

    @retried
    def next(self, actor: Actor, project: int, stage: str | None = None) -> AnnotationTask | None:
        """Return the next item for a person: the leased one, or a new one."""
        with self._context.as_member(actor, project, write=True, lock="member") as visit:
            assignment = self._take(visit, stage)
            if assignment is None:
                return None
            place = tasks.find_place(self._context, visit.connection, actor, assignment)
            return tasks.make_task(place)

    @retried
    def claim(self, actor: Actor, project: int, stage: str | None = None) -> int | None:
        """Like :meth:`next`, but return only the assignment id."""
        with self._context.as_member(actor, project, write=True, lock="member") as visit:
            return self._take(visit, stage)

    def _take(self, visit: Visit, stage: str | None) -> int | None:
        stages = _open_stages(visit.rights, stage)
        assignment = leasing.find_lease(visit, stages)
        if assignment is None:
            assignment = self._claim(visit, stages)
        else:
            leasing.renew_lease(visit, assignment)
        if assignment is not None:
            item = int(queries.ASSIGNMENT_ITEM.value(visit.connection, {"assignment": assignment}))
            leasing.expose(visit, item)
        return assignment

    def _claim(self, visit: Visit, stages: list[int]) -> int | None:
        rules = leasing.rules_for(visit.rights, stages)
        assignment = leasing.next_training_assignment(visit, rules) if rules is not None else None
        return self._leasing.claim(visit, stages) if assignment is None else assignment

    @retried
    def decide(self, actor: Actor, project: int, number: int) -> int:
        """Start the adjudication of an item on which annotators differ."""
        with self._context.as_member(actor, project, write=True, lock="member") as visit:
            rules = visit.flow.stages
            stages = [
                place
                for place in _open_stages(visit.rights, None)
                if rules[place].kind == "adjudicate" and not rules[place].blind
            ]
            key = visit.key | {"number": number}
            first = queries.NUMBERED_ASSIGNMENTS.one(visit.connection, key)
            if first is None:
                raise Forbidden
            tasks.lock_item(visit.connection, first.id)
            # Read under the lock: another adjudicator may just have taken the item.
            rows = queries.NUMBERED_ASSIGNMENTS.all(visit.connection, key)
            mine = next((row for row in rows if row.stage in stages), None)
            barred = {place for stage in stages for place in visit.flow.excluded_stages(stage)}
            if mine is None or any(row.user_id == actor.id and row.stage in barred for row in rows):
                raise Forbidden
            if mine.user_id != actor.id:
                waiting = any(
                    row.stage < mine.stage and row.state not in ("done", "closed") for row in rows
                )
                if waiting or mine.state not in ("open", "closed"):
                    raise Locked("this item cannot be adjudicated now")
                leasing.take_assignment(visit, mine.id)
            leasing.expose(visit, mine.item_id)
            return int(mine.id)

    @contextmanager
    def _at(
        self, actor: Actor, assignment: int, *, write: bool = True, lock: bool = False
    ) -> Iterator[tasks.OpenAssignment]:
        """Open a transaction on an assignment that the person holds or answered."""
        with self._context.db.write() if write else self._context.db.read() as connection:
            yield tasks.own_place(self._context, connection, actor, assignment, lock=lock)

    def open(self, actor: Actor, assignment: int) -> AnnotationTask:
        """Return an item that the person holds or answered."""
        with self._at(actor, assignment, write=False) as place:
            return tasks.make_task(place)

    @retried
    def save_draft(self, actor: Actor, assignment: int, values: FieldValues) -> None:
        """Save the input so far and extend the lease; only the size is checked."""
        with self._at(actor, assignment) as place:
            leasing.renew_lease(place.visit, assignment)
            keep_draft(place, values)

    @retried
    def submit(
        self,
        actor: Actor,
        assignment: int,
        values: FieldValues,
        version: int,
        seconds: float | None = None,
        guideline: int | None = None,
    ) -> Saved:
        """Save an answer; it is on disk when this method returns.

        ``version`` is the version that the person saw. If another version is saved, both are kept
        and Conflict is raised. The same answer sent twice is saved once. ``guideline`` is the
        guideline version that the person saw; an older version raises GuidelineChanged.
        """
        with self._context.db.write() as connection:
            place = tasks.find_place(self._context, connection, actor, assignment, lock=True)
            if guideline is not None and guideline < place.visit.rights.settings.guideline:
                raise GuidelineChanged
            outcome = submit_answer(place, values, version, seconds)
            due = is_due(place.visit)
        if due:
            self._update_order(actor, place.visit.rights.id)
        if isinstance(outcome, Saved):
            return outcome
        raise outcome

    def _update_order(self, actor: Actor, project: int) -> None:
        """Update the order of items after an answer; if that fails, the old order stays."""
        try:
            self._rearrange(actor, project)
        except StoreError as error:
            note_failure("item order", error)

    @retried
    def _rearrange(self, actor: Actor, project: int) -> None:
        # A transaction of its own, since the project is locked before any item.
        with self._context.db.write() as connection:
            if queries.LOCK_FREE_PROJECT.one(connection, {"project": project}) is not None:
                rearrange(self._context.visit(connection, actor, project))

    @retried
    def undo(self, actor: Actor, assignment: int, version: int) -> AnnotationTask:
        """Undo the person's last answer: restore the previous one, or reopen the form."""
        with self._at(actor, assignment, lock=True) as place:
            undo_answer(place, version)
            connection = place.visit.connection
            return tasks.make_task(tasks.own_place(self._context, connection, actor, assignment))

    @retried
    def skip(self, actor: Actor, assignment: int) -> None:
        """Skip a meme permanently, without a reason."""
        with self._at(actor, assignment, lock=True) as place:
            skip_item(place)

    @retried
    def release(self, actor: Actor, assignment: int) -> None:
        """Release an item for other annotators."""
        with self._at(actor, assignment, lock=True) as place:
            release_item(place)

    def mine(self, actor: Actor, project: int, limit: int = 20) -> tuple[records.Done, ...]:
        """Return the person's last answers, newest first, and whether they can still change."""
        with self._context.as_member(actor, project) as visit:
            key = visit.key | {"limit": min(limit, 500)}
            rows = queries.LAST_ANSWERS.all(visit.connection, key)
            return tuple(_view_done(visit, row) for row in rows)

    def standing(self, actor: Actor, project: int) -> records.PersonStanding:
        """Return progress, pace, exposure and training of a person."""
        with self._context.as_member(actor, project) as visit:
            connection, key, rights = visit.connection, visit.key, visit.rights
            seen = leasing.count_seen(visit)
            paces = [float(row.seconds) for row in queries.LAST_SECONDS.all(connection, key)]
            stages = leasing.stages_for(rights)
            trained, size = leasing.training_counts(visit)
            pause = rights.preferences.break_minutes
            return record_of(
                records.PersonStanding,
                seen,
                done=int(queries.COUNT_ANSWERS.value(connection, key)),
                open=sum(leasing.count_open(visit, stage) for stage in stages),
                pace=median(paces) if paces else None,
                training=_training_state(rights, stages, size),
                training_round=rights.training_round,
                training_done=trained,
                training_size=size,
                break_minutes=rights.settings.break_minutes if pause is None else pause,
                working_minutes=_working_minutes(visit),
            )

    def stages_of(self, actor: Actor, project: int) -> tuple[tuple[str, LocalizedText, int], ...]:
        """Return the stages that a person may work at, each with its number of open items."""
        with self._context.as_member(actor, project) as visit:
            places = sorted(leasing.stages_for(visit.rights))
            stages = [(visit.flow.stages[place], place) for place in places]
            return tuple(
                (stage.id, stage.title, leasing.count_open(visit, place)) for stage, place in stages
            )


def _working_minutes(visit: Visit) -> float:
    begun = visit.now
    key = visit.key | {"since": visit.now - DAY}
    for row in queries.ANSWER_TIMES.all(visit.connection, key):
        if begun - row.submitted_at > _PAUSE:
            break
        begun = min(begun, row.submitted_at)  # an answer in the future: the clock was set back
    return (visit.now - begun) / 60


def _open_stages(rights: Rights, stage: str | None) -> list[int]:
    stages = leasing.stages_for(rights)
    if stage is not None:
        stages = [place for place in stages if rights.workflow.stages[place].id == stage]
    if not stages:
        refuse_others(rights.workflow, rights.roles, rights.pseudonym)
    if not stages or rights.archived:
        raise Forbidden
    if not rights.consented:
        raise ConsentMissing
    return stages


def _view_done(visit: Visit, row: Any) -> records.Done:
    changeable = not visit.rights.archived and not row.training_round
    if changeable:
        assignments = tasks.read_assignments(visit.connection, row.item_id)
        changeable = not tasks.rests_on(
            visit.flow, assignments, tasks.read_assignment(row), visit.now
        )
    return record_of(
        records.Done,
        row,
        assignment=row.id,
        stage=visit.flow.stages[row.stage].id,
        at=row.submitted_at,
        training=bool(row.training_round),
        changeable=changeable,
    )


def _training_state(rights: Rights, stages: list[int], size: int) -> Any:
    if rights.training == "none" and leasing.rules_for(rights, stages) is not None and size:
        return "running"
    return rights.training
