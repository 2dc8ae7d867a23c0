"""Accounts, sessions and invitations, with a rate limit on password attempts.

Passwords and tokens are stored only as hashes. Attempts are counted in the database before a
password is hashed, so that simultaneous requests cannot exceed the limit. Servers that share a
database share the counts.
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
from memantics.annotation.database import insert_row, lock_database
from memantics.annotation.errors import (
    AnswerError,
    Forbidden,
    LoginFailed,
    NotFound,
    TokenInvalid,
    TooManyAttempts,
)
from memantics.annotation.faults import retried
from memantics.annotation.intake import adjust_assignments
from memantics.annotation.records import Actor, Invitation, Preferences, Session, record_of
from memantics.annotation.schema import login_attempts as _attempts
from memantics.annotation.values import clean_text
from memantics.annotation.workflow import ROLES, with_settings

WINDOW = 900.0
# The limit per account is high, so that attackers cannot lock the owner out easily.
PER_PAIR, PER_ADDRESS, PER_ACCOUNT = 8, 30, 100
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
        schema.projects.c.workflow,
        schema.projects.c.settings,
    )
    .join(schema.projects)
    .where(_invitations.c.revoked.is_(False))
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A counted login attempt. ``cleared`` is the key that a successful login resets."""

    id: str
    cleared: str


class LoginAttempts:
    """Count login attempts per key (account or network) within a sliding time window."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    def begin_login(self, account: str, address: str) -> Attempt:
        """Count a login attempt for an account, or raise TooManyAttempts."""
        network = network_of(address)
        pair = f"pair {network} {account}"
        limits = {pair: PER_PAIR, f"address {network}": PER_ADDRESS}
        return self.begin(limits | {f"account {account}": PER_ACCOUNT}, pair)

    @retried
    def begin(self, limits: Mapping[str, int], cleared: str) -> Attempt:
        """Count an attempt for every key (account or network); raise TooManyAttempts at a limit."""
        keys = {hash_token(key): limit for key, limit in limits.items()}
        attempt = Attempt(secrets.token_hex(16), hash_token(cleared))
        now = self._context.clock()
        with self._context.db.write() as connection:
            lock_database(connection)
            # Attempts in the future are from a clock that was wrong: they would count for long.
            old = sa.or_(_attempts.c.at <= now - WINDOW, _attempts.c.at > now + WINDOW)
            connection.execute(sa.delete(_attempts).where(old))
            times: dict[str, list[float]] = defaultdict(list)
            query = sa.select(_attempts.c.key, _attempts.c.at).where(_attempts.c.key.in_(keys))
            for key, at in connection.execute(query.order_by(_attempts.c.at)):
                times[key].append(at)
            full = [times[key][-limit] for key, limit in keys.items() if len(times[key]) >= limit]
            if full:
                raise TooManyAttempts(min(max(full) - now, 0) + WINDOW)
            rows = [{"attempt": attempt.id, "key": key, "at": now} for key in keys]
            connection.execute(sa.insert(_attempts), rows)
        return attempt

    def succeed(self, connection: Connection, attempt: Attempt) -> None:
        """Remove an attempt with the correct password from all counts."""
        lock_database(connection)
        right = sa.or_(_attempts.c.attempt == attempt.id, _attempts.c.key == attempt.cleared)
        connection.execute(sa.delete(_attempts).where(right))


def network_of(address: str) -> str:
    """Return the key under which an IP address is counted: IPv6 addresses by their /64 network.

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
    """Return the SHA-256 hash under which a token or key is stored.

    Tokens are long random strings, so one round of hashing is enough.
    """
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class Accounts:
    """Manage accounts, sessions, login links and invitations."""

    def __init__(self, context: ServiceContext, hasher: PasswordHasher | None = None) -> None:
        self._context = context
        self._attempts = LoginAttempts(context)
        self._hasher = hasher or PasswordHasher()
        # Each hash needs tens of megabytes of memory: limit the number of parallel logins.
        self._door = threading.BoundedSemaphore(4)

    @cached_property
    def nobody(self) -> str:
        """Return a hash that no password matches.

        Logins with an unknown name are verified against it, so that they take as long as others. It
        is computed on first use, because it is slow.
        """
        return self._hasher.hash(secrets.token_hex(16))

    def count(self) -> int:
        """Return the number of accounts."""
        with self._context.db.read() as connection:
            return int(connection.execute(sa.select(sa.func.count(_users.c.id))).scalar_one())

    @retried
    def create_first(self, name: str, password: str) -> Actor:
        """Create the first account, an administrator; raise Forbidden if any account exists."""
        hashed = self._hash(password)
        with self._context.db.write() as connection:
            lock_database(connection)
            if connection.execute(sa.select(_users.c.id).limit(1)).first():
                raise Forbidden("the first account already exists")
            actor = self._insert(connection, name, hashed, admin=True)
            self._context.log(connection, actor, "account.create", f"user:{actor.id}", first=True)
        return actor

    @retried
    def create(self, actor: Actor, name: str, password: str, *, admin: bool = False) -> Actor:
        """Create an account (administrators only); other people join by invitation."""
        hashed = self._hash(password)
        with self._context.db.write() as connection:
            membership.require_admin(connection, actor)
            made = self._insert(connection, name, hashed, admin=admin)
            self._context.log(connection, actor, "account.create", f"user:{made.id}", admin=admin)
        return made

    def local_admin(self) -> Actor | None:
        """Return the first active administrator, or None.

        Only the command line calls this method: no right is checked.
        """
        query = sa.select(_users).where(_users.c.admin.is_(True), _users.c.active.is_(True))
        with self._context.db.read() as connection:
            row = connection.execute(query.order_by(_users.c.id).limit(1)).one_or_none()
        return record_of(Actor, row) if row else None

    @retried
    def deactivate(self, actor: Actor, name: str) -> None:
        """Close an account: its sessions end, and its annotations are kept."""
        with self._context.db.write() as connection:
            membership.require_admin(connection, actor)
            user = _require_user(connection, name)
            if user == actor.id:
                raise Forbidden("you cannot close your own account", "log out instead")
            _change(connection, user, active=False)
            _end_sessions(connection, user)
            self._context.log(connection, actor, "account.close", f"user:{user}")

    def log_in(self, name: str, password: str, address: str = "") -> Session:
        """Check a name and password and open a session."""
        attempt = self._attempts.begin_login(membership.name_key(name), address)
        query = sa.select(_users).where(_users.c.name_key == membership.name_key(name))
        with self._context.db.read() as connection:
            row = connection.execute(query).one_or_none()
        stored = row.password_hash if row and row.active and row.password_hash else None
        if not self._verify(stored or self.nobody, password) or stored is None or row is None:
            raise LoginFailed
        rehash = self._hasher.check_needs_rehash(stored)
        fresh = self._hasher.hash(password) if rehash else None
        return self._begin_session(record_of(Actor, row), stored, fresh, attempt)

    @retried
    def _begin_session(
        self, actor: Actor, stored: str, fresh: str | None, attempt: Attempt
    ) -> Session:
        with self._context.db.write() as connection:
            self._attempts.succeed(connection, attempt)
            _require_password(connection, actor, stored)
            if fresh:
                _change(connection, actor.id, password_hash=fresh)
            _drop_expired(connection, self._context.clock())
            session = self._open(connection, actor)
            self._context.log(connection, actor, "session.begin", f"user:{actor.id}")
        return session

    def actor_of(self, token: str) -> Actor:
        """Return the account of a session token."""
        with self._context.db.read() as connection:
            return self._find(connection, token, "session")

    @retried
    def log_out(self, token: str) -> None:
        """End a session."""
        with self._context.db.write() as connection:
            _drop(connection, token)

    def change_password(self, actor: Actor, old: str, new: str) -> Session:
        """Change a password and end all other sessions of the account."""
        key = f"password of {actor.id}"
        attempt = self._attempts.begin({key: PER_PAIR}, key)
        query = sa.select(_users.c.password_hash).where(_users.c.id == actor.id)
        with self._context.db.read() as connection:
            stored = connection.execute(query).scalar_one_or_none()
        if not stored or not self._verify(stored, old):
            raise LoginFailed
        self._forget(attempt)
        return self._replace_password(actor, stored, self._hash(new))

    @retried
    def _forget(self, attempt: Attempt) -> None:
        with self._context.db.write() as connection:
            self._attempts.succeed(connection, attempt)

    @retried
    def _replace_password(self, actor: Actor, stored: str, hashed: str) -> Session:
        with self._context.db.write() as connection:
            _require_password(connection, actor, stored)
            _change(connection, actor.id, password_hash=hashed)
            _end_sessions(connection, actor.id)
            self._context.log(connection, actor, "account.password", f"user:{actor.id}")
            return self._open(connection, actor)

    @retried
    def reset_password(self, actor: Actor, name: str, new: str) -> None:
        """Set a new password (administrators only) and end all sessions of the account.

        A closed account is reopened.
        """
        hashed = self._hash(new)
        with self._context.db.write() as connection:
            membership.require_admin(connection, actor)
            user = _require_user(connection, name)
            _change(connection, user, password_hash=hashed, active=True)
            _end_sessions(connection, user)
            self._context.log(connection, actor, "account.reset", f"user:{user}")

    @retried
    def login_link(self, actor: Actor) -> str:
        """Create a token that opens one session, once, within one hour."""
        with self._context.db.write() as connection:
            return self._open(connection, actor, "link", LINK_SECONDS).token

    @retried
    def enter(self, token: str) -> Session:
        """Open a session with the token of a login link, which is deleted: it works once."""
        with self._context.db.write() as connection:
            actor = self._consume(connection, token, "link")
            self._context.log(connection, actor, "session.begin", f"user:{actor.id}", link=True)
            return self._open(connection, actor)

    def preferences(self, actor: Actor) -> Preferences:
        """Return the personal settings of an account."""
        query = sa.select(_users.c.preferences).where(_users.c.id == actor.id)
        with self._context.db.read() as connection:
            text = connection.execute(query).scalar_one_or_none()
        if text is None:
            raise Forbidden
        return Preferences.model_validate_json(text)

    @retried
    def set_preferences(self, actor: Actor, preferences: Preferences) -> None:
        """Save the personal settings of an account."""
        with self._context.db.write() as connection:
            _change(connection, actor.id, preferences=preferences.model_dump_json())

    @retried
    def invite(
        self,
        actor: Actor,
        project: int,
        roles: Iterable[str],
        *,
        note: str = "",
        days: float = 14,
    ) -> str:
        """Create an invitation to a project and return its token; only the hash is stored."""
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
        """Return the content of a valid invitation."""
        with self._context.db.read() as connection:
            return _view(self._find_invitation(connection, token), self._context.clock())

    def accept(self, token: str, name: str, password: str) -> Session:
        """Create an account from an invitation and open a session."""
        return self._join(token, name, self._hash(password))

    @retried
    def _join(self, token: str, name: str, hashed: str) -> Session:
        with self._context.db.write() as connection:
            row = self._lock_invitation(connection, token)
            actor = self._insert(connection, name, hashed, admin=False)
            self._use(connection, actor, row)
            return self._open(connection, actor)

    @retried
    def accept_as(self, actor: Actor, token: str) -> int:
        """Accept an invitation with an existing account; return the project id."""
        with self._context.db.write() as connection:
            row = self._lock_invitation(connection, token)
            self._use(connection, actor, row)
            return int(row.project_id)

    def invitations(self, actor: Actor, project: int) -> tuple[Invitation, ...]:
        """Return all invitations of a project, newest first."""
        query = _OFFERS.where(_invitations.c.project_id == project).order_by(
            _invitations.c.id.desc()
        )
        with self._context.as_lead(actor, project) as visit:
            return tuple(_view(row, visit.now) for row in visit.connection.execute(query))

    @retried
    def revoke_invitation(self, actor: Actor, invitation: int) -> None:
        """Revoke an invitation."""
        with self._context.db.write() as connection:
            found = sa.select(_invitations.c.project_id).where(_invitations.c.id == invitation)
            project = connection.execute(found).scalar_one_or_none()
            if project is None:
                raise Forbidden
            visit = self._context.visit(connection, actor, project, role="lead", lock="project")
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
            query = query.with_for_update(of=_invitations, key_share=True)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise TokenInvalid("invitation")
        return row

    def _lock_invitation(self, connection: Connection, token: str) -> Any:
        """Return a valid invitation with the locks of its project and of itself."""
        project = self._find_invitation(connection, token).project_id
        if not self._context.db.sqlite:
            queries.LOCK_PROJECT.all(connection, {"project": project})
        return self._find_invitation(connection, token, lock=True)

    def _consume(self, connection: Connection, token: str, kind: str) -> Actor:
        """Delete a valid one-time token and return its account; only one request gets it."""
        valid = (_sessions.c.token_hash == hash_token(token), _sessions.c.kind == kind)
        found = sa.delete(_sessions).where(*valid, _sessions.c.expires_at > self._context.clock())
        user = connection.execute(found.returning(_sessions.c.user_id)).scalar_one_or_none()
        query = sa.select(_users).where(_users.c.id == user, _users.c.active.is_(True))
        row = connection.execute(query).one_or_none() if user is not None else None
        if row is None:
            raise TokenInvalid(kind)
        return record_of(Actor, row)

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
        except sa.exc.IntegrityError as error:  # a parallel request created the same account
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
        raise NotFound(f"no account is named {name!r}", hint="see the names under Members")
    return user


def _require_password(connection: Connection, actor: Actor, stored: str) -> None:
    """Lock an account and check that the password is still the one that was verified."""
    query = sa.select(_users.c.id).where(
        _users.c.id == actor.id, _users.c.password_hash == stored, _users.c.active.is_(True)
    )
    if connection.execute(query.with_for_update(key_share=True)).first() is None:
        raise LoginFailed


def _drop_expired(connection: Connection, now: float) -> None:
    """Delete expired sessions and links, except those that another request deletes now."""
    expired = sa.select(_sessions.c.token_hash).where(_sessions.c.expires_at < now)
    free = expired.with_for_update(skip_locked=True)
    connection.execute(sa.delete(_sessions).where(_sessions.c.token_hash.in_(free)))


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
        workflow=with_settings(row.workflow, row.settings),
        used=row.used_at is not None or row.expires <= now,
    )
