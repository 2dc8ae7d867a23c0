"""What the offline planner knows about a meme: homophone readings and cause of emotion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.reading import Reading, Settings
from memantics.understanding.reappraisal.kindness import feel
from memantics.understanding.reappraisal.lexicon import Cause, Lexicon, read_lexicon
from memantics.understanding.vision.regions import has_chinese

_LONGEST = 40  # maximum number of characters; longer texts get no homophone reading, to save time
_LIKELY = 0.2  # minimum confidence of a reading that expresses a known emotion
_READING = Settings(limit=8)
# minimum gain of such a reading over the printed text, as log10 of the probability ratio
_COMMON = 1.0
_GLOOM = -0.25  # maximum valence of a text that is negative without a word of the lexicon


@dataclass(frozen=True, slots=True)
class UnderstoodLine:
    """One caption: the printed text and, for a pun, its intended reading."""

    printed: str
    reading: Reading | None = None

    @property
    def intended(self) -> str:
        """The intended reading, or the printed text."""
        return self.reading.text if self.reading else self.printed

    @property
    def things(self) -> tuple[tuple[str, str], ...]:
        """Printed characters that replace homophones; mostly things visible in the image."""
        changes = self.reading.changes if self.reading else ()
        return tuple(
            pair
            for change in changes
            if len(change.written) == len(change.homophone)
            for pair in zip(change.written, change.homophone, strict=True)
            if pair[0] != pair[1]
        )


@dataclass(frozen=True, slots=True)
class Understanding:
    """The embedded planner's analysis of a meme.

    ``cause`` is the strongest cause found, ``weight`` the total weight of causes. ``negative``
    tells whether the meme counts as negative.
    """

    lines: tuple[UnderstoodLine, ...]
    cause: Cause | None
    weight: float
    negative: bool

    @property
    def homophones(self) -> str:
        """The intended readings of the captions that are puns."""
        return " ".join(line.intended for line in self.lines if line.reading)


def understand(captions: Sequence[str]) -> Understanding:
    """Read captions for homophones and find the causes of a negative emotion."""
    lines = tuple(UnderstoodLine(text, find_reading(text)) for text in captions)
    said = " ".join(line.intended for line in lines)
    lexicon = lexicon_of(said)
    weights: Counter[str] = Counter()
    for line in lines:
        weights.update(lexicon_of(line.intended).weigh(line.intended))
    mood = feel(said)
    turns = any(lexicon_of(line.intended).find_turns(line.intended) for line in lines)
    negative = turns or bool(mood.rude or mood.gloomy) or mood.valence <= _GLOOM
    first, weight = max(weights.items(), key=lambda pair: pair[1], default=("", 0.0))
    return Understanding(
        lines,
        lexicon.causes.get(first) if weight else None,
        float(sum(weights.values())),
        negative,
    )


def lexicon_of(text: str) -> Lexicon:
    """Return the lexicon of rewordings in the language of a text."""
    return read_lexicon("zh" if has_chinese(text) else "en")


@lru_cache(maxsize=256)
def find_reading(text: str) -> Reading | None:
    """Find the intended reading: the most probable, or a probable one with a known emotion.

    >>> reading = find_reading("压力山大")
    """
    if not has_chinese(text) or len(text) > _LONGEST:
        return None
    lexicon = read_lexicon("zh")
    shown = len(lexicon.find_turns(text))
    found = read_homophones(text, settings=_READING)
    for reading in filter(_same_length, found.readings):
        # An emotion word that is more frequent than the printed text is probably the intended
        # reading.
        likely = found.confidence >= _LIKELY and reading.gain >= _COMMON
        if likely and len(lexicon.find_turns(reading.text)) > shown:
            return reading
    if shown or found.intended is None:
        return None
    return found.intended if _same_length(found.intended) else None


def _same_length(reading: Reading) -> bool:
    return all(len(change.written) == len(change.homophone) for change in reading.changes)
