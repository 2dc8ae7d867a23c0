"""The records of PunMemeCN: memes in groups of three, and chats that end in a meme."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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


# Chat turns as released, and the slips in them mended.
#
# A turn is ``甲：…`` or ``乙：…``; the last one is a bare speaker tag, where the meme goes.

GLUED_TAG = "last speaker tags glued to the turn before"
STRAY_STOP = "turns that began with a stray full stop"
LOST_BREAK = "turns glued together by a lost line break"
NO_TAG = "lines without a speaker joined to the turn before"

_TAG = re.compile(r"[甲乙]：")
_LAST_TAG = re.compile(r"(?P<turn>[甲乙]：.*\S)(?P<tag>[甲乙]：)", re.DOTALL)
# A line break that was lost on the way left its letter, or a backspace, before the next tag.
_BREAK = re.compile(r"(?:\x08|(?<=[。！？…])\\?n)(?=[甲乙]：)")


@dataclass(frozen=True, slots=True)
class Mended:
    """Whole turns, who speaks next, and what was mended on the way."""

    turns: tuple[str, ...]
    speaker: str
    repairs: Counter[str]


def mend_turns(lines: Sequence[str]) -> Mended:
    """Mend a history whose last line is the speaker tag before the meme.

    Raises ``ValueError`` with the reason where the lines make no chat even so.

    >>> mend_turns(["甲：早", "乙：早。甲："]).turns, mend_turns(["甲：早", "乙：早。甲："]).speaker
    (('甲：早', '乙：早。'), '甲')
    """
    repairs: Counter[str] = Counter()
    turns: list[str] = []
    for line in _split(lines, repairs):
        if line.startswith("。") and _TAG.match(line, 1):
            turns.append(line[1:])
            repairs[STRAY_STOP] += 1
        elif _TAG.match(line):
            turns.append(line)
        elif turns:
            turns[-1] += f"\n{line}"
            repairs[NO_TAG] += 1
        else:
            raise ValueError("the first line does not begin with 甲： or 乙：")
    if len(turns) < 2 or turns[-1] not in ("甲：", "乙："):
        raise ValueError("the last line is not the bare speaker tag 甲： or 乙： after a turn")
    return Mended(tuple(turns[:-1]), turns[-1][0], repairs)


def _split(lines: Sequence[str], repairs: Counter[str]) -> Iterator[str]:
    """Undo glue: a lost line break between two turns, a last tag at the end of a turn."""
    for number, line in enumerate(lines, 1):
        *before, last = _BREAK.split(line)
        yield from before
        if before:
            repairs[LOST_BREAK] += len(before)
        glued = _LAST_TAG.fullmatch(last) if number == len(lines) else None
        if glued:
            repairs[GLUED_TAG] += 1
            yield from (glued["turn"], glued["tag"])
        else:
            yield last


def split_conversation(text: str, file: str) -> list[str] | None:
    r"""The lines of a conversation of the metadata, its meme cut off; None if it has no meme.

    >>> split_conversation("甲：早\n乙：![表情包](CN90001.png)", "CN90001.png")
    ['甲：早', '乙：']
    """
    body, mark, rest = text.rpartition(f"![表情包]({file})")
    return body.split("\n") if mark and not rest.strip() else None
