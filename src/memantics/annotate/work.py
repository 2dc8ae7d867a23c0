"""The daily work: take an item, answer it, change one's mind, step away from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from memantics.annotate import answers, leasing, queries, records, tasks
from memantics.annotate.context import DAY, ServiceContext, Visit
from memantics.annotate.errors import ConsentMissing, Forbidden, GuidelineChanged, Locked, Values
from memantics.annotate.ordering import is_due, rearrange
from memantics.annotate.project_settings import Words
from memantics.annotate.records import Actor, AnnotationTask, Rights, Saved, record_of

_PAUSE = 600


class AnnotationWork:
    """What annotators, reviewers and adjudicators do."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._leasing = leasing.Leasing()

    def next(self, actor: Actor, project: int, stage: str | None = None) -> AnnotationTask | None:
        """The next item for a person: what they hold already, else something new."""
        with self._context.as_member(actor, project, write=True, lock=True) as visit:
            seat = self._take(visit, stage)
            if seat is None:
                return None
            place = tasks.find_place(self._context, visit.connection, actor, seat)
            return tasks.make_task(place)

    def claim(self, actor: Actor, project: int, stage: str | None = None) -> int | None:
        """As :meth:`next`, but only which assignment it is: whoever shows it reads the rest."""
        with self._context.as_member(actor, project, write=True, lock=True) as visit:
            return self._take(visit, stage)

    def _take(self, visit: Visit, stage: str | None) -> int | None:
        stages = _open_stages(visit.rights, stage)
        seat = leasing.find_lease(visit, stages)
        if seat is None:
            seat = self._claim(visit, stages)
        else:
            leasing.renew_lease(visit, seat)
        if seat is not None:
            item = int(queries.SEAT_ITEM.value(visit.connection, {"seat": seat}))
            leasing.expose(visit, item)
        return seat

    def _claim(self, visit: Visit, stages: list[int]) -> int | None:
        rules = leasing.rules_for(visit.rights, stages)
        seat = leasing.next_training_seat(visit, rules) if rules is not None else None
        return self._leasing.claim(visit, stages) if seat is None else seat

    def decide(self, actor: Actor, project: int, number: int) -> int:
        """Take the decision on an item that people judged differently, tied or not."""
        with self._context.as_member(actor, project, write=True, lock=True) as visit:
            rules = visit.flow.stages
            stages = [
                place
                for place in _open_stages(visit.rights, None)
                if rules[place].kind == "adjudicate" and not rules[place].blind
            ]
            rows = queries.NUMBERED_SEATS.all(visit.connection, visit.key | {"number": number})
            mine = next((row for row in rows if row.stage in stages), None)
            barred = {place for stage in stages for place in visit.flow.apart(stage)}
            if mine is None or any(row.user_id == actor.id and row.stage in barred for row in rows):
                raise Forbidden
            if mine.user_id != actor.id:
                tasks.lock_item(visit.connection, mine.id)
                waiting = any(
                    row.stage < mine.stage and row.state not in ("done", "closed") for row in rows
                )
                if waiting or mine.state not in ("open", "closed"):
                    raise Locked("this item cannot be decided now")
                leasing.take_seat(visit, mine.id)
            leasing.expose(visit, mine.item_id)
            return int(mine.id)

    @contextmanager
    def _at(
        self, actor: Actor, assignment: int, *, write: bool = True, lock: bool = False
    ) -> Iterator[tasks.Place]:
        """A transaction at a seat that a person holds or answered; anybody else is refused."""
        with self._context.db.write() if write else self._context.db.read() as connection:
            yield tasks.own_place(self._context, connection, actor, assignment, lock=lock)

    def open(self, actor: Actor, assignment: int) -> AnnotationTask:
        """One of one's own items again, held or answered."""
        with self._at(actor, assignment, write=False) as place:
            return tasks.make_task(place)

    def save_draft(self, actor: Actor, assignment: int, values: Values) -> None:
        """Keep what is typed so far, and the item with it; nothing is checked but its size."""
        with self._at(actor, assignment) as place:
            leasing.renew_lease(place.visit, assignment)
            answers.keep_draft(place, values)

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
            place = tasks.find_place(self._context, connection, actor, assignment, lock=True)
            if guideline is not None and guideline < place.visit.rights.settings.guideline:
                raise GuidelineChanged
            outcome = answers.submit_answer(place, values, version, seconds)
            if is_due(place.visit):
                rearrange(place.visit)
        if isinstance(outcome, Saved):
            return outcome
        raise outcome

    def undo(self, actor: Actor, assignment: int, version: int) -> AnnotationTask:
        """Take back one's last answer: the one before stands again, or the form is open again."""
        with self._at(actor, assignment, lock=True) as place:
            answers.undo_answer(place, version)
            connection = place.visit.connection
            return tasks.make_task(tasks.own_place(self._context, connection, actor, assignment))

    def skip(self, actor: Actor, assignment: int) -> None:
        """Step away from a meme for good. Nobody asks why."""
        with self._at(actor, assignment, lock=True) as place:
            answers.skip_item(place)

    def release(self, actor: Actor, assignment: int) -> None:
        """Give an item back for others, or for oneself later."""
        with self._at(actor, assignment, lock=True) as place:
            answers.release_item(place)

    def mine(self, actor: Actor, project: int, limit: int = 20) -> tuple[records.Done, ...]:
        """One's last answers, the newest first, and whether they can still change."""
        with self._context.as_member(actor, project) as visit:
            key = visit.key | {"limit": min(limit, 500)}
            rows = queries.LAST_ANSWERS.all(visit.connection, key)
            return tuple(_view_done(visit, row) for row in rows)

    def standing(self, actor: Actor, project: int) -> records.PersonStanding:
        """Progress, pace, exposure and training of a person."""
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

    def stages_of(self, actor: Actor, project: int) -> tuple[tuple[str, Words, int], ...]:
        """The stages a person may work at, with how many items are open to them there."""
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
        begun = row.submitted_at
    return (visit.now - begun) / 60


def _open_stages(rights: Rights, stage: str | None) -> list[int]:
    stages = leasing.stages_for(rights)
    if stage is not None:
        stages = [place for place in stages if rights.workflow.stages[place].id == stage]
    if not stages or rights.archived:
        raise Forbidden
    if not rights.consented:
        raise ConsentMissing
    return stages


def _view_done(visit: Visit, row: Any) -> records.Done:
    changeable = not visit.rights.archived and not row.training_round
    if changeable:
        seats = tasks.read_seats(visit.connection, row.item_id)
        changeable = not tasks.rests_on(visit.flow, seats, tasks.read_seat(row), visit.now)
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
