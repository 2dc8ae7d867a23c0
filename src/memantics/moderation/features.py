"""Texts as weighted blocks of numbers. Only what a meme says goes in: never an id or a name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memantics.core.errors import InputError, need_offline
from memantics.core.text import cut_chinese, fold_line
from memantics.moderation.examples import Example
from memantics.moderation.kernel import Singles, SparseRows

FeatureKind = Literal["chars", "sounds", "fuzzy", "words", "readings", "phrases", "subwords"]
# A word of a language that parts its words; marks such as ! and ? are words of their own.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]")
_RUNS = (3, 4, 5)  # letters of a subword, with a mark where its word begins and ends
_LONGEST = 4000
# Sounds that many speakers do not tell apart, written as one.
_MERGED = (
    ("zh", "z"), ("ch", "c"), ("sh", "s"), ("ang", "an"), ("eng", "en"), ("ing", "in"),
)  # fmt: skip
_FIRST = {"l": "n", "r": "n"}


@dataclass(frozen=True, slots=True)
class TextPiece:
    """One piece and the characters of the text that it stands for."""

    name: str
    start: int
    end: int


def clean(text: str) -> str:
    r"""Lower case, white space folded, length bounded, lone surrogates replaced.

    >>> clean("  Hello\n World ")
    'hello world'
    """
    return fold_line(text.lower(), _LONGEST)


def name_pieces(kind: FeatureKind, text: str) -> list[str]:
    """The names of all pieces of a cleaned text, repetitions kept; fast, without places.

    >>> name_pieces("chars", "ab")
    ['a', 'b', 'ab']
    >>> name_pieces("sounds", "蒸鱼")
    ['zheng', 'yu', 'zheng yu']
    >>> name_pieces("phrases", "so it's on!"), name_pieces("subwords", "on")
    (['so', "it's", 'on', '!', "so it's", "it's on", 'on !'], ['<on', 'on>', '<on>'])
    """
    if kind in {"chars", "readings"}:
        size = len(text)
        return [text[i : i + n] for n in (1, 2, 3) for i in range(size - n + 1)]
    if kind in {"phrases", "subwords"}:
        return [piece.name for piece in _cut_words(kind, text)]
    if kind == "words":
        return [word for word, _ in _place_words(text)]
    said = [_SOUNDERS[kind](c) for c in text if not c.isspace()]
    return [" ".join(said[i : i + n]) for n in (1, 2, 3) for i in range(len(said) - n + 1)]


def cut(kind: FeatureKind, text: str) -> Iterator[TextPiece]:
    """The same pieces with their places.

    >>> [(p.name, p.start, p.end) for p in cut("sounds", "a 鱼")]
    [('a', 0, 1), ('yu', 2, 3), ('a yu', 0, 3)]
    """
    if kind in {"chars", "readings"}:
        for n in (1, 2, 3):
            for i in range(len(text) - n + 1):
                yield TextPiece(text[i : i + n], i, i + n)
    elif kind in {"phrases", "subwords"}:
        yield from _cut_words(kind, text)
    elif kind == "words":
        for word, start in _place_words(text):
            yield TextPiece(word, start, start + len(word))
    else:
        places = [i for i, c in enumerate(text) if not c.isspace()]
        said = [_SOUNDERS[kind](text[i]) for i in places]
        for n in (1, 2, 3):
            for i in range(len(said) - n + 1):
                yield TextPiece(" ".join(said[i : i + n]), places[i], places[i + n - 1] + 1)


def _cut_words(kind: FeatureKind, text: str) -> Iterator[TextPiece]:
    """Words and pairs of words, or runs of letters inside words; with their places."""
    words = [(found.group(), found.start(), found.end()) for found in _WORD.finditer(text)]
    if kind == "phrases":
        yield from (TextPiece(*word) for word in words)
        for (one, start, _), (other, _, end) in pairwise(words):
            yield TextPiece(f"{one} {other}", start, end)
        return
    for word, start, end in words:
        marked = f"<{word}>"
        for size in _RUNS:
            for i in range(len(marked) - size + 1):
                # The two marks stand for no letter of the text.
                first, last = start + max(0, i - 1), min(end, start + i - 1 + size)
                yield TextPiece(marked[i : i + size], first, last)


def _place_words(text: str) -> Sequence[tuple[str, int]]:
    found, place = [], 0
    for word in cut_chinese(text):
        if not word.isspace():
            found.append((word, place))
        place += len(word)
    return found


@lru_cache(maxsize=65536)
def sound_of(character: str) -> str:
    """The first reading of a character without its tone; others stay as they are.

    >>> sound_of("鱼"), sound_of("x")
    ('yu', 'x')
    """
    if character < "\u3400":
        return character
    need_offline("pypinyin")
    from pypinyin import Style, pinyin

    return str(pinyin(character, style=Style.NORMAL, errors="default")[0][0])


@lru_cache(maxsize=65536)
def fuzzy_sound_of(character: str) -> str:
    """The sound with what many speakers merge written alike.

    >>> fuzzy_sound_of("狼") == fuzzy_sound_of("南"), fuzzy_sound_of("是")
    (True, 'si')
    """
    said = sound_of(character)
    if said == character:
        return said
    for initial, merged in _MERGED:
        said = said.replace(initial, merged)
    return _FIRST.get(said[0], said[0]) + said[1:]


_SOUNDERS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"sounds": sound_of, "fuzzy": fuzzy_sound_of}
)


TextField = Literal["text", "text_caption", "image_caption", "ocr"]
IMAGE_WIDTH = 24
# Meanings are rounded to this part of one: a byte each in a file, and no digit is lost there.
GRID = 256
FIELDS: tuple[TextField, ...] = ("text", "text_caption", "image_caption", "ocr")


class Embedder(Protocol):
    """Anything that turns texts into vectors of length 1; ``version`` pins the weights."""

    version: str

    def encode(self, texts: Sequence[str]) -> Singles:
        """One row per text."""
        ...


@runtime_checkable
class Seer(Protocol):
    """What also turns images into vectors of length 1; a missing image is all zeros."""

    def see(self, images: Sequence[Path | None]) -> Singles:
        """One row per image."""
        ...


@dataclass(frozen=True, slots=True)
class FeatureBlock:
    """One view of one field: its pieces, and how much it weighs. ``fewest``: memes with a piece."""

    field: TextField
    kind: FeatureKind
    weight: float
    fewest: int = 2

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"{self.field}/{self.kind}"


@dataclass(frozen=True, slots=True)
class Dense:
    """A block of plain numbers: meanings of a field by an embedder, or statistics of the image.

    ``picture`` is the image through a vision model, whose number of columns is its ``width``.
    """

    source: Literal["text", "text_caption", "image_caption", "ocr", "image", "picture"]
    weight: float
    width: int = 0

    @property
    def name(self) -> str:
        """How reports call it."""
        return "image/statistics" if self.source == "image" else f"{self.source}/meaning"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The pieces of a block that count, with their inverse document frequencies."""

    block: FeatureBlock
    pieces: tuple[str, ...]
    rarity: Singles

    def index(self) -> dict[str, int]:
        """Piece → column."""
        return {piece: place for place, piece in enumerate(self.pieces)}


def read_field(example: Example, field: TextField) -> str:
    """A field's text, cleaned.

    >>> read_field(Example("7.jpg", " Hi "), "text")
    'hi'
    """
    texts: Mapping[TextField, str] = {
        "text": example.text,
        "text_caption": example.text_caption,
        "image_caption": example.image_caption,
        "ocr": example.ocr,
    }
    return clean(texts[field])


def fit_vocabulary(block: FeatureBlock, texts: Sequence[Sequence[str]]) -> Vocabulary:
    """Keep pieces that at least ``fewest`` memes have; the rarer, the heavier."""
    counts: Counter[str] = Counter()
    for pieces in texts:
        counts.update(set(pieces))
    kept = tuple(sorted(piece for piece, count in counts.items() if count >= block.fewest))
    total = len(texts)
    rarity = np.array([np.log((1 + total) / (1 + counts[p])) + 1 for p in kept], np.float32)
    return Vocabulary(block, kept, rarity)


@dataclass(frozen=True, slots=True)
class Extractor:
    """From examples to one sparse matrix and one dense one, each row of length at most 1.

    ``scale`` divides all weights, so that a meme with every field has length 1; with ``whole``
    every meme has, whatever fields it lacks.
    """

    vocabularies: tuple[Vocabulary, ...]
    indices: tuple[Mapping[str, int], ...]
    dense: tuple[Dense, ...]
    scale: float
    whole: bool = False

    @property
    def width(self) -> int:
        """Columns of the sparse matrix."""
        return sum(len(vocabulary.pieces) for vocabulary in self.vocabularies)

    def offsets(self) -> list[int]:
        """The first column of each block."""
        sizes = [len(vocabulary.pieces) for vocabulary in self.vocabularies]
        return [0, *np.cumsum(sizes).tolist()]

    def dense_factors(self, total: int) -> list[tuple[int, np.float32]]:
        """Columns and weight of each dense block, where all together have ``total`` columns."""
        known = [IMAGE_WIDTH if b.source == "image" else b.width for b in self.dense]
        # Meanings of texts by one embedder are equally wide.
        width = (total - sum(known)) // max(1, known.count(0))
        return [
            (known_width or width, np.float32(b.weight / self.scale))
            for known_width, b in zip(known, self.dense, strict=True)
        ]

    def transform(self, texts: Sequence[Sequence[Sequence[str]]]) -> SparseRows:
        """Rows from pieces, block by block (``texts[block][example]``)."""
        size = len(texts[0]) if texts else 0
        parts = [
            _weigh(texts[place], vocabulary, self.indices[place])
            for place, vocabulary in enumerate(self.vocabularies)
        ]
        weights = [
            np.float32(vocabulary.block.weight / self.scale) for vocabulary in self.vocabularies
        ]
        shifts = self.offsets()
        nothing = np.zeros(0, np.int64)
        rows = np.concatenate([nothing, *(part[0] for part in parts)])
        columns = np.concatenate(
            [nothing, *(at + part[1] for at, part in zip(shifts, parts, strict=False))]
        )
        values = np.concatenate(
            [nothing, *(by * part[2] for by, part in zip(weights, parts, strict=True))]
        )
        # Stable: within a row the blocks stay in order, and so do the columns of each.
        order = np.argsort(rows, kind="stable")
        ends = np.zeros(size + 1, np.int32)
        ends[1:] = np.cumsum(np.bincount(rows, minlength=size))
        return SparseRows(
            values[order].astype(np.float32), columns[order].astype(np.int32), ends, self.width
        )


def _weigh(
    texts: Sequence[Sequence[str]], vocabulary: Vocabulary, index: Mapping[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Singles]:
    """Rows, columns and values: sublinear counts times rarity, rows of length 1, all in order."""
    found = [
        [place for piece in pieces if (place := index.get(piece)) is not None] for pieces in texts
    ]
    rows = np.repeat(np.arange(len(found)), [len(text_columns) for text_columns in found])
    width = max(1, len(vocabulary.pieces))
    flat = np.fromiter(chain.from_iterable(found), np.int64, len(rows))
    cells, counts = np.unique(rows * width + flat, return_counts=True)
    rows, columns = np.divmod(cells, width)
    values = (1 + np.log(counts.astype(np.float32))) * vocabulary.rarity[columns]
    starts = np.searchsorted(rows, np.arange(len(found) + 1))
    for start, end in pairwise(starts.tolist()):
        part = values[start:end]
        part /= np.sqrt(np.dot(part, part)) if end > start else 1
    return rows, columns, values


def cut_all(blocks: Sequence[FeatureBlock], examples: Sequence[Example]) -> list[list[list[str]]]:
    """The pieces of every block and example; readings are heard once for each text."""
    return [list(_cut_block(block, examples)) for block in blocks]


def _cut_block(block: FeatureBlock, examples: Sequence[Example]) -> Iterator[list[str]]:
    for example in examples:
        text = read_field(example, block.field)
        yield name_pieces(block.kind, read_intended(text) if block.kind == "readings" else text)


def read_intended(text: str) -> str:
    """What a caption says aloud where another reading is probably meant; else nothing.

    A obfuscated word gets back the pieces of the word that is meant.
    """
    from memantics.understanding.phonetics.homophones import read_homophones
    from memantics.understanding.phonetics.reading import Settings

    if not text:
        return ""
    intended = read_homophones(text, settings=Settings(model="dictionary")).intended
    return clean(intended.text) if intended is not None else ""


def fit_extractor(
    blocks: Sequence[FeatureBlock],
    dense: Sequence[Dense],
    texts: Sequence[Sequence[Sequence[str]]],
    *,
    whole: bool = False,
) -> Extractor:
    """Learn vocabularies from the pieces of training examples."""
    vocabularies = tuple(
        fit_vocabulary(block, block_texts) for block, block_texts in zip(blocks, texts, strict=True)
    )
    if not dense and not any(vocabulary.pieces for vocabulary in vocabularies):
        raise InputError(
            "no piece of text occurs in two memes", hint="give more examples with texts"
        )
    scale = float(np.sqrt(sum(b.weight**2 for b in blocks) + sum(d.weight**2 for d in dense)))
    indices = tuple(vocabulary.index() for vocabulary in vocabularies)
    return Extractor(vocabularies, indices, tuple(dense), scale, whole)
