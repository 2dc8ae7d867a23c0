"""Database rows of accounts and memberships, with pseudonyms per project."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotation import schema
from memantics.annotation.context import read_roles, write_roles
from memantics.annotation.database import insert_row
from memantics.annotation.errors import Forbidden, NotFound
from memantics.annotation.records import Actor, Preferences

_members, _users = schema.memberships, schema.users


def join_project(
    connection: Connection, project: int, user: int, roles: Iterable[str], now: float
) -> str:
    """Add roles to a person in a project and return the pseudonym.

    The caller holds the lock of the project: two people who join at once get different pseudonyms.
    """
    mine = sa.select(_members).where(is_member(project, user))
    row = connection.execute(mine).one_or_none()
    if row is not None:
        text = write_roles({*read_roles(row.roles), *roles})
        change_member(connection, project, user, roles=text)
        return str(row.pseudonym)
    return insert_member(connection, project, user, roles, now)


def is_member(project: int, user: int) -> sa.ColumnElement[bool]:
    """Return the SQL condition for the membership of a person in a project."""
    return sa.and_(_members.c.project_id == project, _members.c.user_id == user)


def change_member(connection: Connection, project: int, user: int, **values: object) -> None:
    """Update columns of a membership; raise an error if the person is not a member."""
    change = sa.update(_members).where(is_member(project, user)).values(**values)
    if connection.execute(change).rowcount != 1:
        raise NotFound("this account is not a member of the project")


def insert_member(
    connection: Connection,
    project: int,
    user: int,
    roles: Iterable[str],
    now: float,
    wanted: str = "",
) -> str:
    """Insert a member under the wanted or the next free pseudonym; return the pseudonym."""
    query = sa.select(_members.c.pseudonym).where(_members.c.project_id == project)
    taken = {"", *connection.execute(query).scalars()}
    numbers = (f"P{number:02d}" for number in count(1))
    pseudonym = next(name for name in chain([wanted[:40]], numbers) if name not in taken)
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


def require_admin(connection: Connection, actor: Actor) -> None:
    """Raise Forbidden unless the account is an administrator now."""
    query = sa.select(_users.c.admin).where(_users.c.id == actor.id, _users.c.active.is_(True))
    if not connection.execute(query).scalar_one_or_none():
        raise Forbidden


def insert_user(
    connection: Connection, name: str, hashed: str | None, *, admin: bool, now: float
) -> Actor:
    """Insert an account; an account without a password cannot log in."""
    entry = {
        "name": name,
        "name_key": name_key(name),
        "password_hash": hashed,
        "admin": admin,
        "active": hashed is not None,
        "preferences": Preferences().model_dump_json(),
        "created_at": now,
    }
    return Actor(insert_row(connection, _users, entry), name, admin)


def find_user(connection: Connection, name: str) -> int | None:
    """Return the id of the account with this name, or None."""
    query = sa.select(_users.c.id).where(_users.c.name_key == name_key(name))
    return connection.execute(query).scalar_one_or_none()


def name_key(name: str) -> str:
    """Return the lookup key of an account name; it ignores case."""
    return name.casefold()[:80]
