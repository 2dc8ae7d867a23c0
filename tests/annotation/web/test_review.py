"""The default review form of a screening: options from the queue, ties, roles and languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from memantics.annotation.commands import Storage, import_annotations
from memantics.annotation.errors import AnswerError, Forbidden, NotFound
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.workflow import apply_settings, read_workflow
from memantics.core.queue import QueueCard, QueueItem, QueueOption, Shown, write_queue
from memantics.moderation.labels import read_decisions
from tests.annotation.team import work_through
from tests.annotation.web.steps import take
from tests.annotation.web.visitors import Office

CATEGORIES = (
    QueueOption(value="sexual", en="Sexual content", zh="色情内容"),
    QueueOption(value="scam"),
)
TEXTS = ("so rude", "quite kind", "who knows")


def write_review(folder: Path, *options: QueueOption, people: int = 2) -> Path:
    items = [
        QueueItem(
            id=f"{n}", group=f"{n}", shown=[Shown(label="text", value=text)],
            hidden={"id": f"{n}", "text": text},
        )
        for n, text in enumerate(TEXTS)
    ]  # fmt: skip
    card = QueueCard(
        title="Screening", workflow="review", annotators_per_item=people,
        options={"category": list(options)} if options else {},
    )  # fmt: skip
    write_queue(folder, card, items)
    return folder


def test_the_form_has_three_answers_and_the_categories_of_the_queue(
    office: Office, tmp_path: Path
) -> None:
    queue = write_review(tmp_path / "q", *CATEGORIES)
    project = office.service.exchange.open_queue(office.lead, queue).id
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    page = ann.get(place).text
    for words in ("Harmful", "Not harmful", "Unsure", "Category", "Sexual content", "scam", "Note"):
        assert words in page
    assert "Innuendo" not in page
    assert 'value="dispirited"' not in page
    ann.post("/settings/language", {"language": "zh", "next": place})
    page = ann.get(place).text
    for words in ("有害", "无害", "不确定", "类别", "色情内容", "备注"):
        assert words in page
    # Only the first field is mandatory.
    form = {"version": "0", "project": str(project), "k-harmful": "choice"}
    assert ann.post(place, form).status_code == 422
    form |= {"f-harmful": "yes", "k-category": "choice", "f-category": "sexual"}
    form |= {"k-note": "longtext", "f-note": "a slur"}
    assert ann.post(place, form).status_code == 303
    place = take(ann, project)
    form = {"version": "0", "project": str(project), "k-harmful": "choice", "f-harmful": "unsure"}
    assert ann.post(place, form).status_code == 303


def test_without_categories_in_the_queue_none_are_asked(office: Office, tmp_path: Path) -> None:
    service = office.service
    project = service.exchange.open_queue(office.lead, write_review(tmp_path / "q")).id
    actor = office.hire("ann", project, "annotator")
    flow = service.projects.get(actor, project).workflow
    assert flow.stages[0].fields == ("harmful", "note")
    task = service.work.next(actor, project)
    assert task is not None
    said = {"harmful": "yes", "category": "sexual"}
    with pytest.raises(AnswerError, match="category"):
        service.work.submit(actor, task.assignment, said, task.version)
    # A later queue brings options; a change of settings keeps them.
    queue = write_review(tmp_path / "more", *CATEGORIES)
    service.exchange.import_queue(office.lead, project, queue)
    service.projects.change(office.lead, project, {"annotators_per_item": 3})
    service.exchange.import_queue(office.lead, project, queue)
    flow = service.projects.get(actor, project).workflow
    assert flow.field("category").allowed == ("sexual", "scam")
    service.work.submit(actor, task.assignment, said, task.version)


def test_two_options_of_a_field_have_different_values() -> None:
    twice = [QueueOption(value="a"), QueueOption(value="a")]
    with pytest.raises(ValidationError, match="two options have the same value"):
        QueueCard(title="t", workflow="review", options={"category": twice})


def test_ties_reach_the_lead_and_retraining_reads_the_decision(
    office: Office, tmp_path: Path
) -> None:
    service = office.service
    queue = write_review(tmp_path / "q", *CATEGORIES)
    project = service.exchange.open_queue(office.lead, queue).id
    service.projects.consent(office.lead, project)
    answers = {"ann": ("yes", "no", "yes"), "bob": ("yes", "no", "no")}
    for name, said in answers.items():
        work_through(
            service,
            office.hire(name, project, "reviewer"),
            project,
            lambda task, said=said, name=name: {  # type: ignore[misc]
                "harmful": said[task.number - 1],
                # Different categories alone are not a tie.
                **(
                    {"category": "sexual" if name == "ann" else "scam"}
                    if said[task.number - 1] == "yes"
                    else {}
                ),
            },
        )
    lead = office.visitor("lead")
    page = lead.get(f"/p/{project}/disagreements").text
    assert "who knows" in page
    assert "Adjudicate ties" in lead.get(f"/p/{project}").text
    task = service.work.next(office.lead, project)
    assert task is not None
    assert (task.number, task.stage) == (3, "settle_ties")
    decision = {"harmful": "no", "decision_note": "harmless here"}
    service.work.submit(office.lead, task.assignment, decision, task.version)
    assert service.work.next(office.lead, project) is None
    file = tmp_path / "annotations.jsonl"
    file.write_bytes(service.exchange.export(office.lead, project, "annotations").data)
    found = read_decisions([file])
    labels = {example.text: (example.label, example.type) for example in found.examples}
    assert labels == {"so rude": (1, None), "quite kind": (0, "none"), "who knows": (0, "none")}
    assert list(found.weights) == [1.0, 1.0, 1.0]


def test_an_invitation_says_what_the_roles_do(office: Office, tmp_path: Path) -> None:
    service = office.service
    project = service.exchange.open_queue(office.lead, write_review(tmp_path / "q")).id
    token = service.accounts.invite(office.lead, project, ["reviewer", "adjudicator"])
    page = office.visitor().get(f"/join/{token}").text
    assert "<strong>Reviewer</strong> · Tasks: Review<" in page
    assert "<strong>Adjudicator</strong> · No tasks in this project" in page
    page = office.visitor().get(f"/join/{token}?lang=zh").text
    assert "<strong>评审员</strong> · 任务：复核<" in page
    assert "在本项目的工作流中没有任务" in page
    page = office.visitor("lead").get(f"/p/{project}/members").text
    assert "<strong>Lead</strong> · Manages members, settings and results. Tasks: Adj" in page
    assert "<strong>Reviewer</strong> · Tasks: Review<" in page
    # The role gives work, and a role without tasks gives none.
    reviewer = office.hire("rev", project, "reviewer")
    assert service.work.next(reviewer, project) is not None
    judge = office.hire("jud", project, "adjudicator")
    with pytest.raises(Forbidden):
        service.work.next(judge, project)
    assert "Your roles have no tasks" in office.visitor("jud").get(f"/p/{project}").text


def test_reviewers_do_not_annotate_where_a_stage_is_theirs(office: Office, tmp_path: Path) -> None:
    project = office.service.projects.create(office.lead, "t", "collect-and-edit")
    (title,) = project.workflow.list_tasks("reviewer")
    assert title == project.workflow.stages[1].title
    assert project.workflow.admits(0, {"annotator"})
    assert not project.workflow.admits(0, {"reviewer"})


def test_another_workflow_replaces_that_of_the_queue(office: Office, tmp_path: Path) -> None:
    queue = write_review(tmp_path / "q", *CATEGORIES)
    storage = Storage(str(tmp_path / "other.db"))
    first = import_annotations(storage, queue, workflow="review-harm")
    again = import_annotations(storage, queue, workflow="review-harm")
    assert (first.items, again.items, again.project) == (3, 0, first.project)
    assert import_annotations(storage, queue).project != first.project
    exchange = office.service.exchange
    project = exchange.open_queue(office.lead, queue, "review-harm")
    assert (project.workflow.name, project.workflow.stages[0].id) == ("review-harm", "label")
    with pytest.raises(NotFound, match="the queue uses workflow review"):
        exchange.import_queue(office.lead, project.id, queue)


def test_an_extra_answer_is_not_read_as_a_decision() -> None:
    """One more annotator adds a vote; only the lead's decision of a tie counts alone."""
    for adjudicator, stage in (("lead", "settle_ties"), ("extra-annotator", "extra_annotation")):
        settings = ProjectSettings.model_validate({"adjudicator": adjudicator})
        assert apply_settings(read_workflow("review"), settings).stages[-1].id == stage
