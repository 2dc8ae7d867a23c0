"""Result types of homophone readings: settings, readings, changed spans and explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.result import Result, Table
from memantics.core.text import show_probability
from memantics.understanding.phonetics.caption import simplify

ReadingLanguage = Literal["zh", "en"]
CaptionLanguage = Literal["auto", "zh", "en"]
ModelName = Literal["auto", "trigram", "frequencies", "dictionary"]

MAX_CHARACTERS = 120
DEFAULT_THRESHOLD = 0.5
# Readings with at least this probability are given in prompts. On held-out captions, 90 % of such
# readings were right with the trigram model and 83 % with word frequencies
# (docs/research/puns-prompts.md).
PROMPT_THRESHOLD = 0.8


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of homophone readings.

    ``model`` is the Chinese language model: ``trigram`` (kenlm and a libime model file),
    ``frequencies`` (word frequencies and character transitions from pip packages), ``dictionary``
    (jieba's word list) or ``auto`` (the best one installed). ``model_file`` is the path of the
    trigram model if it is not in the default location. ``limit`` is the maximum number of readings.
    The first reading is the intended one if its confidence reaches ``threshold``.
    """

    language: CaptionLanguage = "auto"
    model: ModelName = "auto"
    model_file: Path | None = None
    limit: int = 5
    threshold: float = DEFAULT_THRESHOLD
    max_characters: int = MAX_CHARACTERS

    def __post_init__(self) -> None:
        for name, low, high in (
            ("limit", 1, 50),
            ("threshold", 0.0, 1.0),
            ("max_characters", 1, MAX_CHARACTERS * 4),
        ):
            if not low <= getattr(self, name) <= high:
                raise InputError(
                    f"{name} {getattr(self, name)} is out of range", hint=f"use {low} to {high}"
                )


@dataclass(frozen=True, slots=True)
class HomophoneSpan:
    """A span of the caption with a homophone.

    ``start`` and ``end`` are offsets into the caption. ``distance`` is the phonetic distance: 0 for
    the same toneless syllables, and about 0.4 for each pair that many speakers do not distinguish,
    such as n/l. ``notes`` names the phonetic differences.
    """

    start: int
    end: int
    written: str
    homophone: str
    written_pronunciation: str
    homophone_pronunciation: str
    distance: float
    tones_differ: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """One homophone reading of a caption.

    ``gain`` is the log10 ratio of its language-model probability to that of the written text.
    ``score`` ranks the readings of one caption; it is not comparable between captions.
    """

    text: str
    pronunciation: str
    score: float
    gain: float
    distance: float
    syllables: int
    syllables_matched: int
    changes: tuple[HomophoneSpan, ...]


@dataclass(frozen=True, slots=True)
class DoubleMeaning:
    """A word of the caption that is also visible in the image: a possible polysemy pun."""

    word: str
    seen_as: str
    strength: float
    inside: str = ""


@dataclass(frozen=True, slots=True)
class SecondSense:
    """A word of the caption that has a second sense in the dictionary."""

    word: str
    why: str


@dataclass(frozen=True, slots=True)
class HomophoneReadings(Result):
    """The homophone readings of a caption, with the evidence for them.

    ``confidence`` is the probability that the caption has another intended reading. ``intended`` is
    the first reading if ``confidence`` reaches the threshold, else None. ``reading_probability`` is
    the calibrated probability that this first reading is right. ``evidence`` lists words of the
    image description that support the literal reading. ``double_meanings`` are a separate, weaker
    signal for polysemy puns. ``senses`` are words with a second dictionary sense. ``notes`` explain
    what was omitted.
    """

    caption: str
    language: ReadingLanguage
    model: str
    pronunciation: str
    readings: tuple[Reading, ...]
    confidence: float
    threshold: float
    evidence: tuple[str, ...] = ()
    double_meanings: tuple[DoubleMeaning, ...] = ()
    senses: tuple[SecondSense, ...] = ()
    notes: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    reading_probability: float = 0.0

    @property
    def intended(self) -> Reading | None:
        """The intended reading; None if the confidence is below the threshold."""
        return self.readings[0] if self.readings and self.confidence >= self.threshold else None

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the result as plain data for JSON."""
        # super() fails here: slots=True replaces the class.
        return Result.to_dict(self) | {"intended": self.intended.text if self.intended else None}

    def _repr_html_(self) -> str:
        rows = tuple(
            (r.text, r.pronunciation, f"{r.gain:+.1f}", f"{r.distance:g}") for r in self.readings
        )
        columns = ("reading", "pronunciation", ">gain", ">distance")
        return Table(columns, rows, explain(self, alternatives=0)[0])._repr_html_()


def explain(readings: HomophoneReadings, *, alternatives: int = 2) -> tuple[str, ...]:
    """Explain the readings in lines of text: the result first, then the evidence.

    Each line is understandable without the others and contains no line break.
    """
    lines, english = [_head(readings)], readings.language == "en"
    if readings.readings:
        lines.append(_details(readings.readings[0], "phonemes" if english else "syllables"))
        lines += [f"span: {_span(change)}" for change in readings.readings[0].changes]
        others = [f"{r.text} ({r.pronunciation})" for r in readings.readings[1 : 1 + alternatives]]
        if others:
            lines.append("other readings: " + "; ".join(others))
    if readings.evidence:
        quoted = ", ".join(f"'{word}'" for word in readings.evidence)
        lines.append(f"the image description supports the literal reading: {quoted}")
    for double in readings.double_meanings:
        inside = f" (part of {double.inside})" if double.inside else ""
        seen = f" as '{double.seen_as}'" if double.seen_as != double.word else ""
        lines.append(f"possible double meaning: the image shows {double.word}{inside}{seen}")
    lines += [f"note: {note}" for note in readings.notes]
    return tuple(" ".join(line.split()) for line in lines)


# maximum score difference from the best reading; on the sample puns, the difference of the correct
# reading is never larger
_BEHIND = 4.0


def hint(readings: HomophoneReadings, *, limit: int = 3) -> str:
    """Write the readings as one line for a prompt, with the probability of the first.

    The line is empty without an intended reading, or if its probability is below
    ``PROMPT_THRESHOLD``. It omits script variants of the caption and readings with a much lower
    score. Except for the intended one, readings must be at least ten times as probable as the
    written text.
    """
    if readings.intended is None or readings.reading_probability < PROMPT_THRESHOLD:
        return ""
    plain = "".join(map(simplify, readings.caption))
    likely = [
        reading
        for reading in readings.readings
        if (reading is readings.intended or reading.gain >= 1)
        and reading.score > readings.intended.score - _BEHIND
        and "".join(map(simplify, reading.text)) != plain
    ]
    named = "; ".join(f"{reading.text} ({reading.pronunciation})" for reading in likely[:limit])
    return f"{show_probability(readings.reading_probability)}: {named}" if named else ""


def _head(readings: HomophoneReadings) -> str:
    said = (
        f"{readings.caption} ({readings.pronunciation})"
        if readings.pronunciation
        else readings.caption
    )
    percent = show_probability(readings.confidence)
    if not readings.readings:
        return f"{said or '(empty)'}: no homophone reading found"
    first = readings.readings[0]
    if readings.intended:
        return f"{said} → {first.text} ({first.pronunciation}), confidence {percent}"
    return f"{said}: probably literal; nearest other reading {first.text}, confidence {percent}"


def _details(reading: Reading, unit: str) -> str:
    notes = [note for change in reading.changes for note in change.notes]
    tones = sum(change.tones_differ for change in reading.changes)
    parts = [f"{reading.syllables_matched} of {reading.syllables} {unit} match"]
    parts += dict.fromkeys(notes)
    if tones:
        parts.append(f"{tones} tone{'s' if tones > 1 else ''} differ{'s' if tones == 1 else ''}")
    parts.append(_commonness(reading.gain))
    return "; ".join(parts)


def _commonness(gain: float) -> str:
    if abs(gain) < 0.3:
        return "as probable as the written text"
    word = "more" if gain > 0 else "less"
    times = 10 ** min(abs(gain), 9)
    rounded = f"{times:.0f}" if times < 100 else f"10^{abs(gain):.0f}"
    return f"{rounded} times {word} probable than the written text"


def _span(change: HomophoneSpan) -> str:
    return (
        f"{change.written} ({change.written_pronunciation}) → "
        f"{change.homophone} ({change.homophone_pronunciation}),"
        f" phonetic distance {change.distance:g}"
    )
