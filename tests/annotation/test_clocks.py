"""A clock that jumps, forward or back: nobody is locked out for long, and no input is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.annotation.accounts import PER_PAIR, WINDOW
from memantics.annotation.context import DAY
from memantics.annotation.errors import LoginFailed, TokenInvalid, TooManyAttempts
from memantics.annotation.service import AnnotationService
from tests.annotation.team import PASSWORD, Clock, add_people, make_lead, open_project, plain_items

YEAR = 365 * DAY
NO = {"harmful": "no"}


def test_sessions_and_links_end_with_the_clock(service: AnnotationService, clock: Clock) -> None:
    lead = make_lead(service)
    session = service.accounts.log_in("lead", PASSWORD)
    link = service.accounts.login_link(lead)
    clock.forward(-YEAR)
    assert service.accounts.actor_of(session.token) == lead
    clock.forward(2 * YEAR)
    with pytest.raises(TokenInvalid):
        service.accounts.actor_of(session.token)
    with pytest.raises(TokenInvalid):
        service.accounts.enter(link)
    clock.forward(-YEAR)  # the clock is right again: what nobody deleted is valid again
    assert service.accounts.actor_of(session.token) == lead
    assert service.accounts.enter(link).actor == lead


def test_wrong_passwords_of_the_future_are_forgotten(
    service: AnnotationService, clock: Clock
) -> None:
    """The clock was a year ahead while somebody guessed: the account was locked for a year."""
    make_lead(service)
    clock.forward(YEAR)
    for _ in range(PER_PAIR):
        with pytest.raises(LoginFailed):
            service.accounts.log_in("lead", "wrong password", "10.0.0.1")
    with pytest.raises(TooManyAttempts):
        service.accounts.log_in("lead", PASSWORD, "10.0.0.1")
    clock.forward(-YEAR)
    assert service.accounts.log_in("lead", PASSWORD, "10.0.0.1").actor.name == "lead"


def test_a_small_step_back_keeps_the_limit(service: AnnotationService, clock: Clock) -> None:
    make_lead(service)
    for _ in range(PER_PAIR):
        with pytest.raises(LoginFailed):
            service.accounts.log_in("lead", "wrong password", "10.0.0.1")
    clock.forward(-WINDOW / 2)
    with pytest.raises(TooManyAttempts) as refused:
        service.accounts.log_in("lead", PASSWORD, "10.0.0.1")
    assert refused.value.wait <= WINDOW


def test_a_lease_of_the_future_is_taken_over(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    """The clock was a year ahead when the item was taken: nobody got it for a year."""
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    ann, bea = add_people(service, lead, project.id, ["ann", "bea"], ["annotator"])
    clock.forward(YEAR)
    held = service.work.next(ann, project.id)
    assert held is not None
    clock.forward(-YEAR)
    taken = service.work.next(bea, project.id)
    assert taken is not None
    assert taken.assignment == held.assignment


def test_a_lease_survives_a_small_step_back(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    ann, bea = add_people(service, lead, project.id, ["ann", "bea"], ["annotator"])
    assert service.work.next(ann, project.id) is not None
    clock.forward(-DAY)
    assert service.work.next(bea, project.id) is None


def test_a_draft_after_a_step_back_is_newer_than_the_answer(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(1))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    service.work.submit(ann, task.assignment, NO, task.version)
    clock.forward(-YEAR)
    service.work.save_draft(ann, task.assignment, {"harmful": "yes"})
    assert service.work.open(ann, task.assignment).draft == {"harmful": "yes"}


def test_limits_and_working_time_after_a_step_back(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    """Memes that were seen in the future counted against the weekly limit for a year."""
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(6))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    service.projects.set_limits(lead, project.id, ann.id, 0, 2)
    clock.forward(YEAR)
    for _ in range(2):
        task = service.work.next(ann, project.id)
        assert task is not None
        service.work.submit(ann, task.assignment, NO, task.version)
    clock.forward(-YEAR)
    assert service.work.next(ann, project.id) is not None
    standing = service.work.standing(ann, project.id)
    assert standing.working_minutes >= 0
    assert standing.week == 1


def test_a_jump_forward_loses_no_answer(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(2))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    clock.forward(YEAR)  # the lease is over, but nobody else has taken the item
    assert service.work.submit(ann, task.assignment, NO, task.version).version == 1
    clock.forward(-YEAR)
    assert service.work.open(ann, task.assignment).answer == NO
    assert service.lead.progress(lead, project.id).stages[0].done == 1
