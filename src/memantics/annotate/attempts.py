"""Limits on guessing passwords: attempts are counted in the database, before anything is hashed.

Counting after a failure would let every request that is already under way pass: twenty at once
would all be admitted at a limit of eight. In the database, several servers count together.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotate.context import ServiceContext
from memantics.annotate.errors import TooManyAttempts
from memantics.annotate.schema import login_attempts as _attempts

WINDOW = 900.0
# Few at one account from one address, more from one address at all, and so many at one account
# from everywhere that nobody locks somebody else out by mistake.
PER_PAIR, PER_ADDRESS, PER_ACCOUNT = 8, 30, 100
# Any fixed number: on PostgreSQL, attempts are counted one after the other.
_LOCK = 5_417_234


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
