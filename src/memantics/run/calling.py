"""Calls to one model: as many at once as it bears, repeated while they may still succeed."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from dataclasses import dataclass
from typing import Literal, Protocol

from memantics.core import errors
from memantics.core.model import Model
from memantics.core.records import Reply, Request

Verdict = Literal["answered", "overloaded", "other"]


class Clock(Protocol):
    """Seconds that only grow, and sleep."""

    def now(self) -> float:
        """Seconds since some fixed moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Come back after that many seconds."""
        ...


class RealClock:
    """The clock on the wall."""

    def now(self) -> float:
        """Seconds since some fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Come back after that many seconds."""
        await asyncio.sleep(seconds)


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


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """When to repeat a call.

    ``per_call`` and ``per_run`` bound repetitions; past them a call has failed. Waiting grows
    from ``first`` to ``longest`` seconds, drawn evenly from zero to the bound ("full jitter"). A
    server that asks for more than ``patience`` seconds ends the run, which can go on later.
    ``knocks`` are the quick tries at a server that never answered yet.
    """

    per_call: int = 6
    per_run: int = 5000
    first: float = 0.5
    longest: float = 30.0
    patience: float = 600.0
    knocks: int = 3


def draw_delay(retry: int, settings: RetrySettings, chance: random.Random) -> float:
    """Seconds to wait before the retry of that number, from 1.

    >>> 0 <= draw_delay(3, RetrySettings(first=1.0), random.Random(1)) <= 4
    True
    """
    # The exponent is bounded: 2.0 ** 2000 overflows.
    return chance.uniform(0, min(settings.longest, settings.first * 2.0 ** min(retry - 1, 30)))


@dataclass(frozen=True, slots=True)
class Called:
    """How a call ended: with a reply, or with the reason why there is none."""

    reply: Reply | None
    reason: str
    calls: int
    seconds: float


class Stopped(Exception):
    """The run is ending; this call was not repeated, and nothing is known about its item."""


class Caller:
    """Calls one model through a limiter; counts calls and retries."""

    def __init__(
        self,
        model: Model,
        limiter: Limiter,
        settings: RetrySettings,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self.calls = 0
        self.retries = 0
        self.stopping = False
        self.busy: set[asyncio.Task[None] | None] = set()
        self._model = model
        self._limiter = limiter
        self._settings = settings
        self._clock = clock or RealClock()
        self._chance = chance or random.Random()

    async def call(self, request: Request) -> Called:
        """Ask until there is an answer or no more hope; :class:`Unavailable` ends the run."""
        tries, silent_since = 0, None
        while True:
            ticket = await self._limiter.enter()
            tries += 1
            self.calls += 1
            verdict: Verdict = "other"
            task = asyncio.current_task()
            self.busy.add(task)
            begin = self._clock.now()
            try:
                reply = await self._model.answer(request)
                verdict = "answered"
                return Called(reply, "", tries, self._clock.now() - begin)
            except errors.Refused as error:
                verdict = "answered"
                reply = Reply("", refusal=str(error))
                return Called(reply, "", tries, self._clock.now() - begin)
            except errors.Rejected as error:
                return Called(None, str(error), tries, self._clock.now() - begin)
            except errors.ImageError as error:
                self.calls -= 1  # nothing was sent
                return Called(None, str(error), tries - 1, 0.0)
            except errors.Transient as error:
                verdict = "overloaded" if error.overloaded else "other"
                fault = error
            finally:
                self.busy.discard(task)
                self._limiter.leave(ticket, verdict)
            seconds = self._clock.now() - begin
            if isinstance(fault, errors.Unreachable) and silent_since is None:
                silent_since = self._limiter.answered
            wait = self._plan(fault, tries, silent_since)
            if isinstance(wait, str):
                return Called(None, f"{fault}{wait}", tries, seconds)
            await self._clock.sleep(wait)

    def _plan(self, fault: errors.Transient, tries: int, silent_since: int | None) -> float | str:
        """Seconds to wait before the next try, or why there is none (an ending of the reason)."""
        if self.stopping:
            raise Stopped from fault
        settings = self._settings
        if isinstance(fault, errors.Unreachable):
            self._judge_silence(fault, tries, silent_since)
            if not self._limiter.answered:
                self.retries += 1
                return settings.first / 2 * 2.0 ** (tries - 1)
        asked = fault.retry_after
        if asked is not None:
            if asked > settings.patience:
                raise errors.Unavailable(
                    f"{fault.what}: the server asks to wait {asked:.0f} s",
                    hint="run the same command again then: it goes on from here",
                ) from fault
            if fault.overloaded:
                self._limiter.pause(asked)
        if tries > settings.per_call:
            return f"; given up after {tries} tries"
        if self.retries >= settings.per_run:
            return f"; the run's {settings.per_run} retries are used up"
        self.retries += 1
        # Jitter on top of the server's word: else all calls come back at the same moment.
        return draw_delay(tries, settings, self._chance) + (asked or 0.0)

    def _judge_silence(
        self, fault: errors.Unreachable, tries: int, silent_since: int | None
    ) -> None:
        """End the run when nobody ever answered, or when everybody left."""
        if not self._limiter.answered and tries > self._settings.knocks:
            raise errors.Unavailable(
                fault.what, hint="start the server, or check --base-url and the network"
            ) from fault
        gone = tries > self._settings.per_call and self._limiter.answered == silent_since
        if self._limiter.answered and gone:
            raise errors.Unavailable(
                f"{fault.what} any more",
                hint="start the server, then run the same command again: it goes on from here",
            ) from fault
