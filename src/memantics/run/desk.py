"""Take the steps of a chain with one model: journalled, bounded, and never the same call twice.

The journal (``calls.jsonl`` in the folder of the build) holds every call by content address. A
chain that was killed is simply run again: what the journal holds is not asked anew. Its lines can
be replayed with ``recorded/FOLDER/calls.jsonl``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.cache import Cache, cache_key
from memantics.core.errors import ImageError, StoreError, first_fault
from memantics.core.journal import Journal, lock_folder, read_whole_lines
from memantics.core.model import Model
from memantics.core.records import Answer, Reply, Request, Status
from memantics.core.step import Step, Taken, Value
from memantics.run.clock import Clock, RealClock
from memantics.run.limiter import Limiter
from memantics.run.progress import Progress, Tally
from memantics.run.reading import bump_seed, digest_request, make_sound, read_reply
from memantics.run.retry import Caller, RetrySettings

CALLS = "calls.jsonl"


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """How many calls at once, how often repeated; ``total`` steps serve the time left only."""

    concurrency: int = 32
    retries: RetrySettings = field(default_factory=RetrySettings)
    total: int | None = None
    clock: Clock = field(default_factory=RealClock)


@dataclass(frozen=True, slots=True)
class Call:
    """A line of the journal. ``prompt`` and ``text`` are what ``recorded/…`` models replay."""

    key: str
    step: str
    attempt: int
    model: str
    when: str
    status: Status
    prompt: str
    text: str = ""
    reason: str = ""
    refusal: str = ""
    reasoning: str = ""
    finish: str = ""
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def reply(self) -> Reply:
        """The reply that it holds."""
        return Reply(
            self.text,
            self.reasoning,
            self.refusal,
            self.finish,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
        )


_CALL = TypeAdapter(Call)


@dataclass(frozen=True, slots=True)
class _Got:
    """A reply with where it is from: ``calls`` is 0 when it was known already."""

    reply: Reply | None
    reason: str
    calls: int
    when: str


class Desk:
    """An :class:`~memantics.core.step.Asker`. Model and cache belong to the caller."""

    def __init__(
        self,
        model: Model,
        folder: Path,
        cache: Cache | None = None,
        settings: DeskSettings | None = None,
        watch: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        settings = settings or DeskSettings()
        self.folder = folder
        self._model = model
        self._cache = cache if model.cacheable else None
        self._identity = model.identity
        self._limiter = Limiter(settings.concurrency, settings.clock)
        self._caller = Caller(model, self._limiter, settings.retries, settings.clock)
        self._tally = Tally(settings.clock, settings.total)
        self._total = settings.total
        self._watch = watch
        self._running: dict[str, asyncio.Future[_Got]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(folder)
            try:
                self._known = _read_journal(folder / CALLS)
                self._journal = Journal(folder / CALLS, folder / CALLS)
            except BaseException:
                self._lock.close()
                raise
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be written: {error.strerror}", hint="choose another with --out"
            ) from error

    @property
    def model(self) -> str:
        """The name of the model behind it."""
        return self._model.name

    @property
    def progress(self) -> Progress:
        """The counts of steps and what they cost so far."""
        return replace(
            self._tally.show(calls=self._caller.calls, retries=self._caller.retries),
            total=self._total,
            in_flight=len(self._caller.busy),
            limit=self._limiter.limit,
            paused=self._limiter.paused,
        )

    def expect(self, steps: int) -> None:
        """Say how many more steps there will be, for the time left."""
        self._total = (self._total or 0) + steps

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Bring one step to its end; only what no later step can escape is raised."""
        taken: Taken[Value] = Taken(step.id, "failed", None, "no attempt was allowed")
        complaint, calls = None, 0
        for attempt in range(step.attempts):
            taken = await self._attempt(step, attempt, complaint)
            calls += taken.calls
            complaint = taken.reason
            if taken.status in ("answered", "failed"):
                break
        self._tally.add_item(taken.status)
        self._watch(self.progress)
        return replace(taken, calls=calls)

    async def _attempt(
        self, step: Step[Value], attempt: int, complaint: str | None
    ) -> Taken[Value]:
        try:
            request = bump_seed(step.ask(complaint), attempt)
            digest = digest_request(request)
        except ImageError as error:
            return Taken(step.id, "failed", None, str(error), attempt + 1, model=self.model)
        got = await self._get(step, request, digest, attempt)
        status: Status = "failed"
        value, reason, reply = None, got.reason, got.reply or Reply("")
        if got.reply is not None:
            status, value, reason = read_reply(reply, step.read)
        self._tally.add_attempt(
            Answer(
                step.id,
                attempt,
                status,
                tokens_in=reply.tokens_in,
                tokens_out=reply.tokens_out,
                cached=not got.calls,
            )
        )
        return Taken(
            step.id,
            status,
            value,
            reason,
            attempt + 1,
            digest,
            self.model,
            got.when,
            reply.tokens_in,
            reply.tokens_out,
            got.calls,
        )

    async def _get(self, step: Step[Value], request: Request, digest: str, attempt: int) -> _Got:
        """The reply to a request: from the journal, from a call that goes on, or from the model."""
        key = cache_key(self._identity, request.sampling, digest, attempt)
        name = key.hex()
        if name in self._known:
            call = self._load(self._known[name])
            return _Got(call.reply, "", 0, call.when)
        if name in self._running:
            return replace(await asyncio.shield(self._running[name]), calls=0)
        future: asyncio.Future[_Got] = asyncio.get_running_loop().create_future()
        self._running[name] = future
        try:
            got = await self._fetch(step, request, digest, (key, attempt))
            future.set_result(got)
        except Exception as error:
            future.set_exception(error)
            future.exception()  # looked at: whoever waits for it gets it too, if anybody does
            raise
        finally:
            future.cancel()
            del self._running[name]
        return got

    async def _fetch(
        self, step: Step[Value], request: Request, digest: str, address: tuple[bytes, int]
    ) -> _Got:
        key, attempt = address
        reply, reason, calls = self._cache.get(key) if self._cache else None, "", 0
        if reply is None:
            called = await self._caller.call(request)
            reply, reason, calls = called.reply, called.reason, called.calls
            reply = None if reply is None else make_sound(reply)
            if self._cache and reply is not None:
                self._cache.put(key, reply)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        status: Status = "failed"
        if reply is not None:
            status, _, reason = read_reply(reply, step.read)
        sent = reply or Reply("")
        self._write(
            Call(
                key.hex(),
                step.id,
                attempt,
                self.model,
                when,
                status,
                digest,
                sent.text,
                reason,
                sent.refusal,
                sent.reasoning,
                sent.finish,
                sent.tokens_in,
                sent.tokens_out,
            ),
            known=reply is not None,
        )
        return _Got(reply, reason if reply is None else "", calls, when)

    def _write(self, call: Call, *, known: bool) -> None:
        place = self._journal.append(orjson.dumps(call, option=orjson.OPT_APPEND_NEWLINE))
        if known:
            self._known[call.key] = place

    def _load(self, place: int) -> Call:
        with (self.folder / CALLS).open("rb") as file:
            file.seek(place)
            return _CALL.validate_json(file.readline())

    def close(self) -> None:
        """Close the journal and let go of the folder."""
        self._journal.close()
        self._lock.close()
        if self._cache is not None:
            self._cache.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_journal(path: Path) -> dict[str, int]:
    """Where each call with a reply stands; replies stay on disk."""
    known: dict[str, int] = {}
    place = 0
    for number, line in read_whole_lines(path):
        try:
            call = _CALL.validate_json(line)
        except ValidationError as error:
            raise StoreError(
                f"{path}: line {number} is damaged: {first_fault(error)}",
                hint="remove that line; its step is asked again",
            ) from error
        if call.status != "failed":
            known[call.key] = place
        place += len(line)
    return known
