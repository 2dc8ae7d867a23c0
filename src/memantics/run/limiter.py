"""How many calls a model gets at once: as many as it bears (additive increase, halving)."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Literal

from memantics.run.clock import Clock, RealClock

Verdict = Literal["answered", "overloaded", "other"]


class Limiter:
    """Slots for calls to one model; share one limiter between all runs of that model.

    It begins at ``maximum``. An overload halves the limit, but only once per round trip: calls
    that had begun before the last cut say nothing about the new limit. A window of as many
    answers as the limit raises it by one.

    >>> limiter = Limiter(8)
    >>> limiter.limit
    8
    """

    def __init__(self, maximum: int, clock: Clock | None = None) -> None:
        self.maximum = max(1, maximum)
        self.limit = self.maximum
        self.in_flight = 0
        self.answered = 0
        self._clock = clock or RealClock()
        self._resume_at = 0.0
        self._started = 0
        self._cut_at = 0
        self._window = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def paused(self) -> float:
        """Seconds until calls go on; 0 when nothing holds them."""
        return max(0.0, self._resume_at - self._clock.now()) if self._resume_at else 0.0

    def pause(self, seconds: float) -> None:
        """Hold every new call: the server asked for it."""
        self._resume_at = max(self._resume_at, self._clock.now() + seconds)

    async def enter(self) -> int:
        """Wait for a slot and for the end of a pause; the ticket goes back with :meth:`leave`."""
        if self.in_flight < self.limit and not self._waiting:
            self.in_flight += 1
        else:
            await self._queue()
        if self._resume_at:
            try:
                while (wait := self.paused) > 0:
                    await self._clock.sleep(wait)
            except BaseException:
                self._free()
                raise
        self._started += 1
        return self._started

    def leave(self, ticket: int, verdict: Verdict) -> None:
        """Give the slot back and say how the call went."""
        if verdict == "answered":
            self.answered += 1
            self._window += 1
            if self._window >= self.limit:
                self._window = 0
                self.limit = min(self.maximum, self.limit + 1)
        elif verdict == "overloaded":
            self._window = 0
            if ticket > self._cut_at:
                self.limit = max(1, self.limit // 2)
                self._cut_at = self._started
        self._free()

    async def _queue(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            # Cancelled with the slot already in hand: pass it on.
            if turn.done() and not turn.cancelled():
                self._free()
            raise

    def _free(self) -> None:
        self.in_flight -= 1
        while self._waiting and self.in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                # The slot changes hands here: nobody can slip in before the waiter wakes.
                self.in_flight += 1
                turn.set_result(None)
