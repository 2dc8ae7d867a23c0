"""What is said about a meme, part by part; every part names who said it.

Homophone readings of a caption, as parts of an analysis.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from pydantic import JsonValue, TypeAdapter

from memantics.core.labels import ClassifierPrediction
from memantics.core.language import UNKNOWN
from memantics.core.lines import TextLine
from memantics.core.memes import HOMOPHONES, Meme
from memantics.core.result import Result, to_plain
from memantics.core.retrieval import NearMeme, TemplateClusterUse
from memantics.core.text import show_probability
from memantics.models.drafts import name_language
from memantics.understanding.knowledge.records import Knowledge
from memantics.understanding.phonetics.reading import PROMPT_THRESHOLD
from memantics.understanding.vision.appearance import Sight

Counts = dict[str, int]
_KNOWLEDGE = TypeAdapter(Knowledge)
Said = TypeVar("Said", "Harm", "Feeling")


@dataclass(frozen=True, slots=True)
class Harm:
    """Whether a meme is harmful, how, and what in it moves the verdict.

    ``score`` is a probability where ``by`` is a detector. ``elements`` are the words or parts
    behind the verdict, the strongest first. A ``baseline`` is no verdict to rely on.
    """

    harmful: bool
    by: str
    score: float | None = None
    type: str = ""
    target: str = ""
    elements: tuple[str, ...] = ()
    reason: str = ""
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class HomophoneFinding:
    """A caption that may be heard as something else; ``confidence`` is that it is this."""

    caption: str
    reading: str
    confidence: float
    lines: tuple[str, ...] = ()


def describe_homophones(homophones: Iterable[HomophoneFinding]) -> dict[str, str]:
    """What captions are heard as, as a note for prompts; none where nothing is sure enough.

    >>> describe_homophones([HomophoneFinding("鸭梨山大", "压力山大", 0.82)]), describe_homophones([HomophoneFinding("鸽", "个", 0.79)])
    ({'heard as': '压力山大 (82% sure)'}, {})
    """
    note = "; ".join(
        f"{homophone.reading} ({show_probability(homophone.confidence)} sure)"
        for homophone in homophones
        if homophone.confidence >= PROMPT_THRESHOLD
    )
    return {HOMOPHONES: note} if note else {}


SeenReading = Literal["written", "other", "both", "neither"]


@dataclass(frozen=True, slots=True)
class PunSeen:
    """What a model that sees the picture says: what it shows, the word, its two readings.

    ``picture`` describes what is seen without the text in it; ``seen`` says which reading shows.
    """

    is_pun: bool
    picture: str
    word: str
    written: str
    other: str
    seen: SeenReading
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class Feeling:
    """The emotion that a meme carries, and who says so."""

    emotion: str
    by: str
    reason: str = ""
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What two parts of an analysis say differently, in words."""

    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A part that was left out, and what would bring it."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True)
class Findings(Result):
    """All that was found out about one meme. Parts that are None or empty are in ``missing``.

    ``shows`` is what can be seen without a model. Verdicts and emotions of a model stand before
    those of this machine. ``predictions`` are what the classifiers in use say beside the emotion;
    ``near`` are known memes that say or show nearly the same, ``template_cluster`` those on the same picture.
    Baselines (the sample data's detector, the embedded reader) are shown as findings only where
    nobody else judged. ``printed`` are all lines of text with their roles, in an image of that
    ``size``; ``lines`` are the captions among them.
    """

    meme: Meme
    lines: tuple[str, ...] = ()
    language: str = ""
    panels: int = 1
    shows: tuple[Sight, ...] = ()
    model: str = ""
    knowledge: Knowledge | None = None
    intents: tuple[str, ...] = ()
    background: tuple[str, ...] = ()
    harms: tuple[Harm, ...] = ()
    homophones: tuple[HomophoneFinding, ...] = ()
    pun: PunSeen | None = None
    feelings: tuple[Feeling, ...] = ()
    predictions: tuple[ClassifierPrediction, ...] = ()
    near: tuple[NearMeme, ...] = ()
    template_cluster: TemplateClusterUse | None = None
    contradictions: tuple[Contradiction, ...] = ()
    missing: tuple[Missing, ...] = ()
    statuses: Counts = field(default_factory=dict)
    printed: tuple[TextLine, ...] = ()
    size: tuple[int, int] = (0, 0)

    @property
    def beside(self) -> tuple[TextLine, ...]:
        """Lines of text that are no captions."""
        return tuple(line for line in self.printed if line.role != "caption")

    @property
    def text(self) -> str:
        """What is printed on it."""
        return self.meme.text or " / ".join(self.lines)

    @property
    def verdicts(self) -> tuple[Harm, ...]:
        """The verdicts on harm that count: a baseline's only where there is no other."""
        return _leave_baselines(self.harms)

    @property
    def moods(self) -> tuple[Feeling, ...]:
        """The emotions that count, likewise."""
        return _leave_baselines(self.feelings)

    @property
    def baselines(self) -> tuple[str, ...]:
        """What baselines said where a verdict to rely on is there too, in words."""
        said = []
        for harm in self.harms:
            if harm not in self.verdicts:
                word = "harmful" if harm.harmful else "not harmful"
                same = harm.harmful == self.verdicts[0].harmful
                said.append(_tell_baseline(harm.by, word, self.verdicts[0].by, same=same))
        for feeling in self.feelings:
            if feeling not in self.moods:
                same = feeling.emotion == self.moods[0].emotion
                by = self.moods[0].by
                said.append(_tell_baseline(feeling.by, feeling.emotion, by, same=same))
        return tuple(said)

    @property
    def gaps(self) -> str:
        """What was left out and what would bring it, in one line."""
        parts: dict[str, list[str]] = {}
        for gap in self.missing:
            parts.setdefault(gap.reason, []).append(gap.part)
        return " · ".join(f"{', '.join(names)}: {reason}" for reason, names in parts.items())

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
            "caption": "\n".join(self.lines),
            "printed": to_plain(self.printed),
            "language": self.language,
            "panels": self.panels,
            "shows": to_plain(self.shows),
            "model": self.model,
            "homophones": to_plain(self.homophones),
            "pun": to_plain(self.pun),
            "intents": list(self.intents),
            "background": list(self.background),
            "harm": to_plain(self.verdicts),
            "emotion": to_plain(self.moods),
            "predictions": to_plain(self.predictions),
            "near": to_plain(self.near),
            "template_cluster": to_plain(self.template_cluster),
            "contradictions": to_plain(self.contradictions),
            "baselines": list(self.baselines),
            "knowledge": _KNOWLEDGE.dump_python(known, mode="json") if known else None,
            "missing": to_plain(self.missing),
            "statuses": dict(self.statuses),
        }


def _leave_baselines(said: tuple[Said, ...]) -> tuple[Said, ...]:
    return tuple(harm for harm in said if not harm.baseline) or said


def _tell_baseline(by: str, said: str, other: str, *, same: bool) -> str:
    return f"{by} says {said}, {'like' if same else 'unlike'} {other}; do not rely on this verdict"


def find_homophones(text: str, language: str) -> list[HomophoneFinding]:
    """What a caption may be heard as; languages without a sound model are passed over."""
    from memantics.understanding.phonetics.homophones import read_homophones
    from memantics.understanding.phonetics.reading import Settings, explain

    if language not in ("en", "zh"):
        return []
    found = read_homophones(text, settings=Settings(language="zh" if language == "zh" else "en"))
    if not found.intended:
        return []
    return [
        HomophoneFinding(
            text, found.intended.text, found.reading_probability, tuple(explain(found))
        )
    ]
