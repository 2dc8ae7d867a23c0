"""A network answers tasks as ``detector/FOLDER``, from the picture and the text that they give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import memantics as mm
from memantics.core.rundir import last_answers
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.moderation.examples import Example
from memantics.moderation.neural.saved import load_neural, predict_neural
from memantics.moderation.neural.seeds import SeedPlan, train_neural
from memantics.moderation.neural.settings import Backbones, choose_shape
from tests.moderation.neural.tiny import QUICK, draw_memes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(fusion: Backbones, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MKE detector of types after one epoch."""
    folder = tmp_path_factory.mktemp("mke")
    shape = replace(choose_shape("mke", None), length=24, target="type")
    plan = SeedPlan(fusion, shape, replace(QUICK, epochs=1))
    train_neural(draw_memes(60, folder / "images"), plan, folder / "out", lambda _: None)
    return folder / "out"


@pytest.mark.parametrize("task", ["toxicn_mm/detection", "toxicn_mm/type"])
def test_mke_answers_as_it_judges(task: str, trained: Path, tmp_path: Path) -> None:
    items = list(pose_one(task, TaskChoiceSettings(limit=6)).task.items())
    memes = [Example(i.id, i.form.context["text"], image=i.images[0].path) for i in items]
    run = mm.evaluate(
        task, f"detector/{trained}", out=tmp_path / "runs", settings=mm.EvaluationSettings(limit=6)
    )
    assert run.counts["answered"] == 6
    answers = last_answers(run.folder)
    for said in predict_neural(load_neural(trained, "cpu"), memes).predictions:
        whole = (
            said.label if task.endswith("type") else ("harmless", "harmful")[said.label != "none"]
        )
        assert answers[said.id].value == whole
        assert answers[said.id].reply.tokens_out == 0
    assert mm.load_run(run.folder).facts.model_note == "detector"
