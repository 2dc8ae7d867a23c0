"""Text features in weighted blocks: n-grams, pinyin and embeddings; ids are never features."""

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

FeatureKind = Literal["chars", "pinyin", "fuzzy", "words", "readings", "phrases", "subwords"]
# A word in languages with spaces between words; punctuation marks are separate words.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]")
_RUNS = (3, 4, 5)  # lengths of character n-grams inside words, with boundary marks
_LONGEST = 4000
# Pinyin sounds that many speakers merge, mapped to one.
_MERGED = (
    ("zh", "z"), ("ch", "c"), ("sh", "s"), ("ang", "an"), ("eng", "en"), ("ing", "in"),
)  # fmt: skip
_FIRST = {"l": "n", "r": "n"}


@dataclass(frozen=True, slots=True)
class TextNgram:
    """One n-gram and its character positions in the text."""

    name: str
    start: int
    end: int


def clean(text: str) -> str:
    r"""Normalize a text: lower case, single spaces, bounded length, valid Unicode.

    >>> clean("  Hello\n World ")
    'hello world'
    """
    return fold_line(text.lower(), _LONGEST)


def list_ngrams(kind: FeatureKind, text: str) -> list[str]:
    """List the n-grams of a cleaned text, with repetitions and without positions.

    >>> list_ngrams("chars", "ab")
    ['a', 'b', 'ab']
    >>> list_ngrams("pinyin", "蒸鱼")
    ['zheng', 'yu', 'zheng yu']
    >>> list_ngrams("phrases", "so it's on!"), list_ngrams("subwords", "on")
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


def cut(kind: FeatureKind, text: str) -> Iterator[TextNgram]:
    """List the n-grams of a text as :func:`list_ngrams` does, with their positions.

    >>> [(p.name, p.start, p.end) for p in cut("pinyin", "a 鱼")]
    [('a', 0, 1), ('yu', 2, 3), ('a yu', 0, 3)]
    """
    if kind in {"chars", "readings"}:
        for n in (1, 2, 3):
            for i in range(len(text) - n + 1):
                yield TextNgram(text[i : i + n], i, i + n)
    elif kind in {"phrases", "subwords"}:
        yield from _cut_words(kind, text)
    elif kind == "words":
        for word, start in _place_words(text):
            yield TextNgram(word, start, start + len(word))
    else:
        places = [i for i, c in enumerate(text) if not c.isspace()]
        said = [_SOUNDERS[kind](text[i]) for i in places]
        for n in (1, 2, 3):
            for i in range(len(said) - n + 1):
                yield TextNgram(" ".join(said[i : i + n]), places[i], places[i + n - 1] + 1)


def _cut_words(kind: FeatureKind, text: str) -> Iterator[TextNgram]:
    """List words and word pairs, or character n-grams inside words, with their positions."""
    words = [(found.group(), found.start(), found.end()) for found in _WORD.finditer(text)]
    if kind == "phrases":
        yield from (TextNgram(*word) for word in words)
        for (one, start, _), (other, _, end) in pairwise(words):
            yield TextNgram(f"{one} {other}", start, end)
        return
    for word, start, end in words:
        marked = f"<{word}>"
        for size in _RUNS:
            for i in range(len(marked) - size + 1):
                # The boundary marks are not characters of the text.
                first, last = start + max(0, i - 1), min(end, start + i - 1 + size)
                yield TextNgram(marked[i : i + size], first, last)


def _place_words(text: str) -> Sequence[tuple[str, int]]:
    found, place = [], 0
    for word in cut_chinese(text):
        if not word.isspace():
            found.append((word, place))
        place += len(word)
    return found


@lru_cache(maxsize=65536)
def sound_of(character: str) -> str:
    """Return the first pinyin reading of a character without tone; other characters unchanged.

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
    """Return the pinyin with sounds that many speakers merge mapped to one.

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
    {"pinyin": sound_of, "fuzzy": fuzzy_sound_of}
)


TextField = Literal["text", "text_caption", "image_caption", "ocr"]
IMAGE_WIDTH = 24
# Embeddings are rounded to this step: one byte per value in a file, without further loss.
GRID = 256
FIELDS: tuple[TextField, ...] = ("text", "text_caption", "image_caption", "ocr")


class Embedder(Protocol):
    """An encoder from texts to unit vectors; ``version`` identifies its weights."""

    version: str

    def encode(self, texts: Sequence[str]) -> Singles:
        """Encode texts, one row per text."""
        ...


@runtime_checkable
class Seer(Protocol):
    """An encoder that also maps images to unit vectors; zeros for a missing image."""

    def see(self, images: Sequence[Path | None]) -> Singles:
        """Encode images, one row per image."""
        ...


@dataclass(frozen=True, slots=True)
class FeatureBlock:
    """A block of n-gram features of one field with its weight.

    ``fewest`` is the minimum document frequency of an n-gram.
    """

    field: TextField
    kind: FeatureKind
    weight: float
    fewest: int = 2

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.field}/{self.kind}"


@dataclass(frozen=True, slots=True)
class Dense:
    """A dense block: text embeddings of a field, or features of the image.

    ``picture`` is the embedding of the image by a vision model with ``width`` columns.
    """

    source: Literal["text", "text_caption", "image_caption", "ocr", "image", "picture"]
    weight: float
    width: int = 0

    @property
    def name(self) -> str:
        """The name in reports."""
        return "image/statistics" if self.source == "image" else f"{self.source}/meaning"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The n-grams of a block with their inverse document frequencies."""

    block: FeatureBlock
    pieces: tuple[str, ...]
    rarity: Singles

    def index(self) -> dict[str, int]:
        """Column of each n-gram."""
        return {piece: place for place, piece in enumerate(self.pieces)}


def read_field(example: Example, field: TextField) -> str:
    """Return the normalized text of a field.

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
    """Select n-grams with a document frequency of at least ``fewest``, and compute their IDF."""
    counts: Counter[str] = Counter()
    for pieces in texts:
        counts.update(set(pieces))
    kept = tuple(sorted(piece for piece, count in counts.items() if count >= block.fewest))
    total = len(texts)
    rarity = np.array([np.log((1 + total) / (1 + counts[p])) + 1 for p in kept], np.float32)
    return Vocabulary(block, kept, rarity)


@dataclass(frozen=True, slots=True)
class Extractor:
    """Converts examples to a sparse and a dense matrix with rows of norm at most 1.

    ``scale`` divides all weights, so that a meme with all fields has norm 1. With ``whole`` every
    row is normalized to 1, also if fields are missing.
    """

    vocabularies: tuple[Vocabulary, ...]
    indices: tuple[Mapping[str, int], ...]
    dense: tuple[Dense, ...]
    scale: float
    whole: bool = False

    @property
    def width(self) -> int:
        """Number of columns of the sparse matrix."""
        return sum(len(vocabulary.pieces) for vocabulary in self.vocabularies)

    def offsets(self) -> list[int]:
        """First column of each block."""
        sizes = [len(vocabulary.pieces) for vocabulary in self.vocabularies]
        return [0, *np.cumsum(sizes).tolist()]

    def dense_factors(self, total: int) -> list[tuple[int, np.float32]]:
        """Return width and weight of each dense block, for ``total`` dense columns."""
        known = [IMAGE_WIDTH if b.source == "image" else b.width for b in self.dense]
        # All text embeddings of one encoder have the same width.
        width = (total - sum(known)) // max(1, known.count(0))
        return [
            (known_width or width, np.float32(b.weight / self.scale))
            for known_width, b in zip(known, self.dense, strict=True)
        ]

    def transform(self, texts: Sequence[Sequence[Sequence[str]]]) -> SparseRows:
        """Make sparse rows from n-grams (``texts[block][example]``)."""
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
        # A stable sort keeps the order of blocks and columns within a row.
        order = np.argsort(rows, kind="stable")
        ends = np.zeros(size + 1, np.int32)
        ends[1:] = np.cumsum(np.bincount(rows, minlength=size))
        return SparseRows(
            values[order].astype(np.float32), columns[order].astype(np.int32), ends, self.width
        )


def _weigh(
    texts: Sequence[Sequence[str]], vocabulary: Vocabulary, index: Mapping[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Singles]:
    """Compute sublinear TF-IDF with unit rows, as sorted rows, columns and values."""
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
    """Split every example into n-grams for each block; homophone readings are computed once."""
    return [list(_cut_block(block, examples)) for block in blocks]


def _cut_block(block: FeatureBlock, examples: Sequence[Example]) -> Iterator[list[str]]:
    for example in examples:
        text = read_field(example, block.field)
        yield list_ngrams(block.kind, read_intended(text) if block.kind == "readings" else text)


def read_intended(text: str) -> str:
    """Return the intended homophone reading of a caption, or an empty text if there is none.

    An obfuscated word thereby also gets the n-grams of the intended word.
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
    """Fit the vocabularies on the n-grams of training examples."""
    vocabularies = tuple(
        fit_vocabulary(block, block_texts) for block, block_texts in zip(blocks, texts, strict=True)
    )
    if not dense and not any(vocabulary.pieces for vocabulary in vocabularies):
        if not any(piece for block_texts in texts for pieces in block_texts for piece in pieces):
            hint = "add a column with their texts, or --captions FILE of 'memantics build captions'"
            raise InputError("no meme of the training data has a text", hint=hint)
        raise InputError("no n-gram occurs in two memes", hint="give more examples with texts")
    scale = float(np.sqrt(sum(b.weight**2 for b in blocks) + sum(d.weight**2 for d in dense)))
    indices = tuple(vocabulary.index() for vocabulary in vocabularies)
    return Extractor(vocabularies, indices, tuple(dense), scale, whole)
