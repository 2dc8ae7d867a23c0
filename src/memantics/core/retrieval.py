"""Passages of texts on disk, and those that fit a question best (BM25), with their sources."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from memantics.core.errors import DataError

SUFFIXES = (".txt", ".md")
_WORD = re.compile(r"[^\W_]+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# The usual constants of BM25.
_K1, _B = 1.5, 0.75
_LONGEST = 1200


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph; ``source`` is its file and number, from 1."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Library:
    """Passages with the counts that rank them."""

    passages: tuple[Passage, ...]
    counts: tuple[Counter[str], ...]
    rarity: dict[str, float]
    average: float

    def find(self, question: str, most: int = 3) -> tuple[Passage, ...]:
        """The passages that share the rarest words with a question; none where none is shared.

        >>> found = make_library([Passage("a#1", "cats purr"), Passage("a#2", "dogs bark")])
        >>> [own.source for own in found.find("a dog or two dogs")]
        ['a#2']
        """
        words = set(split_words(question))
        ranked = sorted(
            ((self._rank(words, own), -place) for place, own in enumerate(self.counts)),
            reverse=True,
        )
        return tuple(self.passages[-place] for value, place in ranked[:most] if value > 0)

    def _rank(self, words: set[str], counts: Counter[str]) -> float:
        length = 1 - _B + _B * counts.total() / self.average
        return sum(
            self.rarity[word] * counts[word] * (_K1 + 1) / (counts[word] + _K1 * length)
            for word in words
            if counts[word]
        )


def split_words(text: str) -> Iterator[str]:
    """Words in small letters; pairs of characters in scripts without spaces.

    >>> list(split_words("Cats, 躺平了"))
    ['cats', '躺平', '平了']
    """
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _DENSE.search(word) and len(word) > 1:
            yield from (word[place : place + 2] for place in range(len(word) - 1))
        else:
            yield word


def make_library(passages: Sequence[Passage]) -> Library:
    """Count the words of passages once."""
    counts = tuple(Counter(split_words(own.text)) for own in passages)
    held = Counter(word for own in counts for word in own)
    rarity = {word: math.log(1 + (len(passages) - n + 0.5) / (n + 0.5)) for word, n in held.items()}
    average = sum(own.total() for own in counts) / len(counts) if counts else 1.0
    return Library(tuple(passages), counts, rarity, average or 1.0)


@lru_cache(maxsize=4)
def read_library(place: Path) -> Library:
    """The paragraphs of a text file, or of all text files below a folder."""
    files = [place] if place.is_file() else sorted(place.rglob("*")) if place.is_dir() else []
    passages: list[Passage] = []
    for path in files:
        if path.suffix.lower() in SUFFIXES and path.is_file():
            name = path.name if path == place else path.relative_to(place).as_posix()
            passages += _read(path, name)
    if not passages:
        raise DataError(place, "holds no text", hint=f"give a folder of {' and '.join(SUFFIXES)}")
    return make_library(passages)


def _read(path: Path, name: str) -> Iterator[Passage]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, f"cannot be read as UTF-8: {error}") from error
    parts = (" ".join(own.split()) for own in re.split(r"\n\s*\n", text))
    for number, own in enumerate((own for own in parts if own), 1):
        yield Passage(f"{name}#{number}", own[:_LONGEST])
