"""The records of PunMemeCN: memes in groups of three, and chats that end in a meme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Role = Literal["pun", "similar_image", "similar_text"]
Topic = Literal["sports", "entertainment", "technology", "games", "work", "daily"]
Level = Literal["easy", "hard"]
ROLES: tuple[Role, ...] = get_args(Role)
TOPICS: tuple[Topic, ...] = get_args(Topic)
LEVELS: tuple[Level, ...] = get_args(Level)
TARGETS = ("self", "both", "other")
TYPES = ("positive", "neutral", "negative")
LABELS = tuple(f"{target}-{type_}" for target in TARGETS for type_ in TYPES)


@dataclass(frozen=True, slots=True)
class PunMeme:
    """One meme; ``id`` is its file name without ``.png``, ``group`` the id of its pun.

    ``caption`` is what is printed, ``reading`` what it is meant to be heard as (None for memes
    that are no puns; equal to the caption where one word has two senses). ``target`` and
    ``type`` are the final sentiment, ``votes`` the three annotators' full labels.
    """

    id: str
    group: str
    role: Role
    caption: str
    reading: str | None
    target: str
    type: str
    votes: tuple[str, ...]
    explanation: str
    image: Path | None

    @property
    def file(self) -> str:
        """The official file name."""
        return f"{self.id}.png"

    @property
    def is_pun(self) -> bool:
        """Whether the meme is the pun of its group."""
        return self.role == "pun"

    @property
    def sentiment(self) -> str:
        """The full label.

        >>> PunMeme("CN1", "CN1", "pun", "茶", "查", "self", "neutral", (), "", None).sentiment
        'self-neutral'
        """
        return f"{self.target}-{self.type}"


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A chat whose last message is to be a meme: the right one and three distractors.

    ``turns`` are whole, mended turns with their speaker tags; ``speaker`` is who answers with the
    meme. Memes are named by id. ``candidates`` holds, per kind of distractor, the longer list it
    was drawn from (hard level only); those may lie outside a partial copy.
    """

    id: str
    topic: Topic
    turns: tuple[str, ...]
    speaker: str
    correct: str
    distractors: tuple[tuple[str, str], ...]
    candidates: Mapping[str, tuple[str, ...]]
    level: Level


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat as it stands with its pun in the metadata.

    ``lines`` are as released, the last one without its meme; ``turns`` are mended.
    """

    meme: str
    topic: Topic
    turns: tuple[str, ...]
    speaker: str
    lines: tuple[str, ...]
