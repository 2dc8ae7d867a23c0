"""Memes with labels of any kind: what experts learn from, and what benchmarks offer for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class LabelledMeme:
    """One meme with its labels: one of them, or any number where several can hold.

    ``group`` names memes that hang together (one text, one pun and its look-alikes): they are
    never parted between what is learnt from and what is judged. ``text_caption`` says what the
    text means, ``image_caption`` what the image shows, as far as they would be at hand for a new
    meme. ``split`` is the release's own. ``source``, ``author``, ``date`` (year first) and
    ``family`` (memes on one template) are for disjoint splits: no feature may look at them.
    """

    id: str
    text: str
    labels: tuple[str, ...]
    group: str = ""
    text_caption: str = ""
    image_caption: str = ""
    image: Path | None = None
    split: str = ""
    source: str = ""
    author: str = ""
    date: str = ""
    family: str = ""


@dataclass(frozen=True, slots=True)
class LabelSource(Generic[R]):
    """A kind of label that a release has: what it says, and how it is read.

    ``several``: a meme may have any number of these labels. ``topic`` names what the label is
    about across benchmarks (``emotion``, ``intent``, …); analysis asks experts by topic.
    """

    what: str
    read: Callable[[R], Iterable[LabelledMeme]]
    several: bool = False
    topic: str = ""


def name_group(text: str) -> str:
    """A text as the name of its group: memes with the same words are never parted.

    >>> name_group(" So  Much, fun! "), name_group("…")
    ('somuchfun', '')
    """
    return "".join(name for name in text.casefold() if name.isalnum())
