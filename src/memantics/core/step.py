"""One structured model call of a longer chain: what is asked, and how its reply is read.

Construction, reappraisal and caption mining are chains of such steps. They never see an engine:
they hand steps to an :class:`Asker` and get every one back with a status.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from memantics.core.records import Request, Status

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Step(Generic[Value]):
    """One call: ``id`` names it in journals (``MEME/knowledge/Scene``).

    ``ask`` makes the request; its argument is the complaint about the former attempt (``None``
    at the first). ``read`` turns the text of a reply into a value or raises ``Unparsed`` with a
    message that the model can act on.
    """

    id: str
    ask: Callable[[str | None], Request]
    read: Callable[[str], Value]
    attempts: int = 3


@dataclass(frozen=True, slots=True)
class Taken(Generic[Value]):
    """How a step ended. ``prompt`` is the hash of what was sent last, ``when`` an ISO time."""

    id: str
    status: Status
    value: Value | None
    reason: str = ""
    attempts: int = 1
    prompt: str = ""
    model: str = ""
    when: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0


class Asker(Protocol):
    """Takes steps with one model: bounded in flight, journalled, never the same call twice."""

    @property
    def model(self) -> str:
        """The name of the model behind it."""
        ...

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Bring one step to its end; only what no later step can escape is raised."""
        ...
