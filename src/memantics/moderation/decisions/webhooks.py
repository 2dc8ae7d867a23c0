"""Signed webhooks: deliver events, repeat failed deliveries with growing pauses, then give up.

An event is sent as JSON with three headers: ``Memantics-Event``, ``Memantics-Delivery`` (the id of
the delivery, equal for repetitions) and ``Memantics-Signature``: ``t=SECONDS,v1=HEX``, where HEX is
the HMAC-SHA256 of ``SECONDS.BODY`` with the secret. Receivers reject old times and known ids.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from memantics.core.errors import InputError
from memantics.core.result import Result
from memantics.moderation.decisions.log import DecisionLog, OutgoingEvent

VARIABLE: Final = "MEMANTICS_WEBHOOK_SECRET"
MOST_ATTEMPTS = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 6 * 3600.0
_SECONDS = 10.0
_LONGEST_TIME = 15  # digits
_RESERVED = 120.0  # seconds after which an event whose worker was killed is due again
Post = Callable[[str, bytes, dict[str, str]], str]


@dataclass(frozen=True, slots=True)
class Delivered(Result):
    """What one round of deliveries did: sent, to be repeated, and dead events."""

    sent: int
    waiting: int
    dead: int


def sign(secret: str, at: int, body: bytes) -> str:
    """Return the signature header of a body.

    >>> sign("secret", 5, b"{}")[:12]
    't=5,v1=f18d2'
    """
    digest = hmac.new(secret.encode(), b"%d.%s" % (at, body), hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def verify_signature(
    secret: str, header: str, body: bytes, now: float, tolerance: float = 300
) -> bool:
    """Return whether a signature header fits a body and is not older than ``tolerance`` seconds.

    >>> verify_signature("s", sign("s", 100, b"{}"), b"{}", 200)
    True
    >>> verify_signature("s", sign("s", 100, b"{}"), b"{}", 500)
    False
    """
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not header.isascii() or not at.isdecimal() or len(at) > _LONGEST_TIME:
        return False
    signed = hmac.compare_digest(sign(secret, int(at), body), header)
    return signed and abs(now - int(at)) <= tolerance


def check_url(url: str) -> str:
    """Return a webhook URL; raise InputError unless it is http or https with a host."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unfinished IPv6 address, or no number as port
        known = False
    if not known or parts.username:
        raise InputError(
            "a webhook needs a URL such as https://example.org/hook",
            hint="write no user name or password into it",
        )
    return url


def find_secret() -> str:
    """Return the secret of the environment; raise InputError without one."""
    secret = os.environ.get(VARIABLE, "")
    if len(secret) < 16:
        raise InputError(
            f"webhooks need a secret of at least 16 characters in {VARIABLE}",
            hint="create one, for example with 'openssl rand -hex 32'",
        )
    return secret


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow no redirect: a receiver could send the body to another host."""


def post(url: str, body: bytes, headers: dict[str, str]) -> str:
    """Send one request; return an empty text, or why it failed."""
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 - checked
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=_SECONDS) as answer:
            return "" if 200 <= answer.status < 300 else f"status {answer.status}"
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except (OSError, ValueError) as error:
        return type(error).__name__


def find_pause(attempts: int) -> float:
    """Return the seconds before the next attempt.

    >>> [find_pause(n) for n in (1, 2, 3, 20)]
    [10.0, 20.0, 40.0, 21600.0]
    """
    return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(attempts - 1, 30)))


def list_events(log: DecisionLog, state: str | None = None) -> list[OutgoingEvent]:
    """Return the events of a log in order, or those in one state."""
    import sqlalchemy as sa

    table = log.tables["decision_deliveries"]
    query = sa.select(table).order_by(table.c.id)
    if state is not None:
        query = query.where(table.c.state == state)
    with log.read() as connection:
        return [OutgoingEvent(**row) for row in connection.execute(query).mappings()]


def _take(log: DecisionLog, event: OutgoingEvent, now: float) -> bool:
    """Reserve an event that is due; False if another worker reserved or sent it."""
    import sqlalchemy as sa

    table = log.tables["decision_deliveries"]
    same = (table.c.id == event.id) & (table.c.state == "waiting")
    change = sa.update(table).where(same & (table.c.next_at == event.next_at))
    with log.write() as connection:
        return bool(connection.execute(change.values(next_at=now + _RESERVED)).rowcount)


def _count(log: DecisionLog, state: str) -> int:
    import sqlalchemy as sa

    table = log.tables["decision_deliveries"]
    query = sa.select(sa.func.count()).select_from(table).where(table.c.state == state)
    with log.read() as connection:
        return int(connection.execute(query).scalar_one())


def deliver(log: DecisionLog, secret: str, send: Post = post) -> Delivered:
    """Send all events that are due; an event that fails too often is no longer sent.

    Several workers may call this at once: an event is reserved before it is sent. It is marked
    after its receiver accepted it, so that a kill in between sends it again under the same id.
    """
    import sqlalchemy as sa

    table = log.tables["decision_deliveries"]
    sent = 0
    for event in list_events(log, "waiting"):
        now = log.clock()
        if event.next_at > now or not _take(log, event, now):
            continue
        body = event.body.encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "memantics",
            "Memantics-Event": event.event,
            "Memantics-Delivery": str(event.id),
            "Memantics-Signature": sign(secret, int(now), body),
        }
        problem = send(event.url, body, headers)
        tried = event.attempts + 1
        state = "delivered" if not problem else "dead" if tried >= MOST_ATTEMPTS else "waiting"
        sent += not problem
        values = {"state": state, "attempts": tried, "error": problem[:200]}
        change = sa.update(table).where(table.c.id == event.id)
        with log.write() as connection:
            connection.execute(change.values(**values, next_at=now + find_pause(tried)))
    return Delivered(sent, _count(log, "waiting"), _count(log, "dead"))


def revive(log: DecisionLog) -> int:
    """Let events that failed too often be sent again; return their number."""
    import sqlalchemy as sa

    table = log.tables["decision_deliveries"]
    change = sa.update(table).where(table.c.state == "dead")
    with log.write() as connection:
        values = {"state": "waiting", "attempts": 0, "next_at": log.clock()}
        return int(connection.execute(change.values(**values)).rowcount)
