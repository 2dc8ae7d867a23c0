"""Accounts, sessions, invitations: what opens, what does not, what is stored."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from memantics.annotation.errors import AnswerError, Forbidden, LoginFailed, TokenInvalid
from memantics.annotation.records import Actor, Preferences
from memantics.annotation.service import AnnotationService
from tests.annotation.team import PASSWORD, Clock, add_people, make_lead, open_project, plain_items


def test_a_session_begins_and_ends(service: AnnotationService, clock: Clock) -> None:
    lead = make_lead(service)
    session = service.accounts.log_in("LEAD", PASSWORD)
    assert service.accounts.actor_of(session.token) == lead
    service.accounts.log_out(session.token)
    with pytest.raises(TokenInvalid):
        service.accounts.actor_of(session.token)
    last = service.accounts.log_in("lead", PASSWORD)
    clock.forward(15 * 86_400)
    with pytest.raises(TokenInvalid):
        service.accounts.actor_of(last.token)


def test_wrong_names_and_passwords_fail_alike(service: AnnotationService) -> None:
    make_lead(service)
    with pytest.raises(LoginFailed) as wrong:
        service.accounts.log_in("lead", "not the password")
    with pytest.raises(LoginFailed) as unknown:
        service.accounts.log_in("nobody' OR 1=1 --", PASSWORD)
    assert str(wrong.value) == str(unknown.value)
    with pytest.raises(LoginFailed):
        service.accounts.log_in("lead", "x" * 10_000)


def test_only_hashes_are_stored(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    token = service.accounts.invite(lead, project.id, ["annotator"])
    session = service.accounts.log_in("lead", PASSWORD)
    with service.context.db.read() as connection:
        stored = " ".join(
            str(row)
            for table in ("users", "sessions", "invitations", "audit")
            for row in connection.execute(sa.text(f"SELECT * FROM {table}"))
        )
    assert "$argon2id$" in stored
    for secret in (PASSWORD, token, session.token):
        assert secret not in stored


def test_a_password_change_ends_other_sessions(service: AnnotationService) -> None:
    lead = make_lead(service)
    old = service.accounts.log_in("lead", PASSWORD)
    with pytest.raises(LoginFailed):
        service.accounts.change_password(lead, "not the password", "another password")
    fresh = service.accounts.change_password(lead, PASSWORD, "another password")
    with pytest.raises(TokenInvalid):
        service.accounts.actor_of(old.token)
    assert service.accounts.actor_of(fresh.token) == lead
    service.accounts.log_in("lead", "another password")


def test_an_invitation_is_used_once(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    token = service.accounts.invite(lead, project.id, ["annotator", "reviewer"], note="for Ann")
    offer = service.accounts.invitation(token)
    assert (offer.project_title, offer.roles) == (project.title, ("annotator", "reviewer"))
    with pytest.raises(AnswerError) as caught:
        service.accounts.accept(token, "ann", "short")
    assert set(caught.value.problems) == {"password"}
    for name in ("lead", "Lead", "a b", "", "x" * 81):
        with pytest.raises(AnswerError):
            service.accounts.accept(token, name, PASSWORD)
    ann = service.accounts.accept(token, "ann", PASSWORD).actor
    assert service.projects.get(ann, project.id).roles == {"annotator", "reviewer"}
    with pytest.raises(TokenInvalid):
        service.accounts.accept(token, "bob", PASSWORD)
    late = service.accounts.invite(lead, project.id, ["annotator"], days=1)
    clock.forward(2 * 86_400)
    with pytest.raises(TokenInvalid):
        service.accounts.accept_as(ann, late)
    revoked = service.accounts.invite(lead, project.id, ["lead"])
    service.accounts.revoke_invitation(lead, service.accounts.invitations(lead, project.id)[0].id)
    with pytest.raises(TokenInvalid):
        service.accounts.accept_as(ann, revoked)
    with pytest.raises(AnswerError):
        service.accounts.invite(lead, project.id, [])
    with pytest.raises(Forbidden):
        service.accounts.invite(lead, project.id, ["owner"])


def test_a_login_link_works_once(service: AnnotationService, clock: Clock) -> None:
    lead = make_lead(service)
    token = service.accounts.login_link(lead)
    with pytest.raises(TokenInvalid):
        service.accounts.actor_of(token)
    assert service.accounts.enter(token).actor == lead
    with pytest.raises(TokenInvalid):
        service.accounts.enter(token)
    late = service.accounts.login_link(lead)
    clock.forward(3601)
    with pytest.raises(TokenInvalid):
        service.accounts.enter(late)


def test_preferences_are_kept(service: AnnotationService) -> None:
    lead = make_lead(service)
    assert service.accounts.preferences(lead).blur
    wanted = Preferences(language="zh", blur=False, grey=True, daily_limit=5)
    service.accounts.set_preferences(lead, wanted)
    assert service.accounts.preferences(lead) == wanted


def test_a_closed_account_is_out_at_once(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(2))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    session = service.accounts.log_in("ann", PASSWORD)
    task = service.work.next(ann, project.id)
    assert task is not None
    service.accounts.deactivate(lead, "Ann")
    with pytest.raises(TokenInvalid):
        service.accounts.actor_of(session.token)
    with pytest.raises(LoginFailed):
        service.accounts.log_in("ann", PASSWORD)
    with pytest.raises(Forbidden):
        service.work.submit(ann, task.assignment, {"question": "yes", "answer": "yes"}, 0)
    with pytest.raises(Forbidden):
        service.accounts.deactivate(lead, "lead")
    service.accounts.reset_password(lead, "ann", "another password")
    assert service.accounts.log_in("ann", "another password").actor == ann


def test_administrators_are_checked_now_not_by_their_word(service: AnnotationService) -> None:
    make_lead(service)
    liar = Actor(999, "lead", admin=True)
    with pytest.raises(Forbidden):
        service.accounts.create(liar, "eve", PASSWORD, admin=True)
    with pytest.raises(Forbidden):
        service.projects.create(liar, "mine", "validate")
    with pytest.raises(Forbidden):
        service.accounts.create_first("again", PASSWORD)


@pytest.mark.parametrize("name", ["ann\n", "ann b", "", "a" * 81, "ann\u202e"])
def test_names_that_look_like_others_are_refused(service: AnnotationService, name: str) -> None:
    lead = make_lead(service)
    with pytest.raises(AnswerError, match="letters, digits"):
        service.accounts.create(lead, name, PASSWORD)


def test_two_who_take_one_name_at_once_are_not_one_person(service: AnnotationService) -> None:
    lead = make_lead(service)
    barrier = threading.Barrier(2)
    outcomes: list[str] = []

    def create() -> None:
        barrier.wait()
        try:
            outcomes.append(service.accounts.create(lead, "ann", PASSWORD).name)
        except AnswerError as error:
            outcomes.append(error.problems["name"])

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["ann", "this name is taken"]
