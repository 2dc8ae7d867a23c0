"""The engine that asks a model: content address, cache, limiter, retries, counts, orderly stop.

Two fronts use it: :mod:`memantics.run.ask` for the items of a task, :mod:`memantics.run.desk` for
the steps of a chain. They differ in what they write down and how they go on after a kill.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from memantics.core.cache import Cache, cache_key
from memantics.core.errors import StoreError
from memantics.core.model import Model
from memantics.core.records import STATUSES, Reply, Request, Status
from memantics.core.task import Unparsed
from memantics.core.text import mend_surrogates
from memantics.run.calling import Called, Caller, Clock, Limiter, RealClock, RetrySettings

# How far a run is, for whoever watches it.


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a run so far; the last one is its summary.

    ``resumed`` of the ``done`` items were finished by an earlier start. Calls, tokens and retries
    are of this start; tokens from the cache cost nothing and do not count. A build says before it
    asks what its ``memes`` will take, ``expected_in`` and ``expected_out`` tokens; 0: not said.
    ``adapted`` says how requests were changed so that the server would take them.

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
        """The four counts."""
        return {status: getattr(self, status) for status in STATUSES}

    @property
    def rate(self) -> float:
        """Items per second of this start."""
        return (self.done - self.resumed) / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end, as far as one can tell."""
        if self.total is None or not self.rate:
            return None
        return max(0, self.total - self.done) / self.rate

    def cost(self, prices: tuple[float, float]) -> float:
        """What this start cost; prices are per million tokens in and out."""
        return (self.tokens_in * prices[0] + self.tokens_out * prices[1]) / 1e6


Value = TypeVar("Value")
CUT_OFF = "the chain of thought was cut off at the token limit: there is no answer"


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How a model is asked. None of this shapes the answers.

    ``total`` is the number of items where it is known: it only serves the time left. ``grace`` is
    how long calls in flight may go on when a run stops; ``watch_every`` how often it reports.
    """

    concurrency: int = 32
    retries: RetrySettings = field(default_factory=RetrySettings)
    total: int | None = None
    grace: float = 5.0
    watch_every: float = 0.5
    clock: Clock = field(default_factory=RealClock)
    chance: random.Random = field(default_factory=random.Random)
    limiter: Limiter | None = None


class Engine:
    """Asks one model and counts. Model and cache stay open: they belong to the caller."""

    def __init__(self, model: Model, cache: Cache | None, settings: AskSettings) -> None:
        self.model = model
        self.settings = settings
        self.total = settings.total
        self.expected = (0, 0, 0)  # memes, and the tokens that they will take
        self.limiter = settings.limiter or Limiter(settings.concurrency, settings.clock)
        self.cache = cache if model.cacheable else None
        self._identity = model.identity
        self._caller = Caller(
            model, self.limiter, settings.retries, settings.clock, settings.chance
        )
        self._begin = settings.clock.now()
        self._counts: dict[Status, int] = dict.fromkeys(STATUSES, 0)
        self._adapted: dict[str, None] = {}
        self._resumed = self._cached = self._tokens_in = self._tokens_out = 0

    @property
    def stopping(self) -> bool:
        """Whether nothing new may begin."""
        return self._caller.stopping

    @property
    def progress(self) -> Progress:
        """The counts so far, and what they cost."""
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
        """Count an item or step that ended, now or at an earlier start."""
        self._counts[status] += 1
        self._resumed += resumed

    def count_attempt(self, spent: Reply, *, cached: bool) -> None:
        """Count what an attempt cost; what was known already costs nothing."""
        if spent.adapted:
            self._adapted[spent.adapted] = None
        if cached:
            self._cached += 1
        else:
            self._tokens_in += spent.tokens_in
            self._tokens_out += spent.tokens_out

    def address(self, request: Request, digest: str, attempt: int) -> bytes:
        """The content address of one attempt: the key of the cache and of journals."""
        return cache_key(self._identity, request.sampling, digest, attempt)

    async def fetch(self, request: Request, key: bytes) -> Called:
        """The reply of the cache (no call), else of the model.

        A new reply is not in the cache yet: :meth:`keep` it once it is written down.
        """
        if self.cache is not None and (found := self.cache.get(key)) is not None:
            return Called(found, "", 0, 0.0)
        called = await self._caller.call(request)
        if called.reply is None:
            return called
        sound = make_sound(called.reply)
        return called if sound is called.reply else replace(called, reply=sound)

    def keep(self, key: bytes, called: Called) -> None:
        """Put a reply that was paid for into the cache."""
        if self.cache is not None and called.calls and called.reply is not None:
            self.cache.put(key, called.reply)

    def halt(self) -> None:
        """Begin nothing new."""
        self._caller.stopping = True

    async def stop(self, workers: Collection[asyncio.Task[None]]) -> None:
        """Begin nothing new; give calls in flight a little time, since they are paid for."""
        self.halt()
        running = {worker for worker in workers if not worker.done()}
        for worker in running - self._caller.busy:
            worker.cancel()
        if running:
            _, late = await asyncio.wait(running, timeout=self.settings.grace)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        # What the cache still holds back is worth keeping, but no reason to hide an error.
        with contextlib.suppress(StoreError):
            self.flush()

    def flush(self) -> None:
        """Write what the cache holds back."""
        if self.cache is not None:
            self.cache.flush()


def read_reply(reply: Reply, parse: Callable[[str], Value]) -> tuple[Status, Value | None, str]:
    """The status of a reply, its value, and why it has none.

    >>> read_reply(Reply("7"), int)
    ('answered', 7, '')
    >>> read_reply(Reply("", refusal="no"), int)
    ('refused', None, 'no')
    """
    if reply.refusal:
        return "refused", None, reply.refusal
    worth: object = None
    try:
        return "answered", parse(reply.text), ""
    except Unparsed as error:
        reason, worth = str(error), error.worth
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        # A parser that stumbles over a strange answer must not end the run, nor hide it.
        reason = f"the parser failed: {type(error).__name__}: {error}"
    if reply.finish == "length":
        thinking = reply.reasoning and not reply.text.strip()
        reason = CUT_OFF if thinking else f"{reason} (the answer was cut at the token limit)"
    return "unparsed", cast("Value | None", worth), reason or "no valid answer"


def bump_seed(request: Request, attempt: int) -> Request:
    """The request of a later attempt: a fixed seed would bring the same bad answer again."""
    seed = request.sampling.seed
    if not attempt or seed is None:
        return request
    return replace(request, sampling=replace(request.sampling, seed=seed + attempt))


def make_sound(reply: Reply) -> Reply:
    """The reply without lone surrogates, which no file can hold; nearly always the same object."""
    texts = (reply.text, reply.reasoning, reply.refusal)
    mended = tuple(map(mend_surrogates, texts))
    if mended == texts:
        return reply
    return replace(reply, text=mended[0], reasoning=mended[1], refusal=mended[2])
