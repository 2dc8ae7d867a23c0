"""The papers' tables as data: they belong to tasks and options that exist, and are judged."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from memantics.benchmarks.published import PublishedRow, read_published
from memantics.benchmarks.registry import Benchmark, TaskRef, find_benchmarks
from memantics.core.errors import DataError
from memantics.core.records import Outcome
from memantics.metrics.feasibility import Claims, find_violations

BENCHMARKS = find_benchmarks()
OURS = ("mquest", "memeintent", "toxicn_mm", "mer_bench", "punmemecn")
ROWS = {
    name: read_published(benchmark.folder / "expected" / "published.json")
    for name, benchmark in BENCHMARKS.items()
}
MACRO = {"macro_f1", "macro_precision", "macro_recall"}


@pytest.fixture(params=BENCHMARKS)
def benchmark(request: pytest.FixtureRequest) -> Benchmark:
    return BENCHMARKS[request.param]


@pytest.mark.parametrize("name", OURS)
def test_every_paper_has_its_tables(name: str) -> None:
    assert ROWS[name]


def test_rows_belong_to_tasks_options_and_splits_that_exist(benchmark: Benchmark) -> None:
    for row in ROWS[benchmark.card.name]:
        card = benchmark.card.find_task(row.task)
        options = {option.name: option for option in card.option}
        for name, value in row.options.items():
            assert name in options, f"{row.task}: option {name}"
            assert value in (options[name].choices or (value,)), f"{row.task}: {name}={value}"
        assert row.split in ("", *card.splits)
        assert row.source


@pytest.mark.slow
def test_a_row_has_metrics_that_the_task_has_too(benchmark: Benchmark) -> None:
    """At least one: some figures need a model on disk, or a view of the data."""
    for task, own in Counter(row.task for row in ROWS[benchmark.card.name]).items():
        ref = TaskRef(benchmark, benchmark.card.find_task(task))
        made = ref.make({}, ref.card.splits[0], benchmark.sample(), None)
        scores = made.score([Outcome(item, "answered", item.gold) for item in made.items()])
        keys = {score.key for score in scores}
        rows = [row for row in ROWS[benchmark.card.name] if row.task == task]
        assert len(rows) == own
        for row in rows:
            assert keys & {score.key for score in row.scores}, (row.system, sorted(keys))


def test_rows_are_flagged_exactly_where_the_checker_objects(benchmark: Benchmark) -> None:
    for row in ROWS[benchmark.card.name]:
        claims = Claims(row.digits, row.sizes, row.parts, row.classes)
        found = find_violations(row.metrics, claims)
        assert row.reason == "; ".join(found)
        checked = row.sizes or row.parts or row.classes or row.metrics.keys() >= MACRO
        assert row.feasible == ((not found) if checked else None), row.system


def test_metrics_lie_on_our_scale_with_the_printed_digits(benchmark: Benchmark) -> None:
    for row in ROWS[benchmark.card.name]:
        for value in row.metrics.values():
            assert 0 <= value <= 1
            assert round(value, row.digits) == value


def test_what_cannot_be_true_is_flagged() -> None:
    infeasible = {
        name: Counter(row.task for row in rows if row.feasible is False)
        for name, rows in ROWS.items()
        if any(row.feasible is False for row in rows)
    }
    assert infeasible == {"toxicn_mm": {"detection": 2, "type": 1}, "mquest": {"qa": 8}}


def make_row(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "task": "qa",
        "system": "x",
        "metrics": {"accuracy": 0.5},
        "digits": 2,
        "source": "Table 1",
        "feasible": None,
    }
    return row | changes


def test_no_file_is_no_rows(tmp_path: Path) -> None:
    assert read_published(tmp_path / "published.json") == ()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (make_row(value=1), "value"),
        (make_row(metrics={}), "metrics"),
        (make_row(metrics={"accuracy[a": 1.0}), "neither NAME nor"),
        (
            make_row(feasible=False),
            "a row with feasible = false needs a reason, and other rows must not have one",
        ),
        (
            make_row(reason="because"),
            "a row with feasible = false needs a reason, and other rows must not have one",
        ),
    ],
)
def test_a_row_that_is_not_right_is_refused(
    tmp_path: Path, row: dict[str, object], words: str
) -> None:
    path = tmp_path / "published.json"
    path.write_text(json.dumps([row]), encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_published(path)


def test_a_row_fits_runs_that_were_asked_alike() -> None:
    row = PublishedRow.model_validate(make_row(options={"input": "text"}, split="test"))
    assert row.fits({"input": "text", "language": "en"}, "test")
    assert not row.fits({"input": "captions"}, "test")
    assert not row.fits({"input": "text"}, "train")
    assert PublishedRow.model_validate(make_row()).fits({}, "train")
