"""The seam between reappraisal and whatever repaints pictures: a name and one coroutine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pydantic import JsonValue


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
