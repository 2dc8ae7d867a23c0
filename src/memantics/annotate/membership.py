"""Who belongs to a project, under which pseudonym."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotate import schema
from memantics.annotate.base import read_roles, write_roles

_members = schema.memberships


def join_project(
    connection: Connection, project: int, user: int, roles: Iterable[str], now: float
) -> str:
    """Add roles to a person in a project; returns the pseudonym under which answers go out."""
    mine = sa.and_(_members.c.project_id == project, _members.c.user_id == user)
    row = connection.execute(sa.select(_members).where(mine)).one_or_none()
    if row is not None:
        text = write_roles({*read_roles(row.roles), *roles})
        connection.execute(sa.update(_members).where(mine).values(roles=text))
        return str(row.pseudonym)
    # The project's row is the turnstile: two who join at once get two numbers.
    lock = sa.select(schema.projects.c.id).where(schema.projects.c.id == project)
    connection.execute(lock.with_for_update())
    pseudonym = next_pseudonym(connection, project)
    entry = {
        "project_id": project,
        "user_id": user,
        "roles": write_roles(roles),
        "pseudonym": pseudonym,
        "training": "none",
        "training_round": 1,
        "joined_at": now,
    }
    connection.execute(sa.insert(_members), entry)
    return pseudonym


def next_pseudonym(connection: Connection, project: int) -> str:
    """The next free number of a project."""
    query = sa.select(_members.c.pseudonym).where(_members.c.project_id == project)
    taken = {str(name) for (name,) in connection.execute(query)}
    return next(name for number in range(1, 10**9) if (name := f"P{number:02d}") not in taken)
