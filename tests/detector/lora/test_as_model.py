"""A tuned model answers tasks as ``detector/FOLDER``."""

from __future__ import annotations

import csv
import importlib.util
import io
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.actions.answers import TaskChoiceSettings, pose_one
from memantics.actions.train_networks import find_language
from memantics.core.rundir import last_answers
from memantics.detector.examples import Example
from memantics.detector.judges import open_judge
from memantics.detector.lora.tuning import tune
from memantics.detector.lora.wording import Wording
from tests.commands import Shell
from tests.detector.lora.test_tuning import QUICK, draw_cases, tools
from tests.local import tiny
from tests.punmemecn.official_script import write_script
from tests.punmemecn.release import write_release

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning:peft")]
TASK = "toxicn_mm/detection"


def need_packages() -> None:
    for name in ("torch", "transformers", "peft"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed (extra detector)")


def test_puns_are_learnt_in_the_authors_words(tmp_path: Path, shell: Shell) -> None:
    need_packages()
    base = tiny.MAKERS["llava"](tmp_path / "base")
    clone = tmp_path / "PunMemeCN"
    write_release(clone / "data" / "pun_meme" / "cn", range(1, 9))
    tune_it = ("detector", "tune", base, "--wording", "official", "--epochs", "1", "--rank", "2")
    shell.done("data", "add", "punmemecn", clone)
    assert "holds no utils/eval/task.py" in shell.refused(*tune_it)
    write_script(clone)
    for more in (("--style", "reasons"), ("--question", "harm")):
        assert "have no words for" in shell.refused(*tune_it, *more)
    shell.done(*tune_it, "--device", "cpu", "--out", "tuned")
    facts = orjson.loads((shell.folder / "tuned" / "tuning.json").read_bytes())
    assert facts["wording"]["text"] == "定义：\n双关 5$$。\n\n任务：\n字幕“$caption”。"
    assert facts["wording"]["said"] == ["非双关", "双关"]
    printed = shell.done("paper", "punmemecn", "--detectors", "tuned", "--format", "csv")
    rows = [row for row in csv.DictReader(io.StringIO(printed)) if row["part"] == "Table 4"]
    own = {row["column"]: row["status"] for row in rows if row["row"] == "base: image and caption"}
    assert own == {"TPR": "computed", "TNR": "computed", "External TNR": "empty"}
    assert facts["languages"] == ["zh"]


@pytest.mark.parametrize(
    ("captions", "language"),
    [
        (["今晚又失眠了", "明天还要上班"], "zh"),
        (["今晚又失眠了", "when you are the only one who knows"], "zh"),
        (["今晚又失眠了", "this is not my day", "when you are the only one who knows"], "en"),
        ([], "zh"),
    ],
)
def test_questions_are_asked_in_the_language_of_most_captions(
    captions: list[str], language: str
) -> None:
    assert find_language(captions) == language


def test_a_lora_answers_as_it_judges(tmp_path: Path) -> None:
    need_packages()
    base = tiny.MAKERS["llava"](tmp_path / "base")
    wording, quick = Wording("harm", "caption", "en"), replace(QUICK, epochs=1)
    tune(base, draw_cases(tmp_path / "images", 8), wording, quick, tmp_path / "out", tools())
    items = list(pose_one(TASK, TaskChoiceSettings(limit=3)).task.items())
    memes = [Example(i.id, i.form.context["text"], image=i.images[0].path) for i in items]
    run = mm.evaluate(TASK, model=f"detector/{tmp_path / 'out'}", limit=3, out=tmp_path / "runs")
    assert isinstance(run, mm.Run)
    answers = last_answers(run.folder)
    judged = open_judge(tmp_path / "out").predict(memes)
    assert [answers[one.id].value for one in judged] == [one.name for one in judged]
