"""Chats that end in a meme, and the format of PunMemeCN's two chat files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from pydantic import JsonValue

CHATS = "chats.jsonl"
LEVELS = {"easy": "_Chat(easy).json", "hard": "_Chat(hard).json"}
_TAGS = {"A": "甲：", "B": "乙："}
Speaker = Literal["A", "B"]
ChatTopic = Literal["sports", "entertainment", "technology", "games", "work", "daily"]
DistractorKind = Literal["text_sim", "image_sim", "sentiment_sim"]
TOPICS: tuple[ChatTopic, ...] = get_args(ChatTopic)
KINDS: tuple[DistractorKind, ...] = get_args(DistractorKind)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a chat."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class WrittenChat:
    """A written chat: its messages, and the speaker who sends the meme after them."""

    turns: tuple[Turn, ...]
    sender: Speaker

    @property
    def text(self) -> str:
        """All messages, one per line, without speaker names."""
        return "\n".join(turn.text for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Options:
    """Distractor memes of a chat by id: random ones, and similar ones with candidate lists."""

    easy: tuple[str, ...]
    hard: Mapping[DistractorKind, str]
    candidates: Mapping[DistractorKind, tuple[str, ...]]
    rejected: Mapping[DistractorKind, tuple[str, ...]] = field(default_factory=dict)


def make_entry(
    meme: str, topic: str, said: WrittenChat, wrong: Options, names: Mapping[str, str], level: str
) -> dict[str, JsonValue]:
    """Return one entry of a chat file; ``names`` maps meme ids to file names."""
    history: list[JsonValue] = [f"{_TAGS[turn.speaker]}{turn.text}" for turn in said.turns]
    answers: dict[str, JsonValue] = {}
    if level == "hard":
        for kind in KINDS:
            # The official files store these lists as Python source, so the same format is written
            # here.
            listed = [names[other] for other in wrong.candidates[kind] if other in names]
            answers[f"wrong_candidates({kind})"] = repr(listed)
    answers["correct"] = names[meme]
    if level == "hard":
        answers |= {f"wrong({kind})": names[wrong.hard[kind]] for kind in KINDS}
    else:
        numbered = enumerate(wrong.easy, 1)
        answers |= {f"wrong(random{number})": names[other] for number, other in numbered}
    return {
        "topic": topic,
        "chat_history": [*history, _TAGS[said.sender]],
        "meme_response": answers,
    }
