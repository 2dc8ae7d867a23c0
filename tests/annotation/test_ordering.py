"""Items by expected information, a random share kept apart, and figures over it without bias."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import sqlalchemy as sa

from memantics.annotation import schema
from memantics.annotation.leasing import EVERY, rank_items
from memantics.annotation.project_settings import is_sampled
from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService
from memantics.core.queue import QueueItem, Shown
from tests.annotation.team import add_people, open_project

CLEAR = "a photo of my cat asleep on the sofa number {n}"
HARD = "irony about ministers and their promises number {n}"


def make_items(count: int) -> list[QueueItem]:
    """Every fourth item is of the kind on which people differ."""
    return [
        QueueItem(
            id=f"m{n}",
            group=f"m{n}",
            shown=[Shown(label="text", value=(CLEAR if n % 4 else HARD).format(n=n))],
        )
        for n in range(1, count + 1)
    ]


def test_the_random_fraction_is_spread_evenly_and_in_an_order_of_its_own() -> None:
    texts = {f"m{n}": (CLEAR if n % 4 else HARD).format(n=n) for n in range(1, 401)}
    ranked = rank_items(texts, {"m1": 0.0, "m4": 0.5}, 0.25)
    assert sorted(ranked) == sorted(texts)
    # What was begun comes first, so that others finish it.
    assert ranked[:2] == ["m1", "m4"]
    ranked = ranked[2:]
    drawn = [key for key in ranked if is_sampled(key, "random", 0.25) and key not in ("m1", "m4")]
    for part in range(4):
        here = ranked[part * 99 : (part + 1) * 99]
        assert abs(sum(key in drawn for key in here) - 99 * len(drawn) / 398) <= 5
    # What people said about other items does not move them.
    other = rank_items(texts, {"m1": 0.5, "m4": 0.0}, 0.25)
    assert [key for key in other if key in drawn] == drawn
    assert [key for key in other[2:] if key not in drawn] != [k for k in ranked if k not in drawn]
    assert rank_items({}, {}, 0.2) == []
    assert len(rank_items({"a": "x", "b": "y"}, {}, 1.0)) == 2


def test_what_divides_people_comes_first_while_they_vote(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", make_items(80))
    service.projects.change(
        lead,
        project.id,
        {"annotators_per_item": 2, "order": "uncertainty", "random_proportion": 0.2},
    )
    people = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    draw, met = random.Random(1), []
    for _ in range(40):
        for actor in people:
            task = service.work.next(actor, project.id)
            assert task is not None
            hard = "ministers" in str(task.shown[0].value)
            said = draw.choice(["yes", "no"]) if hard else "yes"
            answer = {"question": said, "answer": "yes"}
            service.work.submit(actor, task.assignment, answer, task.version)
            met.append(hard)
    # Twenty of eighty items are hard; the order of the queue would bring ten among the first forty.
    assert sum(met) // 2 >= 14
    agreements = service.lead.agreement(lead, project.id, random_only=True)
    everything = service.lead.agreement(lead, project.id)
    assert 0 < agreements[-1].items < everything[-1].items
    # Back to the order of the queue.
    service.projects.change(lead, project.id, {"order": "given"})
    task = service.work.next(people[0], project.id)
    assert task is not None
    done = {one.number for one in service.work.mine(people[0], project.id, limit=500)}
    assert task.number == min(set(range(1, 81)) - done)


@pytest.mark.parametrize(("count", "asked"), [(EVERY - 1, False), (EVERY, True)])
def test_the_order_follows_every_so_many_answers(
    service: AnnotationService, tmp_path: Path, count: int, asked: bool
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", make_items(60))
    service.projects.change(lead, project.id, {"annotators_per_item": 1, "order": "uncertainty"})
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    assert answer_some(service, ann, project.id, count - 1) == 0
    before = list_places(service)
    assert answer_some(service, ann, project.id, 1) == 0
    assert (list_places(service) != before) is asked


def answer_some(service: AnnotationService, actor: Actor, project: int, count: int) -> int:
    """Answer so many items; how many there were too few of."""
    for left in range(count, 0, -1):
        task = service.work.next(actor, project)
        if task is None:
            return left
        service.work.submit(actor, task.assignment, {"question": "yes", "answer": "yes"}, 0)
    return 0


def list_places(service: AnnotationService) -> list[int]:
    with service.context.db.read() as connection:
        query = sa.select(schema.assignments.c.place).order_by(schema.assignments.c.id)
        return list(connection.execute(query).scalars())
