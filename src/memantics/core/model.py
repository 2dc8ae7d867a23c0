"""Interfaces of models, image editors and multi-step chains of model calls.

``Model`` and ``Editor`` each have a name and one coroutine. A ``Step`` is one structured call of a
chain: the request and the parser of its reply. Dataset construction, reappraisal and caption mining
pass steps to an ``Asker``, which returns each step with a status.
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
    """The source of the answers in a run (a model, a baseline or a file).

    ``name`` is ``KIND/NAME``. ``note`` is shown beside the scores ("baseline", …). ``identity``
    contains everything besides the request that determines the answers. It is part of the cache key
    and of ``run.json``, so it must never contain a secret.
    """

    @property
    def name(self) -> str:
        """The name of the model, as ``KIND/NAME``."""
        ...

    @property
    def note(self) -> str:
        """A remark that is shown beside the scores."""
        ...

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The settings that determine the answers; never a secret."""
        ...


@runtime_checkable
class Model(Answerer, Protocol):
    """A model that answers requests.

    ``cacheable`` is False for models that answer faster than the cache.
    """

    name: str
    note: str
    cacheable: bool

    async def answer(self, request: Request) -> Reply:
        """Answer a request once; raise a ``ModelError`` on failure. Do not retry here."""
        ...

    async def close(self) -> None:
        """Release connections, threads and files."""
        ...


@dataclass(frozen=True, slots=True)
class EditRequest:
    """A request to edit an image.

    ``image`` and ``mask`` are PNG files of the same size. White areas of the mask may change; the
    caller discards changes elsewhere. With an empty mask the whole image may change. ``target`` is
    the target emotion. Boxes are (left, top, right, bottom): ``captions`` are areas that get new
    text afterwards, ``panels`` the panels whose captions change (none: the whole image), and
    ``faces`` the faces to change, if known.
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
    """An image editor.

    ``name`` is the user-facing name of the editor; ``note`` is shown beside its results.
    ``identity`` contains everything besides the request that determines the edited images. It never
    contains a secret.
    """

    name: str
    note: str

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The settings that determine the edited images; never a secret."""
        ...

    async def edit(self, request: EditRequest) -> bytes:
        """Return the edited image as a file; raise a ``ModelError`` on failure."""
        ...

    async def close(self) -> None:
        """Release connections, threads and memory."""
        ...


@dataclass(frozen=True, slots=True)
class Step(Generic[Value]):
    """One model call of a chain: ``id`` names the call in call logs (``MEME/knowledge/Scene``).

    ``read`` parses the reply or raises ``Unparsed`` with a message for the model. The model is then
    asked again with its reply and that message (:func:`ask_again`).
    """

    id: str
    request: Request
    read: Callable[[str], Value]
    attempts: int = 3


@dataclass(frozen=True, slots=True)
class Taken(Generic[Value]):
    """The result of a chain step; ``prompt`` is the hash of the last request, ``when`` a time."""

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
    """Extend a request with the last reply and the reason why it is invalid.

    Earlier messages stay unchanged, with the image first, so that servers can reuse their prefix
    cache.
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
    """Runs chain steps with one model: limits concurrency, logs calls, and repeats no call."""

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Run one chain step; raise only errors that would affect all later steps too."""
        ...
