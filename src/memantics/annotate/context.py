"""The context of every part of the service: database, images, clock, rights and audit log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotate.database import Database
from memantics.annotate.errors import Forbidden, Values
from memantics.annotate.records import Actor, Preferences
from memantics.annotate.statement import Statement
from memantics.annotate.workflow import ROLES, Role, Settings, Workflow, workflow_of

DAY = 86_400
Clock = Callable[[], float]
_AUDIT = Statement(
    "INSERT INTO audit (at, user_id, project_id, action, subject, detail)"
    " VALUES (:at, :user, :project, :action, :subject, :detail)"
)
_RIGHTS = (
    "SELECT m.roles, m.pseudonym, m.consent_at, m.training, m.training_round, m.daily_limit,"
    " m.weekly_limit, p.id AS project_id, p.workflow, p.settings, p.archived, p.title, p.language,"
    " u.preferences FROM memberships m JOIN projects p ON p.id = m.project_id"
    " JOIN users u ON u.id = m.user_id"
    " WHERE m.project_id = :project AND m.user_id = :user AND m.roles <> '' AND u.active"
)
_FIND_RIGHTS = Statement(_RIGHTS)
# The row of a person in a project is what keeps two tabs of theirs apart.
_LOCK_RIGHTS = Statement(f"{_RIGHTS} FOR UPDATE OF m")


@dataclass(frozen=True, slots=True)
class Rights:
    """What a person may do in a project, and the project's rules."""

    project: int
    title: str
    language: str
    roles: frozenset[Role]
    pseudonym: str
    consented: bool
    archived: bool
    training: str
    training_round: int
    daily_limit: int | None
    weekly_limit: int | None
    workflow: Workflow
    settings: Settings
    preferences: Preferences


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
        query = _LOCK_RIGHTS if lock and not self.db.sqlite else _FIND_RIGHTS
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
        _AUDIT.run(
            connection,
            {
                "at": self.clock(),
                "user": actor.id if actor else None,
                "project": project,
                "action": action,
                "subject": subject,
                "detail": dump(detail),
            },
        )


def read_rights(row: Any) -> Rights:
    """Rights from a row that has the columns of memberships and projects."""
    return Rights(
        project=row.project_id,
        title=row.title,
        language=row.language,
        roles=read_roles(row.roles),
        pseudonym=row.pseudonym,
        consented=row.consent_at is not None,
        archived=bool(row.archived),
        training=row.training,
        training_round=row.training_round,
        daily_limit=row.daily_limit,
        weekly_limit=row.weekly_limit,
        workflow=workflow_of(row.workflow),
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
def settings_of(text: str) -> Settings:
    """Settings from their column, parsed once."""
    return Settings.model_validate_json(text)


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
