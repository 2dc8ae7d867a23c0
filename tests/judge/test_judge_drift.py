"""Drift of judges: the same answers rated again, and warnings about runs judged differently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import memantics as mm
from memantics.core.errors import UnknownName
from memantics.evaluation.judging.setups import compare_judging
from memantics.evaluation.rubric import read_setups
from memantics.metrics.paired import compare_means
from tests.judge.conftest import MEMES, Scripted
from tests.judge.test_judge import number, say

Plant = Callable[..., Scripted]


@pytest.mark.slow
def test_a_version_that_became_milder_is_not_comparable(run: mm.Run, plant: Plant) -> None:
    plant("old", lambda answer: say(1 + number(answer) % 3, 3))
    plant("new", lambda answer: say(2 + number(answer) % 3 + number(answer) % 2, 3))
    mm.judge(run, model="judge/old")
    (found,) = mm.judge_drift([run], model="judge/new", sample=10)
    correctness, coverage = found.qualities
    assert (correctness.answers, correctness.verdict) == (10, "not comparable")
    # Ten equal marks do not show that the versions agree within 5 % of the scale.
    assert coverage.verdict == "undecided"
    assert (coverage.difference, coverage.same) == (0.0, 1.0)
    assert found.changed == ("judge or version",)
    assert not found.comparable
    # Interval and p-value are those of the paired test over memes, on the fixed sample.
    assert correctness.low is not None
    assert correctness.high is not None
    assert 1.0 < correctness.low < correctness.difference < correctness.high < 2.0
    everything = mm.judge_drift([run], model="judge/new", sample=MEMES)[0].qualities[0]
    old = [1.0 + n % 3 for n in range(MEMES)]
    new = [2.0 + n % 3 + n % 2 for n in range(MEMES)]
    expected = compare_means(old, new, [str(n) for n in range(MEMES)])
    assert expected is not None
    assert (everything.low, everything.high) == pytest.approx((expected.low, expected.high))
    # The run keeps the marks with which it was judged.
    assert mm.score(run).scores["judge_correctness"].value == pytest.approx(sum(old) / MEMES)
    with pytest.raises(UnknownName, match="judge/none"):
        mm.judge_drift([run], model="judge/new", against="judge/none")


@pytest.mark.slow
def test_few_answers_leave_the_question_open(run: mm.Run, plant: Plant) -> None:
    plant("old", lambda _: say(3, 3))
    plant("new", lambda answer: say(2 + 2 * (number(answer) % 2), 3))
    mm.judge(run, model="judge/old")
    (found,) = mm.judge_drift([run], model="judge/new", sample=MEMES)
    assert found.qualities[0].difference == 0
    assert found.qualities[0].verdict == "undecided"
    wide = mm.judge_drift([run], model="judge/new", sample=MEMES, margin=0.4)[0]
    assert wide.qualities[0].verdict == "comparable"


def test_the_same_name_is_asked_again(run: mm.Run, plant: Plant) -> None:
    """A server may change the model behind a name: neither cache nor stored marks are used."""
    judge = plant("same", lambda _: say(3, 3))
    mm.judge(run, model="judge/same")
    before = len(judge.requests)
    (found,) = mm.judge_drift([run], model="judge/same", sample=8, margin=0.15)
    assert len(judge.requests) == before + 8
    assert found.changed == ()
    assert found.comparable
    mm.judge_drift([run], model="judge/same", sample=8)
    assert len(judge.requests) == before + 8  # resumed on the same day
    mm.judge_drift([run], model="judge/same", sample=8, judge_version="2026-11")
    assert len(judge.requests) == before + 16


@pytest.mark.slow
def test_runs_judged_differently_are_named(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    other = mm.evaluate(
        "memeintent/intent",
        "baseline/majority",
        out=tmp_path / "runs",
        settings=mm.EvaluationSettings(limit=MEMES),
    )
    plant("one", lambda _: say(3, 3))
    plant("two", lambda _: say(4, 4))
    mm.judge([run, other], model="judge/one")
    assert compare_judging([run.folder, other.folder]) == ""
    page = mm.report([run, other], tmp_path / "same.html").read_text(encoding="utf-8")
    assert "judging of answers" not in page
    assert not any("judged with another" in note for note in mm.compare(run, other).notes)
    mm.judge(other, model="judge/two", judge_version="v2")
    assert read_setups(other.folder)[0].version == "v2"
    told = compare_judging([run.folder, other.folder])
    assert told.startswith("the runs were judged with another judge, version")
    assert told in mm.compare(run, other).notes
    page = mm.report([run, other], tmp_path / "other.html").read_text(encoding="utf-8")
    assert "judging of answers (judge_* scores are not comparable)" in page
    mm.judge(other, model="judge/one", image=False)
    assert "another image" in compare_judging([run.folder, other.folder])
