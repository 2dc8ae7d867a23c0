from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from memantics.core.records import Score
from memantics.evaluation.reports.runs import SAMPLE_NOTE, Run, load_runs
from memantics.evaluation.reports.tables import render_csv, render_json, render_markdown, table

HOSTILE = "x|y\x1b[31m`<img src=x onerror=alert(1)>`\u202e[bold]"


def rename(run: Run, model: str) -> Run:
    return replace(run, facts=replace(run.facts, model=model))


def print_table(runs: tuple[Run, ...], width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(table(runs))
    return out.getvalue()


def test_terminal_table_fits_80_columns_and_says_it_is_a_sample(demo_runs: list[Path]) -> None:
    runs = load_runs(demo_runs)
    long = (rename(runs[0], "openai/some-very-long-model-name-VL-72B-Instruct"), *runs[1:])
    text = print_table(long)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.count(SAMPLE_NOTE) == 1
    for word in ("answered", "refused", "unparsed", "failed", "embedded/reader", "0.547–0.801"):
        assert word in text
    assert "0.7…" not in text


def test_terminal_table_shows_hostile_names_as_text(demo_runs: list[Path]) -> None:
    text = print_table((rename(load_runs(demo_runs[:1])[0], HOSTILE),), width=200)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in text


def test_terminal_table_marks_unfinished_runs(demo_runs: list[Path]) -> None:
    run = load_runs(demo_runs[:1])[0]
    text = print_table((replace(run, facts=replace(run.facts, finished="")),), width=120)
    assert "unfinished" in text


def test_markdown_is_tables_that_hold_their_columns(demo_runs: list[Path]) -> None:
    runs = load_runs(demo_runs)
    text = render_markdown((rename(runs[0], HOSTILE), *runs[1:]))
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert html.count("<table>") == 4
    assert "<img" not in html
    assert "\x1b" not in text
    assert text.count(SAMPLE_NOTE) == 2
    board = text.split("## ")[1]
    lines = [line.replace(r"\|", "") for line in board.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines[:6]} == {11}


def test_csv_has_a_line_per_metric_and_runs_no_formula(demo_runs: list[Path]) -> None:
    runs = load_runs(demo_runs)
    text = render_csv((rename(runs[0], '=cmd|"x"'), *runs[1:]))
    lines = list(csv.DictReader(io.StringIO(text)))
    assert {line["model"] for line in lines if line["task"] == "mquest/qa"} == {
        '\'=cmd|"x"',
        "embedded/reader",
        "baseline/constant",
        "baseline/longest",
    }
    scene = [li for li in lines if li["part"] == "Scene" and li["model"] == "embedded/reader"]
    assert [(li["metric"], li["by"], li["n"], li["data"]) for li in scene] == [
        ("accuracy", "dimension", "5", "sample")
    ]
    assert float(scene[0]["low"]) < float(scene[0]["value"]) < float(scene[0]["high"])


def test_csv_keeps_negative_numbers_numbers(demo_runs: list[Path]) -> None:
    run = load_runs(demo_runs[:1])[0]
    run = replace(
        run, results=replace(run.results, scores=(Score("kappa", -0.25, 9),), baselines=())
    )
    (line,) = csv.DictReader(io.StringIO(render_csv([run])))
    assert line["value"] == "-0.25"


@pytest.mark.slow
def test_json_holds_all_that_the_runs_hold(demo_runs: list[Path]) -> None:
    runs = load_runs(demo_runs)
    boards = json.loads(render_json(runs))["boards"]
    assert [board["task"] for board in boards] == ["mquest/qa", "punmemecn/detection"]
    assert boards[0]["notice"] == SAMPLE_NOTE
    row = boards[0]["rows"][0]
    assert row["counts"] == dict(runs[0].results.counts)
    assert len(row["scores"]) == len(runs[0].results.scores)
    assert boards[0]["runs"][0]["facts"]["fingerprint"] == runs[0].facts.fingerprint
