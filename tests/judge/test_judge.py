"""Judges of free text: their marks by hand, their agreement, people to check them by."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import krippendorff
import numpy as np
import orjson
import pytest
from pydantic import JsonValue

import memantics as mm
from memantics.core.errors import InputError
from memantics.core.records import Field as FormField
from memantics.core.records import Form, Image, Item, Option, Outcome
from memantics.core.rundir import read_items
from memantics.evaluation.judging.rubrics import built_in_rubric
from memantics.evaluation.rubric import ENOUGH, make_scores, measure_agreement, need_text
from tests.commands import Shell
from tests.judge.conftest import MEMES, Scripted


def say(correctness: int, coverage: int) -> str:
    return orjson.dumps({"reason": "x", "correctness": correctness, "coverage": coverage}).decode()


def number(answer: str) -> int:
    return int(re.findall(r"\d+", answer)[-1])


def test_metrics_of_judges_stand_beside_the_runs_own(
    run: mm.Run, plant: Callable[..., Scripted]
) -> None:
    first = plant("one", lambda answer: say(1 + number(answer) % 5, 3))
    plant("two", lambda answer: say(1 + (number(answer) + number(answer) % 2) % 5, 3))
    (done,) = mm.judge(run, model=["judge/one", "judge/two"])
    one = [1 + n % 5 for n in range(MEMES)]
    two = [1 + (n + n % 2) % 5 for n in range(MEMES)]
    mean = float(np.mean([one, two]))
    assert done.run.scores["judge_correctness"].value == pytest.approx(mean)
    assert done.run.scores["judge_coverage"].value == 3.0
    assert done.run.scores["rouge_l"] == run.scores["rouge_l"]
    alpha = krippendorff.alpha(np.array([one, two]), level_of_measurement="interval")
    assert done.agreement[0].alpha_judges == pytest.approx(alpha)
    assert "no human ratings to compare" in done.run.scores["judge_correctness"].note
    # They stay when the run is scored again, and each judge has a line of its own.
    again = mm.score(run)
    assert again.scores["judge_correctness"].value == pytest.approx(mean)
    by = {s.label: s.value for s in again.results.scores if s.by == "judge" and "corr" in s.key}
    assert by == {
        "judge/one": pytest.approx(np.mean(one)),
        "judge/two": pytest.approx(np.mean(two)),
    }
    # Asked once with picture, references and answer, by a strict schema, blind to the model.
    assert len(first.requests) == MEMES
    request = first.requests[0]
    assert request.schema == built_in_rubric().schema
    text = next(part for part in request.messages[0].parts if isinstance(part, str))
    assert any(isinstance(part, Image) for part in request.messages[0].parts)
    gold = next(iter(read_items(run.folder))).item.gold
    assert isinstance(gold, list)
    assert all(str(reference) in text for reference in gold)
    assert "the meme says" in text
    assert "humans/" not in text
    mm.judge(run, model=["judge/one"])
    assert len(first.requests) == MEMES
    mm.judge(run, model=["judge/one"], image=False)
    assert len(first.requests) == 2 * MEMES
    assert not any(isinstance(part, Image) for part in first.requests[-1].messages[0].parts)


def test_judges_are_checked_against_people_and_put_on_their_scale(
    run: mm.Run, plant: Callable[..., Scripted], tmp_path: Path
) -> None:
    plant("kind", lambda answer: say(min(5, 3 + number(answer) % 3), 5))
    names = [line.item.id for line in read_items(run.folder)]
    # People are two points stricter, and agree on the order.
    rows = [
        {"item": name, "correctness": min(5, 3 + n % 3) - 2, "coverage": 5}
        for n, name in enumerate(names)
    ]
    path = tmp_path / "ratings.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (done,) = mm.judge(run, model="judge/kind", people=path)
    correctness, coverage = done.agreement
    marks = [3 + n % 3 for n in range(MEMES)]
    assert done.run.scores["judge_correctness"].value == pytest.approx(np.mean(marks))
    assert correctness.apart == pytest.approx(2.0)
    table = np.array([marks, [mark - 2 for mark in marks]])
    alpha = krippendorff.alpha(table, level_of_measurement="interval")
    assert correctness.alpha_people == pytest.approx(alpha)
    assert correctness.calibrated == pytest.approx(np.mean(marks) - 2)
    assert done.run.scores["judge_correctness_calibrated"].value == correctness.calibrated
    assert f"on {MEMES} answers" in done.run.scores["judge_correctness"].note
    assert (coverage.rated, coverage.calibrated) == (MEMES, None)


@pytest.mark.parametrize(("rated", "fits"), [(ENOUGH, True), (ENOUGH - 1, False)])
def test_a_line_needs_enough_ratings(rated: int, fits: bool) -> None:
    marks = {str(n): float(1 + n % 5) for n in range(20)}
    people = {str(n): [float(1 + n % 5)] for n in range(rated)}
    found = measure_agreement("correctness", [marks], people)
    assert (found.calibrated is not None) == fits
    assert found.alpha_people == pytest.approx(1.0)
    assert found.alpha_judges is None


def test_a_verdict_out_of_form_is_asked_again_and_then_not_counted(
    run: mm.Run, plant: Callable[..., Scripted]
) -> None:
    def verdict(answer: str) -> str:
        return say(9, 3) if number(answer) == 0 else say(4, 4)

    judge = plant("sloppy", verdict)
    (done,) = mm.judge(run, model="judge/sloppy")
    assert done.run.scores["judge_correctness"].n == MEMES - 1
    assert len(judge.requests) == MEMES + 2
    plant("mute", lambda _: "no")
    with pytest.raises(InputError, match="no judge gave a valid rating"):
        mm.judge(run, model="judge/mute")


@pytest.mark.parametrize(
    ("gold", "field", "free"),
    [
        (["a", "b"], FormField("answer", "choice", (Option("A", "a"),)), True),
        ("one reference", FormField("answer", "text"), True),
        ("A", FormField("answer", "choice", (Option("A", "a"),)), False),
        (3, FormField("answer", "text"), False),
    ],
)
def test_free_text_of_a_task_of_ones_own(
    tmp_path: Path, gold: str | int, field: FormField, free: bool
) -> None:
    item = Item("i", "i", gold, Form("?", (field,)))
    with nullcontext() if free else pytest.raises(InputError, match="no free-text answers"):
        need_text([Outcome(item, "answered", "said")], tmp_path)


def test_what_cannot_be_judged_says_why(tmp_path: Path, run: mm.Run) -> None:
    shell = Shell(tmp_path)
    choice = mm.evaluate(
        "mquest/qa",
        "baseline/longest",
        out=tmp_path / "runs",
        settings=mm.EvaluationSettings(limit=2),
    )
    line = shell.refused("judge", choice.folder, "--model", "fake/drafter")
    assert "no free-text answers" in line
    path = tmp_path / "r.csv"
    path.write_text("item,correctness,coverage\na,7,1\n", encoding="utf-8")
    line = shell.refused("judge", run.folder, "--model", "fake/drafter", "--people", path)
    assert "'7' is not a rating from 1 to 5" in line


def test_the_interval_of_equal_marks_stays_on_the_scale() -> None:
    """The lowest mark is 1, not 0: an interval from 0.76 to 1 would claim what nobody can give."""
    form = Form("?", (FormField("answer", "text"),))
    given = [
        Outcome(Item(f"m{n}", f"m{n}", ["reference"], form), "answered", "x") for n in range(12)
    ]
    for mark, low, high in ((1, 1.0, 1.97), (5, 4.03, 5.0)):
        marks: JsonValue = {"reason": "", "correctness": mark, "coverage": mark}
        said = [replace(outcome, value=marks) for outcome in given]
        for score in make_scores(given, {"judge": said}, {})[0]:
            assert score.value == mark
            assert score.interval == pytest.approx((low, high), abs=0.01)
