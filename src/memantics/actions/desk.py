"""How actions open a desk: a model, its journal in a folder, the cache, and progress."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack, cast

from memantics.actions.progress import add_progress
from memantics.core.cache import Cache
from memantics.core.errors import InputError
from memantics.core.images import probe, read_bytes
from memantics.core.parameters import Flag, MadeBy
from memantics.core.records import Image, Reply
from memantics.core.registry import home
from memantics.core.step import Step, Taken, Value
from memantics.models.fake import draft_reply
from memantics.registry import ModelSettings, open_model
from memantics.run.desk import Desk
from memantics.run.engine import AskSettings, Progress, read_reply
from memantics.run.tokens import count_image, count_request, count_text

# How an action asks models: which server, how many calls at once, prices, and the cache.

Params = Annotated[
    Mapping[str, str],
    Flag(
        "A field of the request, such as max_tokens=512 or reasoning_effort=low.",
        "--param",
        metavar="NAME=VALUE",
    ),
]


@dataclass(frozen=True, slots=True)
class Asking:
    """Settings of every action that asks a model; ``prices`` are those of a million tokens."""

    settings: ModelSettings = field(default_factory=lambda: ModelSettings(timeout=300.0))
    prices: tuple[float, float] | None = None
    use_cache: bool = True

    @property
    def concurrency(self) -> int:
        """Calls in flight at most."""
        return self.settings.concurrency


@contextmanager
def open_cache(wanted: bool) -> Iterator[Cache | None]:
    """The cache of answers, closed at the end; nothing where it is not wanted."""
    cache = Cache(home() / "cache.sqlite") if wanted else None
    try:
        yield cache
    finally:
        if cache is not None:
            cache.close()


def read_price(text: str | None) -> tuple[float, float] | None:
    """``IN,OUT`` of ``--price``: what a million tokens cost."""
    if text is None:
        return None
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--price {text!r} is not IN,OUT", hint="such as --price 0.15,0.60"
        ) from None
    if not (0 <= first < float("inf") and 0 <= second < float("inf")):
        raise InputError(f"--price {text!r} must not be negative", hint="such as --price 0.15,0.60")
    return first, second


def make_asking(
    base_url: Annotated[
        str | None,
        Flag("Address of an OpenAI-compatible server. The key comes from OPENAI_API_KEY."),
    ] = None,
    params: Params | None = None,
    concurrency: Annotated[int, Flag("Calls in flight at most.", min=1, max=4096)] = 32,
    timeout: Annotated[float, Flag("Seconds for one call.", min=0.1)] = 300.0,
    prices: Annotated[
        tuple[float, float] | None,
        Flag(
            "Price of a million tokens in and out, for the cost.",
            "--price",
            metavar="IN,OUT",
            kind=str,
            read=read_price,
        ),
    ] = None,
    use_cache: Annotated[
        bool,
        Flag(
            "Ask again even what is in the cache.",
            "--no-cache",
            kind=bool,
            read=operator.not_,
            default=False,
        ),
    ] = True,
) -> Asking:
    """How models are asked, from what a user says one by one."""
    settings = ModelSettings(base_url, concurrency, timeout, dict(params or {}))
    return Asking(settings, prices, use_cache)


Watch = Callable[[Progress], None]


class AskingOptions(TypedDict, total=False):
    """How a model is asked, one by one or all at once as ``asking``.

    Without ``use_cache`` it is asked again even what is known.
    """

    base_url: str | None
    params: Mapping[str, str]
    concurrency: int
    timeout: float
    use_cache: bool
    asking: Annotated[Asking, MadeBy(make_asking)]


def find_asking(**options: Unpack[AskingOptions]) -> Asking:
    """The settings of asking that keyword arguments name.

    >>> find_asking(base_url="http://localhost:8000/v1", concurrency=8).concurrency
    8
    """
    given = options.pop("asking", None)
    return given or make_asking(**cast("Any", options))


def asking_of(options: AskingOptions) -> Asking:
    """The settings of asking among the options of an action."""
    named = {
        name: value for name, value in options.items() if name in AskingOptions.__annotations__
    }
    return find_asking(**cast("AskingOptions", named))


def require_model(name: str | None) -> str:
    """The name of the model, which must be given."""
    if name is None:
        raise InputError(
            "no model was named: what is built is asked from one",
            hint="give --model, such as openai/NAME with --base-url",
        )
    return name


@asynccontextmanager
async def open_desk(
    name: str | None, asking: Asking, folder: Path, watch: Watch | None = None
) -> AsyncIterator[Desk]:
    """A desk for one model; say ``desk.expect(n)`` when the number of steps is known."""
    model = open_model(require_model(name), asking.settings)
    settings = AskSettings(concurrency=asking.concurrency)
    try:
        with (
            open_cache(asking.use_cache and model.cacheable) as cache,
            Desk(model, folder, cache, settings, watch or (lambda _: None)) as desk,
        ):
            yield desk
    finally:
        await model.close()


def share_watch(watch: Watch | None, count: int) -> list[Watch | None]:
    """Watchers for several desks that work at once; each shows the sum of what all have done."""
    if watch is None:
        return [None] * count
    seen = [Progress()] * count

    def make(place: int) -> Watch:
        def show(progress: Progress) -> None:
            seen[place] = progress
            watch(add_progress(seen))

        return show

    return [make(place) for place in range(count)]


# What a build will send, before it asks: tried on a few memes with invented answers.
#
# Nothing is sent. Later steps hold what earlier ones answered, so the figure is a guess; text and
# images are counted as :mod:`memantics.run.estimate` counts them, repairs are not.

SAMPLE = 3  # memes that are tried


class Trial:
    """An asker that counts tokens and answers like ``fake/drafter``, each step once."""

    model = "fake/drafter"

    def __init__(self) -> None:
        self.tokens_in = self.tokens_out = 0

    def expect(self, steps: int) -> None:
        """Nobody waits for these."""

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Count a step, and answer it."""
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


async def foresee(desk: Desk, memes: int, work: Callable[[Trial], Awaitable[object]]) -> None:
    """Tell whoever watches what ``memes`` memes will cost; ``work`` does the first few of them.

    A model that costs nothing (no language model) is not tried.
    """
    if not memes or not desk.costs:
        return
    trial = Trial()
    await work(trial)
    share = memes / min(memes, SAMPLE)
    desk.foresee(memes, round(share * trial.tokens_in), round(share * trial.tokens_out))


async def drain(results: AsyncIterator[object]) -> None:
    """Wait for all of them."""
    async for _ in results:
        pass
