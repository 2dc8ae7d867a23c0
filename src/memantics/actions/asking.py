"""How an action asks models: which server, how many calls at once, prices, and the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from memantics.core.cache import Cache
from memantics.core.errors import InputError
from memantics.core.home import home
from memantics.registry import ModelSettings

__all__ = ["Asking", "ModelSettings", "open_cache", "read_pairs", "read_price"]


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


def read_pairs(flag: str, pairs: Sequence[str] | None) -> dict[str, str]:
    """Read ``NAME=VALUE`` options.

    >>> read_pairs("--set", ["order=answer_first"])
    {'order': 'answer_first'}
    """
    read: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(
                f"{flag} {pair!r} is not NAME=VALUE", hint=f"such as {flag} name=value"
            )
        read[name] = value
    return read


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
