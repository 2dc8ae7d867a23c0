"""A stored operating point holds wherever a detector judges: processes, Ray, and tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memantics as mm
from memantics.core.rundir import last_answers
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.screening import read_rows
from memantics.moderation.training import set_point
from tests.commands import Shell
from tests.moderation.samples import make_examples

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Detector.train(make_examples(120), "ridge").save(
        tmp_path_factory.mktemp("detector") / "detector.zip"
    )


@pytest.mark.parametrize("engine", ["pool", "ray"])
def test_workers_judge_by_the_stored_point(engine: str, detector: Path, tmp_path: Path) -> None:
    if engine == "ray":
        pytest.importorskip("ray", reason="the extra ray is not installed")
    texts = [example.text for example in make_examples(30, seed=4)]
    chances = sorted(one.probability for one in Detector.load(detector).predict(texts))
    file = tmp_path / "set.zip"
    file.write_bytes(detector.read_bytes())
    # The 20th meme is the first harmful one. The review range reaches from the 10th to the 11th;
    # the gap up to the threshold is reviewed too.
    set_point(file, threshold=chances[20], review_range=(chances[10], chances[11]))
    source = tmp_path / "texts.jsonl"
    rows = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)]
    rows.append(json.dumps({"id": "foreign", "text": "доброе утро"}))
    source.write_text("\n".join(rows), encoding="utf-8")
    words = ("--detector", file, "--out", "out", "--workers", "2", "--engine", engine)
    Shell(tmp_path).apart.done("screen", source, *words, "--shard-size", "8")
    *found, foreign = read_rows(tmp_path / "out")
    assert len({row["id"] for row in found}) == 30
    assert (foreign["status"], foreign["label"]) == ("not_scored", "review")
    for row in found:
        rank = min(range(30), key=lambda place: abs(chances[place] - row["probability"]))
        if row["out_of_domain"]:
            continue
        expected = "harmful" if rank >= 20 else "review" if rank >= 10 else "harmless"
        assert row["label"] == expected, (rank, row)
    assert {row["label"] for row in found} == {"harmless", "review", "harmful"}


@pytest.mark.parametrize("task", ["toxicn_mm/detection", "toxicn_mm/type"])
def test_a_run_answers_by_the_stored_point(task: str, detector: Path, tmp_path: Path) -> None:
    items = list(pose_one(task, TaskChoiceSettings(limit=8)).task.items())
    memes = [Example(item.id, item.form.context["text"]) for item in items]
    said = {one.id: one for one in Detector.load(detector).machine.predict(memes)}
    middle = sorted(one.probability for one in said.values())[4]
    for name, threshold in (("all", 0.0), ("half", middle), ("none", 1.0)):
        file = tmp_path / f"{name}.zip"
        file.write_bytes(detector.read_bytes())
        set_point(file, threshold=threshold)
        out = tmp_path / "runs" / name
        run = mm.evaluate(
            task, f"detector/{file}", out=out, settings=mm.EvaluationSettings(limit=8)
        )
        answers = {key: answer.value for key, answer in last_answers(run.folder).items()}
        for key, value in answers.items():
            harmful = said[key].probability >= threshold
            kinds = {kind: chance for kind, chance in said[key].types.items() if kind != "none"}
            named = said[key].type
            best = max(kinds, key=lambda kind: kinds[kind]) if named == "none" else named
            if task.endswith("type"):
                assert value == (best if harmful else "none")
            else:
                assert value == ("harmful" if harmful else "harmless")
