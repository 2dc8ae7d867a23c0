"""The human evaluation: thirty memes, blind, repeatable."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import memantics as mm
from memantics.benchmarks.memeintent.humans import export_human_evaluation
from memantics.core.errors import DataError, InputError, StoreError
from memantics.core.queue import (
    ITEMS,
    AggregatedAnnotation,
    IndividualAnnotation,
    read_queue,
    write_annotations,
)
from memantics.evaluation.human_eval import (
    HumanScores,
    Rated,
    RatingContrast,
    score_human_eval,
    score_ratings,
)
from memantics.metrics.agreement import spearman, spearman_span
from tests.commands import Shell
from tests.runs import write_run


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    answers = {str(n): f"the meme says {n}" for n in range(1, 41)}
    return [
        write_run(
            tmp_path / name,
            "memeintent/intent",
            {key: f"{text} {name}" for key, text in answers.items() if key != skipped},
            model=f"openai/{name}",
            options={"background": name},
        )
        for name, skipped in (("none", "7"), ("auto", "8"), ("human", "9"))
    ]


def test_thirty_memes_times_settings(runs: list[Path], tmp_path: Path) -> None:
    done = export_human_evaluation(runs, tmp_path / "out", seed=4)
    card, queue = read_queue(done.queue)
    assert card.workflow == "rate-outputs"
    assert (done.memes, done.settings, done.rows) == (30, 3, 90)
    assert len(queue) == len(lines(done.key)) == 90
    assert set(Counter(item.group for item in queue).values()) == {3}
    assert not {"7", "8", "9"} & {item.group for item in queue}


def test_the_queue_is_blind_and_the_key_opens_it(runs: list[Path], tmp_path: Path) -> None:
    done = export_human_evaluation(runs, tmp_path / "out", seed=4)
    text = (done.queue / "items.jsonl").read_text(encoding="utf-8")
    assert "openai" not in text
    assert "options" not in text
    key = {row["id"]: row for row in lines(done.key)}
    _, queue = read_queue(done.queue)
    for item in queue:
        (output,) = (own.value for own in item.shown if own.label == "Output")
        assert str(output).endswith(key[item.id]["options"]["background"])
    # Settings do not come in blocks or in turn.
    order = [key[item.id]["model"] for item in queue]
    assert order[:3] * 30 != order
    assert len(set(order[:30])) == 3


def test_the_seed_decides_and_nothing_else(runs: list[Path], tmp_path: Path) -> None:
    first, again, other = (
        (export_human_evaluation(runs, tmp_path / name, seed=seed).queue / ITEMS).read_bytes()
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again != other


def test_what_was_handed_out_is_never_overwritten(runs: list[Path], tmp_path: Path) -> None:
    export_human_evaluation(runs, tmp_path / "out")
    with pytest.raises(StoreError, match="already exists"):
        export_human_evaluation(runs, tmp_path / "out")


def test_runs_that_do_not_fit_are_refused(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run"):
        export_human_evaluation([], tmp_path / "out")
    with pytest.raises(InputError, match="twice"):
        export_human_evaluation([runs[0], runs[0]], tmp_path / "out")
    other = write_run(tmp_path / "other", "memeintent/caption", {"1": "a cat"})
    with pytest.raises(InputError, match="memeintent/caption"):
        export_human_evaluation([other], tmp_path / "out")
    strange = write_run(tmp_path / "strange", "memeintent/intent", {"x": "a"}, checksum="else")
    with pytest.raises(InputError, match="different data"):
        export_human_evaluation([runs[0], strange], tmp_path / "out")


def test_few_shared_memes_are_all_taken(runs: list[Path], tmp_path: Path) -> None:
    assert export_human_evaluation(runs[:1], tmp_path / "out", memes=50).memes == 39


def rate(folder: Path, points: dict[str, int]) -> None:
    """Two people; the second is one point harder on every third reply."""
    key = {row["id"]: row for row in lines(folder / "key.jsonl")}
    _, queue = read_queue(folder / "queue")
    annotations = []
    for place, item in enumerate(queue):
        value = points[key[item.id]["options"]["background"]] + int(item.group) % 2
        votes = [
            IndividualAnnotation(
                annotator=person,
                stage="rate",
                values={"correctness": value - less, "relevance": 5 - less, "note": "text"},
            )
            for person, less in (("p1", 0), ("p2", int(place % 3 == 0)))
        ]
        annotations.append(
            AggregatedAnnotation(
                item=item.id,
                group=item.group,
                workflow="rate-outputs",
                kept=True,
                values={"correctness": value},
                annotations=votes,
            )
        )
    write_annotations(folder / "queue" / "annotations.jsonl", annotations)


def find_pair(found: HumanScores, *levels: str) -> RatingContrast:
    return next(
        own
        for own in found.contrasts
        if all(any(level in name for name in (own.first, own.second)) for level in levels)
    )


@pytest.fixture
def rated(runs: list[Path], tmp_path: Path) -> Path:
    export_human_evaluation(runs, tmp_path / "out", seed=4)
    rate(tmp_path / "out", {"none": 2, "auto": 2, "human": 4})
    return tmp_path / "out"


def test_from_ratings_to_means_tests_and_agreement(rated: Path) -> None:
    found = score_human_eval(rated)
    assert (found.replies, found.memes, found.people) == (90, 30, 2)
    means = {one.setting: one.find("correctness") for one in found.settings}
    human = next(score for name, score in means.items() if "background=human" in name)
    assert human is not None
    assert human.value == pytest.approx(4.5, abs=0.4)
    assert human.low is not None
    assert human.low < (human.value or 0) < (human.high or 0)
    tests = {(own.scale, own.first, own.second): own for own in found.contrasts}
    assert len(tests) == 6, "three pairs on two scales"
    pair = find_pair(found, "auto", "human")
    assert abs(pair.difference) == pytest.approx(2, abs=0.3)
    assert pair.corrected is not None
    assert pair.corrected < 0.01
    equal = find_pair(found, "none", "auto")
    assert equal.corrected is not None
    assert equal.corrected > 0.05
    alphas = {own.key: own for own in found.agreement if "alpha" in own.label}
    assert alphas["correctness"].value is not None
    assert 0.5 < alphas["correctness"].value < 1
    assert alphas["correctness"].n == 90
    assert not found.correlations, "metrics need the runs"


def test_metrics_are_compared_with_people(rated: Path, runs: list[Path]) -> None:
    found = score_human_eval(rated, runs)
    over = {(own.metric, own.scale, own.over): own for own in found.correlations}
    replies = over["rouge_l", "correctness", "replies"]
    assert replies.n == 90
    assert over["rouge_l", "correctness", "settings"].n == 3
    assert len(found.metric_table().rows) == len(found.correlations)
    with pytest.raises(InputError, match="is not part of this export"):
        score_human_eval(rated, [rated])


def test_what_cannot_be_scored_is_refused(rated: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"key\.jsonl does not exist"):
        score_human_eval(tmp_path)
    with pytest.raises(InputError, match="no annotations"):
        score_human_eval(rated, annotations=tmp_path / "none.jsonl")
    other = AggregatedAnnotation(
        item="r9999", group="1", workflow="rate-outputs", kept=True, values={}
    )
    write_annotations(tmp_path / "other.jsonl", [other])
    with pytest.raises(DataError, match="not in the key"):
        score_human_eval(rated, annotations=tmp_path / "other.jsonl")
    first = lines(rated / "key.jsonl")[0]["id"]
    silent = AggregatedAnnotation(
        item=first, group="1", workflow="rate-outputs", kept=True, values={}
    )
    write_annotations(tmp_path / "silent.jsonl", [silent])
    with pytest.raises(DataError, match="has no ratings"):
        score_human_eval(rated, annotations=tmp_path / "silent.jsonl")


@pytest.mark.slow
def test_the_command_shows_all_tables(rated: Path, runs: list[Path], tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = shell.done("human-eval", "score", rated, *runs)
    for words in (
        "90 replies to 30 memes",
        "Holm",
        "Krippendorff",
        "Correlation of metrics with human ratings",
    ):
        assert words in told
    assert json.loads(shell.done("human-eval", "score", rated, "--json"))["people"] == 2
    told = shell.done("human-eval", "export", *runs, "--out", "again")
    assert "90 ratings of 30 memes" in told


def test_one_meme_and_one_person_give_means_and_no_tests() -> None:
    rated = [Rated("1", name, {"correctness": {"p": 3.0}}, {}) for name in ("a", "b")]
    found = score_ratings(rated)
    assert [own.scores[0].value for own in found.settings] == [3.0, 3.0]
    assert [(own.p, own.corrected, own.t_paired) for own in found.contrasts] == [(None,) * 3]
    assert {own.value for own in found.agreement} == {None}
    assert score_ratings([]).settings == ()


def test_spearman_is_scipy_s() -> None:
    first, second = [1.0, 2.0, 2.0, 5.0, 4.0, 0.5], [2.0, 1.0, 3.0, 6.0, 6.0, 0.0]
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    assert spearman(first[:2], second[:2]) is None
    assert spearman_span(first[:2], second[:2], ["a", "b"]) is None
    span = spearman_span(first, second, list(range(6)))
    assert span is not None
    assert span[0] <= span[1] <= 1.0


@pytest.mark.slow
def test_judged_runs_have_corrected_means_of_all_replies(rated: Path, runs: list[Path]) -> None:
    assert score_human_eval(rated, runs).corrected == ()
    mm.judge(runs[2], model="baseline/random", image=False)
    found = score_human_eval(rated, runs).corrected
    (one,) = (score for score in found if score.key == "correctness")
    assert "background=human" in one.label
    assert one.n == 39
    assert "baseline/random, corrected with ratings of 30 outputs" in one.note
    assert one.value == pytest.approx(4.5, abs=0.4)
    assert one.low is not None
    assert one.value is not None
    assert one.low < one.value
