"""Seats of all items of a project brought in line with its settings; no answer is ever lost."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotate import queries, schema
from memantics.annotate.context import keep_settings
from memantics.annotate.overlay import lay_over, overlaid, settings_of
from memantics.annotate.tasks import read_seat, settle
from memantics.annotate.workflow import Workflow, workflow_of

_projects, _members, _seats = schema.projects, schema.memberships, schema.seats


def reseat(connection: Connection, project: int, *, joined: bool = False) -> None:
    """Add the seats that the settings ask for, and open or close what is free.

    ``joined``: only the team changed, which matters where a share of items is for all of it.
    """
    query = sa.select(_projects).where(_projects.c.id == project)
    row = connection.execute(query.with_for_update()).one()
    settings = settings_of(row.settings)
    if joined and not settings.shared:
        return
    flow = overlaid(row.workflow, row.settings)
    role = flow.stages[flow.judging].role
    roles = connection.execute(sa.select(_members.c.roles).where(_members.c.project_id == project))
    team = sum(role in text.split(",") for text in roles.scalars())
    changed = settings.model_copy(update={"team": team})
    keep_settings(connection, project, changed)
    _add_seats(connection, project, lay_over(workflow_of(row.workflow), changed))


def _add_seats(connection: Connection, project: int, flow: Workflow) -> None:
    mine = sa.select(_seats).where(_seats.c.project_id == project, _seats.c.training_round == 0)
    ordered = mine.order_by(_seats.c.id)
    present = _by_item(connection.execute(ordered.with_for_update()).all())
    items = [
        item
        for item in queries.ITEMS.all(connection, {"project": project})
        if not item.training_round and present[item.id]
    ]
    missing = [
        _seat_like(present[item.id][0], stage, number)
        for item in items
        for stage in range(len(flow.stages))
        for number in range(
            sum(row.stage == stage for row in present[item.id]),
            flow.people_at(stage, item.item_key),
        )
    ]
    if missing:
        connection.execute(sa.insert(_seats), missing)
        present = _by_item(connection.execute(ordered).all())
    for item in items:
        seats = sorted(map(read_seat, present[item.id]), key=lambda seat: (seat.stage, seat.seat))
        settle(connection, flow, item, seats)


def _by_item(rows: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.item_id].append(row)
    return found


def _seat_like(row: Any, stage: int, number: int) -> dict[str, object]:
    kept = ("project_id", "item_id", "group_key", "place")
    return {name: getattr(row, name) for name in kept} | {
        "stage": stage,
        "seat": number,
        "training_round": 0,
        "state": "waiting",
        "version": 0,
    }
