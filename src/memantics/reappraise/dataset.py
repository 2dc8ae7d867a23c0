"""Reappraisals as drafts of a data set: records in MER-Bench's terms, and a queue for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from memantics.build.drafts import queue_images, write_draft_queue
from memantics.core.data import inside
from memantics.core.images import read_bytes
from memantics.core.journal import write_lines
from memantics.core.memes import Meme
from memantics.core.queue import QueueItem, Shown
from memantics.reappraise.folder import MEME
from memantics.reappraise.records import Layout, MemeFeeling, ReappraisalPlan
from memantics.reappraise.workshop import Reappraisal

DRAFTS, QUEUE, EDITED = "reappraisal.jsonl", "queue", "edited"
WORKFLOW = "verify-stages"


@dataclass(frozen=True, slots=True)
class ReappraisalDraft:
    """A meme, its plan, and what each editor made of it."""

    meme: Meme
    feeling: MemeFeeling
    plan: ReappraisalPlan
    layout: Layout
    edits: Mapping[str, Path]

    def dump(self) -> dict[str, JsonValue]:
        """The record in MER-Bench's terms."""
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
    r"""Captions as people correct them: one line for each region, in their order.

    >>> join_captions({"2": "and\nyou", "10": "last", "1": "me"})
    'me\nand you\nlast'
    """
    order = sorted(captions, key=lambda name: (len(name), name))
    return "\n".join(" ".join(captions[name].split()) for name in order)


def join_results(
    memes: Sequence[Meme], made: Mapping[str, Sequence[Reappraisal]]
) -> list[ReappraisalDraft]:
    """One draft for every meme that at least one editor finished, in the order of the memes."""
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
        layout: Layout = "MultiPanel" if first.checks.panels_before > 1 else "SinglePanel"
        edits = {editor: result.folder / MEME for editor, result in done.items()}
        drafts.append(ReappraisalDraft(meme, first.feeling, first.plan, layout, edits))
    return drafts


def write_drafts(folder: Path, drafts: Iterable[ReappraisalDraft]) -> Path:
    """Write ``reappraisal.jsonl``."""
    return write_lines(folder / DRAFTS, (draft.dump() for draft in drafts))


def write_reappraisal_queue(
    folder: Path, drafts: Sequence[ReappraisalDraft], origin: str, name: str = QUEUE
) -> int:
    """Write the queue in which people check every stage; return how many items it has."""
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
