"""A model client for multi-step chains: call log, cache, price, progress and cost estimates.

The call log (``calls.jsonl`` in the output folder) stores every model call by content hash. When an
interrupted chain is run again, logged calls are reused. The model ``recorded/FOLDER/calls.jsonl``
replays the log. Tokens are estimated without a tokenizer.
"""

from __future__ import annotations

import asyncio
import math
import operator
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.core.errors import ImageError, InputError, StoreError, first_fault
from memantics.core.files import AppendOnlyFile, open_regular, opening, read_whole_lines
from memantics.core.images import load_images, probe, read_bytes
from memantics.core.model import Model, Step, Taken, Value, ask_again
from memantics.core.parameters import Flag
from memantics.core.records import Image, Reply, Request, Status
from memantics.core.registry import home
from memantics.models.cache import Cache, request_digest
from memantics.models.engine import AskSettings, Called, Engine, Progress, bump_seed, read_reply
from memantics.models.fake import draft_reply
from memantics.models.kinds import ModelSettings, open_model
from memantics.models.progress import add_progress

_TILE, _SIDE, _SHORT = 512, 2048, 768
_PER_TILE, _PER_IMAGE, _PER_MESSAGE = 170, 85, 4
_PER_REPLY, _PER_FIELD = 60, 30


def count_text(text: str) -> int:
    """Estimate the tokens of a text.

    >>> count_text("one does not simply"), count_text("表情包"), count_text("")
    (5, 3, 0)
    """
    wide = sum("\u2e80" <= char <= "\uffef" for char in text)
    return wide + math.ceil((len(text) - wide) / 4)


def count_image(width: int, height: int) -> int:
    """Estimate the tokens of an image by the number of its tiles.

    >>> count_image(500, 500), count_image(1024, 1024), count_image(4096, 512)
    (255, 765, 765)
    """
    scale = min(1.0, _SIDE / max(width, height))
    scale *= min(1.0, _SHORT / (min(width, height) * scale))
    across, down = (math.ceil(round(side * scale, 6) / _TILE) for side in (width, height))
    return _PER_IMAGE + _PER_TILE * max(1, across) * max(1, down)


def count_request(request: Request) -> int:
    """Estimate the tokens of all texts in a request."""
    texts = sum(
        count_text(part)
        for message in request.messages
        for part in message.parts
        if isinstance(part, str)
    )
    return texts + _PER_MESSAGE * len(request.messages)


def count_reply(request: Request) -> int:
    """Estimate the tokens of a reply from the form of the question."""
    form = request.form
    typical = _PER_FIELD * len(form.fields) if form.reply == "json" else _PER_REPLY
    most = request.sampling.max_tokens
    return typical if most is None else min(typical, most)


CALLS = "calls.jsonl"


@dataclass(frozen=True, slots=True)
class Call:
    """One model call in the call log. ``recorded/…`` models replay ``prompt`` and ``reply``."""

    key: str
    step: str
    attempt: int
    model: str
    when: str
    status: Status
    prompt: str
    reply: Reply
    reason: str = ""


_CALL = TypeAdapter(Call)


@dataclass(frozen=True, slots=True)
class _Got:
    """A reply with its origin: ``calls`` is 0 if it came from the log or the cache."""

    reply: Reply | None
    reason: str
    calls: int
    when: str


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The number of an attempt at a model call."""

    key: str
    digest: str
    attempt: int


class ModelClient:
    """A client for one model (an :class:`~memantics.core.model.Asker`).

    The caller opens and closes the model and the cache.
    """

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
            self._known = _read_call_log(folder / CALLS)
            self._call_log = AppendOnlyFile(folder / CALLS, folder / CALLS)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._engine.model.name

    @property
    def progress(self) -> Progress:
        """The number of finished chain steps and their cost so far."""
        return self._engine.progress

    def expect(self, steps: int) -> None:
        """Announce further chain steps, to estimate the remaining time."""
        self._engine.total = (self._engine.total or 0) + steps

    def settle(self) -> None:
        """Correct the announced steps at the end: a chain may end before its last step."""
        progress = self.progress
        if progress.total not in (None, progress.done):
            self._engine.total = progress.done
            self._watch(self.progress)

    @property
    def costs(self) -> bool:
        """Whether the model's tokens cost money."""
        return self._engine.model.cacheable

    def foresee(self, memes: int, tokens_in: int, tokens_out: int) -> None:
        """Report the estimated tokens of all chain steps before the first one."""
        self._engine.expected = (memes, tokens_in, tokens_out)
        self._watch(self.progress)

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Run one chain step; raise only errors that would affect all later steps too."""
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
        """Make one attempt at a chain step; return its result and the reply text."""
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
        """Return a reply from the call log, from an identical call in flight, or from the model."""
        key = self._engine.cache_key(request, digest, attempt)
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
            got = self._write(step, _Attempt(name, digest, attempt), called)
            self._engine.keep(key, called)
            future.set_result(got)
        except Exception as error:
            future.set_exception(error)
            # Retrieves the error, so that asyncio does not warn if nobody else waits for it.
            future.exception()
            raise
        finally:
            future.cancel()
            del self._running[name]
        return got

    def _write(self, step: Step[Value], place: _Attempt, called: Called) -> _Got:
        """Append a model call to the call log."""
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
        start = self._call_log.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        if called.reply is not None:
            self._known[place.key] = start
        return _Got(called.reply, called.reason, called.calls, when)

    def _load(self, place: int) -> Call:
        with open_regular(self.folder / CALLS) as file:
            file.seek(place)
            return _CALL.validate_json(file.readline())

    def close(self) -> None:
        """Close the call log and unlock the folder."""
        self._call_log.close()
        self._lock.close()
        self._engine.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_call_log(path: Path) -> dict[str, int]:
    """Return the offset of each logged call that has a reply; replies stay on disk."""
    known: dict[str, int] = {}
    place = 0
    for number, line in read_whole_lines(path):
        try:
            call = _CALL.validate_json(line)
        except ValidationError as error:
            raise StoreError(
                f"{path}: line {number} is damaged: {first_fault(error)}",
                hint="remove that line; the step is then run again",
            ) from error
        if call.status != "failed":
            known[call.key] = place
        place += len(line)
    return known


# Settings of model calls: server, concurrent calls, prices and cache.

_PARAM = Flag(
    "Field of the request to the model, NAME=VALUE, such as max_tokens=512; repeatable.",
    "--param",
    metavar="NAME=VALUE",
)
Params = Annotated[Mapping[str, str], _PARAM]


@contextmanager
def open_cache(wanted: bool) -> Iterator[Cache | None]:
    """Open the reply cache and close it at the end; yield None if it is disabled."""
    cache = Cache(home() / "cache.sqlite") if wanted else None
    try:
        yield cache
    finally:
        if cache is not None:
            cache.close()


def read_price(text: str | None) -> tuple[float, float] | None:
    """Parse ``--price IN,OUT``: the prices per million tokens."""
    if text is None:
        return None
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--price {text!r} is not of the form IN,OUT", hint="for example --price 0.15,0.60"
        ) from None
    if not (0 <= first < float("inf") and 0 <= second < float("inf")):
        raise InputError(
            f"--price {text!r} must not be negative", hint="for example --price 0.15,0.60"
        )
    return first, second


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings of model calls: server, request fields, concurrency, prices and cache.

    Attributes:
        base_url: URL of an OpenAI-compatible server. Default: ``OPENAI_BASE_URL``, else OpenAI's.
            The key comes from the environment variable ``OPENAI_API_KEY``.
        params: Fields that are added to every request, such as ``{"max_tokens": 512}``.
        concurrency: Maximum number of model calls at the same time.
        timeout: Time limit of one call in seconds.
        prices: Prices per million input and output tokens, to compute the cost.
        use_cache: Whether replies are taken from the cache; ``False`` calls the model again.

    >>> CallSettings(base_url="http://localhost:8000/v1", concurrency=8).timeout
    300.0
    """

    base_url: Annotated[
        str | None,
        Flag("URL of an OpenAI-compatible server. The API key is read from OPENAI_API_KEY."),
    ] = None
    params: Annotated[Mapping[str, JsonValue], _PARAM] = field(default_factory=dict)
    concurrency: Annotated[
        int, Flag("Maximum number of model calls at the same time.", min=1, max=4096)
    ] = 32
    timeout: Annotated[float, Flag("Timeout per call, in seconds.", min=0.1)] = 300.0
    prices: Annotated[
        tuple[float, float] | None,
        Flag(
            "Prices per million input and output tokens (IN,OUT), to compute the cost.",
            "--price",
            metavar="IN,OUT",
            kind=str,
            read=read_price,
        ),
    ] = None
    use_cache: Annotated[
        bool,
        Flag(
            "Call the model again even for cached requests.",
            "--no-cache",
            kind=bool,
            read=operator.not_,
            default=False,
        ),
    ] = True

    @property
    def model_settings(self) -> ModelSettings:
        """The part of the settings that opening a model needs."""
        written = {name: _write_param(value) for name, value in self.params.items()}
        return ModelSettings(self.base_url, self.concurrency, self.timeout, written)


def _write_param(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


ProgressWatch = Callable[[Progress], None]


def require_model(name: str | None) -> str:
    """Return the model name; raise an ``InputError`` if it is missing."""
    if name is None:
        raise InputError(
            "no model given: a build needs one",
            hint="add --model, for example openai/NAME with --base-url",
        )
    return name


@asynccontextmanager
async def open_client(
    name: str | None, calls: CallSettings, folder: Path, watch: ProgressWatch | None = None
) -> AsyncIterator[ModelClient]:
    """Open a client for one model; call ``client.expect(n)`` once the number of steps is known.

    At the end without an error, the steps that were not needed are no longer counted.
    """
    model = open_model(require_model(name), calls.model_settings)
    settings = AskSettings(concurrency=calls.concurrency)
    try:
        with (
            open_cache(calls.use_cache and model.cacheable) as cache,
            ModelClient(model, folder, cache, settings, watch or (lambda _: None)) as client,
        ):
            yield client
            client.settle()
    finally:
        await model.close()


def split_watch(watch: ProgressWatch | None, count: int) -> list[ProgressWatch | None]:
    """Return progress callbacks for several parallel clients; each callback reports the total."""
    if watch is None:
        return [None] * count
    seen = [Progress()] * count

    def make(place: int) -> ProgressWatch:
        def show(progress: Progress) -> None:
            seen[place] = progress
            watch(add_progress(seen))

        return show

    return [make(place) for place in range(count)]


# The cost of a dataset build is estimated from a trial on a few memes with made-up answers; no
# request is sent. Later steps include the answers of earlier ones, so the estimate is rough. Tokens
# of text and images are counted as in :mod:`memantics.evaluation.planning`; repeated calls after
# invalid replies are not counted.

SAMPLE = 3  # number of memes in the trial


class Trial:
    """A client that sends nothing: it estimates tokens and answers like ``fake/drafter``."""

    model = "fake/drafter"

    def __init__(self) -> None:
        self.tokens_in = self.tokens_out = 0

    def expect(self, steps: int) -> None:
        """Do nothing: the trial shows no progress."""

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Count the tokens of a chain step and answer it."""
        request = step.request
        self.tokens_in += count_request(request)
        for message in request.messages:
            for part in message.parts:
                if isinstance(part, Image):
                    facts = probe(read_bytes(part.path), part.path.name)
                    self.tokens_in += count_image(facts.width, facts.height)
        text = draft_reply(request)
        self.tokens_out += count_text(text)
        status, value, reason = read_reply(Reply(text), step.read)
        return Taken(step.id, status, value, reason, 1, model=self.model)


async def foresee(
    client: ModelClient, memes: int, work: Callable[[Trial], Awaitable[object]]
) -> None:
    """Estimate the cost of processing ``memes`` memes; ``work`` processes the first few of them.

    Models without token cost are skipped.
    """
    if not memes or not client.costs:
        return
    trial = Trial()
    await work(trial)
    share = memes / min(memes, SAMPLE)
    client.foresee(memes, round(share * trial.tokens_in), round(share * trial.tokens_out))


async def drain(results: AsyncIterator[object]) -> None:
    """Wait for all results of an asynchronous iterator."""
    async for _ in results:
        pass
