"""Which seat a person gets: roles, distinct people, skips, limits, leases, training rounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotate import queries, schema
from memantics.annotate.context import DAY, ServiceContext, iso, load
from memantics.annotate.errors import LimitReached, TrainingFailed
from memantics.annotate.records import Actor, Feedback, Rights, TrainingState
from memantics.annotate.resolution import count_right
from memantics.annotate.workflow import TrainingRounds


@dataclass(frozen=True, slots=True)
class Seen:
    """How much a person saw, and how much they may see. 0: no limit.

    ``today`` counts by the limit that is nearer: the project's, or the person's own, which holds
    over all of their projects.
    """

    today: int
    week: int
    again: bool
    daily_limit: int
    weekly_limit: int


def stages_for(rights: Rights) -> list[int]:
    """The stages a person may work at, the last first: what was begun is finished first."""
    stages = enumerate(rights.workflow.stages)
    return [place for place, stage in stages if stage.role in rights.roles][::-1]


def find_lease(
    connection: Connection, actor: Actor, rights: Rights, stages: list[int]
) -> int | None:
    """The seat that a person holds already."""
    key = {"user": actor.id, "project": rights.id}
    rows = queries.HELD_SEATS.all(connection, key)
    return next((row.id for row in rows if row.stage in stages), None)


class Leasing:
    """Finds seats. Remembers where each person was, so that it need not look from the start."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._hints: dict[tuple[int, int, int], int] = {}

    def claim(
        self, connection: Connection, actor: Actor, rights: Rights, stages: list[int]
    ) -> int | None:
        """An open seat, else one whose lease ran out; None: nothing for this person now."""
        for stage in stages:
            row = self._find(connection, actor, rights, stage)
            if row is not None:
                self._remember(actor, rights, stage, row.place)
                key = {"seat": row.id, "user": actor.id, "until": self.lease_end(rights)}
                queries.TAKE_SEAT.run(connection, key)
                return int(row.id)
        return None

    def renew(self, connection: Connection, actor: Actor, rights: Rights, seat: int) -> None:
        """Hold a seat for another while."""
        key = {"seat": seat, "user": actor.id, "until": self.lease_end(rights)}
        queries.RENEW_LEASE.run(connection, key)

    def lease_end(self, rights: Rights) -> float:
        """When a lease that begins now runs out."""
        return self._context.clock() + 60 * rights.settings.lease_minutes

    def _find(self, connection: Connection, actor: Actor, rights: Rights, stage: int) -> Any:
        hint = self._hints.get((actor.id, rights.id, stage), 0)
        rules = rights.workflow.stages[stage]
        values = _bind(actor, rights, stage) | {"now": self._context.clock()}
        searches = [(False, hint), (False, 0), (True, 0)] if hint else [(False, 0), (True, 0)]
        for expired, start in searches:
            apart = len(rights.workflow.apart(stage))
            query = queries.find_free_seat(apart=apart, not_own=rules.not_own, expired=expired)
            found = query.one(connection, values | {"start": start})
            if found is not None:
                return found
        return None

    def _remember(self, actor: Actor, rights: Rights, stage: int, place: int) -> None:
        if rights.settings.order == "informative":
            return  # places change with the votes
        if len(self._hints) > 100_000:
            self._hints.clear()
        self._hints[actor.id, rights.id, stage] = place


def _bind(actor: Actor, rights: Rights, stage: int) -> dict[str, object]:
    apart = enumerate(rights.workflow.apart(stage))
    places = {f"apart{number}": place for number, place in apart}
    return {"project": rights.id, "stage": stage, "user": actor.id, **places}


def count_open(connection: Connection, actor: Actor, rights: Rights, stage: int) -> int:
    """How many items at a stage a person could still take; counted up to a thousand."""
    rules = rights.workflow.stages[stage]
    apart = len(rights.workflow.apart(stage))
    query = queries.count_free_seats(apart=apart, not_own=rules.not_own)
    return int(query.value(connection, _bind(actor, rights, stage)))


def count_seen(
    connection: Connection, actor: Actor, rights: Rights, now: float, item: int = 0
) -> Seen:
    """Exposure of a person in a project: today, and in the last seven days."""
    key = {"user": actor.id, "project": rights.id, "today": int(now // DAY), "item": item}
    row = queries.COUNT_SEEN.one(connection, key)
    today, number = row.today, rights.preferences.daily_limit
    daily = rights.daily_limit if rights.daily_limit is not None else rights.settings.daily_limit
    weekly = (
        rights.weekly_limit if rights.weekly_limit is not None else rights.settings.weekly_limit
    )
    if number:
        everywhere = int(queries.COUNT_SEEN_EVERYWHERE.value(connection, key))
        if not daily or number - everywhere < daily - today:
            today, daily = everywhere, number
    return Seen(today, row.week, bool(row.again), daily, weekly)


def expose(connection: Connection, actor: Actor, rights: Rights, item: int, now: float) -> None:
    """Count that an item is shown; refuse when the agreed amount is reached."""
    seen = count_seen(connection, actor, rights, now, item)
    if seen.again:
        return
    day = int(now // DAY)
    if seen.daily_limit and seen.today >= seen.daily_limit:
        raise LimitReached("day", seen.daily_limit, iso((day + 1) * DAY))
    if seen.weekly_limit and seen.week >= seen.weekly_limit:
        free = _first_free_day(connection, actor, rights, day, seen)
        raise LimitReached("week", seen.weekly_limit, iso(free * DAY))
    entry = {"user_id": actor.id, "project_id": rights.id, "day": day, "item_id": item, "at": now}
    queries.ADD_SEEN.run(connection, entry)


def _first_free_day(
    connection: Connection, actor: Actor, rights: Rights, today: int, seen: Seen
) -> int:
    """The day on which enough of the last seven days' items are a week old."""
    left = seen.week
    key = {"user": actor.id, "project": rights.id, "today": today}
    for row in queries.SEEN_BY_DAY.all(connection, key):
        left -= row.items
        if left < seen.weekly_limit:
            return int(row.day) + 7
    return today + 7


_members = schema.memberships


def rules_for(rights: Rights, stages: list[int]) -> TrainingRounds | None:
    """The training that stands between a person and the first stage; None: nothing does."""
    if rights.training == "passed" or not rights.settings.training or 0 not in stages:
        return None
    return rights.workflow.training


def next_training_seat(
    connection: Connection, actor: Actor, rights: Rights, rules: TrainingRounds, until: float
) -> int | None:
    """A seat at the next training item; None: this project has none, go on to real work."""
    if rights.training == "failed":
        accuracy = _accuracy(connection, actor, rights, rules)[0]
        if accuracy < rules.threshold:
            raise TrainingFailed(accuracy, rules.threshold)
        _set(connection, actor.id, rights.id, training="passed")  # the mark was lowered since
        return None
    key = {"project": rights.id, "user": actor.id, "round": rights.training_round}
    row = queries.NEXT_TRAINING.one(connection, key)
    if row is None:
        return _go_on(connection, actor, rights, rules, until)
    if rights.training != "running":
        _set(connection, actor.id, rights.id, training="running")
    return insert_training_seat(connection, rights, row, actor.id, until)


def insert_training_seat(
    connection: Connection, rights: Rights, item: Any, user: int, until: float | None = None
) -> int:
    """A seat of a person's own at a training item: it is numbered by the person."""
    entry = {
        "project_id": rights.id,
        "item_id": item.id,
        "group_key": item.group_key,
        "stage": 0,
        "seat": user,
        "place": item.number,
        "training_round": item.training_round,
        "state": "leased",
        "user_id": user,
        "lease_until": until,
        "version": 0,
    }
    made = connection.execute(sa.insert(schema.seats), entry).inserted_primary_key
    assert made is not None
    return int(made[0])


def _go_on(
    connection: Connection, actor: Actor, rights: Rights, rules: TrainingRounds, until: float
) -> int | None:
    """No item is left in this round: skipped ones may have ended it."""
    key = {"project": rights.id, "round": rights.training_round}
    here = queries.COUNT_TRAINING.value(connection, key)
    if not here:
        return None
    accuracy, state, number = judge_round(connection, actor, rights, rules)
    if state == "failed":
        raise TrainingFailed(accuracy, rules.threshold)
    if state == "passed":
        return None
    again = _moved(rights, state, number)
    return next_training_seat(connection, actor, again, rules, until)


def _moved(rights: Rights, state: TrainingState, number: int) -> Rights:
    return replace(rights, training=state, training_round=number)


def judge_round(
    connection: Connection, actor: Actor, rights: Rights, rules: TrainingRounds
) -> tuple[float, TrainingState, int]:
    """Close a round: passed, on to the next, or failed."""
    accuracy, answered = _accuracy(connection, actor, rights, rules)
    number = rights.training_round
    state: TrainingState = "running"
    following = queries.COUNT_TRAINING.value(
        connection, {"project": rights.id, "round": number + 1}
    )
    if answered and accuracy >= rules.threshold:
        state = "passed"
    elif number < rules.rounds and following:
        number += 1
    else:
        state = "failed"
    _set(connection, actor.id, rights.id, training=state, training_round=number)
    return accuracy, state, number


def give_feedback(
    connection: Connection, actor: Actor, rights: Rights, item: Any, answer: dict[str, Any]
) -> Feedback:
    """What a training answer was worth; the last one of a round closes it."""
    rules = rights.workflow.training
    assert rules is not None
    gold = load(item.gold)
    right = count_right(gold, answer, rules.fields)
    key = {"project": rights.id, "user": actor.id, "round": rights.training_round}
    state: TrainingState = "running"
    if not (
        queries.NEXT_TRAINING.one(connection, key) or queries.TRAINING_HELD.one(connection, key)
    ):
        accuracy, state, _ = judge_round(connection, actor, rights, rules)
    else:
        accuracy = _accuracy(connection, actor, rights, rules)[0]
    shown = rules.feedback
    return Feedback(gold if shown else {}, right if shown else {}, accuracy, state)


def _accuracy(
    connection: Connection, actor: Actor, rights: Rights, rules: TrainingRounds
) -> tuple[float, int]:
    """The share of items of this round with every training field right."""
    key = {"project": rights.id, "user": actor.id, "round": rights.training_round}
    hits = [
        all(count_right(load(row.gold), load(row.answer), rules.fields).values())
        for row in queries.TRAINING_ANSWERS.all(connection, key)
    ]
    return (sum(hits) / len(hits) if hits else 0.0), len(hits)


def training_counts(connection: Connection, actor: Actor, rights: Rights) -> tuple[int, int]:
    """How many items of the round are answered, and how many it has."""
    key = {"project": rights.id, "user": actor.id, "round": rights.training_round}
    done = len(queries.TRAINING_ANSWERS.all(connection, key))
    return done, int(queries.COUNT_TRAINING.value(connection, key))


def _set(connection: Connection, user: int, project: int, **values: object) -> None:
    mine = sa.and_(_members.c.project_id == project, _members.c.user_id == user)
    connection.execute(sa.update(_members).where(mine).values(**values))
