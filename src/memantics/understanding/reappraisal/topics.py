"""Topics that are never rewritten, such as deaths, violence, abuse and protected groups.

The lists are in ``topics.toml``. They are searched before a model is asked; a model may decline
more memes (``choice.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from memantics.core.data import toml_beside
from memantics.understanding.phonetics.caption import simplify
from memantics.understanding.reappraisal.kindness import read_caption
from memantics.understanding.reappraisal.messages import say
from memantics.understanding.vision.regions import has_chinese

Topic = Literal["death", "accident", "violence", "abuse", "illness", "group"]
TOPICS: tuple[Topic, ...] = get_args(Topic)


@dataclass(frozen=True, slots=True)
class GraveTopic:
    """A topic that is never rewritten, and the words that name it."""

    topic: Topic
    words: str


def find_topic(captions: Sequence[str]) -> GraveTopic | None:
    """Find a topic that is never rewritten, in captions or in their homophone readings.

    >>> find_topic(["4 car pile-up", "93 people died"])
    GraveTopic(topic='death', words='died')
    >>> find_topic(["this exam is killing me"]), find_topic(["累死了"])
    (None, None)
    """
    said = " ".join(captions)
    for topic, match in _search(said):
        return GraveTopic(topic, match.group())
    heard = " ".join(map(read_caption, captions))
    for topic, match in _search(heard):
        # Only words that the reading changes count: it may spell a figurative phrase differently.
        start, end = match.span()
        if len(heard) != len(said) or heard[start:end] != said[start:end]:
            return GraveTopic(topic, match.group())
    return None


def decline_topic(captions: Sequence[str]) -> str:
    """Return the reason why captions are not rewritten because of their topic; empty if none."""
    found = find_topic(captions)
    return "" if found is None else say(f"grave_{found.topic}", words=repr(found.words))


def _search(text: str) -> Iterator[tuple[Topic, re.Match[str]]]:
    # OCR reads some simplified characters as traditional ones.
    plain = "".join(map(simplify, text.replace("’", "'")))
    for language in ("chinese", "english") if has_chinese(text) else ("english",):
        lists = _read_lists()[language]
        literal = lists["figurative"].sub(lambda match: " " * len(match.group()), plain)
        for topic in TOPICS:
            for match in lists[topic].finditer(literal):
                yield topic, match


@cache
def _read_lists() -> Mapping[str, Mapping[str, re.Pattern[str]]]:
    """Compile the lists; English expressions match whole words."""
    stored: dict[str, dict[str, list[str]]] = toml_beside(__file__, "topics.toml")
    return {
        language: {
            name: re.compile(
                "|".join(listed)
                if language == "chinese"
                else rf"(?<![\w'])(?:{'|'.join(listed)})(?![\w'])",
                re.IGNORECASE,
            )
            for name, listed in lists.items()
        }
        for language, lists in stored.items()
    }
