"""The engine that calls a model: content hash, cache, rate limiter, retries, counts, orderly stop.

:mod:`memantics.evaluation.ask` uses the engine for the items of a task,
:mod:`memantics.models.client` for the steps of a chain. The two differ in their logs and in how
they resume after an interruption.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar, cast

from memantics.core import errors
from memantics.core.errors import StoreError
from memantics.core.model import Model
from memantics.core.records import STATUSES, Reply, Request, Status
from memantics.core.refusals import find_refusal
from memantics.core.task import Unparsed
from memantics.core.text import repair_surrogates
from memantics.core.tracing import trace_call
from memantics.models.cache import Cache, cache_key

CallOutcome = Literal["answered", "overloaded", "other"]
Value = TypeVar("Value")
CUT_OFF = "the chain of thought was cut off at the token limit: there is no answer"


class Clock(Protocol):
    """A monotonic clock with sleep."""

    def now(self) -> float:
        """Return seconds since a fixed moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep for that many seconds."""
        ...


class RealClock:
    """The system clock."""

    def now(self) -> float:
        """Return seconds since a fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep for that many seconds."""
        await asyncio.sleep(seconds)


class Limiter:
    """An adaptive concurrency limit for one model; all runs of that model share it.

    The limit starts at ``maximum`` concurrent calls. An overload error halves it, at most once per
    round trip: calls that started before the last reduction are ignored. After as many successful
    answers as the limit, it increases by one.

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
        """Seconds until new calls may start; 0 without a pause."""
        return max(0.0, self._resume_at - self._clock.now()) if self._resume_at else 0.0

    def pause(self, seconds: float) -> None:
        """Delay every new call for the time that the server requested."""
        self._resume_at = max(self._resume_at, self._clock.now() + seconds)

    async def enter(self) -> int:
        """Wait for a free slot and for the end of a pause; return a ticket for :meth:`leave`."""
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

    def leave(self, ticket: int, verdict: CallOutcome) -> None:
        """Release the slot and record the result of the call."""
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
            # The waiting call was cancelled after it had received the slot, so the slot is passed
            # on.
            if turn.done() and not turn.cancelled():
                self._free()
            raise

    def _free(self) -> None:
        self.in_flight -= 1
        while self._waiting and self.in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                # The slot is assigned to the waiting call here, so that no other call can take it
                # first.
                self.in_flight += 1
                turn.set_result(None)


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """Limits and delays for retries of failed model calls.

    ``per_call`` and ``per_run`` limit the number of retries; beyond them a call has failed. The
    maximum delay grows from ``first`` to ``longest`` seconds, and the actual delay is uniform
    between zero and that maximum ("full jitter"). If a server requests more than ``patience``
    seconds, the run ends and can be resumed. ``knocks`` is the number of quick attempts to reach a
    server that has not answered yet.
    """

    per_call: int = 6
    per_run: int = 5000
    first: float = 0.5
    longest: float = 30.0
    patience: float = 600.0
    knocks: int = 3


def draw_delay(retry: int, settings: RetrySettings, rng: random.Random) -> float:
    """Return the delay in seconds before a retry, numbered from 1.

    >>> 0 <= draw_delay(3, RetrySettings(first=1.0), random.Random(1)) <= 4
    True
    """
    # The exponent is limited, because 2.0 ** 2000 overflows.
    return rng.uniform(0, min(settings.longest, settings.first * 2.0 ** min(retry - 1, 30)))


@dataclass(frozen=True, slots=True)
class Called:
    """The result of a model call: a reply, or the reason for its failure."""

    reply: Reply | None
    reason: str
    calls: int
    seconds: float


class Stopped(Exception):
    """Raised when a run is stopping: the call was not repeated, and its item has no result."""


class Caller:
    """Calls one model with limited concurrency; counts calls and retries."""

    def __init__(
        self,
        model: Model,
        limiter: Limiter,
        settings: RetrySettings,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.calls = 0
        self.retries = 0
        self.stopping = False
        self.busy: set[asyncio.Task[None] | None] = set()
        self._model = model
        self._limiter = limiter
        self._settings = settings
        self._clock = clock or RealClock()
        self._rng = rng or random.Random()

    async def call(self, request: Request) -> Called:
        """Call the model, with limited retries; :class:`Unavailable` ends the run."""
        tries, silent_since = 0, None
        while True:
            ticket = await self._limiter.enter()
            tries += 1
            self.calls += 1
            verdict: CallOutcome = "other"
            task = asyncio.current_task()
            self.busy.add(task)
            begin = self._clock.now()
            try:
                with trace_call(self._model.name, request) as trace:
                    reply = await self._model.answer(request)
                    trace.add(reply)
                verdict = "answered"
                return Called(reply, "", tries, self._clock.now() - begin)
            except errors.Refused as error:
                verdict = "answered"
                reply = Reply("", refusal=str(error))
                return Called(reply, "", tries, self._clock.now() - begin)
            except errors.Rejected as error:
                return Called(None, str(error), tries, self._clock.now() - begin)
            except errors.ImageError as error:
                self.calls -= 1  # no request was sent
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
        """Return the delay in seconds before the next retry, or the reason for no retry."""
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
                    hint="run the same command again after that time: it resumes",
                ) from fault
            if fault.overloaded:
                self._limiter.pause(asked)
        if tries > settings.per_call:
            return f"; given up after {tries} tries"
        if self.retries >= settings.per_run:
            return f"; the run's {settings.per_run} retries are used up"
        self.retries += 1
        # Jitter is added to the delay that the server requests; otherwise all calls would be
        # repeated at the same moment.
        return draw_delay(tries, settings, self._rng) + (asked or 0.0)

    def _judge_silence(
        self, fault: errors.Unreachable, tries: int, silent_since: int | None
    ) -> None:
        """End the run if the server never answered, or no longer answers."""
        if not self._limiter.answered and tries > self._settings.knocks:
            raise errors.Unavailable(
                fault.what, hint="start the server, or check --base-url and the network"
            ) from fault
        gone = tries > self._settings.per_call and self._limiter.answered == silent_since
        if self._limiter.answered and gone:
            raise errors.Unavailable(
                f"{fault.what}: the connection is lost",
                hint="start the server, then run the same command again: it resumes",
            ) from fault


# Progress of a run.


@dataclass(frozen=True, slots=True)
class Progress:
    """Counters of a run; the final counters are the summary of the run.

    ``resumed`` counts the items of ``done`` that were finished before the run was resumed. Calls,
    tokens and retries are counted since this start; cached tokens do not count. For a dataset
    build, ``expected_in`` and ``expected_out`` are the tokens estimated beforehand for its
    ``memes`` (0: no estimate). ``adapted`` lists request changes that the server required.

    >>> half = Progress(done=50, total=100, answered=50, seconds=10.0)
    >>> half.rate, half.left
    (5.0, 10.0)
    >>> Progress(tokens_in=1_000_000, tokens_out=500_000).cost((2.0, 8.0))
    6.0
    """

    done: int = 0
    total: int | None = None
    answered: int = 0
    refused: int = 0
    unparsed: int = 0
    failed: int = 0
    resumed: int = 0
    cached: int = 0
    calls: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    in_flight: int = 0
    limit: int = 0
    paused: float = 0.0
    memes: int = 0
    expected_in: int = 0
    expected_out: int = 0
    adapted: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[Status, int]:
        """The number of items per status."""
        return {status: getattr(self, status) for status in STATUSES}

    @property
    def rate(self) -> float:
        """Items per second since this start of the run."""
        return (self.done - self.resumed) / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """The estimated number of seconds to the end of the run, or None."""
        if self.total is None or not self.rate:
            return None
        return max(0, self.total - self.done) / self.rate

    def cost(self, prices: tuple[float, float]) -> float:
        """Return the cost since this start; prices are per million input and output tokens."""
        return (self.tokens_in * prices[0] + self.tokens_out * prices[1]) / 1e6


@dataclass(frozen=True, slots=True)
class AskSettings:
    """Settings of model calls that do not affect the answers.

    ``total`` is the number of items, if known, from which the remaining time is estimated.
    ``grace`` is how long running calls may continue when a run stops, ``watch_every`` the reporting
    interval (both in seconds).
    """

    concurrency: int = 32
    retries: RetrySettings = field(default_factory=RetrySettings)
    total: int | None = None
    grace: float = 5.0
    watch_every: float = 0.5
    clock: Clock = field(default_factory=RealClock)
    rng: random.Random = field(default_factory=random.Random)
    limiter: Limiter | None = None


class Engine:
    """Calls one model and counts calls. The caller owns and closes model and cache."""

    def __init__(self, model: Model, cache: Cache | None, settings: AskSettings) -> None:
        self.model = model
        self.settings = settings
        self.total = settings.total
        self.expected = (0, 0, 0)  # number of memes, and their estimated tokens
        self.limiter = settings.limiter or Limiter(settings.concurrency, settings.clock)
        self.cache = cache if model.cacheable else None
        self._identity = model.identity
        self._caller = Caller(model, self.limiter, settings.retries, settings.clock, settings.rng)
        self._begin = settings.clock.now()
        self._counts: dict[Status, int] = dict.fromkeys(STATUSES, 0)
        self._adapted: dict[str, None] = {}
        self._resumed = self._cached = self._tokens_in = self._tokens_out = 0

    @property
    def stopping(self) -> bool:
        """Whether the run is stopping, so that no new call may start."""
        return self._caller.stopping

    @property
    def progress(self) -> Progress:
        """The counters and the cost so far."""
        return Progress(
            done=sum(self._counts.values()),
            total=self.total,
            **{str(status): count for status, count in self._counts.items()},
            resumed=self._resumed,
            cached=self._cached,
            calls=self._caller.calls,
            retries=self._caller.retries,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            seconds=self.settings.clock.now() - self._begin,
            in_flight=len(self._caller.busy),
            limit=self.limiter.limit,
            paused=self.limiter.paused,
            memes=self.expected[0],
            expected_in=self.expected[1],
            expected_out=self.expected[2],
            adapted=tuple(self._adapted),
        )

    def count_item(self, status: Status, *, resumed: bool = False) -> None:
        """Count a finished item or chain step, also one finished before the run was resumed."""
        self._counts[status] += 1
        self._resumed += resumed

    def count_attempt(self, spent: Reply, *, cached: bool) -> None:
        """Count the tokens of an attempt; cached replies have no cost."""
        if spent.adapted:
            self._adapted[spent.adapted] = None
        if cached:
            self._cached += 1
        else:
            self._tokens_in += spent.tokens_in
            self._tokens_out += spent.tokens_out

    def cache_key(self, request: Request, digest: str, attempt: int) -> bytes:
        """Return the key of one attempt in the cache and in call logs."""
        return cache_key(self._identity, request.sampling, digest, attempt)

    async def fetch(self, request: Request, key: bytes) -> Called:
        """Return a reply from the cache, else from the model.

        A new reply is not in the cache yet: call :meth:`keep` after the reply is logged.
        """
        if self.cache is not None and (found := self.cache.get(key)) is not None:
            return Called(found, "", 0, 0.0)
        called = await self._caller.call(request)
        if called.reply is None:
            return called
        sound = make_sound(called.reply)
        return called if sound is called.reply else replace(called, reply=sound)

    def keep(self, key: bytes, called: Called) -> None:
        """Put a new reply into the cache."""
        if self.cache is not None and called.calls and called.reply is not None:
            self.cache.put(key, called.reply)

    def halt(self) -> None:
        """Stop starting new calls."""
        self._caller.stopping = True

    async def stop(self, workers: Collection[asyncio.Task[None]]) -> None:
        """Stop starting new calls; wait briefly for running calls, which are already paid for."""
        self.halt()
        running = {worker for worker in workers if not worker.done()}
        for worker in running - self._caller.busy:
            worker.cancel()
        if running:
            _, late = await asyncio.wait(running, timeout=self.settings.grace)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        # Pending cache entries are written if possible; a failure here must not hide the original
        # error.
        with contextlib.suppress(StoreError):
            self.flush()

    def flush(self) -> None:
        """Write pending cache entries."""
        if self.cache is not None:
            self.cache.flush()


def read_reply(reply: Reply, parse: Callable[[str], Value]) -> tuple[Status, Value | None, str]:
    """Return the status of a reply, its value, and the reason if it has none.

    A reply is refused if the provider says so, or if its text declines the request. This is checked
    before parsing, since a refusal is a valid free text and may name a label.

    >>> read_reply(Reply("7"), int)
    ('answered', 7, '')
    >>> read_reply(Reply("", refusal="no"), int)
    ('refused', None, 'no')
    >>> read_reply(Reply("I'm sorry, but I can't help with that."), str)
    ('refused', None, "I'm sorry, but I can't help with that.")
    """
    if refusal := reply.refusal or find_refusal(reply.text):
        return "refused", None, refusal
    worth: object = None
    try:
        return "answered", parse(reply.text), ""
    except Unparsed as error:
        reason, worth = str(error), error.worth
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        # An exception in a parser must neither end the run nor be lost.
        reason = f"the parser failed: {type(error).__name__}: {error}"
    if reply.finish == "length":
        thinking = reply.reasoning and not reply.text.strip()
        reason = CUT_OFF if thinking else f"{reason} (the answer was cut at the token limit)"
    return "unparsed", cast("Value | None", worth), reason or "no valid answer"


def bump_seed(request: Request, attempt: int) -> Request:
    """Change the seed for a retry, since the same seed would give the same invalid answer."""
    seed = request.sampling.seed
    if not attempt or seed is None:
        return request
    return replace(request, sampling=replace(request.sampling, seed=seed + attempt))


def make_sound(reply: Reply) -> Reply:
    """Replace lone surrogates, which cannot be written to a file, in a reply."""
    texts = (reply.text, reply.reasoning, reply.refusal)
    repaired = tuple(map(repair_surrogates, texts))
    if repaired == texts:
        return reply
    return replace(reply, text=repaired[0], reasoning=repaired[1], refusal=repaired[2])
