"""All six workflows from queue to resolved export, on both databases; files in and out."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pyarrow import parquet
from pydantic import JsonValue

from memantics.annotation.errors import UnsupportedFormat
from memantics.annotation.records import Actor, AnnotationTask, Project
from memantics.annotation.service import AnnotationService
from memantics.core.queue import QueueItem, Shown, read_annotations
from tests.annotation.team import (
    add_people,
    aggregated,
    answer_by_number,
    lines_of,
    make_lead,
    make_queue,
    open_project,
    plain_items,
    score,
    work_through,
)

Table = Mapping[int, Mapping[str, JsonValue]]


def harm(kind: str) -> dict[str, JsonValue]:
    return {"harmful": "yes", "type": kind, "modality": "text"}


def vote_through(
    service: AnnotationService,
    lead: Actor,
    project: Project,
    tables: Sequence[Table],
    role: str = "annotator",
) -> None:
    names = [f"{role}{number}" for number in range(len(tables))]
    people = add_people(service, lead, project.id, names, [role])
    for person, table in zip(people, tables, strict=True):
        work_through(service, person, project.id, answer_by_number(table))


def test_label_by_vote(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(3))
    no: dict[str, JsonValue] = {"harmful": "no"}
    tables: list[Table] = [
        {1: no, 2: harm("offence"), 3: harm("offence")},
        {1: no, 2: harm("offence"), 3: harm("innuendo")},
        {1: harm("offence"), 2: harm("innuendo"), 3: harm("dispirited")},
    ]
    vote_through(service, lead, project, tables)
    ruling: Table = {3: {**harm("targeted"), "target": "region"}}
    vote_through(service, lead, project, [ruling], "adjudicator")
    assert aggregated(service, lead, project) == [
        ("m1", True, {"harmful": "no"}),
        ("m2", True, harm("offence")),
        ("m3", True, {**harm("targeted"), "target": "region"}),
    ]
    progress = service.lead.progress(lead, project.id)
    assert (progress.items, progress.finished) == (3, 3)


def test_validate(service: AnnotationService, tmp_path: Path) -> None:
    shown = [Shown(label="Question", value="Who?"), Shown(label="Knowledge", value="It is.")]
    items = [item.model_copy(update={"shown": shown}) for item in plain_items(3)]
    lead, project = open_project(service, tmp_path / "q", "validate", items)
    yes: dict[str, JsonValue] = {"knowledge": "no", "question": "yes", "answer": "yes"}
    table: Table = {1: yes, 2: {**yes, "answer": "maybe"}, 3: {"unclear": True}}
    vote_through(service, lead, project, [table])
    assert aggregated(service, lead, project) == [
        ("m1", True, {"unclear": False, **yes}),
        ("m2", False, {"unclear": False, **yes, "answer": "maybe"}),
        ("m3", False, {"unclear": True}),
    ]


def test_collect_edit_and_review(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "collect-and-edit", plain_items(2))
    chain: list[Table] = [
        {1: {"intents": ["x"]}, 2: {"intents": ["p"], "background": ["fact"]}},
        {1: {"intents": ["x", "y"]}, 2: {"intents": ["p"], "background": ["fact", "more?"]}},
        {1: {"intents": ["y", "x"]}, 2: {"intents": ["p", "q"], "background": ["fact"]}},
    ]
    people = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    for person, table in zip(people, chain, strict=True):
        work_through(service, person, project.id, answer_by_number(table))
    reviews: list[Table] = [
        {1: {"correctness": [5, 3], "completeness": [5, 5]}, 2: score(3, 2)},
        {1: {"correctness": [4, 5], "completeness": [1, 1]}, 2: score(3, 4)},
    ]
    vote_through(service, lead, project, reviews, "reviewer")
    found = aggregated(service, lead, project)
    assert found[0] == ("m1", True, {"intents": ["y"]})
    # Both means are 3: both come back.
    assert found[1] == ("m2", True, {"intents": ["p", "q"], "background": ["fact"]})
    with pytest.raises(UnsupportedFormat):
        service.exchange.export(lead, project.id, "annotations", "csv")


def test_verify_stages(service: AnnotationService, tmp_path: Path) -> None:
    drafts: dict[str, JsonValue] = {
        "source_emotion": "sad",
        "description": "a dog",
        "target_emotion": "happy",
        "rewritten": "sun",
        "plan": "add sun",
    }
    items = [item.model_copy(update={"values": drafts}) for item in plain_items(3)]
    lead, project = open_project(service, tmp_path / "q", "verify-stages", items)

    def answer(task: AnnotationTask) -> Mapping[str, JsonValue]:
        assert task.state["plan"] == "add sun" or task.number == 1
        if task.stage == "emotion" and task.number == 2:
            return {"emotion_check": "remove"}
        if task.stage == "plan" and task.number == 1:
            revised = {"target_emotion": "calm", "rewritten": "rain", "plan": "add rain"}
            return {"plan_check": "revise", **revised}
        if task.stage == "edit" and task.number == 3:
            return {"edit_check": "revise", "note": "the hand"}
        approved = {f"{task.stage}_check": "approve"}
        return approved | ({"taxonomy_check": "approve"} if task.stage == "emotion" else {})

    (person,) = add_people(service, lead, project.id, ["a"], ["annotator"])
    assert len(work_through(service, person, project.id, answer)) == 7
    rows = {row[0]: row for row in aggregated(service, lead, project)}
    assert rows["m1"][1:] == (
        True,
        {
            "emotion_check": "approve",
            "source_emotion": "sad",
            "description": "a dog",
            "taxonomy_check": "approve",
            "plan_check": "revise",
            "target_emotion": "calm",
            "rewritten": "rain",
            "plan": "add rain",
            "edit_check": "approve",
        },
    )
    assert not rows["m2"][1]
    assert not rows["m3"][1]
    annotations = tmp_path / "annotations.jsonl"
    annotations.write_bytes(service.exchange.export(lead, project.id, "annotations").data)
    reasons = [verdict.reason for verdict in read_annotations(annotations)]
    assert reasons == ["", "removed at emotion", "to be regenerated"]


def pun(target: str, kind: str, text: str, **more: str) -> dict[str, JsonValue]:
    base: dict[str, JsonValue] = {"caption": "吃堡了", "pun": "no"}
    base |= {"sentiment_target": target, "sentiment_type": kind, "explanation": text}
    return base | dict(more)


def test_pun_form(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "pun-form", plain_items(2))
    word = {"pun": "yes", "pun_word": "堡", "homophone": "饱"}
    tables: list[Table] = [
        {1: pun("other", "negative", "a", **word), 2: pun("self", "negative", "a")},
        {1: pun("other", "negative", "ab", **word), 2: pun("self", "positive", "b")},
        {1: pun("self", "negative", "abc"), 2: pun("both", "neutral", "c")},
    ]
    vote_through(service, lead, project, tables)
    ruling: Table = {2: pun("self", "neutral", "ruled")}
    vote_through(service, lead, project, [ruling], "adjudicator")
    assert aggregated(service, lead, project) == [
        ("m1", True, pun("other", "negative", "abc", **word)),
        ("m2", True, pun("self", "neutral", "ruled")),
    ]


def test_rate_outputs_is_blind(service: AnnotationService, tmp_path: Path) -> None:
    hidden: dict[str, JsonValue] = {"a": "model-x", "b": "model-y"}
    pair = Shown(label="pair", value=["text of a", "text of b"], kind="pair")
    items = [QueueItem(id=f"p{n}", group=f"g{n}", shown=[pair], hidden=hidden) for n in range(1, 9)]
    lead, project = open_project(service, tmp_path / "q", "rate-outputs", items)
    people = add_people(service, lead, project.id, ["a", "b"], ["annotator"])
    seen: set[str] = set()

    def prefer_a(task: AnnotationTask) -> Mapping[str, JsonValue]:
        assert "model" not in repr(task)
        first = task.shown[0].value[0]
        seen.add(first)
        return {"preference": "first" if first == "text of a" else "second"}

    for person in people:
        work_through(service, person, project.id, prefer_a)
    assert seen == {"text of a", "text of b"}
    rows = aggregated(service, lead, project)
    assert [values for _, _, values in rows] == [{"preference": "a"}] * 8
    rates = service.lead.preferences(lead, project.id)
    assert rates == {"preference": {"model-x": 1.0, "model-y": 0.0}}


def test_raw_exports_hold_every_revision(service: AnnotationService, tmp_path: Path) -> None:
    items = plain_items(1)
    items[0] = items[0].model_copy(update={"hidden": {"model": "m"}, "values": {"harmful": "no"}})
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", items)
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    assert (task.suggestions, task.state) == ({}, {})
    service.work.submit(ann, task.assignment, {"harmful": "no"}, 0, 4.0)
    service.work.submit(ann, task.assignment, harm("offence"), 1, 6.0)
    service.work.undo(ann, task.assignment, 2)
    lines = lines_of(service.exchange.export(lead, project.id, "raw").data)
    revisions = [line for line in lines if line["kind"] == "revision"]
    assert [line["action"] for line in revisions] == ["submit", "edit", "undo"]
    assert [line["current"] for line in revisions] == [False, False, True]
    assert revisions[1]["values"] == harm("offence")
    (item,) = [line for line in lines if line["kind"] == "item"]
    assert (item["hidden"], item["values"]) == ({"model": "m"}, {"harmful": "no"})
    assert "ann" not in json.dumps(lines).replace("annotat", "")
    table = list(csv.DictReader(io.StringIO(csv_of(service, lead, project))))
    assert [row["type"] for row in table] == ["", "offence", ""]
    data = service.exchange.export(lead, project.id, "raw", "parquet").data
    assert parquet.read_table(io.BytesIO(data)).column("version").to_pylist() == [1, 2, 3]


def csv_of(service: AnnotationService, lead: Actor, project: Project) -> str:
    return service.exchange.export(lead, project.id, "raw", "csv").data.decode()


def test_two_imports_at_once_bring_each_item_once(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead = make_lead(service)
    project = service.projects.create(lead, "twice", "label-by-vote").id
    queue = make_queue(tmp_path / "q", "label-by-vote", plain_items(4))
    barrier = threading.Barrier(2)
    brought: list[int] = []

    def bring() -> None:
        barrier.wait()
        brought.append(service.exchange.import_queue(lead, project, queue).items)

    threads = [threading.Thread(target=bring) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(brought) == 4
    assert service.lead.progress(lead, project).items == 4
    assert len(list((tmp_path / "media" / str(project)).iterdir())) == 4


def test_texts_that_look_like_formulas_are_defused_in_csv(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "pun-form", plain_items(1))
    evil = "=HYPERLINK(1)"
    vote_through(service, lead, project, [{1: pun("self", "neutral", evil)}])
    (row,) = csv.DictReader(io.StringIO(csv_of(service, lead, project)))
    assert row["explanation"] == f"'{evil}"
    lines = lines_of(service.exchange.export(lead, project.id, "raw").data)
    assert lines[-1]["values"]["explanation"] == evil


def test_numbers_do_not_tell_models_apart(service: AnnotationService, tmp_path: Path) -> None:
    shown = [Shown(label="output", value="text")]
    items = [
        QueueItem(id=f"{model}-{n}", group=f"g{n}", shown=shown, hidden={"model": model})
        for model in ("x", "y")
        for n in range(12)
    ]
    lead, project = open_project(service, tmp_path / "q", "rate-outputs", items)
    views = service.lead.items(lead, project.id)
    models = [view.hidden["model"] for view in views]
    assert Counter(models) == {"x": 12, "y": 12}
    assert 2 <= models[:12].count("x") <= 10
