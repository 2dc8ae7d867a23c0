"""Who gets which seat: by role, distinct people, apart rules, skips, limits and leases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from memantics.annotate import queries
from memantics.annotate.context import DAY, ServiceContext, iso
from memantics.annotate.errors import LimitReached
from memantics.annotate.records import Actor, Rights


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
    today, own = row.today, rights.preferences.daily_limit
    daily = rights.daily_limit if rights.daily_limit is not None else rights.settings.daily_limit
    weekly = (
        rights.weekly_limit if rights.weekly_limit is not None else rights.settings.weekly_limit
    )
    if own:
        everywhere = int(queries.COUNT_SEEN_EVERYWHERE.value(connection, key))
        if not daily or own - everywhere < daily - today:
            today, daily = everywhere, own
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
