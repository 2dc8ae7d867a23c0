"""Published rows beside runs: told apart, never ranked as ours, never on the sample data."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.benchmarks.published import PublishedRow
from memantics.core.rundir import write_facts
from memantics.evaluation.reports.leaderboard import make_boards, tell_fault
from memantics.evaluation.reports.page import (
    ReportSettings,
    build_report,
    make_section,
    render_page,
)
from memantics.evaluation.reports.runs import Run, load_runs
from memantics.evaluation.reports.tables import render_csv, render_json, render_markdown
from tests.commands import Shell
from tests.report.conftest import Opener
from tests.report.samples import make_facts, make_questions, write_demo, write_run
from tests.report.test_leaderboard import make_run

RELEASE: dict[str, JsonValue] = {"kind": "release", "checksum": "ab12" * 16, "records": 60}
REASON = "accuracy 0.9100 is not k/9 for any whole k; two more reasons"


def published(system: str, value: float | None, **changes: object) -> PublishedRow:
    row: dict[str, object] = {
        "task": "qa",
        "system": system,
        "metrics": {"macro": 0.5} | ({} if value is None else {"accuracy": value}),
        "digits": 4,
        "source": "Table 2",
        "note": "over questions that were not released",
        "feasible": None,
    }
    return PublishedRow.model_validate(row | changes)


ROWS = {
    "mquest/qa": (
        published("Paper VL", 0.91, feasible=False, reason=REASON, sizes={"accuracy": 609}),
        published("Small VL", 0.15),
        published("Silent VL", None),
        published("Other order", 0.6, options={"order": "answer"}),
    )
}


def board_rows(*runs: Run) -> list[str]:
    (board,) = make_boards(runs, ROWS)
    return [row.label for row in board.rows]


def test_published_rows_stand_among_runs_on_a_release() -> None:
    runs = make_run("a/x", 0.2, data=RELEASE), make_run("a/y", None, data=RELEASE)
    assert board_rows(*runs) == ["Paper VL", "a/x", "Small VL", "a/y", "Silent VL"]


def test_they_never_stand_on_sample_data_nor_beside_another_task() -> None:
    assert board_rows(make_run("a/x", 0.2)) == ["a/x"]
    other = make_run("a/x", 0.2, data=RELEASE)
    other = replace(other, facts=replace(other.facts, task="mquest/other"))
    assert board_rows(other) == ["a/x"]


def test_a_row_stands_only_beside_runs_that_were_asked_alike() -> None:
    run = make_run("a/x", 0.2, data=RELEASE, options={"order": "answer"})
    assert "Other order" in board_rows(run)
    split = {"mquest/qa": [published("Paper VL", 0.9, split="test")]}
    assert len(make_boards([run], split)[0].rows) == 1


def test_they_lead_nothing_and_add_no_metrics_of_their_own() -> None:
    rows = {"mquest/qa": [published("P", 0.9, metrics={"accuracy": 0.9, "f1[kind=T]": 0.4})]}
    (board,) = make_boards([make_run("a/x", 0.2, data=RELEASE)], rows)
    assert board.leader is not None
    assert board.leader.label == "a/x"
    assert board.metrics == ("accuracy", "macro")
    assert board.breakdowns == ()
    section = make_section(board)
    assert [line["n"] for line in section.metrics] == [10, 3]
    assert "n = 0" not in str(section.strips[0])


def test_names_are_told_apart_by_settings_then_by_number() -> None:
    twins = [published("P", 0.1), published("P", 0.2), published("P", 0.3, options={"order": "e"})]
    twins.append(published("a/x", 0.4))
    run = make_run("a/x", 0.5, data=RELEASE, options={"order": "e"})
    (board,) = make_boards([run], {"mquest/qa": twins})
    assert [row.label for row in board.rows] == ["a/x", "a/x (2)", "P · order=e", "P (2)", "P"]


@pytest.fixture
def release_runs(tmp_path: Path) -> list[Path]:
    items = make_questions(tmp_path / "images", 8)
    facts = make_facts("mquest/qa", "openai/x", data=RELEASE)
    return [write_run(tmp_path / "run", facts, items, [])]


def test_the_page_marks_them_and_says_why_one_cannot_be_true(release_runs: list[Path]) -> None:
    page = render_page(load_runs(release_runs), ReportSettings(images=False, published=ROWS))
    assert page.count('<tr role="row" class="published">') == 3
    assert "published, <bdi>Table 2</bdi>" in page
    assert (
        "impossible with the stated n: <bdi>accuracy 0.9100 is not k/9 for any whole k</bdi>"
        in page
    )
    assert "<li><bdi>two more reasons</bdi></li>" in page
    assert "they were not run here" in page
    plain = render_page(load_runs(release_runs), ReportSettings(images=False))
    assert "published" not in plain.split("</style>")[1]


def test_hostile_text_in_a_row_stays_text(release_runs: list[Path]) -> None:
    text = "<img src=x onerror=alert(1)>"
    row = published(text, 0.9, source=text, note=text, feasible=False, reason=text)
    page = render_page(
        load_runs(release_runs), ReportSettings(images=False, published={"mquest/qa": [row]})
    )
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


def test_tables_tell_source_and_flag(release_runs: list[Path]) -> None:
    runs = load_runs(release_runs)
    lines = list(csv.DictReader(io.StringIO(render_csv(runs, ROWS))))
    paper = [li for li in lines if li["model"] == "Paper VL" and li["metric"] == "accuracy"]
    assert [(li["published"], li["infeasible"], li["n"]) for li in paper] == [
        ("Table 2", REASON, "609")
    ]
    assert {li["n"] for li in lines if li["model"] == "Small VL"} == {""}
    assert {li["published"] for li in lines if li["model"] == "openai/x"} == {""}
    assert (
        f"Paper VL (published, Table 2; impossible with the stated n: {REASON})"
        in render_markdown(runs, ROWS)
    )
    (board,) = json.loads(render_json(runs, ROWS))["boards"]
    by_model = {row["model"]: row["published"] for row in board["rows"]}
    assert by_model["openai/x"] is None
    assert by_model["Paper VL"]["feasible"] is False


def test_a_narrow_page_with_them_does_not_scroll_sideways(
    release_runs: list[Path], tmp_path: Path, opener: Opener
) -> None:
    out = tmp_path / "report.html"
    build_report(release_runs, out, ReportSettings(published=ROWS))
    with opener(width=390) as watched:
        watched.page.goto(out.as_uri())
        watched.assert_quiet()
        width = watched.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


def test_the_command_shows_a_papers_rows_for_a_release_only(shell: Shell, tmp_path: Path) -> None:
    sample = write_demo(tmp_path / "demo")[0]
    said = shell.run("report", sample, "--format", "json")
    assert json.loads(said.out)["boards"][0]["rows"]
    assert "Qwen2.5-VL-7B-Instruct" not in said.out
    facts = replace(load_runs([sample])[0].facts, data=RELEASE)
    write_facts(sample, facts)
    rows = json.loads(shell.run("report", sample, "--format", "json").out)["boards"][0]["rows"]
    flagged = {
        row["model"] for row in rows if row["published"] and not row["published"]["feasible"]
    }
    assert len(flagged) == 8
    assert "Qwen2.5-VL-7B-Instruct" in flagged
    write_facts(sample, replace(facts, benchmark="gone", task="gone/qa"))
    assert shell.run("report", sample, "--format", "md").code == 0


@pytest.mark.parametrize(("f1", "fault"), [(0.3646, "impossible by arithmetic"), (0.3595, "")])
def test_a_row_that_contradicts_itself_needs_no_number_of_items(f1: float, fault: str) -> None:
    metrics = {"macro_f1": f1, "macro_precision": 0.3566, "macro_recall": 0.3623}
    reason = {"reason": "macro-F1 above the mean"} if fault else {}
    row = published("P", None, metrics=metrics, feasible=False if fault else None, **reason)
    assert tell_fault(row) == fault
