"""Accounts, sessions and invitations, with a limit on password attempts.

Passwords and tokens are stored only as hashes. Attempts are counted in the database before anything
is hashed: counting after a failure would admit twenty simultaneous requests at a limit of eight.
In the database, several servers count together.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy.engine import Connection

from memantics.annotation import membership, queries, schema
from memantics.annotation.context import DAY, ServiceContext, ordered_roles, write_roles
from memantics.annotation.database import insert_row
from memantics.annotation.errors import (
    AnswerError,
    Forbidden,
    LoginFailed,
    NotFound,
    TokenInvalid,
    TooManyAttempts,
)
from memantics.annotation.intake import adjust_assignments
from memantics.annotation.records import Actor, Invitation, Preferences, Session, record_of
from memantics.annotation.schema import login_attempts as _attempts
from memantics.annotation.values import clean_text
from memantics.annotation.workflow import ROLES

WINDOW = 900.0
# Few per account and address, more per address, and so many per account from all addresses that
# nobody locks somebody else out by mistake.
PER_PAIR, PER_ADDRESS, PER_ACCOUNT = 8, 30, 100
# Any fixed number: on PostgreSQL, attempts are counted one after the other.
_LOCK = 5_417_234
SESSION_DAYS = 14
LINK_SECONDS = 3600
_NAME = re.compile(r"[\w.@+-]{1,80}")
_FEWEST, _MOST = 10, 200
_users, _sessions, _invitations = schema.users, schema.sessions, schema.invitations
_OFFERS = (
    sa.select(
        _invitations,
        _invitations.c.expires_at.label("expires"),
        _invitations.c.project_id.label("project"),
        schema.projects.c.title.label("project_title"),
    )
    .join(schema.projects)
    .where(_invitations.c.revoked.is_(False))
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that was counted. ``cleared`` is the key whose count a success sets to zero."""

    id: str
    cleared: str


class LoginAttempts:
    """Counts attempts by key within a sliding window."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    def begin_login(self, account: str, address: str) -> Attempt:
        """Count an attempt at an account, or raise TooManyAttempts."""
        network = network_of(address)
        pair = f"pair {network} {account}"
        limits = {pair: PER_PAIR, f"address {network}": PER_ADDRESS}
        return self.begin(limits | {f"account {account}": PER_ACCOUNT}, pair)

    def begin(self, limits: Mapping[str, int], cleared: str) -> Attempt:
        """Count an attempt under each key; where one is at its limit, under none, and raise."""
        keys = {hash_token(key): limit for key, limit in limits.items()}
        attempt = Attempt(secrets.token_hex(16), hash_token(cleared))
        now = self._context.clock()
        with self._context.db.write() as connection:
            if not self._context.db.sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            connection.execute(sa.delete(_attempts).where(_attempts.c.at <= now - WINDOW))
            times: dict[str, list[float]] = defaultdict(list)
            query = sa.select(_attempts.c.key, _attempts.c.at).where(_attempts.c.key.in_(keys))
            for key, at in connection.execute(query.order_by(_attempts.c.at)):
                times[key].append(at)
            full = [times[key][-limit] for key, limit in keys.items() if len(times[key]) >= limit]
            if full:
                raise TooManyAttempts(max(full) + WINDOW - now)
            rows = [{"attempt": attempt.id, "key": key, "at": now} for key in keys]
            connection.execute(sa.insert(_attempts), rows)
        return attempt

    def succeed(self, connection: Connection, attempt: Attempt) -> None:
        """Take an attempt with the right password out of all counts."""
        right = sa.or_(_attempts.c.attempt == attempt.id, _attempts.c.key == attempt.cleared)
        connection.execute(sa.delete(_attempts).where(right))


def network_of(address: str) -> str:
    """What is counted as one address: of IPv6 the /64, inside which a machine may choose.

    >>> network_of("203.0.113.9"), network_of("2001:db8::1:2:3:4"), network_of("::ffff:203.0.113.9")
    ('203.0.113.9', '2001:db8::/64', '203.0.113.9')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found.packed, 64), strict=False))


def hash_token(token: str) -> str:
    """How tokens and keys are stored: no name, address or token stands in a table.

    Tokens are random and long: one round is enough.
    """
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class Accounts:
    """Who somebody is."""

    def __init__(self, context: ServiceContext, hasher: PasswordHasher | None = None) -> None:
        self._context = context
        self._attempts = LoginAttempts(context)
        self._hasher = hasher or PasswordHasher()
        # Each hash takes tens of megabytes on purpose: a crowd at the door must wait in line.
        self._door = threading.BoundedSemaphore(4)

    @cached_property
    def nobody(self) -> str:
        """A hash that no password fits.

        It is verified against when there is no such account, so that both cases take as long.
        Made when it is first needed: commands that log nobody in do not wait for it.
        """
        return self._hasher.hash(secrets.token_hex(16))

    def count(self) -> int:
        """How many people have an account."""
        with self._context.db.read() as connection:
            return int(connection.execute(sa.select(sa.func.count(_users.c.id))).scalar_one())

    def create_first(self, name: str, password: str) -> Actor:
        """The first account, an administrator; refused once there is any."""
        hashed = self._hash(password)
        with self._context.db.write() as connection:
            if connection.execute(sa.select(_users.c.id).limit(1)).first():
                raise Forbidden("there is an account already")
            actor = self._insert(connection, name, hashed, admin=True)
            self._context.log(connection, actor, "account.create", f"user:{actor.id}", first=True)
        return actor

    def create(self, actor: Actor, name: str, password: str, *, admin: bool = False) -> Actor:
        """Another account; only administrators make them (others are invited)."""
        hashed = self._hash(password)
        with self._context.db.write() as connection:
            membership.require_admin(connection, actor)
            made = self._insert(connection, name, hashed, admin=admin)
            self._context.log(connection, actor, "account.create", f"user:{made.id}", admin=admin)
        return made

    def local_admin(self) -> Actor | None:
        """The first administrator, for whoever runs the program beside its database.

        No right is checked: the command line calls this, never a request.
        """
        query = sa.select(_users).where(_users.c.admin.is_(True), _users.c.active.is_(True))
        with self._context.db.read() as connection:
            row = connection.execute(query.order_by(_users.c.id).limit(1)).one_or_none()
        return record_of(Actor, row) if row else None

    def deactivate(self, actor: Actor, name: str) -> None:
        """Close an account: its sessions end, what it answered stays."""
        with self._context.db.write() as connection:
            membership.require_admin(connection, actor)
            user = _require_user(connection, name)
            if user == actor.id:
                raise Forbidden("nobody closes their own account", "log out instead")
            _change(connection, user, active=False)
            _end_sessions(connection, user)
            self._context.log(connection, actor, "account.close", f"user:{user}")

    def log_in(self, name: str, password: str, address: str = "") -> Session:
        """A session for a name and its password, given from a network address."""
        attempt = self._attempts.begin_login(membership.name_key(name), address)
        query = sa.select(_users).where(_users.c.name_key == membership.name_key(name))
        with self._context.db.read() as connection:
            row = connection.execute(query).one_or_none()
        stored = row.password_hash if row and row.active and row.password_hash else None
        if not self._verify(stored or self.nobody, password) or stored is None or row is None:
            raise LoginFailed
        rehash = self._hasher.check_needs_rehash(stored)
        fresh = self._hasher.hash(password) if rehash else None
        with self._context.db.write() as connection:
            if fresh:
                _change(connection, row.id, password_hash=fresh)
            self._attempts.succeed(connection, attempt)
            expired = _sessions.c.expires_at < self._context.clock()
            connection.execute(sa.delete(_sessions).where(expired))
            session = self._open(connection, record_of(Actor, row))
            self._context.log(connection, session.actor, "session.begin", f"user:{row.id}")
        return session

    def actor_of(self, token: str) -> Actor:
        """Whose session this is."""
        with self._context.db.read() as connection:
            return self._find(connection, token, "session")

    def log_out(self, token: str) -> None:
        """Exclusion a session."""
        with self._context.db.write() as connection:
            _drop(connection, token)

    def change_password(self, actor: Actor, old: str, new: str) -> Session:
        """A new password; every session of this person ends but the one returned."""
        key = f"password of {actor.id}"
        attempt = self._attempts.begin({key: PER_PAIR}, key)
        query = sa.select(_users.c.password_hash).where(_users.c.id == actor.id)
        with self._context.db.read() as connection:
            stored = connection.execute(query).scalar_one_or_none()
        if not stored or not self._verify(stored, old):
            raise LoginFailed
        with self._context.db.write() as connection:
            self._attempts.succeed(connection, attempt)
        hashed = self._hash(new)
        with self._context.db.write() as connection:
            _change(connection, actor.id, password_hash=hashed)
            _end_sessions(connection, actor.id)
            self._context.log(connection, actor, "account.password", f"user:{actor.id}")
            return self._open(connection, actor)

    def reset_password(self, actor: Actor, name: str, new: str) -> None:
        """Give somebody a new password (administrators only); all of their sessions end.

        An account that was closed is open again.
        """
        hashed = self._hash(new)
        with self._context.db.write() as connection:
            membership.require_admin(connection, actor)
            user = _require_user(connection, name)
            _change(connection, user, password_hash=hashed, active=True)
            _end_sessions(connection, user)
            self._context.log(connection, actor, "account.reset", f"user:{user}")

    def login_link(self, actor: Actor) -> str:
        """A token that opens one session, once, within the hour."""
        with self._context.db.write() as connection:
            return self._open(connection, actor, "link", LINK_SECONDS).token

    def enter(self, token: str) -> Session:
        """Use a login link."""
        with self._context.db.write() as connection:
            actor = self._find(connection, token, "link")
            _drop(connection, token)
            self._context.log(connection, actor, "session.begin", f"user:{actor.id}", link=True)
            return self._open(connection, actor)

    def preferences(self, actor: Actor) -> Preferences:
        """What a person chose for themselves."""
        query = sa.select(_users.c.preferences).where(_users.c.id == actor.id)
        with self._context.db.read() as connection:
            text = connection.execute(query).scalar_one_or_none()
        if text is None:
            raise Forbidden
        return Preferences.model_validate_json(text)

    def set_preferences(self, actor: Actor, preferences: Preferences) -> None:
        """Keep what a person chose."""
        with self._context.db.write() as connection:
            _change(connection, actor.id, preferences=preferences.model_dump_json())

    def invite(
        self,
        actor: Actor,
        project: int,
        roles: Iterable[str],
        *,
        note: str = "",
        days: float = 14,
    ) -> str:
        """A token that lets one person into a project; only its hash is kept."""
        token = secrets.token_urlsafe(32)
        text = write_roles(roles)
        if not text:
            raise AnswerError({"roles": f"choose at least one of {', '.join(ROLES)}"})
        with self._context.as_lead(actor, project, write=True) as visit:
            entry = {
                "token_hash": hash_token(token),
                "project_id": project,
                "roles": text,
                "note": clean_text(note, lines=False)[:300],
                "created_by": actor.id,
                "created_at": visit.now,
                "expires_at": visit.now + days * DAY,
                "revoked": False,
            }
            number = insert_row(visit.connection, _invitations, entry)
            visit.log("invitation.create", f"invitation:{number}", roles=text)
        return token

    def invitation(self, token: str) -> Invitation:
        """What an invitation offers, while it is valid."""
        with self._context.db.read() as connection:
            return _view(self._find_invitation(connection, token), self._context.clock())

    def accept(self, token: str, name: str, password: str) -> Session:
        """Make an account out of an invitation, which is then used up."""
        hashed = self._hash(password)
        with self._context.db.write() as connection:
            row = self._find_invitation(connection, token, lock=True)
            actor = self._insert(connection, name, hashed, admin=False)
            self._use(connection, actor, row)
            return self._open(connection, actor)

    def accept_as(self, actor: Actor, token: str) -> int:
        """Join with the account one has; returns the project."""
        with self._context.db.write() as connection:
            row = self._find_invitation(connection, token, lock=True)
            self._use(connection, actor, row)
            return int(row.project_id)

    def invitations(self, actor: Actor, project: int) -> tuple[Invitation, ...]:
        """All invitations of a project, the newest first."""
        query = _OFFERS.where(_invitations.c.project_id == project).order_by(
            _invitations.c.id.desc()
        )
        with self._context.as_lead(actor, project) as visit:
            return tuple(_view(row, visit.now) for row in visit.connection.execute(query))

    def revoke_invitation(self, actor: Actor, invitation: int) -> None:
        """Make an invitation worthless."""
        with self._context.db.write() as connection:
            found = sa.select(_invitations.c.project_id).where(_invitations.c.id == invitation)
            project = connection.execute(found).scalar_one_or_none()
            if project is None:
                raise Forbidden
            visit = self._context.visit(connection, actor, project, role="lead")
            change = sa.update(_invitations).where(_invitations.c.id == invitation)
            connection.execute(change.values(revoked=True))
            visit.log("invitation.revoke", f"invitation:{invitation}")

    def _use(self, connection: Connection, actor: Actor, row: Any) -> None:
        now = self._context.clock()
        membership.join_project(connection, row.project_id, actor.id, ordered_roles(row.roles), now)
        adjust_assignments(connection, row.project_id, joined=True)
        change = sa.update(_invitations).where(_invitations.c.id == row.id)
        connection.execute(change.values(used_at=now, used_by=actor.id))
        visit = self._context.visit(connection, actor, row.project_id)
        visit.log("invitation.accept", f"invitation:{row.id}", roles=row.roles)

    def _find_invitation(self, connection: Connection, token: str, *, lock: bool = False) -> Any:
        query = _OFFERS.where(
            _invitations.c.token_hash == hash_token(token),
            _invitations.c.used_at.is_(None),
            _invitations.c.expires_at > self._context.clock(),
        )
        if lock:
            query = query.with_for_update(of=_invitations)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise TokenInvalid("invitation")
        return row

    def _find(self, connection: Connection, token: str, kind: str) -> Actor:
        values = {"hash": hash_token(token), "kind": kind, "now": self._context.clock()}
        row = queries.SESSION.one(connection, values)
        if row is None:
            raise TokenInvalid(kind)
        return Actor(row.id, row.name, bool(row.admin))

    def _open(
        self,
        connection: Connection,
        actor: Actor,
        kind: str = "session",
        seconds: float = SESSION_DAYS * DAY,
    ) -> Session:
        token = secrets.token_urlsafe(32)
        now = self._context.clock()
        entry = {
            "token_hash": hash_token(token),
            "kind": kind,
            "user_id": actor.id,
            "created_at": now,
            "expires_at": now + seconds,
        }
        connection.execute(sa.insert(_sessions), entry)
        return Session(token, actor, now + seconds)

    def _insert(self, connection: Connection, name: str, hashed: str, *, admin: bool) -> Actor:
        if not _NAME.fullmatch(name):
            raise AnswerError({"name": "letters, digits and . @ + - _, at most 80"})
        if membership.find_user(connection, name) is not None:
            raise AnswerError({"name": "this name is taken"})
        try:
            return membership.insert_user(
                connection, name, hashed, admin=admin, now=self._context.clock()
            )
        except sa.exc.IntegrityError as error:  # somebody else took it just now
            raise AnswerError({"name": "this name is taken"}) from error

    def _hash(self, password: str) -> str:
        if not _FEWEST <= len(password) <= _MOST:
            raise AnswerError({"password": f"{_FEWEST} to {_MOST} characters"})
        with self._door:
            return self._hasher.hash(password)

    def _verify(self, stored: str, password: str) -> bool:
        try:
            with self._door:
                return len(password) <= _MOST and self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False


def _require_user(connection: Connection, name: str) -> int:
    user = membership.find_user(connection, name)
    if user is None:
        raise NotFound(f"there is no account {name!r}", hint="see the names under People")
    return user


def _change(connection: Connection, user: int, **values: object) -> None:
    connection.execute(sa.update(_users).where(_users.c.id == user).values(**values))


def _end_sessions(connection: Connection, user: int) -> None:
    connection.execute(sa.delete(_sessions).where(_sessions.c.user_id == user))


def _drop(connection: Connection, token: str) -> None:
    connection.execute(sa.delete(_sessions).where(_sessions.c.token_hash == hash_token(token)))


def _view(row: Any, now: float) -> Invitation:
    return record_of(
        Invitation,
        row,
        roles=ordered_roles(row.roles),
        used=row.used_at is not None or row.expires <= now,
    )
