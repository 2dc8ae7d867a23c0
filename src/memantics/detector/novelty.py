"""How unlike its training texts a text is: the share of characters and pairs not met there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

from memantics.detector.fast import FastDetector
from memantics.detector.features import clean

QUANTILE = 0.99
OUTSIDE_NOTE = "unlike anything the detector was trained on; a person should decide"
_FEWEST = 2  # memes: the vocabulary of a detector keeps what as many have


@dataclass(frozen=True, slots=True)
class Novelty:
    """The pieces of training texts, and the share of others that 99 of 100 of them stay within."""

    known: Container[str]
    most: float

    def measure(self, text: str) -> float:
        """The share of a text's different characters and pairs that are not known.

        >>> Novelty({"a", "b", "ab"}, 0.4).measure("abc")
        0.4
        """
        pieces = _cut(text)
        return sum(piece not in self.known for piece in pieces) / len(pieces) if pieces else 0.0

    def is_outside(self, share: float) -> bool:
        """Whether that is more than nearly all training texts have."""
        return share > self.most


def find_novelty(detector: FastDetector | None, most: object) -> Novelty | None:
    """What a detector knows of its training texts; earlier files and networks know nothing."""
    if detector is None or not isinstance(most, float | int):
        return None
    found = detector.extractor
    for vocabulary, index in zip(found.vocabularies, found.indices, strict=True):
        if (vocabulary.block.field, vocabulary.block.kind) == ("text", "chars"):
            return Novelty(index, float(most))
    return None


def fit_novelty(texts: Sequence[str]) -> float | None:
    """The share that 99 of 100 training texts stay within, each measured against all others.

    >>> fit_novelty(["ab", "ab", "ab", "xy"]), fit_novelty([])
    (1.0, None)
    """
    cut = [pieces for text in texts if (pieces := _cut(text))]
    counts = Counter(piece for pieces in cut for piece in pieces)
    shares = sorted(
        sum(counts[piece] <= _FEWEST for piece in pieces) / len(pieces) for pieces in cut
    )
    return shares[math.ceil(QUANTILE * len(shares)) - 1] if shares else None


def _cut(text: str) -> set[str]:
    text = clean(text)
    return {*text, *(text[place : place + 2] for place in range(len(text) - 1))}
