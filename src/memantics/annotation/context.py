"""The context of every part of the service: database, images, clock, rights and audit log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotation import queries
from memantics.annotation.database import Database
from memantics.annotation.errors import Forbidden
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import Actor, Preferences, Rights, record_of
from memantics.annotation.workflow import ROLES, ProjectRole, Workflow, settings_of, with_settings

DAY = 86_400
WallClock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What all parts of a service share: the database, the folder of images, the clock."""

    db: Database
    media: Path
    clock: WallClock = field(default=time.time)

    def visit(
        self,
        connection: Connection,
        actor: Actor,
        project: int,
        *,
        role: ProjectRole | None = None,
        lock: bool = False,
    ) -> Visit:
        """A member inside a transaction; who is none, or does not hold the role, is refused."""
        query = queries.LOCKED_RIGHTS if lock else queries.RIGHTS
        row = query.one(connection, {"project": project, "user": actor.id})
        if row is None or (role and role not in read_roles(row.roles)):
            raise Forbidden
        return Visit(self, connection, actor, read_rights(row), self.clock())

    @contextmanager
    def as_member(
        self,
        actor: Actor,
        project: int,
        *,
        role: ProjectRole | None = None,
        write: bool = False,
        lock: bool = False,
    ) -> Iterator[Visit]:
        """A transaction for a member of a project; anybody else is refused."""
        with self.db.write() if write else self.db.read() as connection:
            yield self.visit(connection, actor, project, role=role, lock=lock)

    def as_lead(
        self, actor: Actor, project: int, *, write: bool = False
    ) -> AbstractContextManager[Visit]:
        """A transaction for a lead of a project; anybody else is refused."""
        return self.as_member(actor, project, role="lead", write=write)

    def lead_rights(self, actor: Actor, project: int) -> Rights:
        """The rights of a lead of a project; anybody else is refused."""
        with self.as_lead(actor, project) as visit:
            return visit.rights

    def log(
        self,
        connection: Connection,
        actor: Actor,
        action: str,
        subject: str,
        *,
        project: int | None = None,
        **detail: JsonValue,
    ) -> None:
        """Write one line of the audit log, in the transaction of the change."""
        entry: dict[str, object] = {
            "at": self.clock(),
            "user_id": actor.id,
            "project_id": project,
            "action": action,
            "subject": subject,
            "detail": dump(detail),
        }
        queries.ADD_AUDIT.run(connection, entry)


@dataclass(frozen=True, slots=True)
class Visit:
    """A member of a project inside one transaction, and the moment at which it began."""

    context: ServiceContext
    connection: Connection
    actor: Actor
    rights: Rights
    now: float

    @property
    def flow(self) -> Workflow:
        """The workflow as it holds for the project."""
        return self.rights.workflow

    @property
    def key(self) -> dict[str, object]:
        """What queries about a person in a project bind; ``round`` is that of their training."""
        rights = self.rights
        return {"user": self.actor.id, "project": rights.id, "round": rights.training_round}

    @property
    def lease_end(self) -> float:
        """When a lease that begins now runs out."""
        return self.now + 60 * self.rights.settings.lease_minutes

    def log(self, action: str, subject: str = "", /, **detail: JsonValue) -> None:
        """Write one line of the project's audit log; without a subject it is about the project."""
        project = self.rights.id
        subject = subject or f"project:{project}"
        self.context.log(self.connection, self.actor, action, subject, project=project, **detail)


def read_rights(row: Any) -> Rights:
    """Rights from a row that has the columns of memberships and projects."""
    return record_of(
        Rights,
        row,
        id=row.project_id,
        roles=read_roles(row.roles),
        consented=row.consent_at is not None,
        archived=bool(row.archived),
        workflow=with_settings(row.workflow, row.settings),
        settings=settings_of(row.settings),
        preferences=preferences_of(row.preferences),
    )


def keep_settings(connection: Connection, project: int, settings: ProjectSettings) -> None:
    """Write the settings of a project into their column."""
    text = settings.model_dump_json()
    queries.SET_SETTINGS.run(connection, {"project": project, "settings": text})


def read_roles(text: str) -> frozenset[ProjectRole]:
    """Roles from their column.

    >>> sorted(read_roles("lead,annotator"))
    ['annotator', 'lead']
    """
    return frozenset(ordered_roles(text))


def ordered_roles(text: str) -> tuple[ProjectRole, ...]:
    """Roles from their column, in the order in which people read them."""
    return tuple(role for role in ROLES if role in text.split(","))


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
