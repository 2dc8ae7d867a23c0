"""Protocols for models, image editors and multi-step chains, so that callers never see an engine.

``Model`` and ``Editor`` are each a name and one coroutine. A ``Step`` is one structured call of a
chain: the request, and how its reply is parsed. Construction, reappraisal and caption mining hand
steps to an ``Asker`` and get each one back with a status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, runtime_checkable

from pydantic import JsonValue

from memantics.core.records import Message, Reply, Request, Status
from memantics.core.text import clean_line

Value = TypeVar("Value")
_LONGEST_REPLY = 8000


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


@dataclass(frozen=True, slots=True)
class EditRequest:
    """A picture to repaint.

    ``image`` and ``mask`` are PNG files of one size. White in the mask may be repainted; whatever
    an editor does elsewhere is thrown away by the caller. An empty mask is none: the whole picture
    is the editor's. ``target`` is the wanted emotion.
    ``captions`` are boxes (left, top, right, bottom) on which text is set afterwards, ``panels``
    those of the panels whose captions change: without any, all of the picture is meant; ``faces``
    those of the faces that are to be repainted, where somebody said where they are.
    """

    image: bytes
    mask: bytes
    instruction: str
    target: str
    seed: int = 0
    captions: tuple[tuple[int, int, int, int], ...] = ()
    panels: tuple[tuple[int, int, int, int], ...] = ()
    faces: tuple[tuple[int, int, int, int], ...] = ()


@runtime_checkable
class Editor(Protocol):
    """Anything that repaints pictures.

    ``name`` is what users call it, ``note`` is shown beside its results. ``identity`` holds all
    that its pictures depend on besides the request, and never a secret.
    """

    name: str
    note: str

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """What pictures depend on; never a secret."""
        ...

    async def edit(self, request: EditRequest) -> bytes:
        """The repainted picture as an image file; raise a ``ModelError`` when none came."""
        ...

    async def close(self) -> None:
        """Give back connections, threads and memory."""
        ...


@dataclass(frozen=True, slots=True)
class Step(Generic[Value]):
    """One call: ``id`` names it in call logs (``MEME/knowledge/Scene``).

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
    """Takes steps with one model: bounded in flight, logged, never the same call twice."""

    @property
    def model(self) -> str:
        """The name of the model behind it."""
        ...

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Bring one step to its end; only what no later step can escape is raised."""
        ...
