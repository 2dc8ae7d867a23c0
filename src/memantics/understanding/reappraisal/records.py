"""Records of the reappraisal stages, and their files in the folder of one reappraisal.

Each stage's file holds the hash of its inputs. While that hash matches, the stage is not repeated:
an edit by a person is kept, and all later stages follow it.
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
BROKEN = "breaks a rule"  # so begins why a plan cannot be drawn
# The only pairs there are: a reappraisal keeps the situation and turns its feeling.
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
    """The emotion from which a target is reached.

    >>> find_source("calm")
    'angry'
    """
    for emotion, its_target in PAIRS.items():
        if its_target == target:
            return emotion
    raise UnknownName("target emotion", target, TARGETS)


class MemeFeeling(WordedFeeling):
    """Stage one: what a meme feels like and what it shows.

    ``source`` says who tells the emotion and how well, where that is not the planner's model;
    ``word`` is a model's word for it where that is none of ours.
    """

    emotion: SourceEmotion
    description: str = Field(min_length=1, max_length=4000)
    visual_type: VisualType
    polarity: Polarity
    source: str = Field(default="", max_length=500)


class PlanOffer(Closed):
    """Another plan for the same meme; ``lost`` says why it was not taken, once that is known."""

    captions: dict[str, str]
    visual: str = Field(min_length=1, max_length=2000)
    scenario: list[str] = Field(default=[], max_length=50)
    why: str = Field(default="", max_length=500)
    score: float | None = None
    lost: str = ""


class ReappraisalPlan(Closed):
    """Stage two: what becomes of each caption and of the picture, and what must stay.

    ``captions`` has one text for every region of the source, by its number from "1"; a text that
    equals the old one leaves that region untouched. ``scenario`` names words of the old captions
    that the new ones keep. ``visual`` is the instruction for an editor of pictures. ``why`` says
    how the feeling is turned, ``word`` what the feeling is called where that is none of our words.
    ``score`` is that of the captions (``ranking.py``), ``others`` are plans that rank below it.
    """

    target: TargetEmotion
    captions: dict[str, str]
    visual: str = Field(min_length=1, max_length=2000)
    keep: str = Field(min_length=1, max_length=2000)
    scenario: list[str] = Field(default=[], max_length=50)
    why: str = Field(default="", max_length=500)
    word: str = Field(default="", max_length=60)
    score: float | None = None
    others: list[PlanOffer] = Field(default=[], max_length=40)

    @property
    def rewritten(self) -> str:
        """The new captions, region by region."""
        return " ".join(" ".join(text.split()) for text in self.texts)

    @property
    def texts(self) -> list[str]:
        """The new captions in the order of their regions."""
        order = sorted(self.captions, key=lambda name: (len(name), name))
        return [self.captions[name] for name in order]

    def offer(self, lost: str = "") -> PlanOffer:
        """This plan as it stands beside another one that is taken."""
        parts = self.model_dump(include=set(PlanOffer.model_fields))
        return PlanOffer(**parts | {"lost": lost})

    def take(self, offer: PlanOffer) -> ReappraisalPlan:
        """The same plan with what another one offers in place of its captions."""
        return self.model_copy(update=offer.model_dump(exclude={"lost"}) | {"others": []})


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


class Mood(Closed):
    """Whether the faces of a result go with its captions, as a model that sees it says."""

    faces: VisibleEmotion
    captions: VisibleEmotion
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


class EditChecks(Closed):
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


class KinderVersion(Closed):
    """A version of a meme that was drawn: ``number`` is its place on the contact sheet."""

    number: int
    plan: ReappraisalPlan
    checks: EditChecks

    def path(self, folder: Path) -> Path:
        """Its picture in the folder of its meme."""
        return folder / f"version-{self.number}.png"

    @property
    def status(self) -> Literal["done", "flawed"]:
        """Whether it passed every check."""
        return "flawed" if self.checks.flaws else "done"

    @property
    def reason(self) -> str:
        """What is wrong with it."""
        return "; ".join(flaw.what for flaw in self.checks.flaws)


class VersionSheet(Closed):
    """All versions of a meme that were drawn, those that passed every check first."""

    versions: list[KinderVersion]


def settle_offers(
    plan: ReappraisalPlan, sheet: VersionSheet, best: KinderVersion
) -> ReappraisalPlan:
    """The plan that is taken, with every other one and why it lost."""
    flawed = {str(version.plan.captions): version.reason for version in sheet.versions}
    others = []
    for offer in (plan.offer(), *plan.others):
        text = str(offer.captions)
        if text != str(best.plan.captions):
            rank = f"ranks below the one taken: score {offer.score}, that one {best.plan.score}"
            drawn = flawed.get(text, "") if text in flawed else offer.lost
            others.append(offer.model_copy(update={"lost": drawn or offer.lost or rank}))
    return best.plan.model_copy(update={"others": others})


class StageFile(Closed):
    """A stage as it stands on disk; ``made_from`` is the hash of all that it depends on."""

    status: StageStatus
    made_by: str
    made_from: str
    reason: str = ""
    value: JsonValue = None


def hash_inputs(*parts: JsonValue) -> str:
    """A short hash of what a stage depends on.

    >>> hash_inputs("a", 1) == hash_inputs("a", 1) != hash_inputs("a", 2)
    True
    """
    return hashlib.sha256(dump_json(list(parts)).encode()).hexdigest()[:16]


def read_stage(path: Path, shape: type[Shape], made_from: str) -> Shape | None:
    """The value of a stage that was taken and still holds; None where it must be taken (again).

    A file that a person broke is an error that names the field.
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
            path, error.what, hint="correct that file, or delete it to make it anew"
        ) from error


def write_stage(path: Path, stage: StageFile) -> None:
    """Write a stage whole or not at all."""
    replace_file(path, dump_json(stage.model_dump(mode="json")).encode())
