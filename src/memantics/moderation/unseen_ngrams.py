"""The unseen-n-gram rate: proportion of a text's n-grams that no training text has.

N-grams are single characters and character pairs, or words for detectors with word features.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from memantics.moderation.fast import FastDetector
from memantics.moderation.features import clean

QUANTILE = 0.99
OUTSIDE_NOTE = "the text differs from the training texts; it needs human review"
_FEWEST = 2  # minimum document frequency in a detector's vocabulary
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W_]+)*")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|(?<=[。！？；])|\n+")
_UNIT = re.compile(r"[\u3400-\u9fff]{1,2}|[^\s\u3400-\u9fff]+")
PASSAGE = 14  # number of words of a passage
LONG_SENTENCE = 6  # minimum number of words; in shorter ones a single word dominates the score
NgramKind = Literal["chars", "phrases"]
# Names under which the model card stores the limits of the unseen-n-gram rate.
_BOUNDS: Mapping[NgramKind, str] = MappingProxyType(
    {"chars": "unseen_ngram_rate", "phrases": "unseen_rate_of_words"}
)


@dataclass(frozen=True, slots=True)
class UnseenNgrams:
    """The n-grams of training texts, and the 99th percentile of their own unseen-n-gram rates."""

    known: Container[str]
    most: float
    kind: NgramKind = "chars"

    def measure(self, text: str) -> float:
        """Compute the proportion of a text's distinct n-grams that are not in the training texts.

        Of a text without any n-gram, such as emoji for a detector of words, nothing is known: 1.

        >>> UnseenNgrams({"a", "b", "ab"}, 0.4).measure("abc")
        0.4
        >>> UnseenNgrams({"so", "it"}, 0.4, "phrases").measure("so is it")
        0.3333333333333333
        >>> UnseenNgrams({"so", "it"}, 0.4, "phrases").measure("🐒 88")
        1.0
        """
        pieces = _CUTS[self.kind](clean(text))
        if not pieces:
            return float(bool(text.strip()))
        return sum(piece not in self.known for piece in pieces) / len(pieces)

    def measure_worst(self, text: str) -> float:
        """Compute the highest unseen-n-gram rate of the whole text and each of its sentences.

        >>> known = UnseenNgrams({"so", "it"}, 0.4, "phrases")
        >>> known.measure_worst("so it. so it so it is all gone")
        0.6
        """
        return max(map(self.measure, (text, *cut_sentences(text, LONG_SENTENCE))))

    def is_outside(self, share: float) -> bool:
        """Check whether a text's unseen-n-gram rate exceeds that of 99 % of the training texts.

        A text without any known n-gram is outside, even if few training texts set no limit.

        >>> few = UnseenNgrams({"so"}, 1.0, "phrases")
        >>> few.is_outside(few.measure("🐒 88")), few.is_outside(few.measure("so what"))
        (True, False)
        """
        return share > self.most or share >= 1.0


def cut_sentences(text: str, fewest: int = 3) -> list[str]:
    """Split a text into sentences of at least ``fewest`` words; empty if there is only one.

    >>> cut_sentences("what a day. you are all so stupid!"), cut_sentences("what a day")
    (['what a day.', 'you are all so stupid!'], [])
    """
    parts = [part for part in _SENTENCE.split(text) if part.strip()]
    long = [part for part in parts if count_words(part) >= fewest]
    return long if len(parts) > 1 else []


def cut_passages(text: str) -> list[str]:
    """Cut each long sentence into overlapping passages of 14 words; empty if none is long.

    A harmful sentence among harmless words without full stops has no sentence of its own.

    >>> long = "so it is all gone " * 6
    >>> cut_passages("so it is"), [len(one.split()) for one in cut_passages(long)]
    ([], [14, 14, 14, 14])
    """
    found: list[str] = []
    for sentence in _SENTENCE.split(text):
        spans = [unit.span() for unit in _UNIT.finditer(sentence)]
        if len(spans) < 2 * PASSAGE:
            continue
        starts = range(0, len(spans) - PASSAGE, PASSAGE // 2)
        ends = [*(start + PASSAGE for start in starts), len(spans)]
        found += [sentence[spans[end - PASSAGE][0] : spans[end - 1][1]] for end in ends]
    return found


def count_words(text: str) -> int:
    """Count the words of a text; two Chinese characters count as one word.

    >>> count_words("so it is"), count_words("今晚又失眠了")
    (3, 3)
    """
    han = sum("\u3400" <= sign <= "\u9fff" for sign in text)
    return han // 2 + sum(not "\u3400" <= word[0] <= "\u9fff" for word in _WORD.findall(text))


def find_unseen_rate(detector: FastDetector | None, card: Mapping[str, Any]) -> UnseenNgrams | None:
    """Return the unseen-n-gram measure of a detector; None for networks and old cards."""
    if detector is None:
        return None
    found = detector.extractor
    for vocabulary, index in zip(found.vocabularies, found.indices, strict=True):
        kind = vocabulary.block.kind
        if vocabulary.block.field == "text" and kind in ("chars", "phrases"):
            most = card.get(_BOUNDS[kind])
            return UnseenNgrams(index, float(most), kind) if isinstance(most, float | int) else None
    return None


def describe_unseen_rate(texts: Sequence[str]) -> dict[str, float | None]:
    """Compute the limits of the unseen-n-gram rate for characters and words, for the card."""
    return {_BOUNDS[kind]: fit_unseen_ngrams(texts, kind) for kind in _BOUNDS}


def fit_unseen_ngrams(texts: Sequence[str], kind: NgramKind = "chars") -> float | None:
    """Compute the 99th percentile of leave-one-out unseen-n-gram rates of training texts.

    >>> fit_unseen_ngrams(["ab", "ab", "ab", "xy"]), fit_unseen_ngrams([])
    (1.0, None)
    """
    cut = [pieces for text in texts if (pieces := _CUTS[kind](clean(text)))]
    counts = Counter(piece for pieces in cut for piece in pieces)
    shares = sorted(
        sum(counts[piece] <= _FEWEST for piece in pieces) / len(pieces) for pieces in cut
    )
    return shares[math.ceil(QUANTILE * len(shares)) - 1] if shares else None


def _cut_characters(text: str) -> set[str]:
    return {*text, *(text[place : place + 2] for place in range(len(text) - 1))}


def _cut_words(text: str) -> set[str]:
    return set(_WORD.findall(text))


_CUTS: Mapping[NgramKind, Callable[[str], set[str]]] = MappingProxyType(
    {"chars": _cut_characters, "phrases": _cut_words}
)
