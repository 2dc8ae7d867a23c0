"""Meanings for microseconds: a table of token vectors distilled from the sentence encoder.

``static.npz`` holds 64 numbers for each Chinese piece of the encoder's vocabulary: the token's own
vector inside the encoder, mapped so that the sum over a text comes near to the encoder's vector of
that text (USE multilingual, Apache-2.0; docs/research/detector.md says how it was made). It holds
no texts. Other scripts have no vectors here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from unicodedata import normalize

import numpy as np

from memantics.models.embedded.encoder import Vectors, clean

WIDTH = 64
_SPACE = "\u2581"  # how the vocabulary writes a space


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """Pieces with their places in the table and their log-probabilities.

    ``longest`` is the length of the longest piece by its first character.
    """

    pieces: dict[str, tuple[int, float]]
    longest: dict[str, int]
    unknown: float

    def cut(self, line: str) -> list[int]:
        """The places of the pieces of the likeliest cut (Viterbi); unknown characters have none."""
        size = len(line)
        # The best cut up to each character: its score, and start and place of its last piece.
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
    """Sums of token vectors, each text alone: neighbours change no digit.

    >>> one, same, other = StaticEncoder().encode(["我很高兴", "我非常开心", "公司的税法"])
    >>> float(one @ same) > float(one @ other)
    True
    """

    version = "static-1"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 per text; zeros for a text without a known token."""
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
    table[names.index(_SPACE)] = 0  # a space means nothing
    pieces = {names[place]: (place, score) for place, score in enumerate(scores)}
    longest: dict[str, int] = {}
    for name in names:
        longest[name[0]] = max(longest.get(name[0], 0), len(name))
    # What sentencepiece takes for unknown characters: so low that any known piece is likelier.
    return _Vocabulary(pieces, longest, min(scores) - 20), table
