"""Records of the reappraisal stages, and their files in the folder of one reappraisal.

Each stage file holds the hash of its inputs. A stage is not repeated while that hash matches, so a
person's edit is kept and used by all later stages.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, TypeVar, get_args

from pydantic import BaseModel, Field, JsonValue

from memantics.core.data import conform, dump_json, read_json
from memantics.core.errors import DataError, UnknownName
from memantics.core.files import replace_file
from memantics.core.records import Closed
from memantics.core.samples import Polarity, VisualType
from memantics.understanding.analysis.asking import WordedFeeling

SourceEmotion = Literal["sad", "angry", "tense", "bored"]
TargetEmotion = Literal["happy", "calm", "relaxed", "excited"]
EMOTIONS: tuple[SourceEmotion, ...] = get_args(SourceEmotion)
TARGETS: tuple[TargetEmotion, ...] = get_args(TargetEmotion)
BROKEN = "breaks a rule"  # start of the message that explains why a plan cannot be drawn
# The allowed pairs of negative and target emotion: a reappraisal keeps the situation and changes
# the emotion.
PAIRS: dict[SourceEmotion, TargetEmotion] = {
    "sad": "happy",
    "angry": "calm",
    "tense": "relaxed",
    "bored": "excited",
}
VisibleEmotion = Literal[TargetEmotion, SourceEmotion, "neutral", "none"]
LOOKS: tuple[VisibleEmotion, ...] = (*TARGETS, *EMOTIONS, "neutral", "none")
FEELING, PLAN, CHECKS = "feeling.json", "plan.json", "checks.json"
MEME, BOTH = "meme.png", "before-after.png"
VERSIONS, SHEET, PAGE = "versions.json", "versions.png", "versions.html"
Shape = TypeVar("Shape", bound=BaseModel)
StageStatus = Literal["done", "flawed", "failed", "declined"]


def find_source(target: str) -> SourceEmotion:
    """Return the negative emotion that belongs to a target emotion.

    >>> find_source("calm")
    'angry'
    """
    for emotion, its_target in PAIRS.items():
        if its_target == target:
            return emotion
    raise UnknownName("target emotion", target, TARGETS)


class MemeFeeling(WordedFeeling):
    """Result of the first reappraisal stage: the emotion of a meme and its scene.

    ``source`` names the source of the emotion if it is not the planner's model. ``word`` is the
    model's word if it is not in the fixed list.
    """

    emotion: SourceEmotion
    description: str = Field(min_length=1, max_length=4000)
    visual_type: VisualType
    polarity: Polarity
    source: str = Field(default="", max_length=500)


class PlanOffer(Closed):
    """An alternative plan for the same meme; ``lost`` is the reason why it was not used."""

    captions: dict[str, str]
    visual: str = Field(min_length=1, max_length=2000)
    scenario: list[str] = Field(default=[], max_length=50)
    why: str = Field(default="", max_length=500)
    lost: str = ""


class ReappraisalPlan(Closed):
    """Result of the second reappraisal stage: new captions, image instruction, parts to keep.

    ``captions`` has one text per region of the source, by number from "1"; a text equal to the old
    one leaves the region unchanged. ``scenario`` lists words of the old captions that the new ones
    keep. ``visual`` is the instruction for an image editor. ``why`` describes the reframing, and
    ``word`` names an emotion outside the fixed list. ``choice`` is the critic's reason for the
    order of a model's plans. ``others`` are alternative plans, best first.
    """

    target: TargetEmotion
    captions: dict[str, str]
    visual: str = Field(min_length=1, max_length=2000)
    keep: str = Field(min_length=1, max_length=2000)
    scenario: list[str] = Field(default=[], max_length=50)
    why: str = Field(default="", max_length=500)
    word: str = Field(default="", max_length=60)
    choice: str = Field(default="", max_length=500)
    others: list[PlanOffer] = Field(default=[], max_length=40)

    @property
    def rewritten(self) -> str:
        """The new captions joined, region by region."""
        return " ".join(" ".join(text.split()) for text in self.texts)

    @property
    def texts(self) -> list[str]:
        """The new captions in the order of their regions."""
        order = sorted(self.captions, key=lambda name: (len(name), name))
        return [self.captions[name] for name in order]

    def offer(self, lost: str = "") -> PlanOffer:
        """Return this plan as an alternative to the chosen one."""
        parts = self.model_dump(include=set(PlanOffer.model_fields))
        return PlanOffer(**parts | {"lost": lost})

    def take(self, offer: PlanOffer) -> ReappraisalPlan:
        """Return the plan with the captions of an alternative."""
        return self.model_copy(update=offer.model_dump(exclude={"lost"}) | {"others": []})


class CaptionCheck(Closed):
    """Measurements of one redrawn caption.

    ``overlap`` is the intersection over union of the old and new box read by OCR, ``ink_overlap``
    that of the letters. ``read`` is the longest part of the planned text that OCR reads in one
    piece, as a proportion. ``border`` is the proportion of border pixels that were kept,
    ``leftover`` the number of visible old strokes. ``background_box`` is true if the caption needed
    a background box to be readable. ``lettering`` is the similarity of the old text to itself when
    redrawn in the measured text style, ``size`` the new letter size relative to the old.
    ``outline``, ``ghost`` and ``smear`` are the measures of ``vision/drawing.py``.
    ``clipped`` is true if the new letters touch an edge of the image.
    """

    region: str
    planned: str
    overlap: float
    ink_overlap: float
    read: float
    border: float = 1.0
    leftover: int = 0
    background_box: bool = False
    lettering: float = 1.0
    size: float = 1.0
    outline: float = 0.0
    ghost: float = 0.0
    smear: float = 0.0
    clipped: bool = False


class Mood(Closed):
    """A vision-language model's answer whether faces match the captions."""

    faces: VisibleEmotion
    captions: VisibleEmotion
    fit: bool
    reason: str = Field(max_length=2000)


FlawKind = Literal[
    "caption", "strokes", "reading", "lettering", "size", "picture", "panels", "kindness", "mood"
]


class Flaw(Closed):
    """A failed check: its name, the problem, and the advice to a person."""

    check: FlawKind
    what: str
    advice: str


class EditChecks(Closed):
    """All checks of a result; ``notes`` list what was not checked.

    All checks except ``mood`` work without a language model. ``damage`` is the largest loss of
    structure in a block outside the editable area. ``kindness`` has the probabilities that the old
    and new captions are kind, by a classifier that did not plan them. Only a result without
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
        """Whether the number of panels is unchanged."""
        return self.panels_before == self.panels_after


class KinderVersion(Closed):
    """A drawn version of a meme; ``number`` is its number on the contact sheet."""

    number: int
    plan: ReappraisalPlan
    checks: EditChecks

    def path(self, folder: Path) -> Path:
        """Return the path of its image in the folder of the meme."""
        return folder / f"version-{self.number}.png"

    @property
    def status(self) -> Literal["done", "flawed"]:
        """Whether the version passed every check."""
        return "flawed" if self.checks.flaws else "done"

    @property
    def reason(self) -> str:
        """The failed checks in words."""
        return "; ".join(flaw.what for flaw in self.checks.flaws)


class VersionSheet(Closed):
    """All drawn versions of a meme; those that passed every check come first."""

    versions: list[KinderVersion]


def settle_offers(
    plan: ReappraisalPlan, sheet: VersionSheet, best: KinderVersion
) -> ReappraisalPlan:
    """Return the chosen plan with all alternatives and the reason why each was not used."""
    flawed = {str(version.plan.captions): version.reason for version in sheet.versions}
    others = []
    for offer in (plan.offer(), *plan.others):
        text = str(offer.captions)
        if text != str(best.plan.captions):
            rank = "the critic prefers the chosen plan"
            drawn = flawed.get(text, "") if text in flawed else offer.lost
            others.append(offer.model_copy(update={"lost": drawn or offer.lost or rank}))
    return best.plan.model_copy(update={"others": others})


class StageFile(Closed):
    """A stored reappraisal stage; ``made_from`` is the hash of all its inputs."""

    status: StageStatus
    made_by: str
    made_from: str
    reason: str = ""
    value: JsonValue = None


def hash_inputs(*parts: JsonValue) -> str:
    """Return a short hash of the inputs of a reappraisal stage.

    >>> hash_inputs("a", 1) == hash_inputs("a", 1) != hash_inputs("a", 2)
    True
    """
    return hashlib.sha256(dump_json(list(parts)).encode()).hexdigest()[:16]


def read_stage(path: Path, shape: type[Shape], made_from: str) -> Shape | None:
    """Read a stored reappraisal stage; None if it is missing or its inputs changed.

    An invalid file is an error that names the field.
    """
    if not path.is_file():
        return None
    try:
        stage = conform(StageFile, read_json(path), path)
        if stage.status not in ("done", "flawed") or stage.made_from != made_from:
            return None
        return conform(shape, stage.value, path)
    except DataError as error:
        raise DataError(
            path, error.what, hint="correct the file, or delete it to run the stage again"
        ) from error


def write_stage(path: Path, stage: StageFile) -> None:
    """Write the file of a reappraisal stage atomically."""
    replace_file(path, dump_json(stage.model_dump(mode="json")).encode())
