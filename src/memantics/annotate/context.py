"""The context of every part of the service: database, images, clock, rights and audit log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotate import queries
from memantics.annotate.database import Database
from memantics.annotate.errors import Forbidden, Values
from memantics.annotate.overlay import overlaid, settings_of
from memantics.annotate.records import Actor, Preferences, Rights, record_of
from memantics.annotate.workflow import ROLES, Role

DAY = 86_400
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What all parts of a service share: the database, the folder of images, the clock."""

    db: Database
    media: Path
    clock: Clock = field(default=time.time)

    def rights(
        self, connection: Connection, actor: Actor, project: int, *, lock: bool = False
    ) -> Rights:
        """The rights of a member; anybody else is refused."""
        query = queries.LOCKED_RIGHTS if lock else queries.RIGHTS
        row = query.one(connection, {"project": project, "user": actor.id})
        if row is None:
            raise Forbidden
        return read_rights(row)

    def require(self, connection: Connection, actor: Actor, project: int, role: Role) -> Rights:
        """The rights of a member who holds a role."""
        rights = self.rights(connection, actor, project)
        if role not in rights.roles:
            raise Forbidden
        return rights

    @contextmanager
    def as_lead(
        self, actor: Actor, project: int, *, write: bool = False
    ) -> Iterator[tuple[Connection, Rights]]:
        """A transaction for a lead of a project; anybody else is refused."""
        with self.db.write() if write else self.db.read() as connection:
            yield connection, self.require(connection, actor, project, "lead")

    def lead_rights(self, actor: Actor, project: int) -> Rights:
        """The rights of a lead of a project; anybody else is refused."""
        with self.as_lead(actor, project) as (_, rights):
            return rights

    def log(
        self,
        connection: Connection,
        actor: Actor | None,
        action: str,
        subject: str,
        *,
        project: int | None = None,
        **detail: JsonValue,
    ) -> None:
        """Write one line of the audit log, in the transaction of the change."""
        entry: dict[str, object] = {
            "at": self.clock(),
            "user_id": actor.id if actor else None,
            "project_id": project,
            "action": action,
            "subject": subject,
            "detail": dump(detail),
        }
        queries.ADD_AUDIT.run(connection, entry)


def read_rights(row: Any) -> Rights:
    """Rights from a row that has the columns of memberships and projects."""
    return record_of(
        Rights,
        row,
        id=row.project_id,
        roles=read_roles(row.roles),
        consented=row.consent_at is not None,
        archived=bool(row.archived),
        workflow=overlaid(row.workflow, row.settings),
        settings=settings_of(row.settings),
        preferences=preferences_of(row.preferences),
    )


def read_roles(text: str) -> frozenset[Role]:
    """Roles from their column.

    >>> sorted(read_roles("lead,annotator"))
    ['annotator', 'lead']
    """
    return frozenset(role for role in ROLES if role in text.split(","))


def write_roles(roles: Iterable[str]) -> str:
    """Roles for their column; unknown ones are refused."""
    wanted = set(roles)
    if unknown := wanted - set(ROLES):
        raise Forbidden(f"no such role: {', '.join(sorted(unknown))}")
    return ",".join(role for role in ROLES if role in wanted)


@lru_cache(maxsize=1024)
def preferences_of(text: str) -> Preferences:
    """Preferences from their column, parsed once."""
    return Preferences.model_validate_json(text)


def dump(value: object) -> str:
    """JSON for a column."""
    return orjson.dumps(value).decode()


def load(text: str | None) -> dict[str, JsonValue]:
    """A JSON object from a column."""
    value: dict[str, JsonValue] = orjson.loads(text) if text else {}
    return value


def load_optional(text: str | None) -> dict[str, JsonValue] | None:
    """A JSON object from a column that may be empty."""
    return load(text) if text is not None else None


def load_list(text: str) -> list[Any]:
    """A JSON list from a column."""
    value: list[Any] = orjson.loads(text)
    return value


def iso(at: float) -> str:
    """A time as people and other programs read it.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def same(one: Values | None, other: Mapping[str, JsonValue] | None) -> bool:
    """Whether two answers say the same."""
    return one is not None and other is not None and dict(one) == dict(other)
