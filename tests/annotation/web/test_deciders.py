"""Reviews by a policy: only roles that the policy names may decide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memantics.annotation.errors import Forbidden, RoleRefused
from memantics.core.errors import InputError
from memantics.core.policy import read_policy, write_policy
from memantics.core.queue import AggregatedAnnotation, QueueItem, Shown
from memantics.moderation.decisions.reviews import write_policy_queue
from tests.annotation.team import lines_of
from tests.annotation.web.visitors import Office
from tests.places import ROOT

FORUM = read_policy(ROOT / "examples" / "policies" / "forum.md")


def open_review(office: Office, folder: Path) -> int:
    items = [
        QueueItem(id=f"d{n}", group=f"d{n}", shown=[Shown(label="text", value=f"post {n}")])
        for n in range(3)
    ]
    write_policy_queue(folder, FORUM, items, "Review", "en")
    return office.service.exchange.open_queue(office.lead, folder).id


def test_only_deciders_get_work(office: Office, tmp_path: Path) -> None:
    project = open_review(office, tmp_path / "q")
    ann = office.hire("ann", project, "annotator")
    bob = office.hire("bob", project, "reviewer")
    with pytest.raises(RoleRefused) as refused:
        office.service.work.next(ann, project)
    said = str(refused.value)
    assert f"policy {FORUM.name} lets only reviewer and lead decide" in said
    assert "has the role annotator; ask the lead of the project" in said
    assert office.service.work.next(bob, project) is not None
    visitor = office.visitor("ann")
    page = visitor.get(f"/p/{project}").text
    assert f"The policy {FORUM.name} lets only these roles decide: Reviewer, Lead" in page
    assert "/next?stage=" not in page
    answer = visitor.get(f"/p/{project}/next")
    assert answer.status_code == 403
    assert "lets only reviewer and lead decide" in answer.text
    own = office.visitor("bob").get(f"/p/{project}").text
    assert "lets only these roles decide" not in own
    assert "/next?stage=" in own


def test_a_role_that_was_withdrawn_decides_no_more(office: Office, tmp_path: Path) -> None:
    project = open_review(office, tmp_path / "q")
    bob = office.hire("bob", project, "annotator", "reviewer")
    work = office.service.work
    task = work.next(bob, project)
    assert task is not None
    office.service.projects.set_roles(office.lead, project, bob.id, ["annotator"])
    with pytest.raises(RoleRefused, match="has the role annotator"):
        work.submit(bob, task.assignment, {"harmful": "no"}, task.version, 5.0)
    office.service.projects.set_roles(office.lead, project, bob.id, ["reviewer"])
    work.submit(bob, task.assignment, {"harmful": "no"}, task.version, 5.0)
    (row,) = lines_of(office.service.exchange.export(office.lead, project, "annotations").data)
    (vote,) = AggregatedAnnotation.model_validate(row).annotations
    assert (vote.annotator, vote.roles) == (f"reviewer-{bob.id}", ["reviewer"])


def test_others_learn_nothing_about_the_policy(office: Office, tmp_path: Path) -> None:
    project = open_review(office, tmp_path / "q")
    stranger = office.hire("eve", project)
    with pytest.raises(Forbidden) as refused:
        office.service.work.next(stranger, project)
    assert not isinstance(refused.value, RoleRefused)


def test_a_policy_without_a_role_of_the_app_is_refused(office: Office, tmp_path: Path) -> None:
    project = open_review(office, tmp_path / "q")
    strict = replace(FORUM, deciders=("moderator",))
    with pytest.raises(InputError, match="add one of lead, annotator, reviewer, adjudicator"):
        office.service.guideline.adopt(office.lead, project, strict)
    (tmp_path / "q" / "policy.md").write_text(write_policy(strict), encoding="utf-8")
    with pytest.raises(InputError, match="lets only moderator decide; the annotation app has no"):
        office.service.exchange.open_queue(office.lead, tmp_path / "q")
    later = replace(FORUM, version="3", deciders=("lead",))
    office.service.guideline.adopt(office.lead, project, later)
    bob = office.hire("bob", project, "reviewer")
    with pytest.raises(RoleRefused, match="lets only lead decide"):
        office.service.work.next(bob, project)


def test_other_projects_export_no_roles(office: Office, tmp_path: Path) -> None:
    queue = tmp_path / "plain"
    items = [QueueItem(id="a", group="a", shown=[Shown(label="text", value="post")])]
    write_policy_queue(queue, FORUM, items, "Review", "en")
    project = office.service.exchange.open_queue(office.lead, queue, "review-harm").id
    bob = office.hire("bob", project, "annotator")
    task = office.service.work.next(bob, project)
    assert task is not None
    answer = {"harmful": "no"}
    office.service.work.submit(bob, task.assignment, answer, task.version, 5.0)
    data = office.service.exchange.export(office.lead, project, "annotations").data
    assert b'"roles"' not in data
