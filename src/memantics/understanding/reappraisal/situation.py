"""Captions with their homophone readings, and whether word lists find them negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.reading import Reading, Settings
from memantics.understanding.reappraisal.expressions import find_expressions, load_expressions
from memantics.understanding.reappraisal.kindness import feel
from memantics.understanding.vision.regions import has_chinese

_LONGEST = 40  # maximum number of characters; longer texts get no homophone reading, to save time
_LIKELY = 0.2  # minimum confidence of a reading that expresses a known emotion
_READING = Settings(limit=8)
# minimum gain of such a reading over the printed text, as log10 of the probability ratio
_COMMON = 1.0
_GLOOM = -0.25  # maximum valence of a text that is negative without a listed expression


@dataclass(frozen=True, slots=True)
class UnderstoodLine:
    """One caption: the printed text and, for a pun, its intended reading."""

    printed: str
    reading: Reading | None = None

    @property
    def intended(self) -> str:
        """The intended reading, or the printed text."""
        return self.reading.text if self.reading else self.printed


@dataclass(frozen=True, slots=True)
class Understanding:
    """The captions of a meme; ``negative`` tells whether the word lists find them negative."""

    lines: tuple[UnderstoodLine, ...]
    negative: bool


def understand(captions: Sequence[str]) -> Understanding:
    """Read captions for homophones, and look for expressions of a negative emotion."""
    lines = tuple(UnderstoodLine(text, find_reading(text)) for text in captions)
    mood = feel(" ".join(line.intended for line in lines))
    listed = any(find_expressions(line.intended).find(line.intended) for line in lines)
    negative = listed or bool(mood.rude or mood.gloomy) or mood.valence <= _GLOOM
    return Understanding(lines, negative)


@lru_cache(maxsize=256)
def find_reading(text: str) -> Reading | None:
    """Find the intended reading: the most probable, or a probable one with a known emotion.

    >>> reading = find_reading("压力山大")
    """
    if not has_chinese(text) or len(text) > _LONGEST:
        return None
    expressions = load_expressions("chinese")
    shown = len(expressions.find(text))
    found = read_homophones(text, settings=_READING)
    for reading in filter(_same_length, found.readings):
        # An emotion word that is more frequent than the printed text is probably the intended
        # reading.
        likely = found.confidence >= _LIKELY and reading.gain >= _COMMON
        if likely and len(expressions.find(reading.text)) > shown:
            return reading
    if shown or found.intended is None:
        return None
    return found.intended if _same_length(found.intended) else None


def _same_length(reading: Reading) -> bool:
    return all(len(change.written) == len(change.homophone) for change in reading.changes)
