"""What is said about a meme, part by part; every part names who said it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import JsonValue, TypeAdapter

from memantics.build.drafts import name_language
from memantics.core.language import UNKNOWN
from memantics.core.memes import Meme
from memantics.core.result import Result, to_plain
from memantics.knowledge.records import Knowledge

Counts = dict[str, int]
_KNOWLEDGE = TypeAdapter(Knowledge)


@dataclass(frozen=True, slots=True)
class Harm:
    """Whether a meme is harmful, how, and what in it moves the verdict.

    ``score`` is a probability where ``by`` is a detector. ``elements`` are the words or parts
    behind the verdict, the strongest first.
    """

    harmful: bool
    by: str
    score: float | None = None
    type: str = ""
    target: str = ""
    elements: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sound:
    """A caption that may be heard as something else."""

    caption: str
    reading: str
    confidence: float
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feeling:
    """The emotion that a meme carries, and who says so."""

    emotion: str
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """A part that was left out, and what would bring it."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True)
class Findings(Result):
    """All that was found out about one meme. Parts that are None or empty are in ``missing``.

    Verdicts and emotions of a model stand before those of this machine.
    """

    meme: Meme
    lines: tuple[str, ...] = ()
    language: str = ""
    panels: int = 1
    model: str = ""
    knowledge: Knowledge | None = None
    intents: tuple[str, ...] = ()
    background: tuple[str, ...] = ()
    harms: tuple[Harm, ...] = ()
    sounds: tuple[Sound, ...] = ()
    feelings: tuple[Feeling, ...] = ()
    missing: tuple[Missing, ...] = ()
    statuses: Counts = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What is printed on it."""
        return self.meme.text or " / ".join(self.lines)

    @property
    def form(self) -> str:
        """Language and panels in words."""
        unknown = self.language == UNKNOWN
        language = "no language recognised" if unknown else name_language(self.language)
        return f"{language}, {self.panels} panel{'s' if self.panels != 1 else ''}"

    def to_dict(self) -> dict[str, JsonValue]:
        """The whole analysis as plain data."""
        known = self.knowledge
        return {
            "meme": self.meme.id,
            "image": str(self.meme.image),
            "text": self.text,
            "lines": list(self.lines),
            "language": self.language,
            "panels": self.panels,
            "model": self.model,
            "sounds": to_plain(self.sounds),
            "intents": list(self.intents),
            "background": list(self.background),
            "harm": to_plain(self.harms),
            "emotion": to_plain(self.feelings),
            "knowledge": _KNOWLEDGE.dump_python(known, mode="json") if known else None,
            "left_out": to_plain(self.missing),
            "statuses": dict(self.statuses),
        }
