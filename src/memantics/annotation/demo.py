"""Demo of the annotation app: the sample data in six workflows, with three simulated annotators."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import JsonValue

from memantics.annotation.records import Actor, AnnotationTask
from memantics.annotation.service import AnnotationService
from memantics.annotation.workflow import ROLES, Workflow
from memantics.core.queue import QueueCard, QueueItem, Shown, write_queue
from memantics.core.samples import SampleMeme, image_path, read_samples

WARNING = (
    "These sample memes are mild. Real collections can be offensive, hateful, sexual or sad;"
    " a real project describes its content here."
)
COLLEAGUES = ("robin", "kim", "lee")
FIRST_ITEMS = 9
# Types of harm that a simulated annotator labels as harmless, so that annotators differ.
LENIENT: Mapping[str, frozenset[str]] = MappingProxyType(
    {"kim": frozenset({"dispirited"}), "lee": frozenset({"targeted"})}
)


VOTE = "label-by-vote"


@dataclass(frozen=True, slots=True)
class Show:
    """One project of the demo."""

    workflow: str
    title: str
    items: Callable[[], Iterator[tuple[QueueItem, str]]]


def make_demo(service: AnnotationService, folder: Path) -> tuple[Actor, str]:
    """Fill an empty database; return the account of the visitor and the start page."""
    me = service.accounts.create_first("you", secrets.token_urlsafe(24))
    others = [service.accounts.create(me, name, secrets.token_urlsafe(24)) for name in COLLEAGUES]
    start = 0
    for show in SHOWS:
        queue = _write(folder / "queues" / show.workflow, show)
        project = service.exchange.open_queue(me, queue)
        service.projects.change(me, project.id, {"warning": WARNING, "training": False})
        service.projects.set_roles(me, project.id, me.id, ROLES)
        for other in others:
            service.projects.add_member(me, project.id, other.name, ("annotator", "reviewer"))
            _work(service, other, project.id)
        start = project.id
    return me, f"/p/{start}"


def _write(folder: Path, show: Show) -> Path:
    items = []
    (folder / "images").mkdir(parents=True)
    for item, meme in show.items():
        image = image_path(meme)
        shutil.copyfile(image, folder / "images" / image.name)
        items.append(item.model_copy(update={"images": [f"images/{image.name}"]}))
    card = QueueCard(
        title=show.title, workflow=show.workflow, warning=WARNING, licence="CC0", origin="demo"
    )
    write_queue(folder, card, items)
    return folder


def _work(service: AnnotationService, person: Actor, project: int) -> None:
    """Let a simulated annotator answer the first items."""
    service.projects.consent(person, project)
    flow = service.projects.get(person, project).workflow
    for turn in range(FIRST_ITEMS):
        task = service.work.next(person, project)
        if task is None:
            return
        if flow.name == VOTE:
            answer = _vote(list(_disputed())[task.number - 1], person.name)
        else:
            answer = _answer(flow, task, turn + (person.name == COLLEAGUES[1]))
        service.work.submit(person, task.assignment, answer, task.version, 20.0 + 3 * turn)


def _answer(flow: Workflow, task: AnnotationTask, turn: int) -> dict[str, JsonValue]:
    """Make up plausible answers, mostly the first option, so that annotators often agree."""
    values: dict[str, JsonValue] = {}
    for name in task.fields:
        field = flow.field(name)
        stands = task.state.get(name)
        if field.each:
            values[name] = [field.high - (turn % 2)] * len(_list(task.state.get(field.each)))
        elif stands is not None:
            values[name] = stands
        elif field.kind == "choice":
            values[name] = field.options[1 if turn % 4 == 3 else 0].value
        elif field.kind == "boolean":
            values[name] = False
        elif field.kind == "scale":
            values[name] = field.high - turn % 3
        elif field.kind == "pairwise":
            values[name] = "first"
        elif field.required:
            values[name] = "(simulated annotator)"
    labels = task.labels
    return {
        name: value
        for name, value in values.items()
        if not flow.field(name).needs or flow.field(name).needs.casefold() in labels
    }


def _vote(meme: SampleMeme, person: str) -> dict[str, JsonValue]:
    """Return the label of the sample data as this simulated annotator gives it."""
    harm = meme.harm
    if not harm.harmful or harm.type in LENIENT.get(person, frozenset()):
        return {"harmful": "no"}
    vote: dict[str, JsonValue] = {"harmful": "yes", "type": harm.type}
    vote["modality"] = "fusion" if harm.fusion else "text"
    if harm.type == "targeted":
        vote["target"] = "personality" if person == "kim" else "other"
    elif harm.type == "offence" and person == "lee":
        vote |= {"type": "targeted", "target": "individual"}
    return vote


def _disputed() -> Iterator[SampleMeme]:
    """Yield all memes, alternating harmful (often disputed) and harmless memes."""
    memes = read_samples()
    kinds = [[m for m in memes if m.harm.type == kind] for kind in ("targeted", "dispirited")]
    harmful = [meme for pair in zip(*kinds, strict=False) for meme in pair]
    harmful += [meme for meme in memes if meme.harm.harmful and meme not in harmful]
    mild = [meme for meme in memes if not meme.harm.harmful]
    for first, second in zip(harmful, mild, strict=False):
        yield from (first, second)
    yield from mild[len(harmful) :]


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _questions() -> Iterator[tuple[QueueItem, str]]:
    for meme in read_samples():
        for number, question in enumerate(meme.questions[:1]):
            statement = next(
                (k.description for k in meme.knowledge if k.dimension == question.dimension), ""
            )
            shown = [Shown(label="knowledge", value=statement)] if statement else []
            shown += [
                Shown(label="question", value=question.question),
                Shown(label="options", value=list(question.options), kind="options"),
                Shown(label="answer", value=question.options[question.answer]),
            ]
            yield QueueItem(id=f"{meme.id}-{number}", group=meme.id, shown=shown), meme.id


def _plain(memes: Iterable[SampleMeme]) -> Iterator[tuple[QueueItem, str]]:
    for meme in memes:
        yield QueueItem(id=meme.id, group=meme.id), meme.id


def _intents() -> Iterator[tuple[QueueItem, str]]:
    for meme in read_samples():
        if meme.language == "en":
            shown = [Shown(label="text", value=meme.text)]
            values: dict[str, JsonValue] = {"intents": list(meme.intents[:1])}
            yield QueueItem(id=meme.id, group=meme.id, shown=shown, values=values), meme.id


def _emotions() -> Iterator[tuple[QueueItem, str]]:
    for meme in read_samples():
        if meme.emotion is not None:
            values: dict[str, JsonValue] = {
                "source_emotion": meme.emotion.source,
                "description": meme.description,
                "target_emotion": meme.emotion.target,
                "rewritten": meme.emotion.rewritten,
                "plan": meme.emotion.plan,
            }
            yield QueueItem(id=meme.id, group=meme.id, values=values), meme.id


def _outputs() -> Iterator[tuple[QueueItem, str]]:
    for place, meme in enumerate(read_samples()):
        intent = meme.intents[0][:1].upper() + meme.intents[0][1:]
        if place % 2:
            shown = [Shown(label="output", value=intent)]
        else:
            shown = [Shown(label="pair", value=[intent, meme.meaning], kind="list")]
        hidden: dict[str, JsonValue] = {"model": "sample data"}
        yield QueueItem(id=meme.id, group=meme.id, shown=shown, hidden=hidden), meme.id


# The visitor starts in the last project, which has disagreements and two ties.
SHOWS = (
    Show("rate-outputs", "Rate model outputs (blind)", _outputs),
    Show("verify-stages", "Verify reappraisals stage by stage", _emotions),
    Show("collect-and-edit", "Write and review intents", _intents),
    Show("validate", "Validate questions", _questions),
    Show("pun-form", "Chinese pun memes", lambda: _plain(m for m in read_samples() if m.pun)),
    Show(VOTE, "Harmful or not", lambda: _plain(_disputed())),
)
