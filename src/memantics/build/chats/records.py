"""The records of chat building."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memantics.build.drafts import DraftSource
from memantics.core.memes import Meme
from memantics.tasks.chats import Topic, WrittenChat

TARGETS = ("self", "both", "other")
TYPES = ("positive", "neutral", "negative")
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ChatSubject:
    """A meme with what a chat about it must know and must not give away.

    ``hidden`` are the texts that may not be told (what is printed, what it is meant to sound
    like), ``meaning`` what the meme expresses, ``picture`` what is seen in it.
    """

    meme: Meme
    language: str
    meaning: str
    picture: str
    hidden: tuple[str, ...]
    target: str = ""
    type: str = ""

    @property
    def about(self) -> str:
        """All that describes it, for comparing."""
        return "\n".join(part for part in (self.picture, self.meaning) if part)


@dataclass(frozen=True, slots=True)
class Quality:
    """Figures of one chat: None where nothing could measure them."""

    perplexity: float | None = None
    flow: float | None = None
    fit: float | None = None


@dataclass(frozen=True, slots=True)
class ChatDraft:
    """A chat that keeps every rule, with its figures."""

    subject: ChatSubject
    topic: Topic
    number: int
    said: WrittenChat
    source: DraftSource
    quality: Quality = field(default_factory=Quality)


class TextEmbedder(Protocol):
    """Any text embedder: unit vectors, one row a text."""

    version: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed texts."""
        ...


class ImageEmbedder(Protocol):
    """Any image embedder: unit vectors, one row a meme."""

    version: str

    def encode(self, memes: Sequence[Meme]) -> Vectors:
        """Embed the images of memes."""
        ...


class Fluency(Protocol):
    """Any language model that gives perplexities; None where it cannot."""

    note: str

    def measure(self, texts: Sequence[str]) -> list[float | None]:
        """The perplexity of each text."""
        ...


class Flow(Protocol):
    """Anything that says how well a message follows another, higher being better."""

    note: str

    def measure(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The figure of each pair."""
        ...
