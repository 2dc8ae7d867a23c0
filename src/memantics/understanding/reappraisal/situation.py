"""What the embedded planner understands of a meme before it plans: sound, cause, gravity."""

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

_LONGEST = 40  # characters: puns are short, and hearing takes time
_LIKELY = 0.2  # confidence from which a reading that carries a known feeling counts
_READING = Settings(limit=8)
_COMMON = 1.0  # powers of ten: such a reading is that much commoner than what is printed
_GLOOM = -0.25  # valence from which a text is negative without any word that we know


@dataclass(frozen=True, slots=True)
class UnderstoodLine:
    """One caption: as printed, and the reading that is meant where it is a pun."""

    printed: str
    reading: Reading | None = None

    @property
    def intended(self) -> str:
        """What a reader hears."""
        return self.reading.text if self.reading else self.printed

    @property
    def things(self) -> tuple[tuple[str, str], ...]:
        """Printed characters that are heard as others: mostly what the picture shows."""
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
    """A meme as the embedded planner understands it.

    ``cause`` is the strongest one found, ``weight`` how much was found of all; ``negative`` says
    whether that makes it a negative meme, ``grave`` quotes what nobody should joke about.
    """

    lines: tuple[UnderstoodLine, ...]
    cause: Cause | None
    weight: float
    negative: bool
    grave: str = ""

    @property
    def homophones(self) -> str:
        """What is heard where that differs from what is printed."""
        return " ".join(line.intended for line in self.lines if line.reading)


def understand(captions: Sequence[str]) -> Understanding:
    """Listen to captions and look for the causes of a bad feeling."""
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
    grave = lexicon.grave.search(said)
    return Understanding(
        lines,
        lexicon.causes.get(first) if weight else None,
        float(sum(weights.values())),
        negative,
        grave.group() if grave else "",
    )


def lexicon_of(text: str) -> Lexicon:
    """The lexicon of a text's language."""
    return read_lexicon("zh" if has_chinese(text) else "en")


@lru_cache(maxsize=256)
def find_reading(text: str) -> Reading | None:
    """The reading that a caption means: the likeliest, or a likely one that shows a known feeling.

    >>> reading = find_reading("压力山大")
    """
    if not has_chinese(text) or len(text) > _LONGEST:
        return None
    lexicon = read_lexicon("zh")
    shown = len(lexicon.find_turns(text))
    found = read_homophones(text, settings=_READING)
    for reading in filter(_same_length, found.readings):
        # A feeling that is common where the caption is not says that this is what is meant.
        likely = found.confidence >= _LIKELY and reading.gain >= _COMMON
        if likely and len(lexicon.find_turns(reading.text)) > shown:
            return reading
    if shown or found.intended is None:
        return None
    return found.intended if _same_length(found.intended) else None


def _same_length(reading: Reading) -> bool:
    return all(len(change.written) == len(change.homophone) for change in reading.changes)
