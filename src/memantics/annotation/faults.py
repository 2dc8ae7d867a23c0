"""Errors of the database: what users are told, and which transactions are run again.

Two transactions of PostgreSQL can block each other (a deadlock), or cannot be put in an order (a
serialisation failure). The server then rolls back one of them, and the same work succeeds when it
runs again. :func:`retried` does so a few times with random pauses, so that both do not meet again.
Every other error becomes :class:`DatabaseFailed`, which the web app answers with status 503.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import sqlalchemy as sa

from memantics.core.errors import StoreError

P = ParamSpec("P")
R = TypeVar("R")
TRIES = 5
PAUSE = 0.02  # seconds; the longest pause before the second try, doubled before each further one
SOON, LATER = 2, 30
_AGAIN = "try again in a few seconds"
# The pool of SQLAlchemy says so, without an error of the driver, if the server closed a connection
# and then each new one.
_CLOSED = "This connection is closed"
# Deadlock, serialisation failure, and a row that a parallel request inserted first.
_CONTENDED = ("40P01", "40001", "23505")
# SQLSTATE of PostgreSQL, or its first letters → message, hint and seconds until the next attempt.
_KNOWN: tuple[tuple[str, str, str, int], ...] = (
    ("40", "the database is busy", _AGAIN, SOON),
    ("55P03", "the database is busy: others change the same rows", _AGAIN, SOON),
    ("57014", "the database took too long", _AGAIN, SOON),
    ("53300", "the database accepts no more connections", _AGAIN, SOON),
    ("53100", "the disk of the database is full", "free disk space on its server", LATER),
    (
        "42501",
        "the database role has not enough rights",
        "grant the role all rights on the schema and its tables",
        LATER,
    ),
    ("25006", "the database is read-only", "use the primary server, not a copy", LATER),
    ("57P", "the connection to the database was lost", _AGAIN, SOON),
    ("08", "the connection to the database was lost", _AGAIN, SOON),
    ("28", "the database rejects the account of the URL", "check user and password", LATER),
)


class DatabaseFailed(StoreError):
    """The database did not complete a transaction, so nothing was changed.

    ``wait`` is the number of seconds after which another attempt makes sense.
    """

    def __init__(self, message: str, *, hint: str = _AGAIN, wait: int = SOON) -> None:
        self.wait = wait
        super().__init__(message, hint=hint)


class DatabaseContended(DatabaseFailed):
    """Parallel transactions excluded each other; ``tried`` is set after the last repetition."""

    tried = False


def explain(error: Exception) -> DatabaseFailed:
    """Return the error of a driver or of SQLAlchemy as a message without parameter values."""
    if isinstance(error, sa.exc.TimeoutError):
        return DatabaseFailed("all connections to the database are in use")
    cause = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", None) or ""
    said = getattr(getattr(cause, "diag", None), "message_primary", None) or str(cause)
    reason = said.strip().splitlines()[0] if said.strip() else type(cause).__name__
    if state in _CONTENDED:
        return DatabaseContended(f"the database is busy: {reason}")
    for start, message, hint, wait in _KNOWN:
        if state.startswith(start):
            return DatabaseFailed(f"{message}: {reason}", hint=hint, wait=wait)
    if "disk is full" in reason or "disk I/O error" in reason:
        return DatabaseFailed(
            f"the database could not be written: {reason}", hint=_SPACE, wait=LATER
        )
    hint = "try again; if that does not help, see the log of the database"
    return DatabaseFailed(f"the database reported an error: {reason}", hint=hint)


_SPACE = "check the free disk space"


@contextmanager
def explained(*kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of the database into :class:`DatabaseFailed`; ``kinds`` are those of a driver."""
    known: tuple[type[Exception], ...] = (sa.exc.DBAPIError, sa.exc.TimeoutError, *kinds)
    try:
        yield
    except known as error:
        raise explain(error) from error
    except sa.exc.InvalidRequestError as error:
        if str(error) != _CLOSED:
            raise
        lost = "the connection to the database was lost"
        raise DatabaseFailed(lost, hint=_AGAIN, wait=SOON) from error


def retried(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function again if its transaction was rolled back because of a parallel one.

    The function opens exactly one write transaction, and changes nothing outside of it.

    >>> ends = iter([DatabaseContended("deadlock"), "saved"])
    >>> @retried
    ... def save() -> str:
    ...     end = next(ends)
    ...     if isinstance(end, Exception):
    ...         raise end
    ...     return end
    >>> save()
    'saved'
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for attempt in range(TRIES):
            try:
                return function(*args, **kwargs)
            except DatabaseContended as error:
                if error.tried or attempt + 1 == TRIES:
                    error.tried = True
                    raise
            time.sleep(random.uniform(0, PAUSE * 2**attempt))
        raise AssertionError("unreachable")

    return run
