"""Ask a model every item of a task, write each answer down, and lose nothing."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace

from memantics.core.cache import Cache, cache_key
from memantics.core.errors import DataError, ImageError, StoreError
from memantics.core.model import Model
from memantics.core.records import Answer, Item, Reply, Request, Status
from memantics.core.rundir import RunWriter, read_answers
from memantics.core.task import Task
from memantics.run.clock import Clock, RealClock
from memantics.run.limiter import Limiter
from memantics.run.progress import Progress, Tally
from memantics.run.reading import bump_seed, digest_request, make_sound, read_reply
from memantics.run.retry import Called, Caller, RetrySettings, Stopped

__all__ = ["AskSettings", "Progress", "RetrySettings", "ask"]

# Answers from a cache or a fast model never wait; the loop must still hear Ctrl-C.
_BREATH = 0.05


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How a run goes about it. None of this shapes the answers.

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


def watch_nothing(_: Progress) -> None:
    """For runs that nobody watches."""


async def ask(
    task: Task,
    model: Model,
    writer: RunWriter,
    cache: Cache | None = None,
    settings: AskSettings | None = None,
    watch: Callable[[Progress], None] = watch_nothing,
) -> Progress:
    """Ask every item that is not finished yet; return the counts.

    Writer, cache and model stay open: they belong to the caller. An error that no later item can
    escape (wrong key, full disk, broken data) is raised once the calls in flight have ended;
    whatever was answered is on disk by then, and the same call goes on from there.
    """
    return await _Asking(task, model, writer, cache, settings or AskSettings()).run(watch)


class _Asking:
    """One run in progress."""

    def __init__(
        self,
        task: Task,
        model: Model,
        writer: RunWriter,
        cache: Cache | None,
        settings: AskSettings,
    ) -> None:
        self._task = task
        self._model = model
        self._writer = writer
        self._cache = cache if model.cacheable else None
        self._settings = settings
        self._identity = model.identity
        self._clock = settings.clock
        self._limiter = settings.limiter or Limiter(settings.concurrency, settings.clock)
        self._caller = Caller(
            model, self._limiter, settings.retries, settings.clock, settings.chance
        )
        self._tally = Tally(settings.clock, settings.total)
        self._complaints = _read_complaints(writer)
        self._seen: set[int] = set()
        self._breath = 0.0

    async def run(self, watch: Callable[[Progress], None]) -> Progress:
        items = self._task.items()
        watching = asyncio.create_task(self._watch(watch))
        count = min(self._settings.concurrency, self._limiter.maximum)
        workers = [asyncio.create_task(self._work(items)) for _ in range(max(1, count))]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            await self._stop(workers)
            if isinstance(items, Generator):
                items.close()  # and with it the files it may have open
            watching.cancel()
            watch(self._show())
        for worker in workers:
            if not worker.cancelled() and (error := worker.exception()) is not None:
                raise error
        if self._cache is not None:
            self._cache.flush()
        return self._show()

    async def _stop(self, workers: list[asyncio.Task[None]]) -> None:
        """Begin nothing new; give calls in flight a little time, since they are paid for."""
        self._caller.stopping = True
        running = {worker for worker in workers if not worker.done()}
        for worker in running - self._caller.busy:
            worker.cancel()
        if running:
            _, late = await asyncio.wait(running, timeout=self._settings.grace)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        # What the cache still holds back is worth keeping, but no reason to hide an error.
        if self._cache is not None:
            with contextlib.suppress(StoreError):
                self._cache.flush()

    async def _work(self, items: Iterator[Item]) -> None:
        try:
            for item in items:
                if self._caller.stopping:
                    return
                await self._finish(item)
                if self._clock.now() - self._breath > _BREATH:
                    await asyncio.sleep(0)
                    self._breath = self._clock.now()
        except BaseException:
            # At once, not when the loop comes round: fast models never wait for the loop.
            self._caller.stopping = True
            raise

    async def _finish(self, item: Item) -> None:
        """Bring one item to its end, from wherever an earlier start left it."""
        mark = hash(item.id)
        if mark in self._seen:
            raise DataError(item.id, "two items have this id", hint="give each item its own")
        self._seen.add(mark)
        attempts = self._task.invalid.attempts
        last = self._writer.last.get(item.id)
        attempt, complaint = 0, None
        if last is not None:
            used_up = last.status != "failed" and last.attempt + 1 >= attempts
            if last.status == "answered" or used_up:
                self._tally.add_resumed(last.status)
                return
            attempt = last.attempt if last.status == "failed" else last.attempt + 1
            complaint = self._complaints.get(item.id) if last.status == "failed" else last.reason
        status: Status = "failed"
        for number in range(attempt, max(attempts, attempt + 1)):
            try:
                answer = await self._attempt(item, number, complaint)
            except Stopped:
                return
            status, complaint = answer.status, answer.reason
            if status in ("answered", "failed"):
                break
            if self._caller.stopping and number + 1 < attempts:
                return
        self._tally.add_item(status)

    async def _attempt(self, item: Item, number: int, complaint: str | None) -> Answer:
        """Ask once (with retries), parse, and write it down."""
        try:
            request = self._task.ask(item, complaint)
        except ImageError as error:
            self._note_item(item, None)
            return self._record(Answer(item.id, number, "failed", reason=str(error), calls=0))
        self._note_item(item, request)
        request = bump_seed(request, number)
        digest, fault = self._digest(item, request)
        if fault and self._model.cacheable:
            return self._record(Answer(item.id, number, "failed", reason=fault, calls=0))
        key = b""
        if self._cache is not None:
            key = cache_key(self._identity, request.sampling, digest, number)
            found = self._cache.get(key)
            if found is not None:
                return self._record(self._judge(item, number, digest, Called(found, "", 0, 0.0)))
        called = await self._caller.call(request)
        answer = self._record(self._judge(item, number, digest, called))
        if self._cache is not None and called.reply is not None:
            self._cache.put(key, make_sound(called.reply))
        return answer

    def _digest(self, item: Item, request: Request) -> tuple[str, str]:
        """The hash of the request, or what is wrong with its images."""
        try:
            return digest_request(request), ""
        except ImageError as error:
            return "", str(error)
        except TypeError as error:
            raise DataError(item.id, f"its request cannot be written as JSON: {error}") from error

    def _judge(self, item: Item, number: int, digest: str, called: Called) -> Answer:
        """What an ended call says."""
        reply = called.reply or Reply("")
        status: Status = "failed"
        value, reason = None, called.reason
        if called.reply is not None:
            reply = make_sound(reply)
            status, value, reason = read_reply(
                reply, lambda text: self._task.parse(text, item.form)
            )
        return Answer(
            item.id,
            number,
            status,
            text=reply.text,
            value=value,
            reason=reason,
            reasoning=reply.reasoning,
            finish=reply.finish,
            prompt=digest,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            seconds=round(called.seconds, 4),
            calls=called.calls,
            cached=called.calls == 0 and called.reply is not None,
        )

    def _note_item(self, item: Item, request: Request | None) -> None:
        try:
            self._writer.add_item(item, request.messages if request else ())
        except TypeError as error:
            raise DataError(item.id, f"the item cannot be written as JSON: {error}") from error

    def _record(self, answer: Answer) -> Answer:
        """Write an attempt down; from here on it is safe."""
        try:
            self._writer.add_answer(answer)
        except TypeError as error:
            reason = f"the parsed value cannot be written as JSON: {error}"
            answer = replace(answer, status="unparsed", value=None, reason=reason)
            self._writer.add_answer(answer)
        self._tally.add_attempt(answer)
        return answer

    async def _watch(self, watch: Callable[[Progress], None]) -> None:
        while True:
            await asyncio.sleep(self._settings.watch_every)
            watch(self._show())

    def _show(self) -> Progress:
        return replace(
            self._tally.show(calls=self._caller.calls, retries=self._caller.retries),
            in_flight=len(self._caller.busy),
            limit=self._limiter.limit,
            paused=self._limiter.paused,
        )


def _read_complaints(writer: RunWriter) -> dict[str, str]:
    """Why the attempt before a failed one was invalid: the next request says so again."""
    wanted = {a.item for a in writer.last.values() if a.status == "failed" and a.attempt}
    if not wanted:
        return {}
    return {
        answer.item: answer.reason
        for answer in read_answers(writer.folder)
        if answer.item in wanted and answer.status != "failed"
    }
