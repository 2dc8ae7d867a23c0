"""How an action asks models: which server, how many calls at once, prices, and the cache."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated

from memantics.core.cache import Cache
from memantics.core.errors import InputError
from memantics.core.home import home
from memantics.core.parameters import Flag
from memantics.registry import ModelSettings

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
