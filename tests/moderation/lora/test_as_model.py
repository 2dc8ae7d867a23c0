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
from memantics.core.rundir import last_answers
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.evaluation.datasets import add_release
from memantics.moderation.data import load_pun_cases
from memantics.moderation.examples import Example
from memantics.moderation.judges import open_judge
from memantics.moderation.lora.judging import Wording
from memantics.moderation.lora.tuning import tune
from memantics.moderation.train_networks import find_language, read_official
from tests.commands import Shell
from tests.local import tiny
from tests.moderation.lora.test_tuning import QUICK, draw_cases, tools
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
    assert "needs utils/eval/task.py" in shell.refused(*tune_it)
    write_script(clone)
    assert "no official prompt for --question harm" in shell.refused(*tune_it, "--question", "harm")
    assert "or images are missing" in shell.refused(*tune_it, "--style", "reasons")
    shell.done(*tune_it, "--device", "cpu", "--out", "tuned")
    facts = orjson.loads((shell.folder / "tuned" / "tuning.json").read_bytes())
    assert facts["wording"]["text"] == "定义：\n双关 5$$。\n\n任务：\n字幕“$caption”。"
    assert facts["wording"]["said"] == ["非双关", "双关"]
    printed = shell.done("paper", "punmemecn", "--detectors", "tuned", "--format", "csv")
    rows = [row for row in csv.DictReader(io.StringIO(printed)) if row["part"] == "Table 4"]
    own = {row["column"]: row["status"] for row in rows if row["row"] == "base: image and caption"}
    assert own == {"TPR": "computed", "TNR": "computed", "External TNR": "empty"}
    assert facts["languages"] == ["zh"]


def test_reasons_are_learnt_in_the_authors_words_with_their_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    clone = tmp_path / "PunMemeCN"
    write_release(clone / "data" / "pun_meme" / "cn", (1, 2, 3, 4, 601))
    write_script(clone)
    add_release("punmemecn", clone)
    cases, _ = load_pun_cases("release")
    wording = read_official(Wording("pun", "reasons", "zh"), cases)
    assert [path.name for path in wording.shown] == [
        "CN00601.png",
        "CN00601.similar_image.png",
        "CN00601.similar_text.png",
    ]
    assert wording.marks == ("分析：", "判断：")
    lesson = wording.pose(next(case for case in cases if case.id == "CN00001"), sees=True)
    *images, text = lesson.request.messages[0].parts
    assert len(images) == 4
    assert "分析：一“有茶就型601”，谐音。\n判断：双关\n分析：二“茶601$x”。" in str(text)
    assert str(text).endswith("四“有茶就型1”。")
    assert lesson.answer.startswith("分析：")
    assert lesson.answer.endswith("\n判断：双关")
    assert wording.describe()["shown"][0] == "CN00601.png"


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
    run = mm.evaluate(
        TASK,
        f"detector/{tmp_path / 'out'}",
        out=tmp_path / "runs",
        settings=mm.EvaluationSettings(limit=3),
    )
    answers = last_answers(run.folder)
    judged = open_judge(tmp_path / "out").predict(memes)
    assert [answers[one.id].value for one in judged] == [one.name for one in judged]
