"""Shared context of the service: database, images, clock, rights and audit log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotation import queries
from memantics.annotation.database import Database, Query
from memantics.annotation.errors import Forbidden
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import Actor, Preferences, Rights, record_of
from memantics.annotation.workflow import ROLES, ProjectRole, Workflow, settings_of, with_settings

DAY = 86_400
WallClock = Callable[[], float]
RowLock = Literal["member", "project"]
_LOCKS: Mapping[RowLock, Query] = {
    "member": queries.LOCK_OWN_MEMBER,
    "project": queries.LOCK_PROJECT,
}


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """Database, image folder and clock that all parts of the service share."""

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
        lock: RowLock | None = None,
    ) -> Visit:
        """Return a member's rights in an open transaction; raise Forbidden without the role.

        The rights are read after the lock, so that they are those that the last change left.
        """
        key = {"project": project, "user": actor.id}
        if lock is not None and not self.db.sqlite:
            _LOCKS[lock].all(connection, key)
        row = queries.RIGHTS.one(connection, key)
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
        lock: RowLock | None = None,
    ) -> Iterator[Visit]:
        """Open a transaction for a member of a project; raise Forbidden for anyone else."""
        with self.db.write() if write else self.db.read() as connection:
            yield self.visit(connection, actor, project, role=role, lock=lock)

    def as_lead(
        self, actor: Actor, project: int, *, write: bool = False
    ) -> AbstractContextManager[Visit]:
        """Open a transaction for a lead of a project; raise Forbidden for anyone else.

        Changes by leads lock the project, so that they follow each other.
        """
        lock: RowLock | None = "project" if write else None
        return self.as_member(actor, project, role="lead", write=write, lock=lock)

    def lead_rights(self, actor: Actor, project: int) -> Rights:
        """Return the rights of a project lead; raise Forbidden for anyone else."""
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
        """Write one entry of the audit log in the transaction of the change."""
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
    """A member of a project in one transaction, with the time at which it began."""

    context: ServiceContext
    connection: Connection
    actor: Actor
    rights: Rights
    now: float

    @property
    def flow(self) -> Workflow:
        """Return the workflow with the project's settings applied."""
        return self.rights.workflow

    @property
    def key(self) -> dict[str, object]:
        """Return the query parameters for a member; ``round`` is the training round."""
        rights = self.rights
        return {"user": self.actor.id, "project": rights.id, "round": rights.training_round}

    @property
    def lease_end(self) -> float:
        """Return the time at which a lease that begins now expires."""
        return self.now + 60 * self.rights.settings.lease_minutes

    def log(self, action: str, subject: str = "", /, **detail: JsonValue) -> None:
        """Write one entry of the project's audit log; the default subject is the project."""
        project = self.rights.id
        subject = subject or f"project:{project}"
        self.context.log(self.connection, self.actor, action, subject, project=project, **detail)


def read_rights(row: Any) -> Rights:
    """Build the rights from a row with the columns of memberships and projects."""
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
    """Save the settings of a project."""
    text = settings.model_dump_json()
    queries.SET_SETTINGS.run(connection, {"project": project, "settings": text})


def read_roles(text: str) -> frozenset[ProjectRole]:
    """Parse the roles column.

    >>> sorted(read_roles("lead,annotator"))
    ['annotator', 'lead']
    """
    return frozenset(ordered_roles(text))


def ordered_roles(text: str) -> tuple[ProjectRole, ...]:
    """Parse the roles column into the display order."""
    return tuple(role for role in ROLES if role in text.split(","))


def write_roles(roles: Iterable[str]) -> str:
    """Format roles for the roles column; raise an error for unknown roles."""
    wanted = set(roles)
    if unknown := wanted - set(ROLES):
        raise Forbidden(f"unknown role: {', '.join(sorted(unknown))}")
    return ",".join(role for role in ROLES if role in wanted)


@lru_cache(maxsize=1024)
def preferences_of(text: str) -> Preferences:
    """Parse the preferences column (cached)."""
    return Preferences.model_validate_json(text)


def dump(value: object) -> str:
    """Serialise a value as JSON for a column."""
    return orjson.dumps(value).decode()


def load(text: str | None) -> dict[str, JsonValue]:
    """Parse a JSON object from a column."""
    value: dict[str, JsonValue] = orjson.loads(text) if text else {}
    return value


def load_optional(text: str | None) -> dict[str, JsonValue] | None:
    """Parse a JSON object from a column that may be empty."""
    return load(text) if text is not None else None


def load_list(text: str) -> list[Any]:
    """Parse a JSON list from a column."""
    value: list[Any] = orjson.loads(text)
    return value


def iso(at: float) -> str:
    """Format a time as ISO 8601 in UTC.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
