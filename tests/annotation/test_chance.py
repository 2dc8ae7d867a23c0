"""People who answer at random: whatever they say, the rules hold and no file loses anything."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from memantics.annotation.errors import AnnotateError
from memantics.annotation.records import Actor, AnnotationTask
from memantics.annotation.service import AnnotationService
from memantics.annotation.values import visible
from memantics.annotation.workflow import Workflow, WorkflowField, list_workflows, read_workflow
from memantics.core.queue import QueueItem, Shown
from tests.annotation.team import add_people, open_project

WORDS = ("cat", "=1+1", "双关", "a\nb", "<script>", "' OR 1=1 --", "naïve 🙂", "x" * 40)
PEOPLE = ("ann", "bob", "cyd", "dan", "eve", "fay")


def make_value(field: WorkflowField, draw: random.Random) -> JsonValue:
    match field.kind:
        case "choice":
            return draw.choice(field.allowed)
        case "scale":
            return draw.randint(field.low, field.high)
        case "boolean":
            return draw.random() < 0.2
        case "pairwise":
            return draw.choice(("first", "second", "tie"))
        case "list" | "ranked":
            return [f"{word} {n}" for n, word in enumerate(draw.sample(WORDS, draw.randint(1, 3)))]
        case _:
            return draw.choice(WORDS)


def make_answer(
    workflow: Workflow, task: AnnotationTask, draw: random.Random
) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {}
    for name in task.fields:
        if name in visible(workflow, task.fields, values, task.labels):
            field = workflow.field(name)
            elements = task.state.get(field.each)
            whole = values.get(field.within)
            if field.each and isinstance(elements, list):
                values[name] = [make_value(field, draw) for _ in elements]
            elif isinstance(whole, str):
                values[name] = whole[: draw.randint(1, len(whole))].strip()
            else:
                values[name] = make_value(field, draw)
    return values


def make_items(count: int, draw: random.Random, workflow: str) -> list[QueueItem]:
    texts = ("knowledge", "element", "second question", "output", "edited meme")
    items = []
    for number in range(count):
        shown = [Shown(label=label, value="…") for label in texts if draw.random() < 0.6]
        shown.append(Shown(label="pair", value=["left", "right"], kind="pair"))
        drafts: dict[str, JsonValue] = {"intents": ["draft"]}
        values = drafts if workflow == "collect-and-edit" and draw.random() < 0.5 else {}
        group = f"meme {number // 2}"
        items.append(QueueItem(id=f"i{number}", group=group, shown=shown, values=values))
    return items


def wander(
    service: AnnotationService, workflow: Workflow, project: int, person: Actor, seed: int
) -> None:
    """One step of somebody who answers, hesitates, comes back and steps away."""
    draw = random.Random(seed)
    task = service.work.next(person, project)
    if task is None:
        return
    answer = make_answer(workflow, task, draw)
    fate = draw.random()
    if fate < 0.05:
        service.work.skip(person, task.assignment)
    elif fate < 0.1:
        service.work.release(person, task.assignment)
    elif fate < 0.15:
        service.work.save_draft(person, task.assignment, answer)
    else:
        saved = service.work.submit(person, task.assignment, answer, task.version, 2.0)
        if fate > 0.9:
            service.work.undo(person, task.assignment, saved.version)
        elif fate > 0.8:
            last = draw.choice(service.work.mine(person, project))
            again = service.work.open(person, last.assignment)
            changed = make_answer(workflow, again, draw)
            service.work.submit(person, last.assignment, changed, last.version)


# Of a questionnaire everybody fills in one form, and nobody may look at it.
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in list_workflows() if not read_workflow(n).personal])
def test_a_busy_project(service: AnnotationService, tmp_path: Path, name: str) -> None:
    draw = random.Random(name)
    lead, project = open_project(service, tmp_path / "q", name, make_items(8, draw, name))
    everybody = add_people(
        service, lead, project.id, PEOPLE, ["annotator", "reviewer", "adjudicator"]
    )
    refused: Counter[str] = Counter()
    for step in range(260):
        try:
            wander(service, project.workflow, project.id, draw.choice(everybody), step)
        except AnnotateError as error:
            refused[type(error).__name__] += 1
    assert set(refused) <= {"Locked"}
    check_assignments(service, lead, project.id, project.workflow)
    check_history(service, lead, project.id)
    check_round_trip(service, lead, project.id, name, tmp_path)


def check_assignments(
    service: AnnotationService, lead: Actor, project: int, workflow: Workflow
) -> None:
    """Distinct people, in order, reviewers apart from annotators of that meme."""
    worked: dict[tuple[str, str], set[str]] = defaultdict(set)
    views = service.lead.items(lead, project)
    done = 0
    for view in views:
        for stage in workflow.stages:
            assignments = [
                assignment for assignment in view.assignments if assignment.stage == stage.id
            ]
            assert len(assignments) == stage.annotators
            people = [assignment.person for assignment in assignments if assignment.person]
            assert len(set(people)) == len(people)
            states = [assignment.state for assignment in assignments]
            done += states.count("done")
            if stage.kind == "sequential":
                assert sum(state in ("open", "leased") for state in states) <= 1
                assert states == sorted(
                    states, key=("done", "leased", "open", "waiting", "closed").index
                )
            worked[view.group, stage.id] |= set(people)
    assert done >= len(views)
    for (group, name), people_there in worked.items():
        for other in next(stage for stage in workflow.stages if stage.id == name).disjoint_from:
            assert not people_there & worked[group, other]


def check_history(service: AnnotationService, lead: Actor, project: int) -> None:
    """Versions have no gap, and what stands is what history ends with."""
    for view in service.lead.items(lead, project):
        assert len(view.history) == sum(assignment.version for assignment in view.assignments)
        latest = [
            assignment.values for assignment in view.assignments if assignment.state == "done"
        ]
        said = [step.values for step in view.history]
        assert all(values in said for values in latest)


def alone(name: str) -> dict[str, object]:
    """As in the queues of these tests, one person validates."""
    return {"annotators_per_item": 1} if name == "validate" else {}


def check_round_trip(
    service: AnnotationService, lead: Actor, project: int, name: str, folder: Path
) -> None:
    packed = service.exchange.export(lead, project, "labelstudio", "zip").data
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(folder / "ls")
    copy = service.projects.create(lead, "copy", name, changes=alone(name))
    tasks = (folder / "ls" / "tasks.json").read_bytes()
    done = service.exchange.import_label_studio(lead, copy.id, tasks, folder / "ls" / "images")
    assert done.skipped == ()
    assert answers_of(service, lead, copy.id) == answers_of(service, lead, project)
    assert aggregated(service, lead, copy.id) == aggregated(service, lead, project)
    # Items come in another order, and with them the sums of floats.
    again, before = (service.lead.agreement(lead, own) for own in (copy.id, project))
    # Intervals draw items by their place.
    seen, known = ([row.model_dump(exclude={"spans"}) for row in rows] for rows in (again, before))
    assert seen == [
        {key: pytest.approx(value) if isinstance(value, float) else value for key, value in row}
        for row in (row.items() for row in known)
    ]


def answers_of(service: AnnotationService, lead: Actor, project: int) -> list[str]:
    lines = service.exchange.export(lead, project, "raw").data.splitlines()
    rows = [json.loads(line) for line in lines]
    kept: list[Any] = [row for row in rows if row["kind"] == "revision" and row["current"]]
    return sorted(json.dumps(row, sort_keys=True) for row in kept)


def aggregated(service: AnnotationService, lead: Actor, project: int) -> list[Any]:
    lines = service.exchange.export(lead, project, "aggregated").data.splitlines()
    rows: list[Any] = [json.loads(line) for line in lines]
    return sorted(rows, key=lambda row: str(row["item"]))
