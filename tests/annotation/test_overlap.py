"""How many people judge an item, who settles ties, and that changing it keeps every vote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.aggregation import AggregationCase, StageAnnotation, aggregate
from memantics.annotation.commands import (
    ProjectChanges,
    Storage,
    import_annotations,
    set_up_project,
)
from memantics.annotation.project_settings import is_sampled
from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService
from memantics.annotation.workflow import list_workflows, read_workflow
from memantics.core.errors import InputError
from memantics.core.queue import QueueItem, Shown
from tests.annotation.team import (
    Clock,
    add_people,
    aggregated,
    draw_image,
    lines_of,
    make_lead,
    make_queue,
    open_project,
    plain_items,
    work_through,
)

PEOPLE = ["ann", "bob", "cy", "dee", "eve"]


def judge(question: str, **more: JsonValue) -> dict[str, JsonValue]:
    return {"question": question, "answer": "yes", **more}


def start(
    service: AnnotationService, folder: Path, count: int = 4, **changes: object
) -> tuple[Actor, int, list[Actor]]:
    lead, project = open_project(service, folder / "q", "validate", plain_items(count))
    service.projects.change(lead, project.id, changes)
    return lead, project.id, add_people(service, lead, project.id, PEOPLE, ["annotator"])


def vote(service: AnnotationService, project: int, people: Sequence[Actor], *said: str) -> None:
    """Each says one thing of every item that is open to them."""
    for actor, question in zip(people, said, strict=True):
        work_through(service, actor, project, lambda _, question=question: judge(question))  # type: ignore[misc]


def finished(service: AnnotationService, lead: Actor, project: int) -> tuple[int, int]:
    progress = service.lead.progress(lead, project)
    return progress.finished, progress.stages[0].done


def test_more_people_open_items_again_and_fewer_close_them(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project, people = start(service, tmp_path, annotators_per_item=1)
    vote(service, project, people[:1], "yes")
    assert finished(service, lead, project) == (4, 4)
    service.projects.change(lead, project, {"annotators_per_item": 3})
    assert finished(service, lead, project) == (0, 4)
    vote(service, project, people[1:4], "no", "no", "no")
    assert finished(service, lead, project) == (4, 12)
    assert [
        kept for _, kept, _ in aggregated(service, lead, service.projects.get(lead, project))
    ] == [False] * 4
    # Fewer people: nobody's vote is taken away, and the majority of all votes still counts.
    service.projects.change(lead, project, {"annotators_per_item": 2})
    assert finished(service, lead, project) == (4, 12)
    service.projects.change(lead, project, {"annotators_per_item": 5})
    assert finished(service, lead, project) == (0, 12)
    vote(service, project, people[4:], "no")
    service.projects.change(lead, project, {"annotators_per_item": 4})
    assert finished(service, lead, project) == (4, 16)
    votes = [
        len(row["annotations"])
        for row in lines_of(service.exchange.export(lead, project, "annotations").data)
    ]
    assert votes == [4, 4, 4, 4]


def test_an_item_in_hand_is_not_taken_away(service: AnnotationService, tmp_path: Path) -> None:
    lead, project, people = start(service, tmp_path, 1, annotators_per_item=3)
    held = service.work.next(people[0], project)
    assert held is not None
    vote(service, project, people[1:2], "yes")
    service.projects.change(lead, project, {"annotators_per_item": 1})
    assert service.work.next(people[2], project) is None
    service.work.submit(people[0], held.assignment, judge("yes"), held.version)
    assert finished(service, lead, project) == (1, 2)


def test_a_share_is_judged_by_the_whole_team_however_large_it_grows(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project, people = start(service, tmp_path, 20, annotators_per_item=2, overlap=0.5)
    drawn = {f"m{n}" for n in range(1, 21) if is_sampled(f"m{n}", "overlap", 0.5)}
    assert 0 < len(drawn) < 20
    views = service.lead.items(lead, project)
    asked = {view.key: sum(s.stage == "judge" for s in view.assignments) for view in views}
    assert asked == {key: 5 if key in drawn else 2 for key in asked}
    add_people(service, lead, project, ["fay"], ["annotator"])
    views = service.lead.items(lead, project)
    assert {sum(s.stage == "judge" for s in v.assignments) for v in views if v.key in drawn} == {6}
    assert service.projects.get(lead, project).settings.team == 6
    assert len(people) == 5


def test_the_lead_decides_ties_sees_the_votes_and_says_why(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project, people = start(service, tmp_path, 2, annotators_per_item=2, adjudicator="lead")
    service.projects.consent(lead, project)
    assert service.work.next(lead, project) is None
    vote(service, project, people[:2], "yes", "no")
    task = service.work.next(lead, project)
    assert task is not None
    assert (task.stage, [step.values["question"] for step in task.annotations]) == (
        "settle_ties",
        ["yes", "no"],
    )
    said = judge("yes", decision_note="It is asked what the caption says.")
    service.work.submit(lead, task.assignment, said, task.version)
    rows = lines_of(service.exchange.export(lead, project, "aggregated").data)
    assert [(row["kept"], row["decision_note"]) for row in rows] == [
        (True, "It is asked what the caption says."),
        (False, None),
    ]
    # Nobody decides any more: what was decided stays, what is tied is not kept.
    service.projects.change(lead, project, {"adjudicator": "none"})
    assert finished(service, lead, project) == (2, 4)
    rows = lines_of(service.exchange.export(lead, project, "aggregated").data)
    assert [(row["kept"], row["reason"]) for row in rows] == [
        (True, ""),
        (False, "question and answer were not both confirmed"),
    ]
    service.projects.change(lead, project, {"adjudicator": ""})
    assert service.projects.get(lead, project).settings.adjudicator == "none"


@pytest.mark.parametrize(("third", "kept"), [("yes", True), ("no", False), ("maybe", False)])
def test_a_third_vote_is_counted_and_sees_no_other(
    service: AnnotationService, tmp_path: Path, third: str, kept: bool
) -> None:
    lead, project, people = start(
        service, tmp_path, 1, annotators_per_item=2, adjudicator="extra-annotator"
    )
    vote(service, project, people[:2], "yes", "no")
    assert service.work.next(people[0], project) is None
    task = service.work.next(people[2], project)
    assert task is not None
    assert (task.kind, task.annotations, task.fields[-1]) == ("adjudicate", (), "second_answer")
    service.work.submit(people[2], task.assignment, judge(third), task.version)
    assert finished(service, lead, project) == (1, 2)
    (row,) = lines_of(service.exchange.export(lead, project, "aggregated").data)
    assert row["kept"] is kept
    assert (row["reason"] == "no majority") is (third == "maybe")


@pytest.mark.parametrize(("wrong", "out"), [(1, False), (2, True), (3, True)])
def test_one_of_three_does_not_end_an_item_and_two_do(wrong: int, out: bool) -> None:
    sound = judge("yes", also_right=False)
    said = [judge("yes", also_right=True)] * wrong + [sound] * (3 - wrong)
    annotations = [StageAnnotation(0, slot, values) for slot, values in enumerate(said)]
    case = AggregationCase("m1", "m1", {}, annotations, labels=frozenset({"options"}))
    found = aggregate(read_workflow("validate"), case)
    assert (found.kept, found.reason) == (not out, "another option is also right" if out else "")


@pytest.mark.parametrize(
    ("name", "stage", "people"),
    [("label-by-vote", 0, 3), ("collect-and-edit", 1, 2), ("edit-chats", 0, 1)],
)
def test_where_overlap_applies(
    service: AnnotationService, name: str, stage: int, people: int
) -> None:
    lead = make_lead(service)
    plain = service.projects.create(lead, "a", name).workflow
    more = service.projects.create(lead, "b", name, changes={"annotators_per_item": 7}).workflow
    assert (plain.main_stage, plain.stages[stage].annotators) == (stage, people)
    assert [s.annotators for s in more.stages if s.kind != "adjudicate"] == [
        7 if place == stage else s.annotators
        for place, s in enumerate(plain.stages)
        if s.kind != "adjudicate"
    ]


def test_validate_asks_three_people_unless_told_otherwise(
    service: AnnotationService,
) -> None:
    flow = service.projects.create(make_lead(service), "a", "validate").workflow
    assert [(stage.annotators, stage.role) for stage in flow.stages] == [
        (3, "annotator"),
        (1, "lead"),
    ]


def test_overlap_by_command(tmp_path: Path) -> None:
    queue = make_queue(tmp_path / "q", "label-by-vote", plain_items(9))
    storage = Storage(str(tmp_path / "lab.db"))
    changes = ProjectChanges(annotators_per_item=2, adjudicator="extra-annotator")
    assert import_annotations(storage, queue, changes=changes, limit=4).items == 4
    said = set_up_project(storage, ProjectChanges(), 1)
    assert (said["annotators_per_item"], said["adjudicator"], said["overlap"]) == (
        2,
        "extra-annotator",
        0,
    )
    # The same queue again brings the rest, and changes what is said.
    assert (
        import_annotations(storage, queue, changes=ProjectChanges(annotators_per_item=4)).items == 5
    )
    assert set_up_project(storage, ProjectChanges(overlap=0.25), 1)["annotators_per_item"] == 4
    with pytest.raises(InputError, match="annotators_per_item"):
        set_up_project(storage, ProjectChanges(annotators_per_item=51), 1)


def test_comments_are_asked_for_where_the_lead_wants_them(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project, people = start(service, tmp_path, 1, annotators_per_item=2, comments=True)
    for actor, word in zip(people, ("yes", "no"), strict=False):
        task = service.work.next(actor, project)
        assert task is not None
        assert task.fields[-1] == "comment"
        said = judge(word, comment=f"I say {word}")
        service.work.submit(actor, task.assignment, said, task.version)
    (one,) = service.lead.disagreements(lead, project)
    assert one.notes == (("P02", "I say yes"), ("P03", "I say no"))
    # Switched off again, what was said keeps its place.
    assert service.projects.change(lead, project, {"comments": False}).comments
    rows = lines_of(service.exchange.export(lead, project, "data", "jsonl").data)
    assert rows[0]["comment:P03"] == "I say no"


def test_who_saw_suggestions_is_known(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    drafts: dict[str, JsonValue] = {"question": "yes"}
    items = [item.model_copy(update={"values": drafts}) for item in plain_items(2)]
    lead, opened = open_project(service, tmp_path / "q", "validate", [*items, *plain_items(3)[2:]])
    project = opened.id
    people = add_people(service, lead, project, PEOPLE[:2], ["annotator"])
    service.projects.change(lead, project, {"annotators_per_item": 2})
    vote(service, project, people[:1], "yes")
    clock.forward(60)
    service.projects.change(lead, project, {"prelabels": "shown"})
    vote(service, project, people[1:], "yes")
    clock.forward(60)
    service.projects.change(lead, project, {"prelabels": "hidden"})
    rows = lines_of(service.exchange.export(lead, project, "individual", "jsonl").data)
    seen = {(row["item"], row["annotator"]) for row in rows if row["suggested"]}
    assert seen == {("m1", "P03"), ("m2", "P03")}


@pytest.mark.parametrize("name", [n for n in list_workflows() if not read_workflow(n).personal])
def test_every_workflow_takes_pictures_texts_and_both(
    service: AnnotationService, tmp_path: Path, name: str
) -> None:
    """What ``screen --review`` makes: text alone, one picture, several."""
    lead = make_lead(service)
    for number in (1, 2):
        draw_image(tmp_path / f"{number}.png", number)
    pictures = [tmp_path / "1.png", tmp_path / "2.png"]
    project = service.projects.create(lead, "mixed", name).id
    items = [
        (QueueItem(id=f"m{n}", group=f"m{n}", shown=[Shown(label="text", value="words")]), paths)
        for n, paths in enumerate(([], pictures[:1], pictures), 1)
    ]
    assert service.exchange.import_items(lead, project, items).items == 3
    (ann,) = add_people(service, lead, project, ["ann"], ["annotator", "reviewer"])
    seen = set()
    while (task := service.work.next(ann, project)) is not None:
        seen.add((len(task.images), task.shown[0].value))
        service.work.skip(ann, task.assignment)
    assert seen == {(0, "words"), (1, "words"), (2, "words")}
