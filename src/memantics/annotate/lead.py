"""What a lead sees and decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from statistics import median
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotate import queries, schema
from memantics.annotate.agreement import (
    FieldAgreement,
    PairAgreement,
    compare_people,
    measure_agreement,
)
from memantics.annotate.consensus import (
    DisagreementFilter,
    Person,
    SeatedItem,
    find_disagreements,
    gather,
    measure_drift,
    read_people,
)
from memantics.annotate.context import DAY, ServiceContext, load, load_list, load_optional
from memantics.annotate.errors import AnswerError, Forbidden, Locked, NotFound
from memantics.annotate.records import (
    AccuracyDrift,
    Actor,
    AuditEntry,
    Disagreement,
    ItemView,
    PersonProgress,
    ProjectProgress,
    Rights,
    SeatView,
    StageProgress,
    record_of,
)
from memantics.annotate.tasks import (
    Seat,
    find_later,
    labels_of,
    read_seat,
    read_seats,
    read_shown,
    read_step,
    reset_seats,
    settle,
)
from memantics.annotate.work import lock_item
from memantics.annotate.workflow import Workflow

_REOPEN_DAYS = 7
EVERY_ONE = DisagreementFilter()


class Lead:
    """ProjectProgress, agreement, history and repairs."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    def progress(self, actor: Actor, project: int) -> ProjectProgress:
        """How far a project is, by stage and by person."""
        with self._context.as_lead(actor, project) as (connection, rights):
            key = {"project": project}
            counts = queries.COUNT_ITEMS.one(connection, key)
            stages = _stage_progress(rights.workflow, queries.COUNT_SEATS.all(connection, key))
            answers = queries.ANSWERS_BY_PERSON.all(connection, key)
            done = Counter(row.user_id for row in answers)
            people = tuple(
                PersonProgress(person=one.pseudonym, name=one.name, done=done[user])
                for user, one in read_people(connection, rights).items()
            )
            seconds = [row.seconds for row in answers if row.seconds is not None]
            pace = median(seconds) if seconds else None
            return record_of(ProjectProgress, counts, stages=stages, people=people, pace=pace)

    def agreement(
        self, actor: Actor, project: int, *, drawn_only: bool = False
    ) -> tuple[FieldAgreement, ...]:
        """Agreement as it is now, on each field and on all of them together.

        ``drawn_only``: only items that keep a random place.
        """
        workflow, items, _ = self.gather(actor, project)
        return measure_agreement(workflow, items, drawn_only=drawn_only)

    def pairs(self, actor: Actor, project: int) -> tuple[PairAgreement, ...]:
        """How often every two people gave the same answer; those who agree least come first."""
        return compare_people(*self.gather(actor, project))

    def drift(self, actor: Actor, project: int) -> tuple[AccuracyDrift, ...]:
        """Each person against known answers."""
        return measure_drift(*self.gather(actor, project))

    def disagreements(
        self,
        actor: Actor,
        project: int,
        *,
        limit: int = 50,
        offset: int = 0,
        wanted: DisagreementFilter = EVERY_ONE,
    ) -> tuple[Disagreement, ...]:
        """Items on which people differ."""
        found = filter(wanted.fits, find_disagreements(*self.gather(actor, project)))
        return tuple(islice(found, offset, offset + limit))

    def preferences(self, actor: Actor, project: int) -> dict[str, dict[str, float]]:
        """For pairwise fields: how often each side's maker won, ties counting half.

        Makers are what the hidden values ``a`` and ``b`` of items say.
        """
        workflow, items, _ = self.gather(actor, project)
        names = [field.id for field in workflow.fields if field.kind == "pairwise"]
        return {name: _win_rates(items, name) for name in names}

    def audit(
        self, actor: Actor, project: int, *, before: int | None = None, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        """Changes, the newest first; go on with ``before`` = the last id seen."""
        table = schema.audit
        query = (
            sa.select(table, sa.func.coalesce(schema.users.c.name, "").label("person"))
            .outerjoin(schema.users, schema.users.c.id == table.c.user_id)
            .where(table.c.project_id == project)
            .order_by(table.c.id.desc())
            .limit(min(limit, 1000))
        )
        if before is not None:
            query = query.where(table.c.id < before)
        with self._context.as_lead(actor, project) as (connection, _):
            rows = connection.execute(query)
            return tuple(record_of(AuditEntry, row, detail=load(row.detail)) for row in rows)

    def items(
        self, actor: Actor, project: int, *, limit: int = 50, offset: int = 0
    ) -> tuple[ItemView, ...]:
        """Items in order, each with all that happened to it."""
        table = schema.items
        query = (
            sa.select(table)
            .where(table.c.project_id == project)
            .order_by(table.c.number)
            .limit(min(limit, 500))
            .offset(offset)
        )
        with self._context.as_lead(actor, project) as (connection, rights):
            _refuse_forms(rights)
            people = read_people(connection, rights)
            rows = connection.execute(query).all()
            return tuple(_view_item(connection, rights.workflow, people, row) for row in rows)

    def item(self, actor: Actor, item: int) -> ItemView:
        """One item with all that happened to it."""
        with self._context.db.read() as connection:
            query = sa.select(schema.items).where(schema.items.c.id == item)
            row = connection.execute(query).one_or_none()
            if row is None:
                raise Forbidden
            rights = self._context.require(connection, actor, row.project_id, "lead")
            _refuse_forms(rights)
            people = read_people(connection, rights)
            return _view_item(connection, rights.workflow, people, row)

    def reopen(self, actor: Actor, assignment: int) -> None:
        """Give an answer back to its person for a week; what came after it begins anew.

        Nothing is lost: all that was said stays in history, and the reopened answer is what its
        person starts from.
        """
        with self._context.db.write() as connection:
            if not self._context.db.sqlite:
                lock_item(connection, assignment)
            query = sa.select(schema.seats).where(schema.seats.c.id == assignment)
            row = connection.execute(query).one_or_none()
            if row is None:
                raise Forbidden
            rights = self._context.require(connection, actor, row.project_id, "lead")
            if row.state != "done" or row.training_round:
                raise Locked("only real answers can be reopened")
            self.reopen_seat(connection, rights, row)
            self._context.log(
                connection,
                actor,
                "answer.reopen",
                f"assignment:{assignment}",
                project=rights.id,
            )

    def set_training(self, actor: Actor, project: int, user: int, state: str) -> None:
        """Let a person pass (``passed``) or begin again with the last round (``running``)."""
        if state not in ("passed", "running"):
            raise AnswerError({"state": "passed or running"})
        members, seats = schema.memberships, schema.seats
        mine = sa.and_(members.c.project_id == project, members.c.user_id == user)
        with self._context.as_lead(actor, project, write=True) as (connection, _):
            change = sa.update(members).where(mine).values(training=state)
            if connection.execute(change).rowcount != 1:
                raise NotFound("this person is no member of the project")
            if state == "running":
                number = connection.execute(sa.select(members.c.training_round).where(mine))
                again = sa.and_(
                    seats.c.project_id == project,
                    seats.c.user_id == user,
                    seats.c.training_round == number.scalar_one(),
                    seats.c.state == "done",  # what was skipped stays out of sight
                )
                # The answers stay in history; the seats may be answered once more.
                connection.execute(sa.update(seats).where(again).values(state="leased"))
            subject = f"user:{user}"
            self._context.log(
                connection, actor, "member.training", subject, project=project, state=state
            )

    def reopen_seat(self, connection: Connection, rights: Rights, row: Any) -> None:
        """Give the answer of a seat back, inside a transaction that holds its item."""
        later = find_later(rights.workflow, read_seats(connection, row.item_id), read_seat(row))
        reset_seats(connection, [seat for seat in later if seat.state in ("done", "leased")])
        until = self._context.clock() + _REOPEN_DAYS * DAY
        queries.REOPEN_SEAT.run(connection, {"seat": row.id, "until": until})
        item = connection.execute(
            sa.select(schema.items).where(schema.items.c.id == row.item_id)
        ).one()
        fresh = read_seats(connection, row.item_id)
        labels = labels_of(read_shown(item.shown))
        settle(connection, rights.workflow, item, fresh, labels)

    def gather(
        self, actor: Actor, project: int
    ) -> tuple[Workflow, list[SeatedItem], dict[int, Person]]:
        """The rules of a project, its items with their answers, and its people."""
        with self._context.as_lead(actor, project) as (connection, rights):
            items = gather(connection, rights, answered=True)
            return rights.workflow, items, read_people(connection, rights)


def _stage_progress(workflow: Workflow, rows: Sequence[Any]) -> tuple[StageProgress, ...]:
    counts = {(row.stage, row.state): int(row.seats) for row in rows}
    return tuple(
        StageProgress(
            stage=stage.id,
            title=stage.title,
            done=counts.get((place, "done"), 0),
            leased=counts.get((place, "leased"), 0),
            open=counts.get((place, "open"), 0),
            waiting=counts.get((place, "waiting"), 0),
        )
        for place, stage in enumerate(workflow.stages)
    )


def _refuse_forms(rights: Rights) -> None:
    """What people say about themselves is counted, and not shown one by one."""
    if rights.workflow.personal:
        raise Forbidden(
            "answers about people are not shown one by one",
            hint="export them: names and times are left out",
        )


def _view_item(
    connection: Connection, workflow: Workflow, people: dict[int, Person], row: Any
) -> ItemView:
    key = {"item": row.id}
    seats = [read_seat(seat) for seat in queries.ALL_SEATS.all(connection, key)]
    steps = queries.HISTORY.all(connection, key)
    return record_of(
        ItemView,
        row,
        key=row.item_key,
        group=row.group_key,
        images=tuple(load_list(row.images)),
        shown=read_shown(row.shown),
        prelabels=load(row.prelabels),
        gold=load_optional(row.gold),
        hidden=load(row.hidden),
        seats=tuple(_view_seat(workflow, people, seat) for seat in seats),
        history=tuple(read_step(workflow, step) for step in steps),
    )


def _view_seat(workflow: Workflow, people: dict[int, Person], seat: Seat) -> SeatView:
    person = people[seat.user].pseudonym if seat.user in people else ""
    stage = workflow.stages[seat.stage].id
    return record_of(
        SeatView, seat, assignment=seat.id, stage=stage, person=person, values=seat.answer
    )


def _win_rates(items: Sequence[SeatedItem], name: str) -> dict[str, float]:
    won: dict[str, float] = {}
    met: dict[str, int] = {}
    for item in items:
        hidden = load(item.row.hidden)
        sides = {side: str(hidden.get(side, side)) for side in ("a", "b")}
        for seat in item.answered():
            vote = (seat.answer or {}).get(name)
            if vote in ("a", "b", "tie"):
                for side, maker in sides.items():
                    met[maker] = met.get(maker, 0) + 1
                    points = 0.5 if vote == "tie" else float(vote == side)
                    won[maker] = won.get(maker, 0.0) + points
    return {maker: won[maker] / met[maker] for maker in sorted(met)}
