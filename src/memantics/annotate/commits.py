"""Group commit for SQLite: writers that wait for each other anyway share one trip to the disk.

Each writer runs inside a savepoint of a shared transaction, one after the other. Whoever finds
nobody waiting behind them commits for all; the others are told only then. So an answer that was
acknowledged is on disk, and a writer who fails takes nobody along.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import OperationalError

from memantics.core.errors import StoreError

_MOST = 64
_LONGEST = 0.05
_PATIENCE = 0.2


class _Turnstile:
    """A lock that is handed on in the order of arrival, so that nobody starves."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queue: deque[threading.Lock] = deque()
        self._busy = False

    @property
    def crowded(self) -> bool:
        """Whether somebody waits."""
        return bool(self._queue)

    def acquire(self) -> None:
        with self._guard:
            if not self._busy:
                self._busy = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        try:
            mine.acquire()
        except BaseException:
            self._give_up(mine)
            raise

    def release(self) -> None:
        with self._guard:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._busy = False

    def _give_up(self, mine: threading.Lock) -> None:
        """Interrupted while waiting: step out of the queue, or hand on a turn that just came."""
        with self._guard:
            if mine in self._queue:
                self._queue.remove(mine)
                return
        self.release()


@dataclass(slots=True, eq=False)
class _Batch:
    connection: Connection
    begun: float
    members: int = 0
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)


class GroupCommit:
    """The one writer of a SQLite file in this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._turn = _Turnstile()
        self._batch: _Batch | None = None

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction of one's own, as far as its writer can tell."""
        self._turn.acquire()
        batch: _Batch | None = None
        try:
            batch = self._batch = self._batch or self._begin()
            batch.members += 1
            with _savepoint(batch.connection):
                yield batch.connection
        finally:
            self._leave(batch)
        self._await_commit(batch)

    def _begin(self) -> _Batch:
        connection = self._engine.connect()
        try:
            connection.begin()
        except OperationalError as error:
            connection.close()
            raise StoreError(
                f"the database is busy: {error.orig}", hint="does another program hold it?"
            ) from error
        except BaseException:
            connection.close()
            raise
        return _Batch(connection, time.monotonic())

    def _leave(self, batch: _Batch | None) -> None:
        """Commit, unless somebody is there who will do it in a moment."""
        try:
            if batch is None:
                return
            if not _in_transaction(batch.connection):
                # SQLite gave up the whole transaction (disk full, say): nobody was saved.
                batch.error = StoreError("the database could not be written", hint="check the disk")
            late = time.monotonic() - batch.begun > _LONGEST
            if batch.error or late or batch.members >= _MOST or not self._turn.crowded:
                self._close(batch)
        finally:
            self._turn.release()

    def _close(self, batch: _Batch) -> None:
        self._batch = None
        try:
            transaction = batch.connection.get_transaction()
            assert transaction is not None
            if batch.error is None:
                transaction.commit()
        except Exception as error:  # noqa: BLE001 - whoever waits for this commit raises it
            batch.error = error
        except BaseException as error:
            batch.error = error
            raise
        finally:
            try:
                if batch.error is not None:
                    # Its transaction may still be open: no other writer may get this connection.
                    batch.connection.invalidate()
                batch.connection.close()
            finally:
                batch.done.set()

    def _await_commit(self, batch: _Batch) -> None:
        while not batch.done.wait(_PATIENCE):
            # Whoever was to commit is gone (interrupted while it waited): do it instead.
            self._turn.acquire()
            try:
                if self._batch is batch:
                    self._close(batch)
            finally:
                self._turn.release()
        if batch.error is not None:
            raise StoreError(f"the answer could not be saved: {batch.error}") from batch.error


@contextmanager
def _savepoint(connection: Connection) -> Iterator[None]:
    driver: Any = connection.connection.driver_connection
    driver.execute("SAVEPOINT writer")
    try:
        yield
    except BaseException:
        if driver.in_transaction:
            driver.execute("ROLLBACK TO writer")
            driver.execute("RELEASE writer")
        raise
    driver.execute("RELEASE writer")


def _in_transaction(connection: Connection) -> bool:
    driver = connection.connection.driver_connection
    return bool(getattr(driver, "in_transaction", False))
