"""Since when people work without a rest."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

REST = 300.0
PEOPLE = 10_000


@dataclass(slots=True)
class Pauses:
    """Remembers since when each person has worked without a rest of five minutes.

    >>> pauses = Pauses()
    >>> [pauses.see(1, at, 10) for at in (0.0, 200.0, 400.0, 620.0, 1000.0)]
    [False, False, False, True, False]
    """

    _spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def see(self, person: int, now: float, minutes: int) -> bool:
        """Note that a person looks at an item; say whether a break is due."""
        with self._lock:
            since, last = self._spans.pop(person, (now, now))
            if now - last >= REST:
                since = now
            while len(self._spans) >= PEOPLE:
                del self._spans[next(iter(self._spans))]
            self._spans[person] = (since, now)
        return minutes > 0 and now - since >= minutes * 60

    def rest(self, person: int) -> None:
        """The person was told, or took a break: count anew."""
        with self._lock:
            self._spans.pop(person, None)
