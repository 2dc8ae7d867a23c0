"""Annotation queues without model drafts: questionnaires, text correction, error coding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import JsonValue

from memantics.benchmarks.factories import hits
from memantics.core import queue
from memantics.core.data import read_jsonl
from memantics.core.errors import DataError, InputError
from memantics.core.files import replace_file
from memantics.core.memes import MEMES, read_memes
from memantics.core.parameters import Argument, Flag
from memantics.core.records import Item
from memantics.core.registry import find_run_places, is_inside
from memantics.core.result import Result
from memantics.core.rundir import last_answers, read_bare_items, read_facts
from memantics.evaluation.options import Folders
from memantics.evaluation.scoring import read_outcomes
from memantics.evaluation.tasks import open_task_of_run

_TEXTS = "review-text"


@dataclass(frozen=True, slots=True)
class MadeQueue(Result):
    """Store the folder and the number of items of a written queue."""

    folder: Path
    items: int


@dataclass(frozen=True, slots=True)
class AppliedTexts(Result):
    """Store how many texts were changed and how many memes were marked unreadable."""

    folder: Path
    changed: int
    unreadable: int


QueueFolder = Annotated[
    Path | str, Flag("Folder for the annotation queue (the memes to annotate).")
]
CollectedMemes = Annotated[Path | str, Argument("Folder written by 'memantics collect'.")]


def make_questionnaire(
    out: QueueFolder = "questionnaire",
    annotators: Annotated[int, Flag("Number of annotators.", min=1)] = 10,
    test: Annotated[
        Literal["none", "zh"], Flag("Also test whether annotators know the memes of a language.")
    ] = "none",
) -> MadeQueue:
    """Write a questionnaire with one form per annotator; it needs its own database."""
    if annotators < 1:
        raise InputError(
            "a questionnaire needs at least one annotator", hint="give --annotators 10"
        )
    flow = "questionnaire" if test == "none" else f"questionnaire-{test}"
    card = queue.QueueCard(title="About the annotators", workflow=flow, origin="questionnaire")
    items = (queue.QueueItem(id=f"form-{n:03}", group="forms") for n in range(1, annotators + 1))
    return MadeQueue(Path(out), queue.write_queue(Path(out), card, items))


def make_text_queue(folder: CollectedMemes, out: QueueFolder = "texts") -> MadeQueue:
    """Write a queue in which people correct the printed texts of collected memes."""
    memes, place = read_memes(Path(folder)), Path(out)
    items = []
    for meme in memes:
        name = queue.copy_picture(meme.image, place, meme.id)
        values: dict[str, JsonValue] = {"readable": "yes", "text": normalise(meme.text)}
        items.append(
            queue.QueueItem(
                id=meme.id,
                group=meme.id,
                images=[name],
                values=values,
                shown=[queue.Shown(label="Text as recognised", value=meme.text)]
                if meme.text != normalise(meme.text)
                else [],
            )
        )
    card = queue.QueueCard(
        title="Texts of memes", workflow=_TEXTS, origin=f"annotate texts {folder}"
    )
    return MadeQueue(place, queue.write_queue(place, card, items))


def normalise(text: str) -> str:
    r"""Return a text on one line, with single spaces.

    >>> normalise("one  does\n\nnot   simply\n")
    'one does not simply'
    """
    return re.sub(r"\s+", " ", text).strip()


def apply_texts(
    folder: CollectedMemes,
    annotations: Annotated[Path | str, Argument("File written by 'annotate export'.")],
) -> AppliedTexts:
    """Write corrected texts to ``memes.jsonl``; mark unreadable memes as dropped."""
    path = Path(folder) / MEMES
    if not path.is_file():
        raise InputError(
            f"{path}: file not found", hint=f"create it with 'memantics collect {folder}'"
        )
    found = {
        vote_result.item: vote_result for vote_result in queue.read_annotations(Path(annotations))
    }
    if any(vote_result.workflow != _TEXTS for vote_result in found.values()):
        raise DataError(
            annotations,
            "does not contain corrected texts",
            hint=f"export a queue of the workflow {_TEXTS}",
        )
    lines: list[dict[str, JsonValue]] = []
    changed = unreadable = 0
    for row, value in read_jsonl(path):
        if not isinstance(value, dict):
            raise DataError(path, "a line is not a JSON object", row=row)
        annotation = found.get(str(value.get("id")))
        if annotation is not None and not annotation.kept:
            value |= {"kept": False, "reason": "text not readable"}
            unreadable += 1
        elif annotation is not None:
            text = str(annotation.values.get("text", value.get("text", "")))
            changed += text != value.get("text")
            value["text"] = text
        lines.append(value)
    replace_file(path, b"".join(orjson.dumps(meme_line) + b"\n" for meme_line in lines), "memes")
    return AppliedTexts(Path(folder), changed, unreadable)


def make_error_queue(
    runs: Folders,
    out: QueueFolder = "errors",
    min_proportion: Annotated[
        float, Flag("Minimum proportion of runs that answered an item wrong.", min=0.01, max=1)
    ] = 0.5,
) -> MadeQueue:
    """Write a queue of items that at least ``min_proportion`` of the runs answered wrong."""
    if not runs:
        raise InputError("no run was given", hint="give run folders of one task")
    if len({read_facts(run).task for run in runs}) > 1:
        raise InputError("the runs belong to different tasks", hint="give runs of one task")
    right: dict[str, list[bool]] = {}
    items: dict[str, Item] = {}
    replies: dict[str, list[str]] = {}
    for run in runs:
        facts = read_facts(run)
        _, task = open_task_of_run(facts, None)
        outcomes = read_outcomes(run, task)
        answers = last_answers(run)
        items |= {item.id: item for item in read_bare_items(run)}
        for outcome, hit in zip(outcomes, hits(outcomes), strict=True):
            right.setdefault(outcome.item.id, []).append(hit)
            said = " ".join(answers[outcome.item.id].reply.text.split())[:600]
            replies.setdefault(outcome.item.id, []).append(said)
    wrong = [
        name
        for name, run_hits in right.items()
        if len(run_hits) == len(runs) and run_hits.count(False) / len(run_hits) >= min_proportion
    ]
    if not wrong:
        raise InputError("no item was answered wrong by enough runs", hint="lower --min-proportion")
    place = Path(out)
    places = find_run_places(runs)
    for name in wrong:
        _check_images(items[name], places)
    made = (_make_error(items[name], replies[name], place) for name in wrong)
    card = queue.QueueCard(
        title="Errors of models",
        workflow="code-errors",
        warning=read_facts(runs[0]).warning,
        origin=f"annotate errors: {len(runs)} runs",
    )
    return MadeQueue(place, queue.write_queue(place, card, made))


def _check_images(item: Item, places: Sequence[Path]) -> None:
    """Raise if an item of a run folder names an image outside the registered data."""
    for image in item.images[:1]:
        if not is_inside(image.path, places):
            raise DataError(
                image.path,
                "the image is outside the registered data folders",
                hint="register its folder with 'memantics data add', or run the command "
                "from a parent folder",
            )


def _make_error(item: Item, replies: Sequence[str], out: Path) -> queue.QueueItem:
    context: Mapping[str, str] = item.form.context
    shown = [queue.Shown(label=name, value=text) for name, text in context.items() if text]
    shown += [queue.Shown(label="Label", value=str(item.gold))]
    shown += [queue.Shown(label="Answers", value=list(replies), kind="list")]
    images = [queue.copy_picture(item.images[0].path, out, item.id)] if item.images else []
    return queue.QueueItem(
        id=item.id, group=item.group, images=images, shown=shown, hidden=dict(item.tags)
    )
