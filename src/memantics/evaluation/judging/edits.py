"""Wrong edits that a judge of edited memes accepts: ``judge compare`` on runs of MER-Bench.

Such a run is the work of a judge, so that its own ratings are not audited. Judges rate edits that
are wrong on purpose instead: the meme without any change, another meme's edit for the same target,
and the edit given as the source. Its main metric (RFS in MER-Bench) is the rating.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from memantics.core.errors import InputError
from memantics.core.model import Model
from memantics.core.records import Item, Outcome
from memantics.core.rundir import read_facts
from memantics.core.task import Task
from memantics.evaluation.judging.asking import Judging, ask_judge
from memantics.evaluation.judging.changes import ACCEPTED, draw_items
from memantics.evaluation.judging.page import JudgeComparison, JudgeFinding
from memantics.evaluation.scoring import read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.metrics.interval import clustered_wilson
from memantics.metrics.rounding import settle

REPEAT = "repeat"


def _leave_unchanged(items: Sequence[Item], place: int) -> Item | None:
    item = items[place]
    return replace(item, images=(item.images[0], item.images[0]))


def _take_other(items: Sequence[Item], place: int) -> Item | None:
    item = items[place]
    others = [one for one in (*items[place + 1 :], *items[:place]) if one.group != item.group]
    others.sort(key=lambda one: one.tags.get("target") != item.tags.get("target"))
    return replace(item, images=(item.images[0], others[0].images[1])) if others else None


def _exchange(items: Sequence[Item], place: int) -> Item | None:
    return replace(items[place], images=items[place].images[::-1])


EDIT_CHANGES: dict[str, Callable[[Sequence[Item], int], Item | None]] = {
    "unchanged meme": _leave_unchanged,
    "another meme's edit": _take_other,
    "edit and source exchanged": _exchange,
}


@dataclass(frozen=True, slots=True)
class EditAudit:
    """How the judges of edits are tested."""

    how: Judging
    sample: int
    repeats: int


def judges_edits(outcomes: Sequence[Outcome]) -> bool:
    """Whether the items of a run are edited memes: a source and an edit by a named editor."""
    return bool(outcomes) and all(
        len(one.item.images) == 2 and "editor" in one.item.tags for one in outcomes
    )


async def compare_edit_judges(
    folders: Sequence[Path], judges: Sequence[Model], audit: EditAudit
) -> JudgeComparison:
    """Let judges rate edits that are wrong on purpose, and rate the same edits twice."""
    if not judges:
        raise InputError(
            "runs on edited memes contain no ratings of edits that are wrong on purpose",
            hint="name the judge that rates them: --model MODEL",
        )
    findings = [one for judge in judges for one in await _test(judge, folders, audit)]
    return JudgeComparison(
        runs=tuple(folder.name for folder in folders),
        judges=tuple(dict.fromkeys(judge.name for judge in judges)),
        rated=0,
        sample=audit.sample,
        findings=tuple(findings),
        open_items=(),
    )


async def _test(judge: Model, folders: Sequence[Path], audit: EditAudit) -> list[JudgeFinding]:
    rated: dict[str, list[tuple[str, float]]] = {}
    pairs: list[tuple[str, bool]] = []
    key = ""
    for folder in folders:
        _, task = open_task_of_run(read_facts(folder), None)
        key = task.main
        stored = draw_items([one.item for one in read_outcomes(folder, task)], audit.sample)
        drawn = [Item(o.id, o.group, o.gold, o.form, o.images, o.tags) for o in stored]
        for name, change in EDIT_CHANGES.items():
            made = (change(drawn, place) for place in range(len(drawn)))
            changed = [one for one in made if one is not None]
            marks = await _rate(folder, task, changed, judge, audit, f"change: {name}")
            rated.setdefault(name, []).extend(marks.values())
        if not audit.repeats:
            continue
        first = await _rate(folder, task, drawn, judge, audit, "as it is")
        for number in range(1, audit.repeats + 1):
            again = await _rate(folder, task, drawn, judge, audit, f"{REPEAT} {number}")
            pairs += [
                (meme, settle(again[name][1] - mark) == 0)
                for name, (meme, mark) in first.items()
                if name in again
            ]
    found = [
        _count(judge.name, "wrong answer", name, key, [(meme, m >= ACCEPTED) for meme, m in marks])
        for name, marks in rated.items()
    ]
    found.append(_count(judge.name, "consistency", "same mark again", key, pairs))
    return [one for one in found if one is not None]


async def _rate(
    folder: Path, task: Task, items: Sequence[Item], judge: Model, audit: EditAudit, purpose: str
) -> dict[str, tuple[str, float]]:
    """Let a judge rate edits; return meme and rating by item. Invalid replies are left out."""
    fresh = purpose.startswith(REPEAT)
    calls = replace(audit.how.calls, use_cache=False) if fresh else audit.how.calls
    how = replace(audit.how, calls=calls, purpose=f"{purpose}, sample {audit.sample}")
    rating = replace(task, items=lambda: iter(items))
    said, _ = await ask_judge(folder, read_facts(folder), judge, rating, how)
    marks = task.marks(said).get(task.main, []) if task.marks else []
    return {
        one.item.id: (one.item.group, mark)
        for one, mark in zip(said, marks, strict=True)
        if mark is not None and one.status == "answered"
    }


def _count(
    judge: str, kind: str, name: str, quality: str, hits: Sequence[tuple[str, bool]]
) -> JudgeFinding | None:
    if not hits:
        return None
    memes, held = [meme for meme, _ in hits], [hit for _, hit in hits]
    low, high = clustered_wilson(held, memes) or (None, None)
    return JudgeFinding(judge, kind, name, quality, len(hits), fmean(map(float, held)), low, high)
