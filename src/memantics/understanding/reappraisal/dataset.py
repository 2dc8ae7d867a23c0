"""Reappraisals as dataset drafts: MER-Bench records, a review queue, and regeneration.

Memes that annotators sent back keep their plan with the corrections, and get a new image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import BaseModel, JsonValue

from memantics.core.data import conform, inside, read_json
from memantics.core.files import write_lines
from memantics.core.images import read_bytes
from memantics.core.memes import Meme
from memantics.core.model import Taken
from memantics.core.queue import QueueItem, Review, Reviewed, Shown
from memantics.core.samples import PanelLayout
from memantics.models.drafts import queue_images, write_draft_queue
from memantics.understanding.reappraisal.records import (
    CHECKS,
    FEELING,
    MEME,
    PLAN,
    MemeFeeling,
    ReappraisalPlan,
    Shape,
    StageFile,
)
from memantics.understanding.reappraisal.stages import ReappraisalSubject
from memantics.understanding.reappraisal.workshop import Reappraisal, ReappraisalStage

DRAFTS, QUEUE, EDITED = "reappraisal.jsonl", "queue", "edited"
WORKFLOW = "verify-stages"
AGAIN = "to be regenerated"
_DRAWN = ("target_emotion", "rewritten", "plan")
_FEELING = {
    "source_emotion": "emotion",
    "description": "description",
    "visual_type": "visual_type",
    "polarity": "polarity",
}


@dataclass(frozen=True, slots=True)
class ReappraisalDraft:
    """A meme, its plan and the results of each editor."""

    meme: Meme
    feeling: MemeFeeling
    plan: ReappraisalPlan
    layout: PanelLayout
    edits: Mapping[str, Path]

    def dump(self) -> dict[str, JsonValue]:
        """Return the record with MER-Bench's field names."""
        return {
            "meme": self.meme.id,
            "image": self.meme.image.name,
            "text": self.meme.text,
            "language": self.meme.language,
            "source_emotion": self.feeling.emotion,
            "target_emotion": self.plan.target,
            "description": self.feeling.description,
            "rewritten": join_captions(self.plan.captions),
            "plan": self.plan.visual,
            "visual_type": self.feeling.visual_type,
            "polarity": self.feeling.polarity,
            "layout": self.layout,
            "editors": [*sorted(self.edits)],
        }


def join_captions(captions: Mapping[str, str]) -> str:
    r"""Join captions for correction by people: one line per region, in order.

    >>> join_captions({"2": "and\nyou", "10": "last", "1": "me"})
    'me\nand you\nlast'
    """
    order = sorted(captions, key=lambda name: (len(name), name))
    return "\n".join(" ".join(captions[name].split()) for name in order)


def join_results(
    memes: Sequence[Meme], made: Mapping[str, Sequence[Reappraisal]]
) -> list[ReappraisalDraft]:
    """Build one draft per meme that at least one editor finished, in the order of the memes."""
    by_meme: dict[str, dict[str, Reappraisal]] = {}
    for editor, results in made.items():
        for result in results:
            if result.status == "done":
                by_meme.setdefault(result.meme, {})[editor] = result
    drafts = []
    for meme in memes:
        done = by_meme.get(meme.id, {})
        first = next(iter(done.values()), None)
        if first is None or not (first.feeling and first.plan and first.checks):
            continue
        layout: PanelLayout = "MultiPanel" if first.checks.panels_before > 1 else "SinglePanel"
        edits = {editor: result.folder / MEME for editor, result in done.items()}
        drafts.append(ReappraisalDraft(meme, first.feeling, first.plan, layout, edits))
    return drafts


def write_drafts(folder: Path, drafts: Iterable[ReappraisalDraft]) -> Path:
    """Write ``reappraisal.jsonl``."""
    return write_lines(folder / DRAFTS, (draft.dump() for draft in drafts))


def write_reappraisal_queue(
    folder: Path, drafts: Sequence[ReappraisalDraft], origin: str, name: str = QUEUE
) -> int:
    """Write the annotation queue in which people review every stage; return its item count."""
    queue = folder / name
    names = queue_images([draft.meme for draft in drafts], queue)
    items = [_item(draft, names, queue) for draft in drafts]
    warning = "The memes were made to express negative feelings; some may be offensive."
    return write_draft_queue(queue, "Reappraised memes", WORKFLOW, items, origin, warning)


def _item(draft: ReappraisalDraft, names: Mapping[str, str], queue: Path) -> QueueItem:
    record = draft.dump()
    values = (
        *("source_emotion", "description", "visual_type", "polarity", "layout"),
        *("target_emotion", "rewritten", "plan"),
    )
    facts = ("text", "language")
    edits = {editor: _copy(draft, editor, queue) for editor in sorted(draft.edits)}
    return QueueItem(
        id=draft.meme.id,
        group=draft.meme.id,
        images=[names[draft.meme.id], *edits.values()],
        shown=[
            Shown(label="Source emotion", value=draft.feeling.emotion),
            Shown(label="Description", value=draft.feeling.description),
            Shown(label="Visual type", value=draft.feeling.visual_type),
            Shown(label="Polarity of the caption", value=draft.feeling.polarity),
            Shown(label="Layout", value=draft.layout),
            Shown(label="Target emotion", value=draft.plan.target),
            Shown(label="Rewritten caption", value=join_captions(draft.plan.captions)),
            Shown(label="Visual edits", value=draft.plan.visual),
        ],
        values={name: record[name] for name in values},
        hidden={name: record[name] for name in facts} | {"edits": dict(edits)},
    )


def _copy(draft: ReappraisalDraft, editor: str, queue: Path) -> str:
    name = f"{EDITED}/{editor}/{draft.meme.id}.png"
    place = inside(queue, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(read_bytes(draft.edits[editor]))
    return name


def list_sent_back(review: Review) -> Iterator[Reviewed]:
    """List items whose image must be regenerated: annotators requested it or changed the plan."""
    for reviewed in review.items:
        sent = reviewed.aggregated is not None and reviewed.aggregated.reason == AGAIN
        revised = any(
            reviewed.item.values.get(name, reviewed.values.get(name)) != reviewed.values.get(name)
            for name in _DRAWN
        )
        if sent or (reviewed.kept and revised):
            yield reviewed


@dataclass(frozen=True, slots=True)
class KeptPlanner:
    """A planner that returns the stored stages of a folder; no model is called."""

    name: str
    feeling: MemeFeeling
    planned: ReappraisalPlan

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Return the stored emotion of a meme (stage one)."""
        return Taken(subject.id, "answered", self.feeling)

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Return the stored plan of a meme (stage two)."""
        del feeling
        return Taken(subject.id, "answered", self.planned)


def open_kept(folder: Path) -> tuple[KeptPlanner, str]:
    """Open the planner of a finished folder; also return the name of its editor."""
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
    """Apply an annotator's corrections to each stage; ``faults`` lists rejected ones by meme."""

    reviewed: Reviewed
    faults: dict[str, str] = field(default_factory=dict)

    def __call__(
        self, stage: ReappraisalStage, meme: str, value: Shape, check: Callable[[Shape], list[str]]
    ) -> Shape | None:
        """Return the corrected value; None if it breaks a rule."""
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
        # The annotator's note is added to the image instruction, so that the image is generated
        # again.
        update["visual"] = f"{visual} {note}".strip() if note else visual
        return ReappraisalPlan.model_validate(plan.model_dump() | update)
