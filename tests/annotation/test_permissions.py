"""Every method of the service against every kind of person. A new method fails until classified."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memantics.annotation.errors import AnswerError, Forbidden, Locked, NotFound
from memantics.annotation.policy import EXAMPLE
from memantics.annotation.project_settings import LocalizedText, ProjectSettings
from memantics.annotation.records import Actor, Preferences
from memantics.annotation.service import AnnotationService
from memantics.core.policy import parse_policy
from tests.annotation.team import PASSWORD, add_people, make_queue, open_project, plain_items

ROLES = ("lead", "annotator", "reviewer", "adjudicator", "former", "outsider", "nobody")
MEMBERS = frozenset({"lead", "annotator", "reviewer", "adjudicator"})
LEAD = frozenset({"lead"})
ANNOTATOR = frozenset({"annotator"})
WORKERS = frozenset({"annotator", "reviewer", "adjudicator"})


@dataclass(frozen=True)
class Stage:
    """A project with one member of each kind, and an item that the annotator holds."""

    service: AnnotationService
    people: dict[str, Actor]
    project: int
    slot: int
    item: int
    media: str
    queue: Path
    user: int
    invitation: int


Call = Callable[[Stage, Actor], object]
# Who may make each call. Whether it then succeeds is not the question here.
CALLS: dict[str, tuple[frozenset[str], Call]] = {
    "accounts.create": (frozenset(), lambda s, a: s.service.accounts.create(a, "new", PASSWORD)),
    "accounts.deactivate": (frozenset(), lambda s, a: s.service.accounts.deactivate(a, "reviewer")),
    "accounts.reset_password": (
        frozenset(),
        lambda s, a: s.service.accounts.reset_password(a, "reviewer", PASSWORD),
    ),
    "accounts.invite": (LEAD, lambda s, a: s.service.accounts.invite(a, s.project, ["lead"])),
    "accounts.invitations": (LEAD, lambda s, a: s.service.accounts.invitations(a, s.project)),
    "accounts.revoke_invitation": (
        LEAD,
        lambda s, a: s.service.accounts.revoke_invitation(a, s.invitation),
    ),
    "projects.create": (frozenset(), lambda s, a: s.service.projects.create(a, "t", "validate")),
    "projects.get": (MEMBERS, lambda s, a: s.service.projects.get(a, s.project)),
    "projects.set_settings": (
        LEAD,
        lambda s, a: s.service.projects.set_settings(a, s.project, ProjectSettings()),
    ),
    "projects.change": (LEAD, lambda s, a: s.service.projects.change(a, s.project, {})),
    "projects.archive": (
        LEAD,
        lambda s, a: s.service.projects.archive(a, s.project, archived=False),
    ),
    "projects.members": (LEAD, lambda s, a: s.service.projects.members(a, s.project)),
    "projects.add_member": (
        LEAD,
        lambda s, a: s.service.projects.add_member(a, s.project, "reviewer", ["reviewer"]),
    ),
    "projects.set_roles": (
        LEAD,
        lambda s, a: s.service.projects.set_roles(a, s.project, s.user, ["annotator"]),
    ),
    "projects.set_limits": (
        LEAD,
        lambda s, a: s.service.projects.set_limits(a, s.project, s.user, 5, 5),
    ),
    "projects.consent": (MEMBERS, lambda s, a: s.service.projects.consent(a, s.project)),
    "work.next": (
        WORKERS,
        lambda s, a: s.service.work.next(a, s.project),
    ),
    "work.claim": (
        WORKERS,
        lambda s, a: s.service.work.claim(a, s.project),
    ),
    "work.decide": (
        frozenset({"adjudicator"}),
        lambda s, a: s.service.work.decide(a, s.project, 1),
    ),
    "work.open": (ANNOTATOR, lambda s, a: s.service.work.open(a, s.slot)),
    "work.save_draft": (
        ANNOTATOR,
        lambda s, a: s.service.work.save_draft(a, s.slot, {"harmful": "no"}),
    ),
    "work.submit": (
        ANNOTATOR,
        lambda s, a: s.service.work.submit(a, s.slot, {"harmful": "no"}, 0),
    ),
    "work.undo": (ANNOTATOR, lambda s, a: s.service.work.undo(a, s.slot, 1)),
    "work.skip": (ANNOTATOR, lambda s, a: s.service.work.skip(a, s.slot)),
    "work.release": (ANNOTATOR, lambda s, a: s.service.work.release(a, s.slot)),
    "work.mine": (MEMBERS, lambda s, a: s.service.work.mine(a, s.project)),
    "work.standing": (MEMBERS, lambda s, a: s.service.work.standing(a, s.project)),
    "work.stages_of": (MEMBERS, lambda s, a: s.service.work.stages_of(a, s.project)),
    "lead.progress": (LEAD, lambda s, a: s.service.lead.progress(a, s.project)),
    "lead.pairs": (LEAD, lambda s, a: s.service.lead.pairs(a, s.project)),
    "lead.agreement": (LEAD, lambda s, a: s.service.lead.agreement(a, s.project)),
    "lead.drift": (LEAD, lambda s, a: s.service.lead.drift(a, s.project)),
    "lead.disagreements": (LEAD, lambda s, a: s.service.lead.disagreements(a, s.project)),
    "lead.preferences": (LEAD, lambda s, a: s.service.lead.preferences(a, s.project)),
    "lead.audit": (LEAD, lambda s, a: s.service.lead.audit(a, s.project)),
    "lead.items": (LEAD, lambda s, a: s.service.lead.items(a, s.project)),
    "lead.item": (LEAD, lambda s, a: s.service.lead.item(a, s.item)),
    "lead.reopen": (LEAD, lambda s, a: s.service.lead.reopen(a, s.slot)),
    "lead.set_training": (
        LEAD,
        lambda s, a: s.service.lead.set_training(a, s.project, s.user, "passed"),
    ),
    "lead.gather": (LEAD, lambda s, a: s.service.lead.gather(a, s.project)),
    "guideline.unclear": (LEAD, lambda s, a: s.service.guideline.unclear(a, s.project)),
    "guideline.describe": (LEAD, lambda s, a: s.service.guideline.describe(a, s.project)),
    "guideline.clarify": (
        LEAD,
        lambda s, a: s.service.guideline.clarify(a, s.project, LocalizedText(en="A rule.")),
    ),
    "guideline.adopt": (
        LEAD,
        lambda s, a: s.service.guideline.adopt(a, s.project, parse_policy(EXAMPLE, "p.md")),
    ),
    "exchange.make_project": (
        frozenset(),
        lambda s, a: s.service.exchange.make_project(a, s.queue),
    ),
    "exchange.open_queue": (frozenset(), lambda s, a: s.service.exchange.open_queue(a, s.queue)),
    "exchange.import_queue": (
        LEAD,
        lambda s, a: s.service.exchange.import_queue(a, s.project, s.queue),
    ),
    "exchange.import_memes": (
        LEAD,
        lambda s, a: s.service.exchange.import_memes(a, s.project, s.queue / "images"),
    ),
    "exchange.import_items": (
        LEAD,
        lambda s, a: s.service.exchange.import_items(a, s.project, []),
    ),
    "exchange.upload": (
        LEAD,
        lambda s, a: s.service.exchange.upload(
            a, s.project, "x.png", (s.queue / "images" / "0.png").read_bytes()
        ),
    ),
    "exchange.check_upload": (
        LEAD,
        lambda s, a: s.service.exchange.check_upload(a, s.project),
    ),
    "exchange.import_tasks": (
        LEAD,
        lambda s, a: s.service.exchange.import_tasks(a, s.project, io.BytesIO(b"[]")),
    ),
    "exchange.import_label_studio": (
        LEAD,
        lambda s, a: s.service.exchange.import_label_studio(a, s.project, "[]"),
    ),
    "exchange.train_on": (LEAD, lambda s, a: s.service.exchange.train_on(a, s.project, [])),
    "exchange.export": (LEAD, lambda s, a: s.service.exchange.export(a, s.project, "raw")),
    "exchange.media": (MEMBERS, lambda s, a: s.service.exchange.media(a, s.media)),
}
# These concern the person alone, whatever projects they are in.
OWN = {
    "accounts.change_password",
    "accounts.login_link",
    "accounts.preferences",
    "accounts.set_preferences",
    "accounts.accept_as",
    "projects.mine",
}


def methods_with_an_actor(service: AnnotationService) -> Iterator[str]:
    for part in ("accounts", "projects", "work", "lead", "guideline", "exchange"):
        for name, method in inspect.getmembers(getattr(service, part), inspect.ismethod):
            if not name.startswith("_") and "actor" in inspect.signature(method).parameters:
                yield f"{part}.{name}"


def set_up(service: AnnotationService, folder: Path) -> Stage:
    lead, project = open_project(service, folder / "q", "label-by-vote", plain_items(2))
    people = {"lead": lead}
    for role in ("annotator", "reviewer", "adjudicator", "former"):
        roles = [role] if role != "former" else ["lead", "annotator"]
        (people[role],) = add_people(service, lead, project.id, [role], roles)
    service.projects.set_roles(lead, project.id, people["former"].id, [])
    people["outsider"] = service.accounts.create(lead, "outsider", PASSWORD, admin=False)
    people["nobody"] = Actor(999_999, "nobody", admin=True)
    task = service.work.next(people["annotator"], project.id)
    assert task is not None
    service.accounts.invite(lead, project.id, ["annotator"])
    (item, _) = service.lead.items(lead, project.id)
    return Stage(
        service,
        people,
        project.id,
        task.assignment,
        item.id,
        task.images[0],
        make_queue(folder / "q2", "label-by-vote", plain_items(1)),
        people["reviewer"].id,
        service.accounts.invitations(lead, project.id)[0].id,
    )


def test_every_method_is_classified(service: AnnotationService) -> None:
    assert set(methods_with_an_actor(service)) == set(CALLS) | OWN


@pytest.mark.parametrize("role", ROLES)
def test_forbidden_calls_are_refused(service: AnnotationService, tmp_path: Path, role: str) -> None:
    stage = set_up(service, tmp_path)
    actor = stage.people[role]
    before = len(stage.service.lead.audit(stage.people["lead"], stage.project, limit=1000))
    open_to_them: list[str] = []
    for name, (allowed, call) in CALLS.items():
        # The lead of these tests is the administrator too: the empty set is for the others.
        if role in allowed or (role == "lead" and not allowed):
            continue
        try:
            call(stage, actor)
        except Forbidden:
            continue
        open_to_them.append(name)
    assert open_to_them == []
    after = len(stage.service.lead.audit(stage.people["lead"], stage.project, limit=1000))
    assert before == after


@pytest.mark.parametrize("role", sorted(MEMBERS))
def test_allowed_calls_are_not_refused(
    service: AnnotationService, tmp_path: Path, role: str
) -> None:
    stage = set_up(service, tmp_path)
    for name, (allowed, call) in CALLS.items():
        # After a skip there is nothing left to release.
        if role not in allowed or name == "work.release":
            continue
        try:
            call(stage, stage.people[role])
        except Locked:
            assert name in ("lead.reopen", "work.decide")
        except NotFound:
            assert name == "guideline.describe"  # nobody differs here
        except AnswerError:
            assert name == "guideline.adopt"  # the guideline of this project is not a policy


def test_what_concerns_oneself_asks_for_nobody_else(service: AnnotationService) -> None:
    liar = Actor(999_999, "nobody", admin=True)
    assert service.projects.mine(liar) == ()
    with pytest.raises(Forbidden):
        service.accounts.preferences(liar)
    service.accounts.set_preferences(liar, Preferences())
