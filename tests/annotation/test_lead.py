"""What a lead sees and decides: training, drift, reopening, audit, intake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image
from pydantic import JsonValue

from memantics.annotation.errors import AnswerError, Locked, NotFound, TrainingFailed
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import Actor, AnnotationTask
from memantics.annotation.service import AnnotationService
from memantics.annotation.workflow import read_workflow, workflow_text
from memantics.core.errors import DataError, ImageError
from memantics.core.queue import QueueItem
from tests.annotation.team import (
    add_people,
    answer_by_number,
    draw_image,
    make_lead,
    make_queue,
    open_project,
    plain_items,
    work_through,
)

NO: dict[str, JsonValue] = {"harmful": "no"}
YES: dict[str, JsonValue] = {"harmful": "yes", "type": "offence", "modality": "text"}
QUICK = (
    workflow_text("label-by-vote")
    .replace("size = 10", "size = 2")
    .replace("rounds = 3", "rounds = 2")
)


def training_project(service: AnnotationService, folder: Path, gold: int = 5) -> tuple[Actor, int]:
    lead = make_lead(service)
    project = service.projects.create(lead, "training", QUICK)
    items = [
        QueueItem(id=f"g{n}", group=f"g{n}", gold={"harmful": "no"}) for n in range(1, gold + 1)
    ]
    queue = make_queue(folder, "label-by-vote", [*items, *plain_items(2)])
    assert service.exchange.import_queue(lead, project.id, queue).items == gold + 2
    return lead, project.id


@pytest.mark.parametrize(("right", "passed"), [(2, False), (3, True), (4, True)])
def test_a_round_is_passed_exactly_at_the_threshold(
    service: AnnotationService, tmp_path: Path, right: int, passed: bool
) -> None:
    text = workflow_text("label-by-vote").replace("size = 10", "size = 4")
    assert "threshold = 0.75" in text
    lead = make_lead(service)
    project = service.projects.create(lead, "four", text).id
    items = [QueueItem(id=f"g{n}", group=f"g{n}", gold={"harmful": "no"}) for n in range(8)]
    queue = make_queue(tmp_path / "q", "label-by-vote", items)
    service.exchange.import_queue(lead, project, queue)
    (ann,) = add_people(service, lead, project, ["ann"], ["annotator"])
    for number in range(4):
        task = service.work.next(ann, project)
        assert task is not None
        saved = service.work.submit(ann, task.assignment, NO if number < right else YES, 0)
    assert saved.feedback is not None
    assert saved.feedback.accuracy == right / 4
    assert saved.feedback.state == ("passed" if passed else "running")


def test_training_is_passed_before_real_work(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = training_project(service, tmp_path / "q")
    (ann,) = add_people(service, lead, project, ["ann"], ["annotator"])
    standing = service.work.standing(ann, project)
    assert (standing.training, standing.training_size) == ("running", 2)
    answers = [NO, YES, NO, NO]
    feedback = []
    for answer in answers:
        task = service.work.next(ann, project)
        assert task is not None
        assert task.training
        saved = service.work.submit(ann, task.assignment, answer, task.version)
        assert saved.feedback is not None
        feedback.append(saved.feedback)
        with pytest.raises(Locked):
            service.work.submit(ann, task.assignment, YES if answer is NO else NO, 1)
    assert [one.accuracy for one in feedback] == [1.0, 0.5, 1.0, 1.0]
    assert [one.state for one in feedback] == ["running", "running", "running", "passed"]
    assert feedback[1].right == {"harmful": False, "type": False}
    assert feedback[1].gold == NO
    # The fifth item with a known answer is mixed into real work.
    assert work_through(service, ann, project, lambda _: NO) == [5, 6, 7]
    (drift,) = service.lead.drift(lead, project)
    assert (drift.items, drift.accuracy) == (5, 0.8)


def test_writers_of_intents_begin_with_worked_examples(
    service: AnnotationService, tmp_path: Path
) -> None:
    """Worked examples beside the form, then a round that shows what others wrote."""
    lead = make_lead(service)
    project = service.projects.create(lead, "intents", "collect-and-edit").id
    known: dict[str, JsonValue] = {"intents": ["mocks guards who do the harm they forbid"]}
    items = [QueueItem(id=f"g{n}", group=f"g{n}", gold=known) for n in range(3)]
    queue = make_queue(tmp_path / "q", "collect-and-edit", [*items, *plain_items(1)])
    service.exchange.import_queue(lead, project, queue)
    (ann,) = add_people(service, lead, project, ["ann"], ["annotator"])
    examples = read_workflow("collect-and-edit").examples
    assert examples
    assert all(own.en and own.zh for own in examples)
    for place in range(3):
        task = service.work.next(ann, project)
        assert task is not None
        assert task.training
        said: dict[str, JsonValue] = {"intents": [f"mine {place}"]}
        saved = service.work.submit(ann, task.assignment, said, task.version)
        assert saved.feedback is not None
        assert saved.feedback.gold == known, "what others wrote is shown after one's own"
    assert service.work.standing(ann, project).training == "passed", "there is no wrong intent"
    task = service.work.next(ann, project)
    assert task is not None
    assert not task.training


def test_training_can_fail_and_be_opened_again(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = training_project(service, tmp_path / "q")
    (ann,) = add_people(service, lead, project, ["ann"], ["annotator"])
    with pytest.raises(TrainingFailed) as caught:
        work_through(service, ann, project, lambda _: YES)
    assert (caught.value.accuracy, caught.value.threshold) == (0.0, 0.75)
    assert service.work.standing(ann, project).training == "failed"
    service.lead.set_training(lead, project, ann.id, "running")
    first = service.work.next(ann, project)
    assert first is not None
    saved = service.work.submit(ann, first.assignment, NO, first.version)
    assert saved.feedback is not None
    assert saved.feedback.state == "running"
    done = work_through(service, ann, project, lambda _: NO)
    assert len(done) == 1 + 3
    assert service.work.standing(ann, project).training == "passed"


def test_a_skipped_training_item_does_not_block(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = training_project(service, tmp_path / "q")
    (ann,) = add_people(service, lead, project, ["ann"], ["annotator"])
    task = service.work.next(ann, project)
    assert task is not None
    service.work.skip(ann, task.assignment)
    second = service.work.next(ann, project)
    assert second is not None
    saved = service.work.submit(ann, second.assignment, NO, second.version)
    assert saved.feedback is not None
    assert saved.feedback.state == "passed"


def test_a_round_that_is_opened_again_leaves_out_what_was_skipped(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = training_project(service, tmp_path / "q", gold=2)
    (ann,) = add_people(service, lead, project, ["ann"], ["annotator"])
    first = service.work.next(ann, project)
    assert first is not None
    service.work.skip(ann, first.assignment)
    with pytest.raises(TrainingFailed):
        work_through(service, ann, project, lambda _: YES)
    service.lead.set_training(lead, project, ann.id, "running")
    again = service.work.next(ann, project)
    assert again is not None
    assert again.assignment != first.assignment
    saved = service.work.submit(ann, again.assignment, NO, again.version)
    assert saved.feedback is not None
    assert saved.feedback.state == "passed"


def test_a_lead_lets_somebody_pass(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = training_project(service, tmp_path / "q")
    (ann,) = add_people(service, lead, project, ["ann"], ["annotator"])
    service.lead.set_training(lead, project, ann.id, "passed")
    assert work_through(service, ann, project, lambda _: NO) == [5, 6, 7]
    with pytest.raises(AnswerError):
        service.lead.set_training(lead, project, ann.id, "failed")


def test_reopening_begins_later_stages_anew(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(1))
    people = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    (judge,) = add_people(service, lead, project.id, ["j"], ["adjudicator"])
    kinds = ("offence", "innuendo", "dispirited")
    assignments = []
    for person, kind in zip(people, kinds, strict=True):
        task = service.work.next(person, project.id)
        assert task is not None
        assignments.append(task.assignment)
        service.work.submit(person, task.assignment, YES | {"type": kind}, 0)
    assert work_through(service, judge, project.id, lambda _: NO) == [1]
    with pytest.raises(Locked):
        service.work.undo(people[0], assignments[0], 1)
    service.lead.reopen(lead, assignments[0])
    logged = service.lead.audit(lead, project.id)[0]
    assert (logged.action, logged.subject) == ("answer.reopen", f"assignment:{assignments[0]}")
    assert service.lead.progress(lead, project.id).finished == 0
    again = service.work.next(people[0], project.id)
    assert again is not None
    assert (again.assignment, again.answer) == (assignments[0], YES)
    assert service.work.next(judge, project.id) is None
    service.work.submit(people[0], assignments[0], YES | {"type": "innuendo"}, again.version)
    assert service.lead.progress(lead, project.id).finished == 1
    assert service.work.next(judge, project.id) is None
    view = service.lead.item(lead, service.lead.items(lead, project.id)[0].id)
    assert [step.action for step in view.history] == ["submit"] * 5
    with pytest.raises(Locked):
        service.lead.reopen(lead, assignments[0] + 3)


def test_every_change_is_in_the_audit_log(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(2))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    service.work.submit(ann, task.assignment, {"question": "yes", "answer": "no"}, 0)
    service.work.submit(ann, task.assignment, {"question": "yes", "answer": "yes"}, 1)
    service.work.undo(ann, task.assignment, 2)
    other = service.work.next(ann, project.id)
    assert other is not None
    service.work.skip(ann, other.assignment)
    service.projects.set_settings(lead, project.id, ProjectSettings(daily_limit=9))
    service.projects.set_limits(lead, project.id, ann.id, 5, 6)
    service.projects.set_roles(lead, project.id, ann.id, ["reviewer"])
    service.projects.archive(lead, project.id)
    actions = [entry.action for entry in service.lead.audit(lead, project.id)][::-1]
    assert actions == [
        "project.create",
        "item.import",
        "invitation.create",
        "invitation.accept",
        "member.consent",
        "answer.submit",
        "answer.edit",
        "answer.undo",
        "item.skip",
        "project.settings",
        "member.limits",
        "member.roles",
        "project.archive",
    ]
    newest = service.lead.audit(lead, project.id, limit=2)
    older = service.lead.audit(lead, project.id, before=newest[-1].id, limit=2)
    assert [entry.action for entry in older] == ["member.limits", "project.settings"]
    assert newest[0].person == "lead"


def test_progress_and_pace(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(4))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    for seconds in (3.0, 9.0, 5.0):
        task = service.work.next(ann, project.id)
        assert task is not None
        good = {"question": "yes", "answer": "yes"}
        service.work.submit(ann, task.assignment, good, 0, seconds)
    held = service.work.next(bob, project.id)
    assert held is not None
    progress = service.lead.progress(lead, project.id)
    stage, ties = progress.stages
    assert (ties.done, ties.waiting) == (0, 1)
    assert (stage.done, stage.leased, stage.open) == (3, 1, 0)
    people = {person.name: person for person in progress.people}
    assert (people["ann"].done, people["bob"].done, progress.pace) == (3, 0, 5.0)
    assert service.work.standing(ann, project.id).pace == 5.0


def test_prelabels_are_shown_or_hidden_by_setting(
    service: AnnotationService, tmp_path: Path
) -> None:
    drafts: dict[str, JsonValue] = {"caption": "read by a machine", "pun": "yes"}
    items = [item.model_copy(update={"values": drafts}) for item in plain_items(1)]
    lead, project = open_project(service, tmp_path / "q", "pun-form", items)
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])

    def look() -> AnnotationTask:
        task = service.work.next(ann, project.id)
        assert task is not None
        return task

    assert look().suggestions == drafts
    assert look().answer is None
    service.projects.set_settings(lead, project.id, ProjectSettings(prelabels="hidden"))
    assert look().suggestions == {}
    assert "machine" not in repr(look())


def test_drafts_of_a_queue_start_a_sequence_where_they_are_shown(
    service: AnnotationService, tmp_path: Path
) -> None:
    drafts: dict[str, JsonValue] = {"intents": ["teases"]}
    items = [item.model_copy(update={"values": drafts}) for item in plain_items(1)]
    lead, project = open_project(service, tmp_path / "q", "collect-and-edit", items)
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    assert task.state == drafts
    service.projects.set_settings(lead, project.id, ProjectSettings(prelabels="hidden"))
    hidden = service.work.next(ann, project.id)
    assert hidden is not None
    assert hidden.state == {}


def test_a_folder_of_memes_is_a_queue_too(service: AnnotationService, tmp_path: Path) -> None:
    for number in range(3):
        draw_image(tmp_path / "memes" / f"m{number}.png", number)
    (tmp_path / "memes" / "bad.png").write_bytes(b"no image")
    lead = make_lead(service)
    project = service.projects.create(lead, "any folder", "label-by-vote")
    done = service.exchange.import_memes(lead, project.id, tmp_path / "memes")
    assert (done.items, done.images) == (3, 3)
    assert done.skipped[0].startswith("bad: image bad.png: format")
    again = service.exchange.import_memes(lead, project.id, tmp_path / "memes")
    assert (again.items, len(again.skipped)) == (0, 4)


def test_images_are_checked_and_renamed(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    for name, data in (("x.svg", b"<svg onload=alert(1)>"), ("x.png", b"\x89PNG\r\n\x1a\n")):
        with pytest.raises(ImageError):
            service.exchange.upload(lead, project.id, name, data)
    bomb = tmp_path / "bomb.png"
    Image.new("1", (9000, 9000)).save(bomb)
    with pytest.raises(ImageError, match="too many pixels"):
        service.exchange.upload(lead, project.id, "bomb.png", bomb.read_bytes())
    data = (tmp_path / "q" / "images" / "0.png").read_bytes()
    # Its header is sound, its pixels are not there: the refusal names the file.
    cut = data[: data.index(b"IDAT") + 6]
    with pytest.raises(ImageError, match="half"):
        service.exchange.upload(lead, project.id, "half.png", cut)
    service.exchange.upload(lead, project.id, "../../../etc/passwd", data)
    assert service.exchange.upload(lead, project.id, "again.png", data).items == 0
    for view in service.lead.items(lead, project.id):
        media = service.exchange.media(lead, view.images[0])
        assert media.path.parent == tmp_path / "media" / str(project.id)
        assert media.media_type == "image/png"
    assert len(list((tmp_path / "media").rglob("*"))) == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": {"colour": "red"}}, "values for unknown fields: colour"),
        ({"gold": {"harmful": "perhaps"}}, "gold of item 'm1'"),
        ({"images": ["../x.png"]}, "points outside"),
    ],
)
def test_bad_queues_are_refused_whole(
    service: AnnotationService, tmp_path: Path, changed: Mapping[str, object], message: str
) -> None:
    lead = make_lead(service)
    folder = make_queue(tmp_path / "q", "label-by-vote", plain_items(1))
    item = plain_items(1)[0].model_copy(update=dict(changed))
    (folder / "items.jsonl").write_text(item.model_dump_json() + "\n", encoding="utf-8")
    project = service.projects.create(lead, "t", "label-by-vote")
    with pytest.raises(DataError, match=message):
        service.exchange.import_queue(lead, project.id, folder)
    assert service.lead.progress(lead, project.id).items == 0
    other = service.projects.create(lead, "t", "validate")
    with pytest.raises((NotFound, DataError)):
        service.exchange.import_queue(lead, other.id, folder)


def test_answers_to_one_item_by_number(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(2))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    table: dict[int, dict[str, JsonValue]] = {1: YES, 2: NO}
    work_through(service, ann, project.id, answer_by_number(table))
    last = service.work.mine(ann, project.id)
    assert [done.number for done in last] == [2, 1]
    assert service.work.open(ann, last[0].assignment).answer == NO


def test_training_stands_before_the_first_stage_only(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = training_project(service, tmp_path / "q")
    novice, judge = (
        add_people(service, lead, project, [name], [role])[0]
        for name, role in (("novice", "annotator"), ("judge", "adjudicator"))
    )
    first = service.work.next(novice, project)
    assert first is not None
    assert first.training
    assert service.work.next(judge, project) is None, "nothing is disputed, and nothing is trained"
    service.projects.set_settings(lead, project, ProjectSettings(training=False))
    (other,) = add_people(service, lead, project, ["other"], ["annotator"])
    real = service.work.next(other, project)
    assert real is not None
    assert not real.training


def test_a_claim_is_what_the_next_item_would_be(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(1))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    held = service.work.claim(ann, project.id, "label")
    task = service.work.next(ann, project.id)
    assert task is not None
    assert held == task.assignment == service.work.claim(ann, project.id)
    service.work.submit(ann, task.assignment, NO, 0)
    assert service.work.claim(ann, project.id) is None
