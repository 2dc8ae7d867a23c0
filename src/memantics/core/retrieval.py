"""Passages of texts on disk, and those that fit a question best (BM25), with their sources."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from memantics.core.errors import DataError, InputError
from memantics.core.retrieved import Passage
from memantics.core.tables import TABLE_ENDINGS, read_rows

_TEXTS = (".txt", ".md")
_WORD = re.compile(r"[^\W_]+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# The usual constants of BM25.
_K1, _B = 1.5, 0.75
_LONGEST = 1200


@dataclass(frozen=True, slots=True)
class Library:
    """Passages with the counts that rank them."""

    passages: tuple[Passage, ...]
    counts: tuple[Counter[str], ...]
    rarity: dict[str, float]
    average: float

    def find(self, question: str, most: int = 3) -> tuple[Passage, ...]:
        """The passages that share the rarest words with a question; none where none is shared.

        >>> found = make_library([Passage("cats purr", "a#1"), Passage("dogs bark", "a#2")])
        >>> [passage.source for passage in found.find("a dog or two dogs")]
        ['a#2']
        """
        words = set(split_words(question))
        ranked = sorted(
            ((self._rank(words, counts), -place) for place, counts in enumerate(self.counts)),
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
    counts = tuple(Counter(split_words(passage.text)) for passage in passages)
    held = Counter(word for count in counts for word in count)
    rarity = {word: math.log(1 + (len(passages) - n + 0.5) / (n + 0.5)) for word, n in held.items()}
    average = sum(count.total() for count in counts) / len(counts) if counts else 1.0
    return Library(tuple(passages), counts, rarity, average or 1.0)


@lru_cache(maxsize=4)
def read_library(place: Path) -> Library:
    """The passages of a place with the counts that rank them."""
    return make_library(tuple(read_passages(place)))


def read_passages(place: Path) -> Iterator[Passage]:
    """Paragraphs of texts and rows of tables (column ``text``): a file, or all below a folder.

    ``source`` is the file and the number of the passage in it, from 1.
    """
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    read = [file for file in files if file.suffix.lower() in (*_TEXTS, *TABLE_ENDINGS)]
    found = False
    for path in (folder for folder in read if folder.is_file()):
        name = path.name if path == place else path.relative_to(place).as_posix()
        texts = (" ".join(list_text.split()) for list_text in _list_texts(path))
        for number, text in enumerate((label for label in texts if label), 1):
            found = True
            yield Passage(text[:_LONGEST], f"{name}#{number}", dimension="text")
    if not found:
        raise InputError(
            f"nothing to retrieve from in {place}",
            hint="give a knowledge store, a build, a collection, or texts (.txt, .md, tables)",
        )


def _list_texts(path: Path) -> Iterable[str]:
    if path.suffix.lower() not in _TEXTS:
        return (str(row.get("text", "")) for _, row in read_rows(path))
    try:
        return re.split(r"\n\s*\n", path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, f"cannot be read as UTF-8: {error}") from error
