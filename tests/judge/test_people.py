"""Scores of judges that people's ratings correct: values, intervals, rubrics, runs, refusals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest

import memantics as mm
from memantics.core.errors import DataError, InputError
from memantics.core.records import STATUSES, Outcome
from memantics.core.rundir import read_items
from memantics.evaluation.judging.estimates import estimate_run
from memantics.evaluation.judging.open_items import find_open_items
from memantics.evaluation.judging.people import read_people
from memantics.evaluation.judging.rubrics import built_in_rubric, open_rubric
from memantics.evaluation.rubric import read_setups
from memantics.metrics.prediction_powered import RatedItems, estimate_mean
from tests.judge.conftest import MEMES, Scripted
from tests.judge.test_judge import number, say

Plant = Callable[..., Scripted]
BINARY = """
name = "helpful"
[[dimension]]
id = "right"
question = "Does the answer state the author's intent?"
[dimension.levels]
0 = "no, or only in part"
1 = "yes"
"""


def names(run: mm.Run) -> list[str]:
    return [line.item.id for line in read_items(run.folder)]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return path


def test_ratings_correct_the_score_of_a_lenient_judge(
    run: mm.Run, plant: Plant, tmp_path: Path
) -> None:
    plant("kind", lambda answer: say(3 + number(answer) % 3, 5))
    items = names(run)
    rows: list[dict[str, object]] = [
        {"item": name, "correctness": 1 + n % 3, "coverage": 5} for n, name in enumerate(items[:8])
    ]
    (done,) = mm.judge(run, model="judge/kind", people=write(tmp_path / "r.jsonl", rows))
    one = done.estimates[0]
    marks = [3.0 + n % 3 for n in range(MEMES)]
    ratings = [1.0 + n % 3 if n < 8 else math.nan for n in range(MEMES)]
    found = estimate_mean(RatedItems(marks, ratings, range(MEMES), (1.0, 5.0)))
    assert found is not None
    assert one.found == found
    assert one.found.judge.value == pytest.approx(np.mean(marks))
    assert one.found.powered.value == pytest.approx(np.mean(marks) - 2, abs=0.2)
    score = done.run.scores["judge_correctness_corrected"]
    assert (score.value, score.low, score.high) == (
        found.powered.value,
        found.powered.low,
        found.powered.high,
    )
    sentence = one.sentence()
    assert f"{found.powered.value:.2f} ± " in sentence
    assert "by judge/kind, corrected with 8 human ratings of 8 answers" in sentence
    assert any("30 memes" in note for note in done.notes())
    # The corrected score survives scoring again, and the marks keep what they depend on.
    assert mm.score(run).scores["judge_correctness_corrected"] == score
    (setup,) = read_setups(run.folder)
    assert (setup.name, setup.prompt) == ("judge/kind", built_in_rubric().prompt.hash)


def test_a_quoted_score_names_the_replies_that_it_leaves_out(run: mm.Run, tmp_path: Path) -> None:
    outcomes = [Outcome(line.item, "answered", "a reply") for line in read_items(run.folder)]
    rows: list[dict[str, object]] = [
        {"item": o.item.id, "correctness": 1 + n % 3, "coverage": 5} for n, o in enumerate(outcomes)
    ]
    people = read_people(write(tmp_path / "r.jsonl", rows), built_in_rubric(), [run.folder])
    marks = {"judge/kind": {o.item.id: 3.0 for o in outcomes}}
    quality = built_in_rubric().dimensions[0]
    (whole,) = estimate_run("m", outcomes, marks, people, quality)
    assert (whole.invalid, "without" in whole.sentence()) == (0, False)
    for place, status in enumerate(STATUSES[1:]):
        outcomes[place] = dataclasses.replace(outcomes[place], status=status, value=None)
    (rest,) = estimate_run("m", outcomes, marks, people, quality)
    assert rest.invalid == 3
    assert (
        f"; without 3 of {MEMES} replies that were refused, unparsed or failed)" in rest.sentence()
    )
    assert "without 3 invalid replies" in rest.score().note


def test_an_earlier_judged_run_is_still_read(run: mm.Run, plant: Plant) -> None:
    plant("kind", lambda _: say(4, 4))
    (done,) = mm.judge(run, model="judge/kind")
    path = run.folder / "judged.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes())["scores"]))
    assert read_setups(run.folder) == ()
    score = mm.score(run).scores["judge_correctness"]
    assert score == done.run.scores["judge_correctness"]


def test_a_binary_rubric_of_ones_own(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    path = tmp_path / "rubric.toml"
    path.write_text(BINARY, encoding="utf-8")
    judge = plant(
        "strict", lambda answer: orjson.dumps({"reason": "", "right": number(answer) % 2}).decode()
    )
    rows: list[dict[str, object]] = [
        {"item": name, "right": n % 2} for n, name in enumerate(names(run)[:6])
    ]
    (done,) = mm.judge(
        run, model="judge/strict", rubric=path, people=write(tmp_path / "r.jsonl", rows)
    )
    assert done.run.scores["judge_right"].value == 0.5
    assert done.estimates[0].found.powered.value == pytest.approx(0.5)
    assert done.estimates[0].found.powered.high is not None
    assert done.estimates[0].found.powered.high <= 1.0
    text = next(part for part in judge.requests[0].messages[0].parts if isinstance(part, str))
    assert "0 no, or only in part" in text
    assert '"right": 0 to 1' in text
    # Marks by another rubric are other marks: the judge is asked again for each answer.
    before = len(judge.requests)
    mm.judge(run, model="judge/strict", rubric=path)
    assert len(judge.requests) == before


def test_differences_between_models_are_paired(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    other = mm.evaluate(
        "memeintent/intent",
        "baseline/majority",
        out=tmp_path / "runs",
        settings=mm.EvaluationSettings(limit=MEMES),
    )
    plant("kind", lambda answer: say(2, 2) if "the meme says" in answer else say(4, 4))
    rows: list[dict[str, object]] = [
        {"item": name, "run": one.name, "correctness": value, "coverage": value}
        for one, value in ((run, 1), (other, 3))
        for name in names(run)[:6]
    ]
    path = write(tmp_path / "r.jsonl", rows)
    first, second = mm.judge([run, other], model="judge/kind", people=path)
    assert first.differences == ()
    difference = second.differences[0]
    assert difference.found.powered.value == pytest.approx(2.0)
    assert (difference.ratings, difference.found.rated) == (12, 6)
    assert difference.sentence().startswith("difference in correctness, baseline/majority minus")
    assert "+2.00 ± " in difference.sentence()


def test_several_judges_and_several_people(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    plant("one", lambda answer: say(1 + number(answer) % 5, 3))
    plant("two", lambda answer: say(5 - number(answer) % 5, 3))
    rows: list[dict[str, object]] = [
        {"item": name, "annotator": who, "correctness": 1 + n % 5, "coverage": 3}
        for n, name in enumerate(names(run)[:10])
        for who in ("ann", "bo")
    ]
    path = write(tmp_path / "r.jsonl", rows)
    (done,) = mm.judge(run, model=["judge/one", "judge/two"], people=path)
    by = {one.judge: one for one in done.estimates if one.quality == "correctness"}
    assert list(by) == ["judge/one", "judge/two", "the mean of judge/one and judge/two"]
    assert by["judge/one"].found.weight > 0.1
    assert by["judge/two"].found.weight == 0  # adversarial
    assert by["judge/one"].ratings == 20
    assert any("people alone count" in n for n in by["judge/two"].notes())


def test_answers_that_the_rubric_leaves_open(tmp_path: Path) -> None:
    """Two people agree on six answers and differ on one; a third person rates at random."""
    rows: list[dict[str, object]] = []
    for n in range(7):
        apart = n == 6
        for who, value in (
            ("ann", 4),
            ("bo", 2 if apart else 4 + n % 2),
            ("cy", (1, 5, 1, 5, 1, 5, 5)[n]),
        ):
            rows.append({"item": f"i{n}", "annotator": who, "correctness": value, "coverage": 3})
    people = read_people(write(tmp_path / "r.jsonl", rows), built_in_rubric(), [])
    (found,) = find_open_items(people, built_in_rubric())
    assert (found.item, found.low, found.high, found.people) == ("i6", 2, 4, 2)
    assert found.low_sentence == "the topic is right, act and target are wrong"
    assert found.high_sentence == "the same act and target, imprecise in a detail"


def test_the_rubric_as_data_is_the_one_in_the_prompt() -> None:
    text = built_in_rubric().prompt.text
    for one in built_in_rubric().dimensions:
        assert f"{one.id}: {one.question}" in text
        for level, sentence in one.levels.items():
            assert f"{level} {sentence}" in text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("levels = 3", "levels"),
        ('[dimension.levels]\n1 = "a"\n4 = "b"', "consecutive"),
        ('[dimension.levels]\n1 = "a"', "levels"),
        ("= nothing", "not a TOML file"),
    ],
)
def test_a_faulty_rubric_is_refused(tmp_path: Path, change: str, told: str) -> None:
    path = tmp_path / "rubric.toml"
    head = 'name = "x"\n[[dimension]]\nid = "right"\nquestion = "?"\n'
    path.write_text(head + change, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        open_rubric(path)
    with pytest.raises(InputError, match="cannot be read"):
        open_rubric(tmp_path / "absent.toml")


def test_ratings_that_do_not_fit_are_refused(run: mm.Run, tmp_path: Path) -> None:
    rubric = built_in_rubric()
    good: dict[str, object] = {"item": "a", "correctness": 3, "coverage": 3}
    path = write(tmp_path / "r.jsonl", [good])
    with pytest.raises(InputError, match="which run each rating"):
        read_people(path, rubric, [run.folder, tmp_path / "other"])
    with pytest.raises(InputError, match="rates other runs: elsewhere"):
        read_people(write(path, [{**good, "run": "elsewhere"}]), rubric, [run.folder])
    with pytest.raises(DataError, match="probability '2'"):
        read_people(write(path, [{**good, "probability": 2}]), rubric, [run.folder])
    with pytest.raises(DataError, match="needs the columns item, correctness and coverage"):
        read_people(write(path, [{"item": "a"}]), rubric, [run.folder])
    mixed = read_people(
        write(path, [{**good, "probability": 0.5}, {**good, "item": "b", "probability": 0.4}]),
        rubric,
        [run.folder],
    )
    assert mixed.probabilities == {"a": 0.5, "b": 0.4}
    partly = read_people(
        write(
            path,
            [
                {**good, "probability": 0.5},
                {**good, "item": "b", "probability": 0.4},
                {**good, "item": "c"},
            ],
        ),
        rubric,
        [run.folder],
    )
    with pytest.raises(InputError, match="1 rated items have no probability"):
        _ = partly.probabilities
