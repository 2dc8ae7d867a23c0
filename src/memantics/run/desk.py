"""Take the steps of a chain with one model: journalled, bounded, and never the same call twice.

The journal (``calls.jsonl`` in the folder of the build) holds every call by content address. A
chain that was killed is simply run again: what the journal holds is not asked anew. Its lines can
be replayed with ``recorded/FOLDER/calls.jsonl``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

import orjson
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from memantics.core.cache import Cache, request_digest
from memantics.core.errors import ImageError, StoreError, first_fault
from memantics.core.images import load_images
from memantics.core.journal import Journal, opening, read_whole_lines
from memantics.core.model import Model
from memantics.core.records import Reply, Request, Status, nest_reply
from memantics.core.step import Step, Taken, Value, ask_again
from memantics.run.calling import Called
from memantics.run.engine import AskSettings, Engine, Progress, bump_seed, read_reply

CALLS = "calls.jsonl"


@dataclass(frozen=True, slots=True)
class Call:
    """A line of the journal. ``prompt`` and ``reply`` are what ``recorded/…`` models replay."""

    key: str
    step: str
    attempt: int
    model: str
    when: str
    status: Status
    prompt: str
    reply: Reply
    reason: str = ""


# Journals written before replies were embedded have their fields beside the others.
_CALL: TypeAdapter[Call] = TypeAdapter(Annotated[Call, BeforeValidator(nest_reply)])


@dataclass(frozen=True, slots=True)
class _Got:
    """A reply with where it is from: ``calls`` is 0 when it was known already."""

    reply: Reply | None
    reason: str
    calls: int
    when: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Which attempt a call is."""

    key: str
    digest: str
    attempt: int


class Desk:
    """An :class:`~memantics.core.step.Asker`. Model and cache belong to the caller."""

    def __init__(
        self,
        model: Model,
        folder: Path,
        cache: Cache | None = None,
        settings: AskSettings | None = None,
        watch: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self._engine = Engine(model, cache, settings or AskSettings())
        self._watch = watch
        self._running: dict[str, asyncio.Future[_Got]] = {}
        with opening(folder, str(folder)) as self._lock:
            self._known = _read_journal(folder / CALLS)
            self._journal = Journal(folder / CALLS, folder / CALLS)

    @property
    def model(self) -> str:
        """The name of the model behind it."""
        return self._engine.model.name

    @property
    def progress(self) -> Progress:
        """The counts of steps and what they cost so far."""
        return self._engine.progress

    def expect(self, steps: int) -> None:
        """Say how many more steps there will be, for the time left."""
        self._engine.total = (self._engine.total or 0) + steps

    @property
    def costs(self) -> bool:
        """Whether the model behind it is one whose tokens count."""
        return self._engine.model.cacheable

    def foresee(self, memes: int, tokens_in: int, tokens_out: int) -> None:
        """Say before the first step what all of them will take, as far as one can tell."""
        self._engine.expected = (memes, tokens_in, tokens_out)
        self._watch(self.progress)

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Bring one step to its end; only what no later step can escape is raised."""
        taken: Taken[Value] = Taken(step.id, "failed", None, "no attempt was allowed")
        request, calls = step.request, 0
        for attempt in range(step.attempts):
            taken, said = await self._attempt(step, request, attempt)
            calls += taken.calls
            if taken.status in ("answered", "failed"):
                break
            request = ask_again(step.request, said, taken.reason)
        self._engine.count_item(taken.status)
        self._watch(self.progress)
        return replace(taken, calls=calls)

    async def _attempt(
        self, step: Step[Value], request: Request, attempt: int
    ) -> tuple[Taken[Value], str]:
        """How one attempt ended, and what the model said."""
        try:
            request = load_images(bump_seed(request, attempt))
        except ImageError as error:
            return Taken(step.id, "failed", None, str(error), attempt + 1, model=self.model), ""
        digest = request_digest(request)
        got = await self._get(step, request, digest, attempt)
        status: Status = "failed"
        value, reason, reply = None, got.reason, got.reply or Reply("")
        if got.reply is not None:
            status, value, reason = read_reply(reply, step.read)
        self._engine.count_attempt(reply, cached=not got.calls)
        taken = Taken(
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
        return taken, reply.text

    async def _get(self, step: Step[Value], request: Request, digest: str, attempt: int) -> _Got:
        """The reply to a request: from the journal, from a call that goes on, or from the model."""
        key = self._engine.address(request, digest, attempt)
        name = key.hex()
        if name in self._known:
            call = self._load(self._known[name])
            return _Got(call.reply, "", 0, call.when)
        if name in self._running:
            return replace(await asyncio.shield(self._running[name]), calls=0)
        future: asyncio.Future[_Got] = asyncio.get_running_loop().create_future()
        self._running[name] = future
        try:
            called = await self._engine.fetch(request, key)
            got = self._write(step, _Place(name, digest, attempt), called)
            self._engine.keep(key, called)
            future.set_result(got)
        except Exception as error:
            future.set_exception(error)
            future.exception()  # looked at: whoever waits for it gets it too, if anybody does
            raise
        finally:
            future.cancel()
            del self._running[name]
        return got

    def _write(self, step: Step[Value], place: _Place, called: Called) -> _Got:
        """Write a call into the journal."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        status: Status = "failed"
        reply, reason = called.reply or Reply(""), called.reason
        if called.reply is not None:
            status, _, reason = read_reply(reply, step.read)
        line = Call(
            place.key,
            step.id,
            place.attempt,
            self.model,
            when,
            status,
            place.digest,
            reply,
            reason,
        )
        start = self._journal.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        if called.reply is not None:
            self._known[place.key] = start
        return _Got(called.reply, called.reason, called.calls, when)

    def _load(self, place: int) -> Call:
        with (self.folder / CALLS).open("rb") as file:
            file.seek(place)
            return _CALL.validate_json(file.readline())

    def close(self) -> None:
        """Close the journal and let go of the folder."""
        self._journal.close()
        self._lock.close()
        self._engine.flush()

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
