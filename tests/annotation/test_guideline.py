"""Find and resolve: what divides people is found, settled in words, and judged again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.errors import AnswerError, Forbidden, GuidelineChanged, NotFound
from memantics.annotation.project_settings import LocalizedText, ProjectSettings
from memantics.annotation.records import Actor, AnnotationTask
from memantics.annotation.service import AnnotationService
from memantics.core.queue import QueueItem, Shown, read_annotations
from tests.annotation.team import Clock, add_people, open_project, work_through

SAD: dict[str, JsonValue] = {"negative": "yes", "source_emotion": "sad"}
ANGRY: dict[str, JsonValue] = {"negative": "yes", "source_emotion": "angry"}
UNCLEAR: dict[str, JsonValue] = {"negative": "unclear", "ambiguity": "irony, or meant?"}
RULE = LocalizedText(en="Irony against oneself counts as sad.", zh="自嘲算悲伤。")
# By item number: what ann, bob and eve say. On 1 they agree, on 2 all differ, on 3 one differs.
SAID = {1: (SAD, SAD, SAD), 2: (SAD, ANGRY, UNCLEAR), 3: (SAD, SAD, ANGRY)}


def start(service: AnnotationService, folder: Path) -> tuple[Actor, int, list[Actor]]:
    texts = [Shown(label="Text", value="great, another meeting")]
    items = [QueueItem(id=f"m{n}", group=f"m{n}", shown=texts) for n in SAID]
    lead, project = open_project(service, folder / "queue", "find-emotions", items)
    people = add_people(service, lead, project.id, ["ann", "bob", "eve"], ["annotator"])
    for place, person in enumerate(people):

        def answer(task: AnnotationTask, place: int = place) -> Mapping[str, JsonValue]:
            return SAID[task.number][place]

        assert work_through(service, person, project.id, answer) == [1, 2, 3]
    return lead, project.id, people


def test_the_most_divided_item_comes_first_with_text_and_notes(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project, people = start(service, tmp_path)
    first, second = service.guideline.unclear(lead, project)
    assert (first.number, second.number) == (2, 3)
    assert first.split == pytest.approx(2 / 3)
    assert second.split == pytest.approx(1 / 3)
    assert [note for _, note in first.notes] == ["irony, or meant?"]
    assert first.shown[0].value == "great, another meeting"
    with pytest.raises(Forbidden):
        service.guideline.unclear(people[0], project)
    prompt = service.guideline.describe(lead, project, [2])
    assert "irony, or meant?" in prompt
    assert "People said: angry, nothing, sad" in prompt
    assert "ann" not in prompt.split()
    with pytest.raises(NotFound, match="do not disagree"):
        service.guideline.describe(lead, project, [1])


def test_a_clarification_is_a_version_and_its_items_are_judged_again(
    service: AnnotationService, tmp_path: Path, clock: Clock
) -> None:
    lead, project, people = start(service, tmp_path)
    clock.forward(60)
    assert service.guideline.clarify(lead, project, RULE, [2], drafted="openai/toy") == 2
    (added,) = service.projects.get(people[0], project).settings.clarifications
    assert (added.text, added.items, added.drafted) == (RULE, (2,), "openai/toy")
    seen = []

    def again(task: AnnotationTask) -> Mapping[str, JsonValue]:
        seen.append((task.number, task.answer is not None))
        return SAD

    for person in people:
        assert work_through(service, person, project, again) == [2]
    assert seen == [(2, True)] * 3
    (left,) = service.guideline.unclear(lead, project)
    assert left.number == 3
    out = tmp_path / "annotations.jsonl"
    out.write_bytes(service.exchange.export(lead, project, "annotations", "jsonl").data)
    votes = {v.item: [vote.guideline for vote in v.annotations] for v in read_annotations(out)}
    assert votes == {"m1": [1, 1, 1], "m2": [2, 2, 2], "m3": [1, 1, 1]}
    raw = service.exchange.export(lead, project, "raw", "csv").data.decode()
    assert raw.count(",2,false,true,") == 3
    assert raw.count(",1,false,false,") == 3
    entry = next(e for e in service.lead.audit(lead, project) if e.action == "guideline.clarify")
    assert (entry.detail["version"], entry.detail["reopened"]) == (2, 3)


def test_items_can_be_left_as_they_are(service: AnnotationService, tmp_path: Path) -> None:
    lead, project, people = start(service, tmp_path)
    assert service.guideline.clarify(lead, project, RULE, [2], again=False) == 2
    assert service.guideline.clarify(lead, project, RULE) == 3
    assert service.work.next(people[0], project) is None


def test_a_form_of_an_older_guideline_is_not_saved(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project, (ann, *_) = start(service, tmp_path)
    service.guideline.clarify(lead, project, RULE, [2])
    task = service.work.next(ann, project)
    assert task is not None
    with pytest.raises(GuidelineChanged, match="has changed"):
        service.work.submit(ann, task.assignment, SAD, task.version, guideline=1)
    service.work.submit(ann, task.assignment, SAD, task.version, guideline=2)


def test_settings_leave_the_guideline_alone(service: AnnotationService, tmp_path: Path) -> None:
    lead, project, _ = start(service, tmp_path)
    service.guideline.clarify(lead, project, RULE)
    service.projects.set_settings(lead, project, ProjectSettings(daily_limit=7))
    settings = service.projects.get(lead, project).settings
    assert (settings.daily_limit, settings.guideline) == (7, 2)


def test_only_a_lead_and_only_known_items(service: AnnotationService, tmp_path: Path) -> None:
    lead, project, (ann, *_) = start(service, tmp_path)
    with pytest.raises(Forbidden):
        service.guideline.clarify(ann, project, RULE)
    with pytest.raises(NotFound, match="no item 9"):
        service.guideline.clarify(lead, project, RULE, [2, 9])
    with pytest.raises(AnswerError, match="enter the rule"):
        service.guideline.clarify(lead, project, LocalizedText(en=" "))
    assert service.projects.get(lead, project).settings.guideline == 1


def test_raters_are_trained_and_calibrated_by_the_resolved_rule(
    service: AnnotationService, tmp_path: Path
) -> None:
    """MER-Bench's third step: what was resolved is known, and whoever rates meets it first."""
    known = [
        QueueItem(id=f"g{n}", group=f"g{n}", gold={"negative": "yes", "source_emotion": "sad"})
        for n in range(12)
    ]
    real = [QueueItem(id="m1", group="m1")]
    lead, project = open_project(service, tmp_path / "queue", "find-emotions", [*known, *real])
    service.guideline.clarify(lead, project.id, RULE)
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    for person, missed in ((ann, 2), (bob, 3)):
        for number in range(10):
            task = service.work.next(person, project.id)
            assert task is not None
            assert task.training
            answer = ANGRY if number < missed else SAD
            saved = service.work.submit(person, task.assignment, answer, 0, guideline=2)
        assert saved.feedback is not None
        # 0.75 of ten items: eight right pass, seven do not.
        assert saved.feedback.state == ("passed" if missed == 2 else "running")
    assert work_through(service, ann, project.id, lambda _: SAD)[-1] == 13
    right = {person.name: person.accuracy or 0 for person in service.lead.drift(lead, project.id)}
    assert right == {"ann": pytest.approx(0.8), "bob": pytest.approx(0.7)}
