"""Who gets which seat: by role, distinct people, apart rules, skips, limits and leases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy.engine import Connection

from memantics.annotate.context import DAY, Rights, ServiceContext, iso
from memantics.annotate.errors import LimitReached
from memantics.annotate.records import Actor
from memantics.annotate.statement import Statement

_MINE = Statement(
    "SELECT s.id, s.stage FROM seats s WHERE s.user_id = :user AND s.project_id = :project"
    " AND s.state = 'leased' AND NOT EXISTS (SELECT 1 FROM skips k WHERE"
    " k.project_id = :project AND k.user_id = :user AND k.group_key = s.group_key)"
    " ORDER BY s.lease_until DESC"
)
# A reopened answer is held for a week: looking at it must not shorten that.
_RENEW = Statement(
    "UPDATE seats SET lease_until = CASE WHEN lease_until > :until THEN lease_until ELSE :until END"
    " WHERE id = :id AND user_id = :user AND state = 'leased'"
)
# Whoever had the seat before takes their unfinished answer along: it stays in history.
_TAKE = Statement(
    "UPDATE seats SET state = 'leased', user_id = :user, lease_until = :until, answer = NULL,"
    " submitted_at = NULL, seconds = NULL WHERE id = :id"
)
_SEEN = Statement(
    "SELECT SUM(CASE WHEN day = :today THEN 1 ELSE 0 END) AS today, COUNT(*) AS week,"
    " SUM(CASE WHEN day = :today AND item_id = :item THEN 1 ELSE 0 END) AS again"
    " FROM exposures WHERE user_id = :user AND project_id = :project AND day > :today - 7"
)
_EVERYWHERE = Statement("SELECT COUNT(*) FROM exposures WHERE user_id = :user AND day = :today")
_DAYS = Statement(
    "SELECT day, COUNT(*) AS items FROM exposures WHERE user_id = :user"
    " AND project_id = :project AND day > :today - 7 GROUP BY day ORDER BY day"
)
_EXPOSE = Statement(
    "INSERT INTO exposures (user_id, project_id, day, item_id, at)"
    " VALUES (:user, :project, :today, :item, :now) ON CONFLICT DO NOTHING"
)
_SEARCH = "SELECT s.id, s.place FROM seats s WHERE s.project_id = :project AND s.stage = :stage"
_COUNT = "SELECT DISTINCT s.item_id FROM seats s WHERE s.project_id = :project AND s.stage = :stage"
_FREE = "s.place >= :start AND s.state = 'open'"
# A training item is its person's own, however long they are away.
_EXPIRED = (
    "s.place >= :start AND s.state = 'leased' AND s.lease_until < :now AND s.training_round = 0"
)
_NOT_TWICE = (
    "NOT EXISTS (SELECT 1 FROM seats o WHERE o.item_id = s.item_id AND o.stage = s.stage"
    " AND o.user_id = :user)"
)
_NOT_SKIPPED = (
    "NOT EXISTS (SELECT 1 FROM skips k WHERE k.project_id = :project AND k.user_id = :user"
    " AND k.group_key = s.group_key)"
)
_APART = (
    "NOT EXISTS (SELECT 1 FROM seats a WHERE a.user_id = :user AND a.project_id = :project"
    " AND a.group_key = s.group_key AND a.stage = :apart"
)
_NOT_OWN = "NOT EXISTS (SELECT 1 FROM items i WHERE i.id = s.item_id AND i.owner_id = :user)"


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
    key = {"user": actor.id, "project": rights.project}
    rows = _MINE.all(connection, key)
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
                key = {"id": row.id, "user": actor.id, "until": self.lease_end(rights)}
                _TAKE.run(connection, key)
                return int(row.id)
        return None

    def renew(self, connection: Connection, actor: Actor, rights: Rights, seat: int) -> None:
        """Hold a seat for another while."""
        key = {"id": seat, "user": actor.id, "until": self.lease_end(rights)}
        _RENEW.run(connection, key)

    def lease_end(self, rights: Rights) -> float:
        """When a lease that begins now runs out."""
        return self._context.clock() + 60 * rights.settings.lease_minutes

    def _find(self, connection: Connection, actor: Actor, rights: Rights, stage: int) -> Any:
        hint = self._hints.get((actor.id, rights.project, stage), 0)
        rules = rights.workflow.stages[stage]
        values = _bind(actor, rights, stage) | {"now": self._context.clock()}
        searches = [(False, hint), (False, 0), (True, 0)] if hint else [(False, 0), (True, 0)]
        for expired, start in searches:
            query = _search_once(
                apart=len(rights.workflow.apart(stage)),
                not_own=rules.not_own,
                expired=expired,
                locking=not self._context.db.sqlite,
            )
            found = query.one(connection, values | {"start": start})
            if found is not None:
                return found
        return None

    def _remember(self, actor: Actor, rights: Rights, stage: int, place: int) -> None:
        if len(self._hints) > 100_000:
            self._hints.clear()
        self._hints[actor.id, rights.project, stage] = place


def _bind(actor: Actor, rights: Rights, stage: int) -> dict[str, object]:
    apart = enumerate(rights.workflow.apart(stage))
    places = {f"apart{number}": place for number, place in apart}
    return {"project": rights.project, "stage": stage, "user": actor.id, **places}


def count_open(connection: Connection, actor: Actor, rights: Rights, stage: int) -> int:
    """How many items at a stage a person could still take; counted up to a thousand."""
    rules = rights.workflow.stages[stage]
    query = _count_once(apart=len(rights.workflow.apart(stage)), not_own=rules.not_own)
    return int(query.value(connection, _bind(actor, rights, stage) | {"start": 0}))


def _conditions(apart: int, not_own: bool) -> list[str]:
    """Who may take a seat, as fixed parts: nothing from outside is written into the SQL."""
    parts = [_NOT_TWICE, _NOT_SKIPPED, *(f"{_APART}{number})" for number in range(apart))]
    return [*parts, _NOT_OWN] if not_own else parts


@lru_cache(maxsize=16)
def _count_once(*, apart: int, not_own: bool) -> Statement:
    text = " AND ".join([_COUNT, _FREE, *_conditions(apart, not_own)])
    return Statement("".join(["SELECT COUNT(*) FROM (", text, " LIMIT 1000) AS found"]))


@lru_cache(maxsize=16)
def _search_once(*, apart: int, not_own: bool, expired: bool, locking: bool) -> Statement:
    state = _EXPIRED if expired else _FREE
    text = " AND ".join([_SEARCH, state, *_conditions(apart, not_own)])
    text += " ORDER BY s.place, s.seat LIMIT 1"
    return Statement(f"{text} FOR UPDATE OF s SKIP LOCKED" if locking else text)


def count_seen(
    connection: Connection, actor: Actor, rights: Rights, now: float, item: int = 0
) -> Seen:
    """Exposure of a person in a project: today, and in the last seven days."""
    key = {"user": actor.id, "project": rights.project, "today": int(now // DAY), "item": item}
    row = _SEEN.one(connection, key)
    today, own = int(row.today or 0), rights.preferences.daily_limit
    daily = rights.daily_limit if rights.daily_limit is not None else rights.settings.daily_limit
    weekly = (
        rights.weekly_limit if rights.weekly_limit is not None else rights.settings.weekly_limit
    )
    if own:
        everywhere = int(_EVERYWHERE.value(connection, key))
        if not daily or own - everywhere < daily - today:
            today, daily = everywhere, own
    return Seen(today, int(row.week or 0), bool(row.again), daily, weekly)


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
    key = {"user": actor.id, "project": rights.project, "today": day, "item": item, "now": now}
    _EXPOSE.run(connection, key)


def _first_free_day(
    connection: Connection, actor: Actor, rights: Rights, today: int, seen: Seen
) -> int:
    """The day on which enough of the last seven days' items are a week old."""
    left = seen.week
    for row in _DAYS.all(connection, {"user": actor.id, "project": rights.project, "today": today}):
        left -= row.items
        if left < seen.weekly_limit:
            return int(row.day) + 7
    return today + 7
