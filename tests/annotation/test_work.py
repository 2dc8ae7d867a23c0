"""Assignment, leases, drafts, undo, skips, limits: on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.annotation.context import DAY, iso
from memantics.annotation.errors import (
    AnswerError,
    Conflict,
    ConsentMissing,
    Forbidden,
    LimitReached,
    Locked,
)
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import Preferences
from memantics.annotation.service import AnnotationService
from memantics.core.queue import QueueItem
from tests.annotation.team import (
    Clock,
    add_people,
    answer_by_number,
    open_project,
    plain_items,
    work_through,
)

NO = {"harmful": "no"}
YES = {"harmful": "yes", "type": "offence", "modality": "text"}


def test_k_distinct_people_answer_each_item(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(3))
    people = add_people(service, lead, project.id, ["a", "b", "c", "d"], ["annotator"])
    done = [work_through(service, one, project.id, lambda _: NO) for one in people]
    assert done == [[1, 2, 3], [1, 2, 3], [1, 2, 3], []]


def test_a_lease_is_given_again_and_expires(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    first = service.work.next(ann, project.id)
    again = service.work.next(ann, project.id)
    assert first is not None
    assert again is not None
    assert first.assignment == again.assignment
    assert service.work.next(bob, project.id) is None
    clock.forward(31 * 60)
    taken = service.work.next(bob, project.id)
    assert taken is not None
    assert taken.assignment == first.assignment
    answer = {"question": "yes", "answer": "yes"}
    with pytest.raises(Conflict) as caught:
        service.work.submit(ann, first.assignment, answer, first.version)
    assert caught.value.mine == answer
    assert not caught.value.by_me
    service.work.submit(bob, taken.assignment, answer, taken.version)


def test_a_late_answer_counts_while_nobody_took_the_assignment(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    clock.forward(10 * 3600)
    answer = {"question": "yes", "answer": "no"}
    assert service.work.submit(ann, task.assignment, answer, task.version).version == 1


def test_two_tabs_of_one_person_lose_nothing(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(1))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    saved = service.work.submit(ann, task.assignment, NO, task.version)
    twice = service.work.submit(ann, task.assignment, NO, task.version)
    assert (saved.again, twice.again, twice.version) == (False, True, 1)
    with pytest.raises(Conflict) as caught:
        service.work.submit(ann, task.assignment, YES, task.version)
    assert caught.value.by_me
    assert (caught.value.mine, caught.value.theirs) == (YES, NO)
    assert service.work.open(ann, task.assignment).draft == YES
    edited = service.work.submit(ann, task.assignment, YES, caught.value.version)
    assert edited.version == 2


def test_undo_restores_what_stood_before(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(1))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    service.work.submit(ann, task.assignment, NO, 0)
    service.work.submit(ann, task.assignment, YES, 1)
    back = service.work.undo(ann, task.assignment, 2)
    assert (back.answer, back.version) == (NO, 3)
    open_again = service.work.undo(ann, task.assignment, 3)
    assert (open_again.answer, open_again.draft, open_again.version) == (None, NO, 4)
    with pytest.raises(Locked):
        service.work.undo(ann, task.assignment, 4)
    held = service.work.next(ann, project.id)
    assert held is not None
    assert held.assignment == task.assignment


def test_drafts_are_kept_and_give_way_to_the_answer(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "pun-form", plain_items(1))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    service.work.save_draft(ann, task.assignment, {"caption": "ha"})
    service.work.save_draft(ann, task.assignment, {"caption": "half a cap"})
    assert service.work.open(ann, task.assignment).draft == {"caption": "half a cap"}
    with pytest.raises(Forbidden):
        service.work.save_draft(bob, task.assignment, {"caption": "not mine"})
    with pytest.raises(AnswerError):
        service.work.save_draft(ann, task.assignment, {"caption": "x" * 300_000})
    answer = {
        "caption": "half a cap",
        "pun": "no",
        "sentiment_target": "self",
        "sentiment_type": "neutral",
        "explanation": "a cap",
    }
    service.work.submit(ann, task.assignment, answer, task.version)
    assert service.work.open(ann, task.assignment).draft is None


def test_a_skipped_meme_never_comes_back(service: AnnotationService, tmp_path: Path) -> None:
    items = [QueueItem(id=f"i{n}", group=f"meme{n // 2}") for n in range(4)]
    lead, project = open_project(service, tmp_path / "q", "validate", items)
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    service.work.skip(ann, task.assignment)
    good = {"question": "yes", "answer": "yes"}
    assert work_through(service, ann, project.id, lambda _: good) == [3, 4]
    assert work_through(service, bob, project.id, lambda _: good) == [1, 2]


def test_limits_are_enforced_a_day_and_a_week(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(12))
    service.projects.set_settings(
        lead, project.id, ProjectSettings(daily_limit=3, weekly_limit=5, lease_minutes=10)
    )
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    good = {"question": "yes", "answer": "yes"}
    with pytest.raises(LimitReached) as caught:
        work_through(service, ann, project.id, lambda _: good)
    assert (caught.value.span, service.work.standing(ann, project.id).today) == ("day", 3)
    clock.forward(86_400)
    with pytest.raises(LimitReached) as caught:
        work_through(service, ann, project.id, lambda _: good)
    assert (caught.value.span, service.work.standing(ann, project.id).done) == ("week", 5)
    # The week is over for the first three items, not simply tomorrow.
    assert caught.value.until == iso((clock.now // DAY + 6) * DAY)
    clock.forward(7 * 86_400)
    service.projects.set_limits(lead, project.id, ann.id, 1, None)
    with pytest.raises(LimitReached):
        work_through(service, ann, project.id, lambda _: good)
    assert service.work.standing(ann, project.id).done == 6


def test_a_limit_of_ones_own_holds_over_all_projects(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, first = open_project(service, tmp_path / "q", "validate", plain_items(4))
    second = service.projects.create(lead, "another", "validate")
    service.exchange.import_queue(lead, second.id, tmp_path / "q")
    (ann,) = add_people(service, lead, first.id, ["ann"], ["annotator"])
    service.projects.add_member(lead, second.id, "ann", ["annotator"])
    service.projects.consent(ann, second.id)
    service.accounts.set_preferences(ann, Preferences(daily_limit=3))
    good = {"question": "yes", "answer": "yes"}
    for _ in range(2):
        task = service.work.next(ann, first.id)
        assert task is not None
        service.work.submit(ann, task.assignment, good, 0)
    with pytest.raises(LimitReached) as caught:
        work_through(service, ann, second.id, lambda _: good)
    assert caught.value.limit == 3
    standing = service.work.standing(ann, second.id)
    assert (standing.done, standing.today, standing.daily_limit) == (1, 3, 3)


def test_a_refused_item_is_not_held(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(2))
    service.projects.set_settings(
        lead, project.id, ProjectSettings(daily_limit=1, annotators_per_item=1)
    )
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    good = {"question": "yes", "answer": "yes"}
    with pytest.raises(LimitReached):
        work_through(service, ann, project.id, lambda _: good)
    task = service.work.next(bob, project.id)
    assert task is not None
    assert task.number == 2


def test_consent_comes_before_the_first_meme(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    service.projects.set_roles(lead, project.id, lead.id, ["lead", "annotator"])
    with pytest.raises(ConsentMissing):
        service.work.next(lead, project.id)
    service.projects.consent(lead, project.id)
    assert service.work.next(lead, project.id) is not None


def test_nobody_judges_what_they_uploaded(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    service.projects.set_roles(lead, project.id, lead.id, ["lead", "annotator"])
    service.projects.consent(lead, project.id)
    data = (tmp_path / "q" / "images" / "0.png").read_bytes()
    assert service.exchange.upload(lead, project.id, "../x.png", data).items == 1
    good = {"question": "yes", "answer": "yes"}
    assert work_through(service, lead, project.id, lambda _: good) == [1]


def test_a_sequence_hands_its_state_on(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "collect-and-edit", plain_items(1))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    first = service.work.next(ann, project.id)
    assert first is not None
    assert (first.state, first.history) == ({}, ())
    assert service.work.next(bob, project.id) is None
    service.work.submit(ann, first.assignment, {"intents": ["wants to tease"]}, 0)
    assert service.work.next(ann, project.id) is None
    second = service.work.next(bob, project.id)
    assert second is not None
    assert second.state == {"intents": ["wants to tease"]}
    assert [step.person for step in second.history] == ["P02"]
    with pytest.raises(Locked):
        service.work.submit(ann, first.assignment, {"intents": ["other"]}, 1)
    service.work.release(bob, second.assignment)
    service.work.submit(ann, first.assignment, {"intents": ["wants to tease friends"]}, 1)
    third = service.work.next(bob, project.id)
    assert third is not None
    assert third.state == {"intents": ["wants to tease friends"]}


def test_reviewers_did_not_annotate_that_meme(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "collect-and-edit", plain_items(1))
    everybody = add_people(
        service, lead, project.id, ["a", "b", "c", "d", "e"], ["annotator", "reviewer"]
    )
    for one in everybody[:3]:
        task = service.work.next(one, project.id)
        assert task is not None
        assert task.stage == "collect"
        service.work.submit(one, task.assignment, {"intents": ["wants to tease"]}, 0)
    assert [service.work.next(one, project.id) for one in everybody[:3]] == [None] * 3
    reviews = [service.work.next(one, project.id) for one in everybody[3:]]
    assert [task.stage for task in reviews if task] == ["review", "review"]


def test_an_edit_can_make_a_tie_and_take_it_back(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(1))
    people = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    (judge,) = add_people(service, lead, project.id, ["j"], ["adjudicator"])
    assignments = []
    for one, kind in zip(people, ("offence", "innuendo", "dispirited"), strict=True):
        task = service.work.next(one, project.id)
        assert task is not None
        assignments.append(task.assignment)
        service.work.submit(one, task.assignment, YES | {"type": kind}, 0)
    service.work.submit(people[2], assignments[2], YES, 1)
    assert service.work.next(judge, project.id) is None
    service.work.submit(people[2], assignments[2], YES | {"type": "targeted", "target": "age"}, 2)
    tie = service.work.next(judge, project.id)
    assert tie is not None
    assert [vote.values["type"] for vote in tie.annotations] == ["offence", "innuendo", "targeted"]
    with pytest.raises(Locked):
        service.work.submit(people[2], assignments[2], YES, 3)


def test_answers_are_checked_field_by_field(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(1))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    with pytest.raises(AnswerError) as caught:
        service.work.submit(ann, task.assignment, {"harmful": "yes", "type": "nice", "x": 1}, 0)
    assert set(caught.value.problems) == {"type", "modality", "x"}
    table = answer_by_number({1: NO | {"type": "offence"}})
    work_through(service, ann, project.id, table)
    assert service.work.open(ann, task.assignment).answer == NO


def test_how_long_somebody_has_worked_without_a_pause(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(6))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    good = {"question": "yes", "answer": "yes"}
    for _ in range(4):
        task = service.work.next(ann, project.id)
        assert task is not None
        service.work.submit(ann, task.assignment, good, 0)
        clock.forward(300)
    assert round(service.work.standing(ann, project.id).working_minutes) == 20
    clock.forward(601)
    assert service.work.standing(ann, project.id).working_minutes == 0


def test_open_counts_items_that_a_person_could_take(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "collect-and-edit", plain_items(3))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator", "reviewer"])
    assert service.work.standing(ann, project.id).open == 3
    assert [(name, count) for name, _, count in service.work.stages_of(ann, project.id)] == [
        ("collect", 3),
        ("review", 0),
    ]
    task = service.work.next(ann, project.id)
    assert task is not None
    service.work.submit(ann, task.assignment, {"intents": ["x"]}, 0)
    other = service.work.next(ann, project.id)
    assert other is not None
    service.work.skip(ann, other.assignment)
    assert service.work.standing(ann, project.id).open == 1
    assert service.work.standing(bob, project.id).open == 3
    assert service.accounts.local_admin() == lead
