"""Memes that people sent back: the same plan with their corrections, and a new picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import BaseModel, JsonValue

from memantics.core.data import conform, read_json
from memantics.core.queue import Review, Reviewed
from memantics.core.step import Taken
from memantics.reappraise.dataset import join_captions
from memantics.reappraise.folder import CHECKS, FEELING, PLAN, Shape, StageFile
from memantics.reappraise.records import MemeFeeling, ReappraisalPlan
from memantics.reappraise.stages import ReappraisalSubject
from memantics.reappraise.workshop import Stage

AGAIN = "to be made again"
_DRAWN = ("target_emotion", "rewritten", "plan")
_FEELING = {
    "source_emotion": "emotion",
    "description": "description",
    "visual_type": "visual_type",
    "polarity": "polarity",
}


def list_sent_back(review: Review) -> Iterator[Reviewed]:
    """Items whose picture is to be made again: a person said so, or revised what it shows."""
    for reviewed in review.items:
        sent = reviewed.verdict is not None and reviewed.verdict.reason == AGAIN
        revised = any(
            reviewed.item.values.get(name, reviewed.values.get(name)) != reviewed.values.get(name)
            for name in _DRAWN
        )
        if sent or (reviewed.kept and revised):
            yield reviewed


@dataclass(frozen=True, slots=True)
class KeptPlanner:
    """Says what a folder holds from before; nobody is asked."""

    name: str
    feeling: MemeFeeling
    planned: ReappraisalPlan

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Stage one, as it was."""
        return Taken(subject.id, "answered", self.feeling)

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Stage two, as it was."""
        del feeling
        return Taken(subject.id, "answered", self.planned)


def open_kept(folder: Path) -> tuple[KeptPlanner, str]:
    """The planner of a finished folder, and the name of the editor that painted it."""
    feeling, plan, checks = (
        conform(StageFile, read_json(folder / name), folder / name)
        for name in (FEELING, PLAN, CHECKS)
    )
    planner = KeptPlanner(
        feeling.made_by,
        conform(MemeFeeling, feeling.value, folder / FEELING),
        conform(ReappraisalPlan, plan.value, folder / PLAN),
    )
    return planner, "none" if checks.made_by == "captions only" else checks.made_by


@dataclass(slots=True)
class Corrections:
    """Puts a person's corrections into each stage; ``faults`` says by meme what did not fit."""

    reviewed: Reviewed
    faults: dict[str, str] = field(default_factory=dict)

    def __call__(
        self, stage: Stage, meme: str, value: Shape, check: Callable[[Shape], list[str]]
    ) -> Shape | None:
        """The corrected value; None where it breaks a rule."""
        if isinstance(value, ReappraisalPlan):
            made: BaseModel | None = self._revise(meme, value)
        else:
            update = {
                new: self.reviewed.values[old]
                for old, new in _FEELING.items()
                if old in self._given
            }
            made = value.model_validate(value.model_dump() | update)
        if made is None:
            return None
        faults = check(cast("Shape", made))
        if faults:
            self.faults[meme] = f"{stage}: {'; '.join(faults)}"
            return None
        return cast("Shape", made)

    @property
    def _given(self) -> dict[str, JsonValue]:
        return {
            name: value for name, value in self.reviewed.values.items() if isinstance(value, str)
        }

    def _revise(self, meme: str, plan: ReappraisalPlan) -> ReappraisalPlan | None:
        given = self._given
        update: dict[str, JsonValue] = {"target": given.get("target_emotion", plan.target)}
        lines = str(given.get("rewritten", join_captions(plan.captions))).splitlines()
        lines = [line.strip() for line in lines if line.strip()]
        names = sorted(plan.captions, key=lambda name: (len(name), name))
        if len(names) == 1:
            lines = [" ".join(lines)]
        if len(lines) != len(names):
            self.faults[meme] = f"{len(lines)} lines for {len(names)} captions: give one for each"
            return None
        update["captions"] = dict(zip(names, lines, strict=True))
        visual = str(given.get("plan", plan.visual))
        note = given.get("note")
        # The note makes the instruction another one, so that the picture is made anew.
        update["visual"] = f"{visual} {note}".strip() if note else visual
        return ReappraisalPlan.model_validate(plan.model_dump() | update)
