"""Text retrieval with BM25, and the records of retrieved passages, similar memes and templates.

A searchable library is built from text files and from tables with a ``text`` column.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from memantics.core.errors import DataError, InputError
from memantics.core.files import read_regular_text
from memantics.core.result import Result
from memantics.core.tables import TABLE_ENDINGS, read_rows

SAME_PICTURE = 8  # maximum Hamming distance in bits between image hashes of one template cluster
# The accuracy of this threshold is measured in docs/research/analysis-nearest.md.
BY_MEANING = (
    "nearness of meaning; memes this near share their emotion in 55% of cases (any two: 32%), their"
    " sentiment in 56% (37%), their target of harm in 84% (26%), their verb of intent in 13% (11%)"
)
BY_PICTURE = "hash of the picture, 63 of 65 such pairs of 1,000 memes were one template"
# dimensions and notes that describe the intent of a meme
USES = ("OverallIntent", "intents", "intent", "meaning")
SHOWN_FROM = 0.5  # minimum similarity of two texts for the known meme to be shown
_TEXTS = (".txt", ".md")
_WORD = re.compile(r"[^\W_]+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# The usual values of the BM25 parameters k1 and b.
_K1, _B = 1.5, 0.75
_LONGEST = 1200


@dataclass(frozen=True, slots=True)
class Passage(Result):
    """A statement about a known meme that may help to interpret another meme.

    ``meme`` is the meme that the statement describes ("" for a plain text), ``dimension`` its
    subject, ``source`` its file or knowledge graph, and ``nearness`` its cosine similarity to the
    query.
    """

    text: str
    source: str
    meme: str = ""
    dimension: str = ""
    nearness: float = 0.0

    @property
    def cited(self) -> str:
        """The statement with its source, as shown in prompts and pages.

        >>> Passage("Rats carry plague", "kb", "01382").cited
        'Rats carry plague [kb, meme 01382]'
        """
        about = f", meme {self.meme}" if self.meme else ""
        return f"{self.text} [{self.source}{about}]"


@dataclass(frozen=True, slots=True)
class NearMeme(Result):
    """A known meme that is similar to another one, with the statements about it.

    ``nearness`` compares the texts, from -1 to 1 (None: a text is missing). ``bits`` is the Hamming
    distance of the 64-bit image hashes (None: an image is missing).
    """

    meme: str
    text: str
    source: str
    nearness: float | None = None
    bits: int | None = None
    template_cluster: str = ""
    statements: tuple[Passage, ...] = ()

    @property
    def same_picture(self) -> bool:
        """Whether both memes use the same image."""
        return self.bits is not None and self.bits <= SAME_PICTURE

    @property
    def shown(self) -> bool:
        """Whether the meme is similar enough to be used as context."""
        return self.same_picture or (self.nearness or 0) >= SHOWN_FROM

    @property
    def uses(self) -> tuple[str, ...]:
        """The known intents of the meme."""
        return tuple(passage.text for passage in self.statements if passage.dimension in USES)

    @property
    def summary(self) -> str:
        """The meme, its similarity, and its use if known, in one line.

        >>> NearMeme("7", "so tired", "kb", 0.71, 30).summary
        '7 in kb (nearness 0.71)'
        """
        near = "the same picture" if self.same_picture else f"nearness {self.nearness or 0:.2f}"
        template_cluster = (
            f", template cluster {self.template_cluster}" if self.template_cluster else ""
        )
        use = f": {self.uses[0]}" if self.uses else ""
        return f"{self.meme} in {self.source} ({near}{template_cluster}){use}"


@dataclass(frozen=True, slots=True)
class TemplateClusterUse(Result):
    """A known template cluster: the number of memes on one image and their use.

    ``use`` is the statement that is most similar to all others; empty without statements.
    """

    template_cluster: str
    memes: tuple[str, ...]
    source: str
    use: str = ""

    @property
    def summary(self) -> str:
        """The name of the template, the number of memes on it and their usual use, in one line.

        >>> TemplateClusterUse("cat", ("1", "2"), "mine", "mocks updates").summary
        'cat, 2 known memes on this picture in mine; usual use: mocks updates'
        """
        count = f"{len(self.memes)} known meme{'s' if len(self.memes) > 1 else ''}"
        use = f"; usual use: {self.use}" if self.use else ""
        return f"{self.template_cluster}, {count} on this picture in {self.source}{use}"


class Retriever(Protocol):
    """The interface for finding memes and statements similar to a text or an image."""

    def find_memes(
        self, text: str, image: Path | None = None, count: int = 5, without: Container[str] = ()
    ) -> tuple[NearMeme, ...]:
        """Return the most similar memes, best first; ids in ``without`` are excluded."""
        ...

    def find_passages(
        self,
        text: str,
        count: int = 5,
        dimension: str = "BackgroundKnowledge",
        without: Container[str] = (),
    ) -> tuple[Passage, ...]:
        """Return the statements most similar to a text, best first."""
        ...


@dataclass(frozen=True, slots=True)
class Library:
    """Passages with the word counts that BM25 needs."""

    passages: tuple[Passage, ...]
    counts: tuple[Counter[str], ...]
    rarity: dict[str, float]
    average: float

    def find(self, question: str, most: int = 3) -> tuple[Passage, ...]:
        """Return the passages that share the rarest words with a question; none may match.

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
    """Yield lower-case words; character pairs in scripts without spaces.

    >>> list(split_words("Cats, 躺平了"))
    ['cats', '躺平', '平了']
    """
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _DENSE.search(word) and len(word) > 1:
            yield from (word[place : place + 2] for place in range(len(word) - 1))
        else:
            yield word


def make_library(passages: Sequence[Passage]) -> Library:
    """Build a library from passages; their words are counted once."""
    counts = tuple(Counter(split_words(passage.text)) for passage in passages)
    held = Counter(word for words in counts for word in words)
    rarity = {word: math.log(1 + (len(passages) - n + 0.5) / (n + 0.5)) for word, n in held.items()}
    average = sum(words.total() for words in counts) / len(counts) if counts else 1.0
    return Library(tuple(passages), counts, rarity, average or 1.0)


@lru_cache(maxsize=4)
def read_library(place: Path) -> Library:
    """Read the passages of a file or folder and count their words."""
    return make_library(tuple(read_passages(place)))


def read_passages(place: Path) -> Iterator[Passage]:
    """Yield paragraphs of texts and rows of tables (column ``text``) of a file or folder.

    ``source`` is the file and the number of the passage in it, from 1.
    """
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    read = [file for file in files if file.suffix.lower() in (*_TEXTS, *TABLE_ENDINGS)]
    found = False
    for path in (folder for folder in read if folder.is_file()):
        name = path.name if path == place else path.relative_to(place).as_posix()
        texts = (" ".join(passage.split()) for passage in _list_texts(path))
        for number, text in enumerate((label for label in texts if label), 1):
            found = True
            yield Passage(text[:_LONGEST], f"{name}#{number}", dimension="text")
    if not found:
        raise InputError(
            f"{place} contains no texts to search",
            hint="give a knowledge store, a build, a collection, or texts (.txt, .md, tables)",
        )


def _list_texts(path: Path) -> Iterable[str]:
    if path.suffix.lower() not in _TEXTS:
        return (str(row.get("text", "")) for _, row in read_rows(path))
    try:
        return re.split(r"\n\s*\n", read_regular_text(path, "utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, f"cannot be read as UTF-8: {error}") from error
