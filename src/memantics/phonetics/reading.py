"""What reading aloud returns: readings, the spans that changed, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from memantics.core.errors import InputError

Language = Literal["zh", "en"]
ModelName = Literal["auto", "trigram", "frequencies", "dictionary"]

MAX_CHARACTERS = 120
DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """How to read.

    ``model`` is the Chinese language model: ``trigram`` (kenlm and a libime model file),
    ``frequencies`` (pip data: word frequencies and character transitions), ``dictionary``
    (jieba's word list alone) or the best there is. ``model_file`` names the trigram model where
    it is not in its usual place. ``limit`` is how many readings to give, ``threshold`` the
    confidence above which the first one counts as meant.
    """

    language: Language | Literal["auto"] = "auto"
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
class Change:
    """A span of the caption that is heard as something else.

    ``start`` and ``end`` are offsets into the caption. ``distance`` is 0 for the same sound
    (tones apart), about 0.4 per merger such as n/l. ``notes`` names what differs.
    """

    start: int
    end: int
    written: str
    heard: str
    written_sound: str
    heard_sound: str
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
    sound: str
    score: float
    gain: float
    distance: float
    syllables: int
    syllables_matched: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class DoubleMeaning:
    """A word that is both in the picture and at home in the caption: perhaps a polysemy pun."""

    word: str
    seen_as: str
    strength: float
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Readings:
    """What a caption may mean when it is read aloud.

    ``confidence`` is the probability that the first reading is meant, given how puns and plain
    captions differ; ``meant`` is that reading where it is above the threshold. ``evidence`` are
    words of the picture's description that support the literal reading. ``double_meanings`` are
    a separate, weaker signal for puns whose sound does not change. ``notes`` say what was left
    out and why.
    """

    caption: str
    language: Language
    model: str
    sound: str
    readings: tuple[Reading, ...]
    confidence: float
    threshold: float
    evidence: tuple[str, ...] = ()
    double_meanings: tuple[DoubleMeaning, ...] = ()
    notes: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)

    @property
    def meant(self) -> Reading | None:
        """The reading that is probably meant, if there is one."""
        return self.readings[0] if self.readings and self.confidence >= self.threshold else None

    def to_json(self) -> dict[str, JsonValue]:
        """Plain data for a file or a service."""
        value: dict[str, JsonValue] = asdict(self)
        value["meant"] = self.meant.text if self.meant else None
        return value
