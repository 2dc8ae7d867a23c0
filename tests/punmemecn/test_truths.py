"""Small things that were wrong once."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.benchmarks.punmemecn.load import open_release
from memantics.benchmarks.punmemecn.statistics import statistics
from tests.commands import Shell
from tests.punmemecn.release import SAMPLE, make_task
from tests.runs import pick, write_run


def test_humans_on_a_pun_run_is_one_line(tmp_path: Path, shell: Shell) -> None:
    run = write_run(tmp_path / "run", "punmemecn/detection", {"a": "pun"}, form=pick("pun"))
    done = shell.run("human-eval", "export", run, "--out", tmp_path / "out")
    assert done.code == 2
    assert "punmemecn has no questionnaire for human ratings" in done.err
    assert "mer_bench" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("text", ["双关吗？非双关", "这是双关吗? 非双关。", "pun? non-pun"])
def test_a_question_before_the_answer_is_no_answer(text: str) -> None:
    task = make_task("detection")
    assert task.parse(text, next(task.items()).form) == "non-pun"


def test_the_drop_of_table_5_is_arithmetic() -> None:
    assert statistics(open_release(SAMPLE))["table5.drop.gpt_4o"] == -0.122
