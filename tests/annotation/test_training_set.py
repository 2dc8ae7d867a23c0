"""Training, a test and a questionnaire as parts of any workflow: set, named and passed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.commands import (
    ProjectChanges,
    Storage,
    import_annotations,
    open_annotations,
    set_up_project,
)
from memantics.annotation.errors import TrainingFailed
from memantics.annotation.intake import check_item
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService
from memantics.annotation.workflow import apply_settings, list_workflows, read_workflow
from memantics.core.errors import DataError, InputError
from memantics.core.queue import QueueItem
from tests.annotation.team import (
    add_people,
    lines_of,
    make_lead,
    make_queue,
    open_project,
    plain_items,
)
from tests.places import ROOT

YES: dict[str, JsonValue] = {"question": "yes", "answer": "yes"}
NO: dict[str, JsonValue] = {"question": "no", "answer": "yes"}


def gold_items(count: int) -> list[QueueItem]:
    return [QueueItem(id=f"g{n}", group=f"g{n}", gold=YES) for n in range(count)]


def answer_next(
    service: AnnotationService, actor: Actor, project: int, said: dict[str, JsonValue]
) -> tuple[bool, str]:
    """Answer what comes; whether it was training, and the state after it."""
    task = service.work.next(actor, project)
    assert task is not None
    saved = service.work.submit(actor, task.assignment, said, task.version)
    return task.training, saved.feedback.state if saved.feedback else ""


@pytest.mark.parametrize("name", list_workflows())
def test_a_pass_mark_gives_every_workflow_a_training(name: str) -> None:
    flow = apply_settings(read_workflow(name), ProjectSettings(pass_mark=0.6, feedback=False))
    assert flow.training is not None
    assert (flow.training.threshold, flow.training.feedback) == (0.6, False)
    assert set(flow.training.fields) <= set(flow.stages[0].fields)
    untouched = apply_settings(read_workflow(name), ProjectSettings())
    assert untouched.training == read_workflow(name).training


def test_a_named_training_set_is_passed_before_real_work(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, made = open_project(service, tmp_path / "q", "validate", plain_items(2))
    project, exchange = made.id, service.exchange
    known = make_queue(tmp_path / "gold", "validate", gold_items(4))
    with pytest.raises(InputError, match="workflow validate has no training"):
        exchange.import_queue(lead, project, known, training_set=True)
    service.projects.change(lead, project, {"pass_mark": 0.75})
    unknown = make_queue(tmp_path / "none", "validate", [QueueItem(id="u", group="u")])
    with pytest.raises(InputError, match="item 'u' has no known answer"):
        exchange.import_queue(lead, project, unknown, training_set=True)
    assert exchange.import_queue(lead, project, known, training_set=True).items == 4
    ann, bob = add_people(service, lead, project, ["ann", "bob"], ["annotator"])
    states = [answer_next(service, ann, project, said) for said in (YES, YES, NO, YES)]
    assert states == [(True, "running")] * 3 + [(True, "passed")], "three of four are enough"
    assert answer_next(service, ann, project, YES) == (False, "")
    states = [answer_next(service, bob, project, said) for said in (YES, NO, NO, YES)]
    assert states[-1] == (True, "failed")
    with pytest.raises(TrainingFailed):
        service.work.next(bob, project)
    # A lower mark holds for those who failed by it.
    service.projects.change(lead, project, {"pass_mark": 0.51})
    with pytest.raises(TrainingFailed):
        service.work.next(bob, project)
    service.projects.change(lead, project, {"pass_mark": 0.5})
    assert answer_next(service, bob, project, YES) == (False, "")
    rows = lines_of(exchange.export(lead, project, "individual").data)
    assert {row["item"] for row in rows} == {"m1", "m2"}, "training is no vote"


def test_finished_items_become_the_training_of_those_who_come_later(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, made = open_project(service, tmp_path / "q", "validate", plain_items(3))
    project = made.id
    service.projects.change(lead, project, {"pass_mark": 1.0})
    ann, cy = add_people(service, lead, project, ["ann", "cy"], ["annotator"])
    for said in (YES, NO):
        assert answer_next(service, ann, project, said) == (False, "")
    with pytest.raises(InputError, match="item 3 is not finished"):
        service.exchange.train_on(lead, project, [1, 3])
    for _ in range(2):  # the second time nothing is added
        service.exchange.train_on(lead, project, [2, 1])
    assert service.lead.progress(lead, project).training_items == 2
    assert answer_next(service, ann, project, YES) == (False, ""), "who has worked is no newcomer"
    assert answer_next(service, cy, project, YES) == (True, "running"), "who has not, is one"
    (bob,) = add_people(service, lead, project, ["bob"], ["annotator"])
    assert answer_next(service, bob, project, YES) == (True, "running")
    assert answer_next(service, bob, project, NO) == (True, "passed")
    keys = [
        row["item"] for row in lines_of(service.exchange.export(lead, project, "individual").data)
    ]
    assert set(keys) == {"m1", "m2", "m3"}


def test_everything_is_said_by_command(tmp_path: Path) -> None:
    queue = make_queue(tmp_path / "q", "validate", plain_items(2))
    known = make_queue(tmp_path / "gold", "validate", gold_items(3))
    storage = Storage(str(tmp_path / "lab.db"))
    changes = ProjectChanges(
        prelabels="shown",
        daily_limit=40,
        weekly_limit=100,
        language="zh",
        pass_mark=0.5,
        feedback=False,
        training_set=known,
        questionnaire="https://example.org/about-you",
    )
    assert import_annotations(storage, queue, changes=changes).items == 2
    said = set_up_project(storage, ProjectChanges(), 1)
    wanted = {**changes.said, "training": True}
    assert {name: said[name] for name in wanted} == wanted
    with open_annotations(storage) as service:
        lead = service.accounts.local_admin()
        assert lead is not None
        assert service.lead.progress(lead, 1).training_items == 3
        assert service.projects.get(lead, 1).language == "zh"
    assert set_up_project(storage, ProjectChanges(language="pt-BR"), 1)["language"] == "pt-BR"
    for wrong in (
        ProjectChanges(language="no language"),
        ProjectChanges(training_set=tmp_path / "nowhere"),
    ):
        with pytest.raises(InputError):
            set_up_project(storage, wrong, 1)
    with pytest.raises(InputError, match="questionnaire: not a valid URL"):
        set_up_project(storage, ProjectChanges(questionnaire="javascript:alert(1)"), 1)


def test_a_language_is_kept_with_the_project_and_in_its_log(service: AnnotationService) -> None:
    lead = make_lead(service)
    project = service.projects.create(lead, "A", "validate", changes={"language": "zh"}).id
    assert service.projects.get(lead, project).language == "zh"
    service.projects.change(lead, project, {"language": "en", "annotators_per_item": 2})
    held = service.projects.get(lead, project)
    assert (held.language, held.settings.annotators_per_item) == ("en", 2)
    actions = [entry.action for entry in service.lead.audit(lead, project)]
    assert actions == ["project.settings", "project.language", "project.create"]
    with pytest.raises(InputError):
        service.projects.change(lead, project, {"language": "zh", "annotators_per_item": 99})
    assert service.projects.get(lead, project).language == "en", "all of it or nothing"


def test_the_documented_gold_is_accepted_and_free_text_needs_none() -> None:
    page = (ROOT / "docs" / "how-to" / "annotate.md").read_text(encoding="utf-8")
    lines = page.partition("```json\n")[2].partition("```")[0].splitlines()
    items = [QueueItem.model_validate_json(line) for line in lines]
    assert [item.gold is not None for item in items] == [True, True]
    for item in items:
        check_item(read_workflow("label-by-vote"), item, "items.jsonl", 1)
    pun: dict[str, JsonValue] = {
        "pun": "no", "sentiment_target": "self", "sentiment_type": "neutral",
    }  # fmt: skip
    check_item(read_workflow("pun-form"), QueueItem(id="p", group="p", gold=pun), "items.jsonl", 1)
    bad = QueueItem(id="p", group="p", gold={"pun": "no"})
    with pytest.raises(DataError, match="sentiment_target: an answer is needed"):
        check_item(read_workflow("pun-form"), bad, "items.jsonl", 1)
