"""Negative or not: word lists, and a classifier on sentence embeddings beside them.

The classifier is logistic regression on multilingual sentence vectors, one per language.
``python -m research.negative`` fits it on the development sets of PunMemeCN (sentiment) and
MER-Bench (polarity), and writes ``negative.json`` with the errors that were measured on the locked
test sets (docs/research/reappraisal-negative.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import orjson

from memantics.core.errors import MissingExtra
from memantics.models.embedded.encoder import open_encoder
from memantics.understanding.reappraisal.kindness import clean_caption, read_caption
from memantics.understanding.reappraisal.situation import understand
from memantics.understanding.vision.regions import has_chinese

HEADS = Path(__file__).with_name("negative.json")
NegativeSource = Literal["lists", "classifier", "both", "none"]


@dataclass(frozen=True, slots=True)
class NegativeHead:
    """The classifier of one language: weights with the intercept last, and its threshold."""

    weights: tuple[float, ...]
    threshold: float


@dataclass(frozen=True, slots=True)
class NegativeEstimate:
    """Whether captions are negative, and which part found it.

    ``listed`` tells whether a word list found something negative. ``probability`` is that of the
    classifier; None if the sentence encoder is not installed. The meme counts as negative if one of
    both says so.
    """

    listed: bool
    probability: float | None
    threshold: float

    @property
    def classified(self) -> bool:
        """Whether the classifier counts the captions as negative."""
        return self.probability is not None and self.probability >= self.threshold

    @property
    def negative(self) -> bool:
        """Whether the captions count as negative."""
        return self.listed or self.classified

    @property
    def source(self) -> NegativeSource:
        """The part that found the captions negative."""
        if self.listed:
            return "both" if self.classified else "lists"
        return "classifier" if self.classified else "none"


@cache
def load_heads() -> dict[str, NegativeHead]:
    """Load the classifiers, one per language."""
    stored = orjson.loads(HEADS.read_bytes())
    return {
        language: NegativeHead(tuple(one["weights"]), one["threshold"])
        for language, one in stored.items()
    }


def estimate_negative(captions: Sequence[str]) -> NegativeEstimate:
    """Estimate whether the captions of a meme are negative, by word lists and a classifier.

    Args:
        captions: The captions of one meme, in reading order.

    Returns:
        The findings of both; see :class:`NegativeEstimate`.

    Example:
        >>> estimate_negative(["I hate mondays"]).listed
        True
    """
    text = " ".join(captions)
    head = load_heads()["zh" if has_chinese(text) else "en"]
    found = understand(captions).negative
    plain = clean_caption(" ".join(map(read_caption, captions)))
    probability = None
    if plain:
        try:
            probability = rate(open_encoder().encode([plain])[0].tolist(), head.weights)
        except MissingExtra:
            probability = None
    return NegativeEstimate(found, probability, head.threshold)


def rate(vector: Sequence[float], weights: Sequence[float]) -> float:
    """Return the probability of negative for a sentence vector, rounded to four decimals."""
    total = weights[-1] + sum(a * b for a, b in zip(weights[:-1], vector, strict=True))
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), 4)
