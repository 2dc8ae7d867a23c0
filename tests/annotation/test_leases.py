"""Leases that run out: what others may take, and what a late answer may still change."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.errors import Conflict
from memantics.annotation.records import Actor, AnnotationTask
from memantics.annotation.service import AnnotationService
from memantics.annotation.workflow import workflow_text
from memantics.core.queue import QueueItem
from tests.annotation.team import (
    Clock,
    add_people,
    make_lead,
    make_queue,
    open_project,
    plain_items,
)

NO = {"harmful": "no"}
TWO: dict[str, JsonValue] = {"intents": ["mocks robots", "asks for help"]}
TURNED: dict[str, JsonValue] = {"intents": ["asks for help", "mocks robots"]}


def take(service: AnnotationService, person: Actor, project: int) -> AnnotationTask:
    task = service.work.next(person, project)
    assert task is not None
    return task


def test_a_training_item_stays_with_its_person(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead = make_lead(service)
    text = workflow_text("label-by-vote").replace("size = 10", "size = 1")
    project = service.projects.create(lead, "short", text)
    trial = [QueueItem(id=f"g{n}", group=f"g{n}", gold={"harmful": "no"}) for n in (1, 2)]
    queue = make_queue(tmp_path / "q", "label-by-vote", [*trial, *plain_items(1)])
    service.exchange.import_queue(lead, project.id, queue)
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    # One is in the second round and goes home; the other passed in the first.
    wrong = {"harmful": "yes", "type": "offence", "modality": "text"}
    service.work.submit(ann, take(service, ann, project.id).assignment, wrong, 0)
    held = take(service, ann, project.id)
    service.work.submit(bob, take(service, bob, project.id).assignment, NO, 0)
    clock.forward(3600)
    real = take(service, bob, project.id)
    assert (real.training, real.number) == (False, 3)
    service.work.submit(bob, real.assignment, NO, 0)
    assert service.work.next(bob, project.id) is None
    assert take(service, ann, project.id).assignment == held.assignment


def test_a_late_review_of_a_list_that_changed_is_not_counted(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "collect-and-edit", plain_items(1))
    editors = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    for person in editors:
        last = take(service, person, project.id)
        service.work.submit(person, last.assignment, TWO, 0)
    (rev,) = add_people(service, lead, project.id, ["rev"], ["reviewer"])
    review = take(service, rev, project.id)
    clock.forward(3600)
    # Nobody holds it any more, so the last editor may still turn the list around.
    service.work.submit(editors[-1], last.assignment, TURNED, 1)
    ratings: dict[str, JsonValue] = {"correctness": [5, 1], "completeness": [5, 5]}
    with pytest.raises(Conflict) as caught:
        service.work.submit(rev, review.assignment, ratings, review.version)
    assert caught.value.mine == ratings
    again = take(service, rev, project.id)
    assert (again.assignment, again.state["intents"]) == (review.assignment, TURNED["intents"])


def test_an_undone_answer_takes_back_the_turn_of_who_went_away(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "collect-and-edit", plain_items(1))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    first = take(service, ann, project.id)
    service.work.submit(ann, first.assignment, TWO, 0)
    second = take(service, bob, project.id)
    clock.forward(3600)
    service.work.undo(ann, first.assignment, 1)
    with pytest.raises(Conflict):
        service.work.submit(bob, second.assignment, TURNED, second.version)
    assert service.work.next(bob, project.id) is None


def test_who_keeps_typing_keeps_the_item(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    task = take(service, ann, project.id)
    for _ in range(3):
        clock.forward(20 * 60)
        service.work.save_draft(ann, task.assignment, {"question": "yes"})
    assert service.work.next(bob, project.id) is None
    clock.forward(31 * 60)
    assert take(service, bob, project.id).assignment == task.assignment


def test_a_reopened_answer_is_held_for_its_week(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    task = take(service, ann, project.id)
    service.work.submit(ann, task.assignment, {"question": "yes", "answer": "no"}, 0)
    service.lead.reopen(lead, task.assignment)
    assert take(service, ann, project.id).assignment == task.assignment
    clock.forward(3 * 86_400)
    assert service.work.next(bob, project.id) is None
