"""What reading aloud returns: readings, the spans that changed, and the evidence."""

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
# Models are told a reading from this chance on: of those told, nine in ten (trigram) and five in
# six (frequencies) were right on captions that were held out (docs/research/phonetics.md).
PROMPT_THRESHOLD = 0.8


@dataclass(frozen=True, slots=True)
class Settings:
    """How to read.

    ``model`` is the Chinese language model: ``trigram`` (kenlm and a libime model file),
    ``frequencies`` (pip data: word frequencies and character transitions), ``dictionary``
    (jieba's word list alone) or the best there is. ``model_file`` names the trigram model where
    it is not in its usual place. ``limit`` is how many readings to give, ``threshold`` the
    confidence above which the first one counts as meant.
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
    """A span of the caption that is heard as something else.

    ``start`` and ``end`` are offsets into the caption. ``distance`` is 0 for the same sound
    (tones apart), about 0.4 per merger such as n/l. ``notes`` names what differs.
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
    """One way to hear a caption.

    ``gain`` is how much more common it is than what is written, in powers of ten.
    ``score`` orders the readings of one caption; it is not comparable between captions.
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
    """A word that is both in the picture and at home in the caption: perhaps a polysemy pun."""

    word: str
    seen_as: str
    strength: float
    inside: str = ""


@dataclass(frozen=True, slots=True)
class SecondSense:
    """A word of the caption that may be meant in two ways, and why."""

    word: str
    why: str


@dataclass(frozen=True, slots=True)
class HomophoneReadings(Result):
    """What a caption may mean when it is read aloud.

    ``confidence`` is the probability that something else is meant, given how puns and plain
    captions differ; ``intended`` is the first reading where it is above the threshold. ``chance`` is
    the measured one that this very reading is right. ``evidence`` are
    words of the picture's description that support the literal reading. ``double_meanings`` are
    a separate, weaker signal for puns whose sound does not change; ``senses`` are words with a
    second sense in the dictionary. ``notes`` say what was left out and why.
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
        """The reading that is probably meant, if there is one."""
        return self.readings[0] if self.readings and self.confidence >= self.threshold else None

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data for a file or a service."""
        # Not super(): a dataclass with slots is another class than the one that is read here.
        return Result.to_dict(self) | {"intended": self.intended.text if self.intended else None}

    def _repr_html_(self) -> str:
        rows = tuple(
            (r.text, r.pronunciation, f"{r.gain:+.1f}", f"{r.distance:g}") for r in self.readings
        )
        columns = ("reading", "pronunciation", ">gain", ">distance")
        return Table(columns, rows, explain(self, alternatives=0)[0])._repr_html_()


def explain(readings: HomophoneReadings, *, alternatives: int = 2) -> tuple[str, ...]:
    """Say what was heard, how near it is, and what supports it.

    The first line is the verdict; every line stands for itself and holds no line break.
    """
    lines, english = [_head(readings)], readings.language == "en"
    if readings.readings:
        lines.append(_details(readings.readings[0], "sounds" if english else "syllables"))
        lines += [f"span: {_span(change)}" for change in readings.readings[0].changes]
        others = [f"{r.text} ({r.pronunciation})" for r in readings.readings[1 : 1 + alternatives]]
        if others:
            lines.append("or: " + "; ".join(others))
    if readings.evidence:
        quoted = ", ".join(f"'{word}'" for word in readings.evidence)
        lines.append(f"literal reading supported by {quoted} in the picture")
    for double in readings.double_meanings:
        inside = f" inside {double.inside}" if double.inside else ""
        seen = f" as '{double.seen_as}'" if double.seen_as != double.word else ""
        lines.append(f"perhaps a double meaning: {double.word}{inside} is in the picture{seen}")
    lines += [f"note: {note}" for note in readings.notes]
    return tuple(" ".join(line.split()) for line in lines)


_BEHIND = 4.0  # of the score: on the sample puns the right reading is never further behind


def hint(readings: HomophoneReadings, *, limit: int = 3) -> str:
    """One line for a prompt: what else may be meant, and the chance that the first of it is right.

    Empty where it hears nothing else, or the chance is below ``PROMPT_THRESHOLD``. Script variants of the
    caption, readings less than ten times as common as what is written, the meant one apart, and
    those far behind it are left out.
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
        return f"{said or '(empty)'}: no other reading"
    first = readings.readings[0]
    if readings.intended:
        return f"{said} → {first.text} ({first.pronunciation}), {percent} sure"
    return f"{said}: probably just what it says; nearest other reading {first.text}, {percent} sure"


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
        return "as common as what is written"
    word = "more" if gain > 0 else "less"
    times = 10 ** min(abs(gain), 9)
    rounded = f"{times:.0f}" if times < 100 else f"10^{abs(gain):.0f}"
    return f"{rounded} times {word} common than what is written"


def _span(change: HomophoneSpan) -> str:
    return (
        f"{change.written} ({change.written_pronunciation}) → {change.homophone} ({change.homophone_pronunciation}),"
        f" sound distance {change.distance:g}"
    )
