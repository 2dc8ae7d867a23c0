"""Whether a database server responds: a question with a deadline, and an end for hung requests.

A PostgreSQL server that is frozen (stopped, swapped out, its storage hangs) keeps its connections
open and answers nothing, not even its own timeouts. Requests would wait forever. :class:`Watch`
notices transactions that last long, asks the server whether it responds at all, and ends their
connections if it does not.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from memantics.annotation.faults import DatabaseFailed

PATIENCE = 10.0  # seconds; a transaction that lasts longer raises the question
ANSWER = 3.0  # seconds that a server has for the answer
_EVERY = 0.5


class Pulse:
    """Ask the database a question in a thread, and wait for the answer for a limited time.

    Simultaneous callers share one thread, so a frozen database holds one thread, not one for
    each caller.
    """

    def __init__(self, question: Callable[[], str]) -> None:
        self._question = question
        self._lock = threading.Lock()
        self._running: Future[str] | None = None

    def ask(self, seconds: float) -> str:
        """Return the answer, or raise DatabaseFailed after this time."""
        with self._lock:
            running = self._running
            if running is None or running.done():
                running = self._running = Future()
                thread = threading.Thread(
                    target=self._run, args=(running,), name="database-pulse", daemon=True
                )
                thread.start()
        try:
            return running.result(seconds)
        except TimeoutError:
            raise DatabaseFailed("the database does not respond") from None

    def _run(self, running: Future[str]) -> None:
        try:
            running.set_result(self._question())
        except BaseException as error:  # noqa: BLE001 - whoever asked raises it
            running.set_exception(error)


class Watch:
    """End the connections of a server that no longer responds; ``down`` is true until it does."""

    def __init__(self, pulse: Pulse) -> None:
        self.down = False
        self._pulse = pulse
        self._busy: dict[int, tuple[float, Any]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, key: int, connection: Any) -> None:
        """Note that a connection is in use from now on."""
        with self._lock:
            self._busy[key] = (time.monotonic(), connection)
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="database-watch", daemon=True
                )
                self._thread.start()

    def end(self, key: int) -> None:
        """Note that a connection is no longer in use."""
        with self._lock:
            self._busy.pop(key, None)

    def close(self) -> None:
        """End the thread."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY):
            if not self.down and not self._overdue():
                continue
            try:
                self._pulse.ask(ANSWER)
            except DatabaseFailed:
                self.down = True
                self._cut()
            else:
                self.down = False

    def _overdue(self) -> list[tuple[int, Any]]:
        before = time.monotonic() - PATIENCE
        with self._lock:
            return [(key, one) for key, (since, one) in self._busy.items() if since < before]

    def _cut(self) -> None:
        for _, connection in self._overdue():
            # Waiting threads wake up with an error. libpq closes the socket itself, thus the copy.
            with (
                suppress(Exception),
                socket.socket(fileno=os.dup(connection.fileno())) as line,
            ):
                line.shutdown(socket.SHUT_RDWR)
