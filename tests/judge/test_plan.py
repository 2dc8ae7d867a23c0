"""Plans of ratings: a queue with known probabilities, and the way back to the estimate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import memantics as mm
from memantics.annotation.workflow import read_workflow
from memantics.core.errors import InputError
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    read_queue,
    write_annotations,
)
from memantics.evaluation.judging.rubrics import built_in_rubric
from tests.commands import Shell
from tests.judge.conftest import MEMES, Scripted
from tests.judge.test_judge import number, say
from tests.judge.test_people import BINARY, names, write

Plant = Callable[..., Scripted]


def annotate(queue: Path, rate: Callable[[str], dict[str, int]]) -> Path:
    """Rate every item of a queue by its answer, as the annotation app exports it."""
    card, items = read_queue(queue)
    rows = []
    for item in items:
        answer = next(part.value for part in item.shown if part.label == "Answer")
        values = rate(str(answer))
        vote = IndividualAnnotation(annotator="p1", stage="rate", values=dict(values))
        rows.append(
            AggregatedAnnotation(
                item=item.id,
                group=item.group,
                workflow=card.workflow,
                kept=True,
                values=dict(values),
                annotations=[vote],
                hidden=item.hidden,
            )
        )
    path = queue / "annotations.jsonl"
    write_annotations(path, rows)
    return path


def test_a_plan_becomes_an_estimate(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    plant("kind", lambda answer: say(3 + number(answer) % 3, 4))
    mm.judge(run, model="judge/kind")
    plan = mm.plan_ratings([run], budget=8, out=tmp_path / "queue")
    assert (plan.answers, plan.items, plan.of) == (8, 8, MEMES)
    assert plan.smallest == plan.largest == pytest.approx(8 / 12)
    card, items = read_queue(plan.queue)
    assert card.workflow == "rate-answers"
    # Blind: neither the model nor a mark is shown, and the probability returns with the ratings.
    for item in items:
        shown = " ".join(str(part.value) for part in item.shown)
        assert "humans/" not in shown
        assert item.images
        assert item.hidden["run"] == run.folder.name
        assert item.hidden["probability"] == pytest.approx(8 / 12)
    path = annotate(plan.queue, lambda said: {"correctness": 1 + number(said) % 3, "coverage": 4})
    (done,) = mm.judge(run, model="judge/kind", people=path)
    one = done.estimates[0]
    assert (one.planned, one.ratings, one.found.rated) == (True, 8, 8)
    assert one.found.powered.value == pytest.approx(2.0, abs=0.3)
    with pytest.raises(InputError, match="is not empty"):
        mm.plan_ratings([run], budget=8, out=tmp_path / "queue")


def test_two_judges_send_doubtful_answers_to_people(
    run: mm.Run, plant: Plant, tmp_path: Path
) -> None:
    plant("one", lambda answer: say(1 if number(answer) < 3 else 3, 3))
    plant("two", lambda answer: say(5 if number(answer) < 3 else 3, 3))
    mm.judge(run, model=["judge/one", "judge/two"])
    plan = mm.plan_ratings([run], budget=6, out=tmp_path / "queue")
    assert plan.largest > 2 * plan.smallest
    assert "disagreement of the judges" in plan.selection
    path = annotate(plan.queue, lambda _: {"correctness": 2, "coverage": 3})
    (done,) = mm.judge(run, model=["judge/one", "judge/two"], people=path)
    # People say 2 about every answer; a weighted estimate of a constant is that constant.
    assert done.estimates[0].found.people.value == pytest.approx(2.0)


def test_a_pilot_measures_the_correlation(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    plant("kind", lambda answer: say(1 + number(answer) % 5, 3))
    mm.judge(run, model="judge/kind")
    rows: list[dict[str, object]] = [
        {"item": name, "correctness": 1 + n % 5, "coverage": 3} for n, name in enumerate(names(run))
    ]
    pilot = write(tmp_path / "pilot.jsonl", rows)
    plan = mm.plan_ratings([run], budget=6, out=tmp_path / "queue", people=pilot)
    (found,) = (one for one in plan.expected if one.quality == "correctness")
    assert found.measured
    assert found.correlation == pytest.approx(1.0)
    assert found.half_width < found.people_alone
    scenarios = mm.plan_ratings([run], budget=6, out=tmp_path / "other").expected
    assert [one.correlation for one in scenarios[:4]] == [0.9, 0.7, 0.5, 0.0]


def test_a_rubric_of_ones_own_has_its_workflow(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    rubric = tmp_path / "rubric.toml"
    rubric.write_text(BINARY.replace('"yes"', '"yes, \\"all\\" of it"'), encoding="utf-8")
    plant("strict", lambda answer: f'{{"reason": "", "right": {number(answer) % 2}}}')
    mm.judge(run, model="judge/strict", rubric=rubric)
    plan = mm.plan_ratings([run], budget=5, out=tmp_path / "queue", rubric=rubric)
    assert plan.workflow is not None
    workflow = read_workflow(plan.workflow)
    (field,) = workflow.fields
    assert (field.id, field.low, field.high) == ("right", 0, 1)
    assert '"all" of it' in field.label.en
    path = annotate(plan.queue, lambda said: {"right": number(said) % 2})
    (done,) = mm.judge(run, model="judge/strict", rubric=rubric, people=path)
    assert done.estimates[0].found.rated == 5


def test_the_workflow_asks_what_the_rubric_asks() -> None:
    fields = {one.id: one for one in read_workflow("rate-answers").fields}
    for one in built_in_rubric().dimensions:
        assert (fields[one.id].low, fields[one.id].high) == (one.low, one.high)
        assert fields[one.id].label.en.lower().startswith(one.question)


@pytest.mark.slow
def test_a_plan_needs_marks_and_a_budget(run: mm.Run, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    line = shell.refused("judge", "plan", run.folder, "--budget", "6")
    assert "no judge has rated" in line
    assert shell.run("judge", run.folder, "--model", "baseline/random").code == 0
    ran = shell.run("judge", "plan", run.folder, "--budget", "6")
    assert "next: memantics annotate open ratings" in ran.out
    assert "all answers have the same probability (0.50)" in ran.out
