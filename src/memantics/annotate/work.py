"""The daily work: take an item, answer it, change one's mind, step away from it."""

from __future__ import annotations

from statistics import median
from typing import Any

from sqlalchemy.engine import Connection

from memantics.annotate import queries
from memantics.annotate.answers import Answers
from memantics.annotate.context import DAY, ServiceContext, read_rights
from memantics.annotate.errors import (
    ConsentMissing,
    Forbidden,
    GuidelineChanged,
    Locked,
    Values,
)
from memantics.annotate.leasing import (
    Leasing,
    count_open,
    count_seen,
    expose,
    find_lease,
    next_training_seat,
    rules_for,
    stages_for,
    training_counts,
)
from memantics.annotate.ordering import is_due, rearrange
from memantics.annotate.project_settings import Words
from memantics.annotate.records import (
    Actor,
    AnnotationTask,
    Done,
    PersonStanding,
    Rights,
    Saved,
    record_of,
)
from memantics.annotate.tasks import Place, make_place, make_task, read_seat, read_seats, rests_on

_PAUSE = 600


class AnnotationWork:
    """What annotators, reviewers and adjudicators do."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._leasing = Leasing(context)
        self._answers = Answers(context)

    def next(self, actor: Actor, project: int, stage: str | None = None) -> AnnotationTask | None:
        """The next item for a person: what they hold already, else something new."""
        with self._context.db.write() as connection:
            seat = self._take(connection, actor, project, stage)
            if seat is None:
                return None
            return make_task(connection, actor, find_place(connection, actor, seat))

    def claim(self, actor: Actor, project: int, stage: str | None = None) -> int | None:
        """As :meth:`next`, but only which assignment it is: whoever shows it reads the rest."""
        with self._context.db.write() as connection:
            return self._take(connection, actor, project, stage)

    def _take(
        self, connection: Connection, actor: Actor, project: int, stage: str | None
    ) -> int | None:
        rights = self._context.rights(connection, actor, project, lock=True)
        stages = self._open_stages(rights, stage)
        seat = find_lease(connection, actor, rights, stages)
        if seat is None:
            seat = self._claim(connection, actor, rights, stages)
        else:
            self._leasing.renew(connection, actor, rights, seat)
        if seat is not None:
            item = int(queries.SEAT_ITEM.value(connection, {"seat": seat}))
            expose(connection, actor, rights, item, self._context.clock())
        return seat

    def decide(self, actor: Actor, project: int, number: int) -> int:
        """Take the decision on an item that people judged differently, tied or not."""
        with self._context.db.write() as connection:
            rights = self._context.rights(connection, actor, project, lock=True)
            rules = rights.workflow.stages
            stages = [
                place
                for place in self._open_stages(rights, None)
                if rules[place].kind == "adjudicate" and not rules[place].blind
            ]
            key = {"project": project, "number": number}
            rows = queries.NUMBERED_SEATS.all(connection, key)
            mine = next((row for row in rows if row.stage in stages), None)
            barred = {place for stage in stages for place in rights.workflow.apart(stage)}
            if mine is None or any(row.user_id == actor.id and row.stage in barred for row in rows):
                raise Forbidden
            seat = int(mine.id)
            if mine.user_id != actor.id:
                if not self._context.db.sqlite:
                    lock_item(connection, seat)
                waiting = any(
                    row.stage < mine.stage and row.state not in ("done", "closed") for row in rows
                )
                if waiting or mine.state not in ("open", "closed"):
                    raise Locked("this item cannot be decided now")
                until = self._leasing.lease_end(rights)
                taken = {"seat": seat, "user": actor.id, "until": until}
                queries.TAKE_SEAT.run(connection, taken)
            expose(connection, actor, rights, mine.item_id, self._context.clock())
            return seat

    def open(self, actor: Actor, assignment: int) -> AnnotationTask:
        """One of one's own items again, held or answered."""
        with self._context.db.read() as connection:
            return make_task(connection, actor, own_place(connection, actor, assignment))

    def save_draft(self, actor: Actor, assignment: int, values: Values) -> None:
        """Keep what is typed so far, and the item with it; nothing is checked but its size."""
        with self._context.db.write() as connection:
            place = own_place(connection, actor, assignment)
            self._leasing.renew(connection, actor, place.rights, assignment)
            self._answers.keep_draft(connection, actor, assignment, values)

    def submit(
        self,
        actor: Actor,
        assignment: int,
        values: Values,
        version: int,
        seconds: float | None = None,
        guideline: int | None = None,
    ) -> Saved:
        """Save an answer. When this returns, it is on disk.

        ``version`` is the one the person saw: when another one stands, both are kept and
        Conflict is raised. The same answer sent twice is saved once. ``guideline`` is the version
        of the guideline that the person saw: with an older one, GuidelineChanged is raised.
        """
        with self._context.db.write() as connection:
            place = find_place(connection, actor, assignment, lock=True)
            if guideline is not None and guideline < place.rights.settings.guideline:
                raise GuidelineChanged
            outcome = self._answers.submit(connection, actor, place, values, version, seconds)
            if is_due(connection, place.rights):
                rearrange(connection, place.rights)
        if isinstance(outcome, Saved):
            return outcome
        raise outcome

    def undo(self, actor: Actor, assignment: int, version: int) -> AnnotationTask:
        """Take back one's last answer: the one before stands again, or the form is open again."""
        with self._context.db.write() as connection:
            place = own_place(connection, actor, assignment, lock=True)
            self._answers.undo(connection, actor, place, version)
            return make_task(connection, actor, own_place(connection, actor, assignment))

    def skip(self, actor: Actor, assignment: int) -> None:
        """Step away from a meme for good. Nobody asks why."""
        with self._context.db.write() as connection:
            place = own_place(connection, actor, assignment, lock=True)
            self._answers.skip(connection, actor, place)

    def release(self, actor: Actor, assignment: int) -> None:
        """Give an item back for others, or for oneself later."""
        with self._context.db.write() as connection:
            place = own_place(connection, actor, assignment, lock=True)
            self._answers.release(connection, place)

    def mine(self, actor: Actor, project: int, limit: int = 20) -> tuple[Done, ...]:
        """One's last answers, the newest first, and whether they can still change."""
        with self._context.db.read() as connection:
            rights = self._context.rights(connection, actor, project)
            key = {"user": actor.id, "project": project, "limit": min(limit, 500)}
            rows = queries.LAST_ANSWERS.all(connection, key)
            return tuple(self._view_done(connection, rights, row) for row in rows)

    def standing(self, actor: Actor, project: int) -> PersonStanding:
        """Progress, pace, exposure and training of a person."""
        with self._context.db.read() as connection:
            rights = self._context.rights(connection, actor, project)
            key = {"user": actor.id, "project": project}
            seen = count_seen(connection, actor, rights, self._context.clock())
            paces = [float(row.seconds) for row in queries.LAST_SECONDS.all(connection, key)]
            stages = stages_for(rights)
            trained = training_counts(connection, actor, rights)
            pause = rights.preferences.break_minutes
            return PersonStanding(
                done=int(queries.COUNT_ANSWERS.value(connection, key)),
                today=seen.today,
                week=seen.week,
                daily_limit=seen.daily_limit,
                weekly_limit=seen.weekly_limit,
                open=sum(count_open(connection, actor, rights, stage) for stage in stages),
                pace=median(paces) if paces else None,
                training=_training_state(rights, stages, trained[1]),
                training_round=rights.training_round,
                training_done=trained[0],
                training_size=trained[1],
                break_minutes=rights.settings.break_minutes if pause is None else pause,
                working_minutes=self._working_minutes(connection, actor, project),
            )

    def stages_of(self, actor: Actor, project: int) -> tuple[tuple[str, Words, int], ...]:
        """The stages a person may work at, with how many items are open to them there."""
        with self._context.db.read() as connection:
            rights = self._context.rights(connection, actor, project)
            stages = rights.workflow.stages
            return tuple(
                (
                    stages[place].id,
                    stages[place].title,
                    count_open(connection, actor, rights, place),
                )
                for place in sorted(stages_for(rights))
            )

    def _working_minutes(self, connection: Connection, actor: Actor, project: int) -> float:
        now = self._context.clock()
        key = {"user": actor.id, "project": project, "since": now - DAY}
        begun = now
        for row in queries.ANSWER_TIMES.all(connection, key):
            if begun - row.submitted_at > _PAUSE:
                break
            begun = row.submitted_at
        return (now - begun) / 60

    def _open_stages(self, rights: Rights, stage: str | None) -> list[int]:
        stages = stages_for(rights)
        if stage is not None:
            stages = [place for place in stages if rights.workflow.stages[place].id == stage]
        if not stages or rights.archived:
            raise Forbidden
        if not rights.consented:
            raise ConsentMissing
        return stages

    def _claim(
        self, connection: Connection, actor: Actor, rights: Rights, stages: list[int]
    ) -> int | None:
        rules = rules_for(rights, stages)
        if rules is not None:
            until = self._leasing.lease_end(rights)
            seat = next_training_seat(connection, actor, rights, rules, until)
            if seat is not None:
                return seat
        return self._leasing.claim(connection, actor, rights, stages)

    def _view_done(self, connection: Connection, rights: Rights, row: Any) -> Done:
        changeable = not rights.archived and not row.training_round
        if changeable:
            seats = read_seats(connection, row.item_id)
            mine = read_seat(row)
            changeable = not rests_on(rights.workflow, seats, mine, self._context.clock())
        return record_of(
            Done,
            row,
            assignment=row.id,
            stage=rights.workflow.stages[row.stage].id,
            at=row.submitted_at,
            training=bool(row.training_round),
            changeable=changeable,
        )


def _training_state(rights: Rights, stages: list[int], size: int) -> Any:
    if rights.training == "none" and rules_for(rights, stages) is not None and size:
        return "running"
    return rights.training


def find_place(connection: Connection, actor: Actor, seat: int, *, lock: bool = False) -> Place:
    """A seat with its surroundings, for a member of its project; anybody else is refused."""
    if lock and connection.dialect.name != "sqlite":
        queries.LOCK_MEMBER.all(connection, {"seat": seat, "user": actor.id})
        lock_item(connection, seat)
    row = queries.PLACE.one(connection, {"seat": seat, "user": actor.id})
    if row is None:
        raise Forbidden
    mine = read_seat(row, id=row.seat_id, state=row.seat_state)
    return make_place(connection, read_rights(row), row, mine)


def lock_item(connection: Connection, seat: int) -> None:
    """Make everybody else wait who changes a seat of the same item (PostgreSQL)."""
    queries.LOCK_ITEM.all(connection, {"seat": seat})


def own_place(connection: Connection, actor: Actor, seat: int, *, lock: bool = False) -> Place:
    """The place of a seat that a person holds or answered, and may still work at."""
    place = find_place(connection, actor, seat, lock=lock)
    if place.seat.user != actor.id or not place.may_work:
        raise Forbidden
    return place
