"""Limits on guessing: so many failed tries per address and per name, then a wait."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

KEYS = 10_000


@dataclass(slots=True)
class Throttle:
    """Counts failures by key within a sliding window.

    >>> clock = iter([0.0, 1.0, 2.0, 100.0]).__next__
    >>> throttle = Throttle(limit=2, window=60.0, clock=clock)
    >>> throttle.fail("a"); throttle.fail("a"); throttle.wait("a"), throttle.wait("a")
    (58.0, 0.0)
    """

    limit: int
    window: float
    clock: Callable[[], float] = time.monotonic
    _failures: dict[str, deque[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, key: str) -> float:
        """Seconds until the next try is allowed; 0 when it is."""
        now = self.clock()
        with self._lock:
            times = self._trim(key, now)
            if len(times) < self.limit:
                return 0.0
            return times[-self.limit] + self.window - now

    def fail(self, key: str) -> None:
        """Count a failure."""
        now = self.clock()
        with self._lock:
            if len(self._failures) >= KEYS and key not in self._failures:
                # Someone who invents names must not fill the memory: the oldest goes.
                del self._failures[next(iter(self._failures))]
            self._failures.setdefault(key, deque(maxlen=self.limit)).append(now)

    def forget(self, key: str) -> None:
        """A success clears the count."""
        with self._lock:
            self._failures.pop(key, None)

    def _trim(self, key: str, now: float) -> deque[float]:
        times = self._failures.get(key, deque())
        while times and now - times[0] >= self.window:
            times.popleft()
        if not times:
            self._failures.pop(key, None)
        return times
