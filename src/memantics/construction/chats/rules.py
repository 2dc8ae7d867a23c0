"""Records of chat construction, and the rules that a generated chat must keep.

Each broken rule names what was found and where, so that a model can repair the chat.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Protocol

from memantics.benchmarks.chats import ChatTopic, Turn, WrittenChat
from memantics.core.language import UNKNOWN, count_scripts, guess_language, has_dense_script
from memantics.core.memes import Meme
from memantics.core.text import cut_chinese
from memantics.models.drafts import DraftSource
from memantics.models.embedded.encoder import Vectors

TARGETS = ("self", "both", "other")
TYPES = ("positive", "neutral", "negative")
RULES = ("length", "speakers", "markup", "mention", "caption", "picture", "language", "repeats")
_LEAK = 0.75  # proportion of a caption's characters or words in one run that counts as a leak
_LONG_RUN = 6
_MARKUP = re.compile(
    r"!\[|\]\(|https?://|<\w+>|\.(?:png|jpe?g|gif|webp)\b|\[[^\]]{0,20}\]|【[^】]{0,20}】", re.I
)
_MENTION = re.compile(
    r"\b(?:memes?|stickers?|gifs?|emojis?)\b|\b(?:this|the) (?:picture|image)\b"
    r"|表情包|梗图|动图|这张图|这图",
    re.I,
)
# Minimum and maximum number of messages before the meme, and characters per message.
LEAST, MOST, LONGEST = 2, 5, 160


@dataclass(frozen=True, slots=True)
class ChatSubject:
    """Store a meme with what a chat may use and what it must not reveal.

    ``hidden`` are texts that the chat must not reveal: the printed text and its intended reading.
    ``meaning`` is what the meme expresses, ``picture`` what the image shows.
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
        """All descriptions, for similarity."""
        return "\n".join(part for part in (self.picture, self.meaning) if part)


@dataclass(frozen=True, slots=True)
class Quality:
    """Store the metrics of one chat; None if not measured."""

    perplexity: float | None = None
    flow: float | None = None
    fit: float | None = None


@dataclass(frozen=True, slots=True)
class ChatDraft:
    """Store a chat that breaks no rule, with its metrics."""

    subject: ChatSubject
    topic: ChatTopic
    number: int
    said: WrittenChat
    source: DraftSource
    quality: Quality = field(default_factory=Quality)


class TextEmbedder(Protocol):
    """Interface of a text embedder: unit vectors, one row per text."""

    version: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed texts."""
        ...


class ImageEmbedder(Protocol):
    """Interface of an image embedder: unit vectors, one row per meme."""

    version: str

    def encode(self, memes: Sequence[Meme]) -> Vectors:
        """Embed the images of memes."""
        ...


class Fluency(Protocol):
    """Interface of a language model that returns perplexities; None if it cannot."""

    note: str

    def measure(self, texts: Sequence[str]) -> list[float | None]:
        """Return the perplexity of each text."""
        ...


class Flow(Protocol):
    """Interface of a coherence measure for two adjacent messages; higher is better."""

    note: str

    def measure(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the coherence of each pair."""
        ...


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """Store a broken rule and where it occurs."""

    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


def find_broken(said: WrittenChat, subject: ChatSubject, most: int = MOST) -> list[BrokenRule]:
    """Return every rule that a chat breaks.

    >>> from pathlib import Path
    >>> from memantics.core.memes import Meme
    >>> meme = Meme("a", Path("a.png"))
    >>> cat = ChatSubject(meme, "en", "I give up", "a cat", ("no more mondays",))
    >>> chat = WrittenChat((Turn("A", "Up already?"), Turn("B", "Please, NO more Mondays!")), "B")
    >>> [broken.rule for broken in find_broken(chat, cat)]
    ['caption']
    """
    checks = (
        _check_length(said.turns, most),
        _check_speakers(said),
        _search(said.turns, _MARKUP, "markup", "write plain words, not {0!r}"),
        _search(said.turns, _MENTION, "mention", "nobody speaks of pictures: {0!r}"),
        _check_caption(said.turns, subject),
        _check_picture(said.turns, subject),
        _check_language(said, subject),
        _check_repeats(said.turns),
    )
    return [broken for broken in checks if broken is not None]


def _check_length(turns: Sequence[Turn], most: int) -> BrokenRule | None:
    if not LEAST <= len(turns) <= most:
        return BrokenRule(
            "length",
            f"{len(turns)} messages; write {LEAST} to {most} before the meme",
        )
    for number, turn in enumerate(turns, 1):
        if not any(char.isalnum() for char in turn.text):
            return BrokenRule("length", f"message {number} says nothing")
        if len(turn.text) > LONGEST:
            return BrokenRule("length", f"message {number} has more than {LONGEST} characters")
    return None


def _check_speakers(said: WrittenChat) -> BrokenRule | None:
    order = [turn.speaker for turn in said.turns]
    if len(set(order)) < 2:
        return BrokenRule("speakers", "only one of the two speaks")
    for one, other, third in zip(order, order[1:], [*order, said.sender][2:], strict=False):
        if one == other == third:
            return BrokenRule("speakers", f"{one} sends three messages in a row")
    return None


def _search(
    turns: Sequence[Turn], pattern: re.Pattern[str], rule: str, detail: str
) -> BrokenRule | None:
    for turn in turns:
        if match := pattern.search(turn.text):
            return BrokenRule(rule, detail.format(match.group()))
    return None


def _check_caption(turns: Sequence[Turn], subject: ChatSubject) -> BrokenRule | None:
    for secret in subject.hidden:
        for turn in turns:
            piece = find_leak(secret, turn.text)
            if piece:
                return BrokenRule("caption", f"{piece!r} gives the printed words away")
    return None


def find_leak(secret: str, text: str) -> str:
    """Return the part of a hidden text that a message contains; "" if it is shorter than the limit.

    >>> find_leak("one does not simply walk", "well, one does not simply go")
    'one does not simply'
    >>> find_leak("今晚又狮眠了", "我昨晚又没睡好")
    ''
    """
    joint = "" if has_dense_script(secret) else " "
    secret_pieces = _pieces(secret, joint)
    other = _pieces(text, joint)
    if not secret_pieces or not other:
        return ""
    match = difflib.SequenceMatcher(None, secret_pieces, other, autojunk=False).find_longest_match()
    # A text of two or three words leaks only if all of them appear, since one common word is not a
    # secret. For a long caption, one run is enough.
    needed = (
        len(secret_pieces) if len(secret_pieces) <= 3 else max(3, ceil(_LEAK * len(secret_pieces)))
    )
    needed = min(needed, _LONG_RUN)
    if match.size < needed or (joint and len(secret_pieces) == 1 and len(secret_pieces[0]) < 4):
        return ""
    return joint.join(secret_pieces[match.a : match.a + match.size])


def _pieces(text: str, joint: str) -> list[str]:
    words = re.findall(r"[^\W_]+(?:['’][^\W_]+)*", unicodedata.normalize("NFKC", text).casefold())
    return words if joint else list("".join(words))


def _check_picture(turns: Sequence[Turn], subject: ChatSubject) -> BrokenRule | None:
    # A chat may mention the meaning of the meme, but not what only the image shows.
    seen = find_seen(subject)
    for turn in turns:
        told = seen & _content(turn.text)
        if told:
            return BrokenRule("picture", f"{sorted(told)[0]!r} gives the picture away")
    return None


def find_seen(subject: ChatSubject) -> frozenset[str]:
    """Return the words that describe the image but do not occur in the meaning of the meme."""
    known = _content(subject.meaning)
    return frozenset(_content(subject.picture) - known)


def _content(text: str) -> set[str]:
    found = set()
    for word in cut_words(unicodedata.normalize("NFKC", text).casefold()):
        stripped = word.strip()
        shortest = 2 if has_dense_script(stripped) else 4
        if len(stripped) >= shortest and stripped.isalpha() and stripped not in _plain_words():
            found.add(stripped if has_dense_script(stripped) else stripped.removesuffix("s"))
    return found


@cache
def _plain_words() -> frozenset[str]:
    lines = (Path(__file__).parent / "plain_words.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def cut_words(text: str) -> Iterable[str]:
    """Return the words of a text; jieba segments scripts without spaces.

    >>> list(cut_words("The grey cat"))
    ['The', 'grey', 'cat']
    """
    if not has_dense_script(text):
        return re.findall(r"[^\W\d_]+", text)
    return cut_chinese(text)


def _check_language(said: WrittenChat, subject: ChatSubject) -> BrokenRule | None:
    found = guess_language(said.text)
    if found.language in (UNKNOWN, subject.language) or found.confidence < 0.8:
        return None
    if sum(count_scripts(said.text).values()) < 12:
        return None
    return BrokenRule("language", f"written in {found.language}, not {subject.language}")


def _check_repeats(turns: Sequence[Turn]) -> BrokenRule | None:
    folded = ["".join(_pieces(turn.text, " ")) for turn in turns]
    if len(set(folded)) < len(folded):
        return BrokenRule("repeats", "a message comes twice")
    for one, other in pairwise(folded):
        if len(one) > 12 and difflib.SequenceMatcher(None, one, other).ratio() > 0.9:
            return BrokenRule("repeats", "a message repeats the one before it")
    return None
