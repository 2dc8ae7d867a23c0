"""One structured model call of a longer chain: what is asked, and how its reply is read.

Construction, reappraisal and caption mining are chains of such steps. They never see an engine:
they hand steps to an :class:`Asker` and get every one back with a status.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from memantics.core.records import Message, Request, Status
from memantics.core.text import clean_line

Value = TypeVar("Value")
_LONGEST_REPLY = 8000


@dataclass(frozen=True, slots=True)
class Step(Generic[Value]):
    """One call: ``id`` names it in journals (``MEME/knowledge/Scene``).

    ``read`` turns the text of a reply into a value or raises ``Unparsed`` with a message that the
    model can act on: it is asked again with its reply and that message (:func:`ask_again`).
    """

    id: str
    request: Request
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


def ask_again(request: Request, reply: str, complaint: str) -> Request:
    """The same request with the last reply and what is wrong with it.

    What was sent before stays as it was, image first: servers keep it in their prefix cache.
    """
    said = clean_line(complaint, 600).rstrip(".")
    note = (
        f"Your last reply could not be used: {said}. "
        "Reply again, with the whole JSON object and nothing else."
    )
    if request.schema is None:
        note = f"Your last reply could not be used: {said}. Reply again, as you were asked to."
    if reply.strip():
        former = Message("assistant", (reply[:_LONGEST_REPLY],))
        return replace(request, messages=(*request.messages, former, Message("user", (note,))))
    *earlier, last = request.messages
    return replace(request, messages=(*earlier, replace(last, parts=(*last.parts, note))))


class Asker(Protocol):
    """Takes steps with one model: bounded in flight, journalled, never the same call twice."""

    @property
    def model(self) -> str:
        """The name of the model behind it."""
        ...

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Bring one step to its end; only what no later step can escape is raised."""
        ...
