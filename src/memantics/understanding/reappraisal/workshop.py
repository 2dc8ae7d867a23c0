"""The inputs of a reappraisal, and the result of one meme."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, get_args

from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.files import replace_file
from memantics.core.images import read_bytes
from memantics.core.model import Editor
from memantics.core.result import Result, html_table
from memantics.core.stamping import ImageStamp
from memantics.understanding.reappraisal.faces import FaceFinder
from memantics.understanding.reappraisal.records import (
    BOTH,
    MEME,
    SHEET,
    EditChecks,
    KinderVersion,
    MemeFeeling,
    ReappraisalPlan,
    Shape,
    SourceEmotion,
    TargetEmotion,
)
from memantics.understanding.reappraisal.stages import MoodJudge, Planner
from memantics.understanding.vision.regions import ReadLines

ReappraisalStage = Literal["reading", "feeling", "plan", "picture"]
Ending = Literal["done", "flawed", "failed", "skipped", "declined"]
ENDINGS: tuple[Ending, ...] = get_args(Ending)
RateKindness = Callable[[Sequence[str]], float]


class StageReview(Protocol):
    """A person's review between two stages: return the value, a corrected one, or None to skip."""

    def __call__(
        self, stage: ReappraisalStage, meme: str, value: Shape, check: Callable[[Shape], list[str]]
    ) -> Shape | None:
        """Review the value of a stage; ``check`` lists the rules that a corrected value breaks."""
        ...


@dataclass(frozen=True, slots=True)
class Workshop:
    """All inputs of a reappraisal; without an editor, only captions change.

    ``judge`` checks whether faces match captions; None skips the check. ``emotions`` are the
    annotated emotions by meme. ``faces`` finds the faces to repaint. ``kindness`` is a classifier
    that scores old and new captions independently of the plan; None if the captions come from a
    benchmark or a person. ``versions`` is the requested number of versions that pass every check;
    ``choose`` is the number of the chosen version, 0 for the best. ``stamp`` marks, labels and
    signs new images.
    """

    planner: Planner
    read_lines: ReadLines
    out: Path
    editor: Editor | None = None
    target: TargetEmotion | None = None
    review: StageReview | None = None
    judge: MoodJudge | None = None
    emotions: Mapping[str, SourceEmotion] = field(default_factory=dict)
    faces: FaceFinder | None = None
    kindness: RateKindness | None = None
    versions: int = 1
    choose: int = 0
    stamp: ImageStamp = field(default_factory=ImageStamp)


@dataclass(frozen=True, slots=True)
class Reappraisal(Result):
    """The result of one meme: the last stage, and the reason if it failed or was declined.

    Memes about a grave topic are declined, and memes for which the planner has no version. A result
    with a failed check has the status flawed: it has an image, and ``checks.flaws`` list the
    problems with advice. ``versions`` are all drawn versions, passing ones first. A notebook shows
    the meme before and after, or the contact sheet.
    """

    meme: str
    folder: Path
    status: Ending
    stage: ReappraisalStage
    reason: str = ""
    feeling: MemeFeeling | None = None
    plan: ReappraisalPlan | None = None
    checks: EditChecks | None = None
    resumed: bool = False
    versions: tuple[KinderVersion, ...] = ()

    @property
    def caption(self) -> str:
        """The new captions, region by region."""
        return self.plan.rewritten if self.plan else ""

    @property
    def drawn(self) -> bool:
        """Whether there is an image, with or without flaws."""
        return self.status in ("done", "flawed")

    def save(self, path: Path | str) -> Path:
        """Write the new meme as a PNG file to a path."""
        if not self.drawn:
            raise InputError(
                f"meme {self.meme} was not reappraised: {self.stage} {self.status}: {self.reason}",
                hint="fix the cause and run the command again",
            )
        replace_file(Path(path), read_bytes(self.folder / MEME), "image")
        return Path(path)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the result as printed by ``--json``."""
        parts = {"feeling": self.feeling, "plan": self.plan, "checks": self.checks}
        return {
            "meme": self.meme,
            "folder": str(self.folder),
            "status": self.status,
            "stage": self.stage,
            "reason": self.reason,
            **{
                name: None if part is None else part.model_dump(mode="json")
                for name, part in parts.items()
            },
            "versions": [version.model_dump(mode="json") for version in self.versions],
        }

    def _repr_html_(self) -> str:
        if not self.drawn:
            return html_table(self.to_dict())
        shown = SHEET if self.versions else BOTH
        picture = base64.b64encode(read_bytes(self.folder / shown)).decode()
        return (
            f'<img src="data:image/png;base64,{picture}" alt="before and after">'
            f"<p>{html.escape(self.caption)}</p>"
            + "".join(
                f"<p>Flawed: {html.escape(flaw.what)}. {html.escape(flaw.advice)}.</p>"
                for flaw in (self.checks.flaws if self.checks else ())
            )
        )
