"""What each stage of a reappraisal says, as it stands in its file."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from memantics.core.closed import Closed
from memantics.core.errors import UnknownName

Emotion = Literal["sad", "angry", "tense", "bored"]
Target = Literal["happy", "calm", "relaxed", "excited"]
VisualType = Literal[
    "Template_StylizedMeme", "Object_Animal_Dominant", "Photo_RealPerson", "Cartoon_Anime"
]
Polarity = Literal["Negative", "Neutral", "Positive"]
Layout = Literal["SinglePanel", "MultiPanel"]
EMOTIONS: tuple[Emotion, ...] = get_args(Emotion)
TARGETS: tuple[Target, ...] = get_args(Target)
VISUAL_TYPES: tuple[VisualType, ...] = get_args(VisualType)
POLARITIES: tuple[Polarity, ...] = get_args(Polarity)
# The only pairs there are: a reappraisal keeps the situation and turns its feeling.
PAIRS: dict[Emotion, Target] = {
    "sad": "happy",
    "angry": "calm",
    "tense": "relaxed",
    "bored": "excited",
}


def find_source(target: str) -> Emotion:
    """The emotion from which a target is reached.

    >>> find_source("calm")
    'angry'
    """
    for emotion, its_target in PAIRS.items():
        if its_target == target:
            return emotion
    raise UnknownName("target emotion", target, TARGETS)


class MemeFeeling(Closed):
    """Stage one: what a meme feels like and what it shows.

    ``source`` says who tells the emotion and how well, where that is not the planner's model.
    """

    emotion: Emotion
    description: str = Field(min_length=1, max_length=4000)
    visual_type: VisualType
    polarity: Polarity
    source: str = Field(default="", max_length=500)


class ReappraisalPlan(Closed):
    """Stage two: what becomes of each caption and of the picture, and what must stay.

    ``captions`` has one text for every region of the source, by its number from "1"; a text that
    equals the old one leaves that region untouched. ``scenario`` names words of the old captions
    that the new ones keep. ``visual`` is the instruction for an editor of pictures. ``why`` says
    how the feeling is turned.
    """

    target: Target
    captions: dict[str, str]
    visual: str = Field(min_length=1, max_length=2000)
    keep: str = Field(min_length=1, max_length=2000)
    scenario: list[str] = Field(default=[], max_length=50)
    why: str = Field(default="", max_length=500)

    @property
    def rewritten(self) -> str:
        """The new captions, region by region."""
        order = sorted(self.captions, key=lambda name: (len(name), name))
        return " ".join(" ".join(self.captions[name].split()) for name in order)


class CaptionCheck(Closed):
    """How one caption that was set anew came out.

    ``overlap`` is the intersection over union of the old and the new box as the OCR sees them,
    ``ink_overlap`` that of the letters themselves; ``read`` is the longest part of the planned
    text that the OCR reads in one piece, as a share of it. ``border`` is the share of the pixels
    of borders in its place that stayed, ``leftover`` counts strokes of the old text that are still
    there. ``plate`` says that letters alone did not read, so that it stands on a plain plate.
    ``lettering`` is how alike the old text is to itself when it is set again in the look that was
    measured, ``size`` how large the new letters are beside the old ones.
    """

    region: str
    planned: str
    overlap: float
    ink_overlap: float
    read: float
    border: float = 1.0
    leftover: int = 0
    plate: bool = False
    lettering: float = 1.0
    size: float = 1.0


Look = Literal[Target, Emotion, "neutral", "none"]
LOOKS: tuple[Look, ...] = (*TARGETS, *EMOTIONS, "neutral", "none")


class Mood(Closed):
    """Whether the faces of a result go with its captions, as a model that sees it says."""

    faces: Look
    captions: Look
    fit: bool
    reason: str = Field(max_length=2000)


FlawKind = Literal[
    "caption", "strokes", "reading", "lettering", "size", "picture", "panels", "kindness", "mood"
]


class Flaw(Closed):
    """Why a result is not called done: what was checked, what is wrong, what a person may do."""

    check: FlawKind
    what: str
    advice: str


class Checks(Closed):
    """What can be told about a result; ``notes`` say what it does not show.

    All but ``mood`` is told without a language model. ``damage`` is how much the most changed block
    outside of all that may change lost of its structure; ``kindness`` are the chances that the old
    and the new captions are kind, by a classifier that did not plan them. Only a result without
    ``flaws`` is done.
    """

    panels_before: int
    panels_after: int
    captions: list[CaptionCheck]
    changed_outside: float
    changed_inside: float
    distance: int
    mood: Mood | None = None
    notes: list[str] = Field(default_factory=list)
    damage: float = 0.0
    kindness: list[float] = Field(default_factory=list)
    flaws: list[Flaw] = Field(default_factory=list)

    @property
    def panels_kept(self) -> bool:
        """Whether there are as many panels as before."""
        return self.panels_before == self.panels_after
