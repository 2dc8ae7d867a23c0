"""Result types of an analysis; every part names its source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from pydantic import JsonValue, TypeAdapter

from memantics.core.labels import ClassifierPrediction
from memantics.core.language import UNKNOWN
from memantics.core.lines import Alternatives, TextLine
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
    """A verdict on harm: label, type, target and the elements behind it.

    ``score`` is a probability if ``by`` is a detector. ``elements`` are the words or parts with the
    strongest influence, strongest first. A ``baseline`` verdict is not reliable.
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
    """A homophone reading of a caption; ``confidence`` is the probability that it is right."""

    caption: str
    reading: str
    confidence: float
    lines: tuple[str, ...] = ()


def describe_homophones(homophones: Iterable[HomophoneFinding]) -> dict[str, str]:
    """Write homophone readings as a note for prompts; empty if none is confident enough.

    >>> describe_homophones([HomophoneFinding("鸭梨山大", "压力山大", 0.82)])
    {'heard as': '压力山大 (82% sure)'}
    >>> describe_homophones([HomophoneFinding("鸽", "个", 0.79)])
    {}
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
    """A vision-language model's answer about a pun: the word and its two readings.

    ``picture`` describes the image without its text; ``seen`` names the visible reading.
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
    """The emotion of a meme and its source."""

    emotion: str
    by: str
    reason: str = ""
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A contradiction between two parts of an analysis, in words."""

    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing part of an analysis, and how to get it."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True)
class Findings(Result):
    """All results about one meme; parts that are None or empty are listed in ``missing``.

    ``shows`` is visual content found without a model. Verdicts and emotions of a model come before
    those of local tools. ``predictions`` are those of the classifiers in use, except the emotion.
    ``near`` are known memes with similar text or image, ``template_cluster`` known memes on the
    same image. Baselines are the detector trained on the sample data and the embedded reader, a
    small model shipped with the package. They count only if there is no other verdict. ``printed``
    are all text lines with their roles, in an image of that ``size``; ``lines`` are the captions
    among them.
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
        """Text lines that are not captions."""
        return tuple(line for line in self.printed if line.role != "caption")

    @property
    def text(self) -> str:
        """The caption text of the meme."""
        return self.meme.text or " / ".join(self.lines)

    @property
    def verdicts(self) -> tuple[Harm, ...]:
        """The harm verdicts that count; weak baselines count only without other verdicts."""
        return _leave_baselines(self.harms)

    @property
    def moods(self) -> tuple[Feeling, ...]:
        """The emotions that count; unreliable baselines count only if there is no other source."""
        return _leave_baselines(self.feelings)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Baseline results in words, if a more reliable verdict exists."""
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
        """The missing parts and how to get them, in one line."""
        parts: dict[str, list[str]] = {}
        for gap in self.missing:
            parts.setdefault(gap.reason, []).append(gap.part)
        return " · ".join(f"{', '.join(names)}: {reason}" for reason, names in parts.items())

    @property
    def form(self) -> str:
        """Language and number of panels in words."""
        unknown = self.language == UNKNOWN
        language = "no language recognised" if unknown else name_language(self.language)
        return f"{language}, {self.panels} panel{'s' if self.panels != 1 else ''}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the whole analysis as plain data for JSON."""
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
    return f"{by}: {said}, {'like' if same else 'unlike'} {other}; a baseline, not reliable"


def find_homophones(
    text: str, language: str, alternatives: Alternatives | None = None
) -> list[HomophoneFinding]:
    """Find the homophone reading of a caption in Chinese or English; empty for other languages.

    ``alternatives`` are characters that OCR considered, by offset into the caption.
    """
    from memantics.understanding.phonetics.homophones import read_homophones
    from memantics.understanding.phonetics.reading import Settings, explain

    if language not in ("en", "zh"):
        return []
    settings = Settings(language="zh" if language == "zh" else "en")
    found = read_homophones(text, settings=settings, alternatives=alternatives or {})
    if not found.intended:
        return []
    return [
        HomophoneFinding(
            " ".join(text.split()),
            found.intended.text,
            found.reading_probability,
            tuple(explain(found)),
        )
    ]
