"""The seam between the engine and whatever answers: a model is a name and one coroutine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from memantics.core.records import Reply, Request


class Answerer(Protocol):
    """Whoever gave the answers of a run.

    ``name`` is its ``KIND/NAME``. ``note`` is shown wherever its score is ("baseline", …).
    ``identity`` holds all that its answers depend on besides the request: it enters the cache
    key and ``run.json``, so it must never hold a secret.
    """

    @property
    def name(self) -> str:
        """``KIND/NAME``."""
        ...

    @property
    def note(self) -> str:
        """What is said beside its scores."""
        ...

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """What answers depend on; never a secret."""
        ...


@runtime_checkable
class Model(Answerer, Protocol):
    """Anything that answers requests.

    ``cacheable`` is False for models that answer faster than a cache would.
    """

    name: str
    note: str
    cacheable: bool

    async def answer(self, request: Request) -> Reply:
        """Answer once; raise a ``ModelError`` when no answer came. Never retry here."""
        ...

    async def close(self) -> None:
        """Give back connections, threads and files."""
        ...
