"""Where worked examples come from: the authors' own where this copy has them, else ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memantics.benchmarks.punmemecn.brief import FOLDER, STARTER, Brief
from memantics.benchmarks.punmemecn.draws import CHAT_EXAMPLE, is_official
from memantics.benchmarks.punmemecn.load import Release, open_release
from memantics.benchmarks.punmemecn.records import Chat, Meme
from memantics.core.data import Source
from memantics.core.errors import DataError

Who = Literal["authors", "ours"]

DETECTION: dict[Who, tuple[str, ...]] = {
    "authors": ("CN00601", "CN00601.similar_image", "CN00601.similar_text"),
    "ours": ("CN90001", "CN90001.similar_image", "CN90001.similar_text"),
}
SENTIMENT: dict[Who, tuple[str, ...]] = {
    "authors": ("CN00601", "CN00603", "CN00604"),
    "ours": ("CN90004", "CN90007", "CN90009"),
}
# Our example is the first chat that this meme answers.
OUR_CHAT_MEME = "CN90004"


@dataclass(frozen=True, slots=True)
class PickedMemes:
    """Memes that serve as examples."""

    who: Who
    memes: tuple[Meme, ...]

    @property
    def name(self) -> str:
        """How a run remembers them."""
        return f"examples by {self.who}: {', '.join(meme.id for meme in self.memes)}"


@dataclass(frozen=True, slots=True)
class PickedChat:
    """A chat that serves as an example, and its four memes: the right one first."""

    who: Who
    chat: Chat
    memes: tuple[Meme, ...]

    @property
    def name(self) -> str:
        """How a run remembers it."""
        return f"example by {self.who}: {self.chat.id}, {self.chat.correct}"


def open_sample() -> Release:
    """The sample that ships with this benchmark."""
    return open_release(Source("starter", FOLDER / "sample", STARTER / "images"))


def pick_memes(brief: Brief, ids: dict[Who, tuple[str, ...]]) -> PickedMemes:
    """The memes with these ids: the authors' if all of them and their images are here."""
    for who in _wanted(brief):
        release = brief.release if who == "authors" else open_sample()
        known = release.by_id()
        memes = tuple(known[name] for name in ids[who] if name in known)
        if len(memes) == len(ids[who]) and all(meme.image for meme in memes):
            return PickedMemes(who, memes)
    raise _absent(brief, ", ".join(ids["authors"]))


def pick_chat(brief: Brief, level: str) -> PickedChat:
    """The example chat of a level."""
    for who in _wanted(brief):
        release = brief.release if who == "authors" else open_sample()
        chat = next((c for c in release.chats(level) if is_example(c, who)), None)
        if chat is None:
            continue
        known = release.by_id()
        memes = tuple(known[name] for name in (chat.correct, *(m for _, m in chat.distractors)))
        if all(meme.image for meme in memes):
            return PickedChat(who, chat, memes)
    raise _absent(brief, CHAT_EXAMPLE)


def is_example(chat: Chat, who: Who) -> bool:
    """Whether a chat may serve as that example."""
    if who == "authors":
        return chat.id == CHAT_EXAMPLE and is_official(chat.correct)
    return chat.correct == OUR_CHAT_MEME


def _wanted(brief: Brief) -> tuple[Who, ...]:
    chosen: dict[str, tuple[Who, ...]] = {"authors": ("authors",), "ours": ("ours",)}
    return chosen.get(brief.options["shots"], ("authors", "ours"))


def _absent(brief: Brief, ids: str) -> DataError:
    return DataError(
        brief.name,
        f"the authors' examples ({ids}) are not in this copy, or lack their images",
        hint="use --set shots=ours",
    )
