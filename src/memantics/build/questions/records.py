"""Questions as they are planned, drafted, built and set aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from memantics.core.records import Sampling
from memantics.knowledge.ontology.vocabulary import Dimension
from memantics.knowledge.records import Provenance

Role = Literal["correct", "plausible", "spare", "implausible", "borrowed", "none"]
Written = Literal["correct", "plausible", "spare", "implausible"]
WRITTEN: tuple[Written, ...] = get_args(Written)
WRONG: tuple[Written, ...] = ("plausible", "spare", "implausible")
Critic = Literal["statistics", "model", "both", "off"]
_DENSE = frozenset({"zh", "ja", "ko"})
NONE_TEXTS: Mapping[str, str] = {"en": "None of the others", "zh": "其他都不对"}


@dataclass(frozen=True, slots=True)
class QuestionSettings:
    """How questions are built.

    ``none_share`` is the share of items whose key is "None of the others". ``words`` bounds the
    length of an option. ``tolerance`` is how far, at the end, the rates at which length or a
    blind solver finds the key may lie from chance. ``rewrites`` bounds how often the critic
    sends a finished item back.
    """

    per_dimension: int = 1
    dimensions: tuple[Dimension, ...] = ()
    none_share: float = 0.25
    words: int = 8
    attempts: int = 3
    rewrites: int = 1
    seed: int = 0
    language: str = "en"
    critic: Critic = "statistics"
    tolerance: float = 0.05
    sampling: Sampling = field(default_factory=Sampling)

    @property
    def letters(self) -> int:
        """About how many characters an option with all its words has: Chinese has two to a word."""
        return self.words * (2 if self.language in _DENSE else 6)

    @property
    def none_text(self) -> str:
        """The text of the last resort, in the language of the questions."""
        return NONE_TEXTS.get(self.language, NONE_TEXTS["en"])


@dataclass(frozen=True, slots=True)
class Slot:
    """A question to be written: about which individual (``focus``), and in which pair.

    ``pair`` is the id of the toxicity question whose toxic element this one is about.
    ``longest`` is the option that shall be the longest, so that length says nothing.
    """

    id: str
    meme: str
    dimension: Dimension
    focus: str
    longest: Written
    pair: str = ""


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """What a model wrote for a slot. ``spare`` is a wrong option for items without a right one.

    A wrong option that is empty could not be used: one is lent in its place.
    """

    question: str
    correct: str
    plausible: str
    spare: str
    implausible: str
    explanation: str
    cites: tuple[str, ...]

    @property
    def usable(self) -> tuple[Written, ...]:
        """The wrong options that are there."""
        return tuple(role for role in WRONG if self.text_of(role))

    def text_of(self, role: Written) -> str:
        """The option of that role."""
        return {
            "correct": self.correct,
            "plausible": self.plausible,
            "spare": self.spare,
            "implausible": self.implausible,
        }[role]


@dataclass(frozen=True, slots=True)
class QuestionOption:
    """One option; ``origin`` is where a borrowed one is right: a question or an individual."""

    text: str
    role: Role
    origin: str = ""


@dataclass(frozen=True, slots=True)
class DraftQuestion:
    """A finished question. ``answer`` is the place of the key; the order came from ``seed``."""

    id: str
    meme: str
    dimension: Dimension
    question: str
    options: tuple[QuestionOption, ...]
    answer: int
    explanation: str
    cites: tuple[str, ...]
    focus: str
    seed: int
    language: str = "en"
    pair: str = ""
    provenance: Provenance | None = None
    notes: tuple[str, ...] = ()

    @property
    def none_is_key(self) -> bool:
        """Whether none of the other options is right."""
        return self.options[self.answer].role == "none"


@dataclass(frozen=True, slots=True)
class SetAside:
    """A slot that became no question: at which stage, and why. ``draft`` is the last one."""

    id: str
    meme: str
    dimension: Dimension
    stage: str
    reason: str
    draft: QuestionDraft | None = None


@dataclass(frozen=True, slots=True)
class Defect:
    """Something that is wrong with a draft.

    ``mendable`` ones can also be met without a rewrite. ``role`` is the wrong option at fault: if
    it comes to the worst, another meme lends one in its place.
    """

    code: str
    message: str
    mendable: bool = False
    role: Written | None = None
