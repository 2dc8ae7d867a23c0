"""People, projects and answers for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from argon2 import PasswordHasher
from PIL import Image
from pydantic import JsonValue

from memantics.annotation.records import Actor, AnnotationTask, Project
from memantics.annotation.service import AnnotationService
from memantics.core.queue import QueueCard, QueueItem, write_queue

PASSWORD = "a long enough password"
Answerer = Callable[[AnnotationTask], Mapping[str, JsonValue]]


class Clock:
    """Time that moves only when told, and a little with every look."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


def quick_hasher() -> PasswordHasher:
    """Real argon2 with the least work: tests log in often."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def draw_image(path: Path, shade: int) -> None:
    """A small picture that differs from the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), (shade % 256, shade // 256 % 256, 90)).save(path)


def make_queue(
    folder: Path, workflow: str, items: Iterable[QueueItem], *, title: str = "A queue"
) -> Path:
    """A queue with one picture for each item that names none."""
    ready: list[QueueItem] = []
    for number, item in enumerate(items):
        names = item.images or [f"images/{number}.png"]
        for place, name in enumerate(names):
            draw_image(folder / name, 3 * number + place)
        ready.append(item.model_copy(update={"images": names}))
    alone = 1 if workflow == "validate" else 0  # most tests have one person judge
    write_queue(folder, QueueCard(title=title, workflow=workflow, annotators_per_item=alone), ready)
    return folder


def plain_items(count: int) -> list[QueueItem]:
    return [QueueItem(id=f"m{number}", group=f"m{number}") for number in range(1, count + 1)]


def make_lead(service: AnnotationService, name: str = "lead") -> Actor:
    return service.accounts.create_first(name, PASSWORD)


def add_people(
    service: AnnotationService,
    lead: Actor,
    project: int,
    names: Sequence[str],
    roles: Sequence[str],
) -> list[Actor]:
    """Invite people, let them accept and consent."""
    people = []
    for name in names:
        token = service.accounts.invite(lead, project, roles)
        actor = service.accounts.accept(token, name, PASSWORD).actor
        service.projects.consent(actor, project)
        people.append(actor)
    return people


def open_project(
    service: AnnotationService, folder: Path, workflow: str, items: Iterable[QueueItem]
) -> tuple[Actor, Project]:
    """A lead and their project, made from a queue."""
    lead = make_lead(service)
    return lead, service.exchange.open_queue(lead, make_queue(folder, workflow, items))


def work_through(
    service: AnnotationService, actor: Actor, project: int, answer: Answerer
) -> list[int]:
    """Answer all there is for a person; the numbers of the items, in order."""
    numbers = []
    while (task := service.work.next(actor, project)) is not None:
        service.work.submit(actor, task.assignment, answer(task), task.version, 5.0)
        numbers.append(task.number)
    return numbers


def answer_by_number(table: Mapping[int, Mapping[str, JsonValue]]) -> Answerer:
    return lambda task: table[task.number]


def lines_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def aggregated(
    service: AnnotationService, lead: Actor, project: Project
) -> list[tuple[str, bool, Any]]:
    rows = lines_of(service.exchange.export(lead, project.id, "aggregated").data)
    names = [field.id for field in project.workflow.fields]
    return [
        (row["item"], row["kept"], {n: row[n] for n in names if row[n] is not None}) for row in rows
    ]


def score(*correctness: JsonValue) -> dict[str, JsonValue]:
    return {"correctness": list(correctness), "completeness": [5] * len(correctness)}
