"""Label Studio's files, both ways: nothing lost, nothing believed."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from memantics.annotation import labelstudio
from memantics.annotation.labelstudio import unpack_tasks
from memantics.annotation.records import Actor, AnnotationTask, Project
from memantics.annotation.service import AnnotationService
from memantics.core.errors import DataError
from memantics.core.queue import Shown
from tests.annotation.team import (
    add_people,
    aggregated,
    draw_image,
    lines_of,
    make_lead,
    open_project,
    plain_items,
    score,
    work_through,
)


def test_label_studio_there_and_back(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "collect-and-edit", plain_items(2))
    names = ["a", "b", "c"]
    people = add_people(service, lead, project.id, names, ["annotator"])
    texts: dict[str, JsonValue] = {"intents": ["x", "y"], "background": ["<b>&\"'", "多字"]}
    for person in people:
        work_through(service, person, project.id, lambda _: texts)
    done = service.work.mine(people[2], project.id)[0]
    assert done.changeable
    service.work.submit(people[2], done.assignment, {"intents": ["x", "y", "z"]}, 1, 2.0)
    reviewers = add_people(service, lead, project.id, ["r", "s"], ["reviewer"])
    for person in reviewers:
        work_through(service, person, project.id, lambda task: score(*[4] * len_of(task)))
    packed = service.exchange.export(lead, project.id, "labelstudio", "zip").data
    other = service.projects.create(lead, "copy", "collect-and-edit")
    copied = service.exchange.import_tasks(lead, other.id, io.BytesIO(packed))
    assert (copied.items, copied.images, copied.answers, copied.skipped) == (2, 2, 10, ())
    assert aggregated(service, lead, other) == aggregated(service, lead, project)
    assert strip(service, lead, other) == strip(service, lead, project)
    again = service.exchange.import_tasks(lead, other.id, io.BytesIO(packed))
    assert (again.items, again.answers) == (0, 0)


def len_of(task: AnnotationTask) -> int:
    intents = task.state["intents"]
    assert isinstance(intents, list)
    return len(intents)


def strip(service: AnnotationService, lead: Actor, project: Project) -> list[Any]:
    """A raw export without what is minted anew in every project."""
    lines = lines_of(service.exchange.export(lead, project.id, "raw").data)
    kept = [line for line in lines if line["kind"] in ("item", "revision")]
    for line in kept:
        for image in line.get("images", []):
            image.pop("media")
            image.pop("name")
    return sorted(kept, key=lambda line: json.dumps(line, sort_keys=True))


def test_foreign_label_studio_tasks(service: AnnotationService, tmp_path: Path) -> None:
    lead = make_lead(service)
    project = service.projects.create(lead, "foreign", "label-by-vote")
    draw_image(tmp_path / "images" / "ab-1.png", 1)

    def choose(name: str, value: str) -> dict[str, Any]:
        return {"from_name": name, "to_name": "x", "type": "choices", "value": {"choices": [value]}}

    tasks = [
        {
            "id": 7,
            "data": {"image": "/data/upload/3/ab-1.png", "caption": "ha", "score": 3},
            "annotations": [
                {"completed_by": 1, "result": [choose("harmful", "no")]},
                {"completed_by": 2, "result": [choose("harmful", "perhaps")]},
                {"completed_by": 3, "result": [choose("colour", "red")]},
                {"completed_by": 4, "was_cancelled": True, "result": []},
            ],
        },
        {
            "id": 8,
            "data": {"image": "../../etc/passwd"},
            "predictions": [{"model_version": "m", "result": [choose("harmful", "yes")]}],
        },
    ]
    done = service.exchange.import_label_studio(
        lead, project.id, json.dumps(tasks), tmp_path / "images"
    )
    assert (done.items, done.images, done.answers) == (2, 1, 1)
    assert len(done.skipped) == 3
    view = service.lead.items(lead, project.id)[0]
    assert view.shown == (Shown(label="caption", value="ha"),)
    assert view.hidden == {"score": 3}
    # What a model predicted there is a pre-label here.
    assert service.lead.items(lead, project.id)[1].prelabels == {"harmful": "yes"}
    with pytest.raises(DataError, match="not valid JSON"):
        service.exchange.import_label_studio(lead, project.id, "{")
    with pytest.raises(DataError, match=r"0\.data"):
        service.exchange.import_label_studio(lead, project.id, '[{"id": 1}]')


PAST = {"version": 1, "action": "submit", "at": 1.0, "values": {}}


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([{"id": 1, "data": {}}, {"id": 1, "data": {}}], "occurs twice"),
        ([{"id": "x" * 400, "data": {}}], "at most 300"),
        ([[PAST | {"at": 1e300}]], "less than or equal"),
        ([[PAST | {"version": 2**40}]], "less than or equal"),
        ([[PAST, PAST]], "have the same number"),
    ],
)
def test_tasks_that_would_break_the_data_are_refused(
    service: AnnotationService, tasks: list[Any], message: str
) -> None:
    lead = make_lead(service)
    project = service.projects.create(lead, "foreign", "label-by-vote").id
    whole = [
        {"id": 1, "data": {}, "annotations": [{"memantics": {"stage": "vote", "revisions": task}}]}
        if isinstance(task, list)
        else task
        for task in tasks
    ]
    with pytest.raises(DataError, match=message):
        service.exchange.import_label_studio(lead, project, json.dumps(whole))
    assert service.lead.items(lead, project) == ()


def test_archives_are_unpacked_in_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pack(**parts: bytes) -> io.BytesIO:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
            for name, data in parts.items():
                made.writestr(name.replace("__", "/"), data)
        packed.seek(0)
        return packed

    monkeypatch.setattr(labelstudio, "MAX_IMAGES", 1000)
    parts = {"tasks.json": b"[]", "images__..__..__x": b"no", "images__a.png": b"yes", "b.png": b""}
    folder = tmp_path / "images"
    folder.mkdir()
    assert unpack_tasks(pack(**parts), folder) == b"[]"
    assert [path.name for path in folder.iterdir()] == ["a.png"]
    with pytest.raises(DataError, match="too many images"):
        unpack_tasks(pack(**parts, images__bomb=b"0" * 10_000), folder)
    with pytest.raises(DataError, match=r"does not contain tasks\.json"):
        unpack_tasks(pack(images__a=b""), folder)
    with pytest.raises(DataError, match="cannot be read"):
        unpack_tasks(io.BytesIO(b"PK\x03\x04 and no more"), folder)
