"""Detectors and people stand in one table with models: asked, compared and reported alike."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import memantics as mm
from memantics.core.errors import InputError
from memantics.core.records import Item
from memantics.core.rundir import last_answers
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.evaluation.reports.tables import render_markdown
from tests.commands import Shell

TASK = "toxicn_mm/detection"
WORDS = {"harmful": "有害", "harmless": "无害"}


def items(task: str = TASK) -> list[Item]:
    return list(pose_one(task, TaskChoiceSettings()).task.items())


def write_votes(path: Path, votes: list[tuple[str, str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "annotator", "answer"])
        writer.writerows(votes)
    return path


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("detector") / "fast.zip"
    mm.Detector.load_sample().save(path)
    return path


def test_people_decide_by_majority_and_a_tie_is_no_answer(tmp_path: Path) -> None:
    asked = items()
    votes = []
    for number, item in enumerate(asked):
        gold = WORDS[str(item.gold)]
        other = WORDS["harmless" if item.gold == "harmful" else "harmful"]
        second = other if number == 0 else gold  # the first meme is a tie of two
        votes += [(f"{item.group}.png", "anna", gold), (item.group, "bo", second)]
        if number == 1:
            votes[-2:] = [(item.group, who, other) for who in ("anna", "bo")]
            votes.append((item.group, "cleo", gold))  # outvoted, two to one
    path = write_votes(tmp_path / "votes.csv", votes)
    run = mm.evaluate(
        TASK,
        f"humans/{path}",
        out=tmp_path / "runs",
        settings=mm.EvaluationSettings(invalid="wrong"),
    )
    assert run.counts["refused"] == 1
    right = sum(a.value == i.gold for i in asked if (a := last_answers(run.folder)[i.id]))
    assert right == len(asked) - 2
    tie = last_answers(run.folder)[asked[0].id]
    assert "people are split" in tie.reason
    # One person alone: the tie is gone.
    alone = mm.evaluate(TASK, f"humans/{path}?only=anna", out=tmp_path / "runs")
    assert alone.counts["answered"] == len(asked)
    assert "human annotators: majority of 3" in render_markdown([run], {})
    assert "(people)" in render_markdown([alone], {})


def test_a_detector_answers_like_a_model_and_stands_beside_people(
    detector: Path, tmp_path: Path
) -> None:
    asked = items()
    votes = [(item.group, "anna", WORDS[str(item.gold)]) for item in asked]
    path = write_votes(tmp_path / "votes.csv", votes)
    names = [f"detector/{detector}", f"humans/{path}", "baseline/majority"]
    runs = mm.evaluate_suite(TASK, names, out=tmp_path / "runs")
    by_model = {run.model: run for run in runs}
    judged = last_answers(by_model[names[0]].folder)
    # What the detector itself says about the same texts.
    own = mm.Detector.load(detector)
    said = own.predict([item.form.context["text"] for item in asked])
    assert [judged[i.id].value for i in asked] == [one.name for one in said]
    assert {one.value for one in judged.values()} == {"harmful", "harmless"}
    people = by_model[names[1]]
    assert people.scores[people.results.main].value == 1.0
    found = mm.compare(by_model[names[0]], people)
    assert found.shared == len(asked)
    table = render_markdown([*runs], {})
    assert "detector" in table
    assert "humans/" in table


def test_a_detector_answers_a_form_with_reasons_and_refuses_other_questions(
    detector: Path, tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    model = ["--model", f"detector/{detector}", "--limit", "1"]
    ran = shell.run("run", "punmemecn/harmful", *model)
    assert ran.code == 0, ran
    # Puns have two options as well, and they are none of its verdicts.
    ran = shell.run("run", "punmemecn/detection", *model)
    assert ran.code == 1
    assert "1 items failed" in ran.err
    (run,) = (tmp_path / "runs").glob("punmemecn-detection*")
    reasons = {answer.reason for answer in last_answers(run).values()}
    assert any("not labels that a detector predicts" in reason for reason in reasons)


def test_what_is_wrong_with_a_table_of_people_is_said(tmp_path: Path) -> None:
    path = write_votes(tmp_path / "v.csv", [("a", "anna", "有害")])
    with pytest.raises(InputError, match="contains no answers of bo"):
        mm.evaluate(TASK, f"humans/{path}?only=bo")
    with pytest.raises(InputError, match=r"unknown column of v\.csv"):
        mm.evaluate(TASK, f"humans/{path}?answer=label")
    with pytest.raises(InputError, match="setting of humans/FILE"):
        mm.evaluate(TASK, f"humans/{path}?who=bo")
    path.write_text("image,x\na,b\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"column for the answer.*\?answer=COLUMN"):
        mm.evaluate(TASK, f"humans/{path}")
