from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memantics.core.errors import InputError, StoreError
from memantics.core.records import Score
from memantics.core.rundir import BaselineScores, Scores, Usage, write_scores
from memantics.evaluation.reports.leaderboard import make_boards
from memantics.evaluation.reports.runs import Run, load_runs
from tests.report.samples import make_facts

COUNTS = {"answered": 8, "refused": 1, "unparsed": 1, "failed": 0}


def make_run(model: str, value: float | None, *baselines: BaselineScores, **changes: object) -> Run:
    facts = make_facts("mquest/qa", model, **changes)
    scores = (Score("accuracy", value, 10, 0.1, 0.9), Score("macro", 0.5, 3))
    folder = Path("runs") / model.replace("/", "-")
    return Run(folder, facts, Scores("accuracy", COUNTS, scores, baselines, Usage()))


def test_rows_are_sorted_and_undefined_metrics_come_last() -> None:
    (board,) = make_boards([make_run("a/x", 0.2), make_run("a/y", None), make_run("a/z", 0.8)])
    assert [row.label for row in board.rows] == ["a/z", "a/x", "a/y"]
    assert board.leader is board.rows[0]
    assert board.metrics == ("accuracy", "macro")


def test_baselines_appear_once_and_a_run_of_one_replaces_its_computed_twin() -> None:
    constant = BaselineScores("baseline/constant", (Score("accuracy", 0.25, 10),))
    longest = BaselineScores("baseline/longest", (Score("accuracy", 0.4, 10),))
    runs = [
        make_run("a/x", 0.7, constant, longest),
        make_run("a/y", 0.6, constant, longest),
        make_run("baseline/constant", 0.25, constant, longest),
    ]
    (board,) = make_boards(runs)
    assert [row.label for row in board.rows] == [
        "a/x",
        "a/y",
        "baseline/longest",
        "baseline/constant",
    ]
    assert [row.run for row in board.rows] == [0, 1, None, 2]
    assert board.best_baseline is board.rows[2]
    assert board.rows[2].counts is None
    assert board.rows[3].counts == COUNTS


def test_a_baseline_that_differs_between_runs_keeps_both_metrics() -> None:
    runs = [
        make_run("a/x", 0.7, BaselineScores("baseline/first", (Score("accuracy", 0.25, 10),))),
        make_run("a/y", 0.6, BaselineScores("baseline/first", (Score("accuracy", 0.35, 10),))),
    ]
    (board,) = make_boards(runs)
    trivial = [(row.label, row.value) for row in board.rows if row.trivial]
    assert trivial == [("baseline/first · a-y", 0.35), ("baseline/first", 0.25)]


def test_runs_on_other_questions_never_share_a_table() -> None:
    other = {"kind": "release", "checksum": "ff" * 32}
    boards = make_boards(
        [make_run("a/x", 0.1), make_run("a/x", 0.2, data=other), make_run("a/x", 0.3, limit=5)]
    )
    assert [board.slug for board in boards] == ["mquest-qa", "mquest-qa.2", "mquest-qa.3"]
    assert [board.sample for board in boards] == [True, False, True]


def test_namesakes_are_told_apart_by_options_then_by_folder() -> None:
    first = make_run("a/x", 0.1, options={"prompt": "1", "order": "x"})
    second = make_run("a/x", 0.2, options={"prompt": "2", "order": "x"})
    (board,) = make_boards([first, second])
    assert sorted(row.label for row in board.rows) == ["a/x · prompt=1", "a/x · prompt=2"]
    assert board.differences == ("options",)
    again = replace(first, folder=Path("runs/again"))
    (board,) = make_boards([first, again])
    assert sorted(row.label for row in board.rows) == ["a/x · a-x", "a/x · again"]


def test_a_task_without_its_benchmark_gets_it() -> None:
    run = make_run("a/x", 0.1)
    assert run.task == "mquest/qa"
    assert replace(run, facts=replace(run.facts, task="qa")).task == "mquest/qa"


def test_folders_are_read_once_and_wrong_ones_are_named(
    demo_runs: list[Path], tmp_path: Path
) -> None:
    assert len(load_runs([demo_runs[0], demo_runs[0] / ".." / demo_runs[0].name])) == 1
    with pytest.raises(InputError, match="no run directory"):
        load_runs([])
    with pytest.raises(StoreError, match="is not a run directory"):
        load_runs([tmp_path])


def test_a_run_without_scores_says_how_to_get_them(tmp_path: Path, demo_runs: list[Path]) -> None:
    (tmp_path / "run.json").write_bytes((demo_runs[0] / "run.json").read_bytes())
    with pytest.raises(StoreError, match="memantics score"):
        load_runs([tmp_path])
    write_scores(tmp_path, Scores("accuracy", COUNTS, ()))
    (board,) = make_boards(load_runs([tmp_path]))
    assert board.rows[0].value is None
    assert board.leader is None
