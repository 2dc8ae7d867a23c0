"""The guide to workflows says every key, and its example works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel, JsonValue

from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.service import AnnotationService
from memantics.annotation.workflow import (
    Exclusion,
    Keep,
    Rule,
    Stage,
    TrainingRounds,
    Workflow,
    WorkflowChoice,
    WorkflowField,
    parse_workflow,
)
from tests.annotation.team import (
    add_people,
    answer_by_number,
    make_lead,
    plain_items,
    work_through,
)
from tests.places import ROOT

GUIDE = (ROOT / "docs" / "how-to" / "write-a-workflow.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"```toml\n(.*?)```", GUIDE, flags=re.DOTALL)[0]


@pytest.mark.parametrize(
    "shape",
    [
        Workflow,
        WorkflowField,
        WorkflowChoice,
        Stage,
        Exclusion,
        Rule,
        Keep,
        TrainingRounds,
        ProjectSettings,
    ],
)
def test_every_key_is_in_the_guide(shape: type[BaseModel]) -> None:
    missing = [name for name in shape.model_fields if f"`{name}`" not in GUIDE]
    assert missing == []


def test_every_word_of_a_closed_list_is_in_the_guide() -> None:
    words: set[str] = set()
    for shape in (WorkflowField, Stage, Rule, ProjectSettings):
        for name in ("kind", "role", "start", "rule", "tie", "level", "prelabels"):
            if name in shape.model_fields:
                words |= set(re.findall(r"'([a-z]+)'", repr(shape.model_fields[name].annotation)))
    assert len(words) > 30
    assert [word for word in sorted(words) if f"`{word}`" not in GUIDE] == []


def test_the_example_works(service: AnnotationService, tmp_path: Path) -> None:
    assert parse_workflow(EXAMPLE, "own.toml").name == "how-funny"
    lead = make_lead(service)
    project = service.projects.create(lead, "Funny", EXAMPLE)
    service.exchange.import_items(lead, project.id, [(item, []) for item in plain_items(3)])
    people = add_people(service, lead, project.id, ["a", "b"], ["annotator"])
    (judge,) = add_people(service, lead, project.id, ["j"], ["adjudicator"])
    no: dict[str, JsonValue] = {"funny": "no"}
    tables: tuple[dict[int, dict[str, JsonValue]], ...] = (
        {1: {"funny": "yes", "degree": 5}, 2: no, 3: {"funny": "yes", "degree": 2}},
        {1: {"funny": "yes", "degree": 6}, 2: no, 3: no},
    )
    for person, table in zip(people, tables, strict=True):
        work_through(service, person, project.id, answer_by_number(table))
    assert work_through(service, judge, project.id, lambda _: {"funny": "yes", "degree": 1}) == [3]
    lines = service.exchange.export(lead, project.id, "aggregated").data.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["kept"], row["degree"]) for row in rows] == [
        (True, 5.5),
        (False, None),
        (True, 1),
    ]
