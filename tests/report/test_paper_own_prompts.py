"""A run with its own prompts at another temperature is compared in no table of any paper.

Everything else agrees with the paper: the data count as its complete release, and every value has
the paper's number of items. With the paper's prompts and decoding, the same runs are compared.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import memantics as mm
from memantics.benchmarks.paper import Cell
from memantics.benchmarks.published import PublishedRow, read_published
from memantics.benchmarks.registry import find_benchmark
from memantics.core.data import Source
from memantics.core.rundir import read_facts, write_facts
from memantics.evaluation.datasets import add_release
from memantics.evaluation.paper import paper
from tests.places import SHARED_DATA, needs_shared_data
from tests.servers.fakes import Scripted, serving

NAMES = ("memeintent", "mer_bench", "mquest", "punmemecn", "toxicn_mm")
COMPARED = ("reproduced", "within interval", "differs")
# Tasks of each paper whose models have prompts, and a published system.
ASKED: dict[str, tuple[str, tuple[str, ...]]] = {
    "mquest": ("Qwen/Qwen2-VL-7B-Instruct", ("qa",)),
    "mer_bench": ("gemini-3-pro-preview", ("judge",)),
    "punmemecn": ("gpt-4o-2024-08-06", ("detection", "sentiment", "chat", "ocr", "pinyin")),
    "memeintent": ("llava-hf/llava-v1.6-mistral-7b-hf", ("intent", "background")),
    "toxicn_mm": ("gpt-4-vision-preview", ("detection", "type")),
}
OPTIONS: dict[str, dict[str, str]] = {"judge": {"view": "model"}}


def find_rows(name: str) -> tuple[PublishedRow, ...]:
    return read_published(find_benchmark(name).home / "expected" / "published.json")


@pytest.fixture
def _counts_as_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sample data count as the complete release, with the paper's numbers of items."""
    papers = sys.modules["memantics.evaluation.paper"]
    monkeypatch.setattr(Source, "official", property(lambda _: True))
    monkeypatch.setattr(papers, "_is_whole", lambda *_: True)
    monkeypatch.setattr(papers, "_find_prompts", lambda _: lambda facts: facts.prompts)
    monkeypatch.setattr(PublishedRow, "is_over", lambda *_: True)


def write_own_prompts(name: str, folder: Path) -> Path:
    """Every built-in prompt of a benchmark, preceded by a sentence of one's own."""
    own = folder / "own" / name
    own.mkdir(parents=True)
    for path in (find_benchmark(name).home / "prompts").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        (own / path.name).write_text(f"Ignore the image.\n\n{text}", encoding="utf-8")
    return own.parent


def run_all(name: str, folder: Path, own: Path) -> list[Path]:
    system, tasks = ASKED[name]
    runs = []
    with serving(Scripted(lambda _: "Answer: A")) as server:
        for task in tasks:
            done = mm.evaluate(
                f"{name}/{task}",
                f"openai/{system}",
                out=folder / task,
                settings=mm.EvaluationSettings(
                    data="sample", limit=8, options=OPTIONS.get(task, {}), prompts=own
                ),
                calls=mm.CallSettings(base_url=server.url, params={"temperature": 1.5}),
            )
            facts = read_facts(done.folder)
            assert facts.wording == f"own ({name})"
            assert facts.decoding["temperature"] == 1.5
            write_facts(done.folder, replace(facts, limit=None))
            runs.append(done.folder)
    return runs


def list_compared(name: str, runs: list[Path]) -> list[tuple[str, str, Cell]]:
    """Cells of runs that are compared with the paper, with their table and row."""
    folders = {str(run) for run in runs}
    return [
        (part.label, row.label, cell)
        for part in paper(name, runs, data="sample").parts
        for row in part.rows
        for cell in row.cells
        if cell.status in COMPARED and folders & set(cell.runs)
    ]


def ask_as_the_paper(name: str, run: Path) -> None:
    """Give a run the wording, options and decoding of its published row."""
    facts = read_facts(run)
    rows = [
        row
        for row in find_rows(name)
        if row.task == facts.task.rpartition("/")[2] and row.wording != "none"
    ]
    same = (row for row in rows if row.fits({**facts.options, "language": "zh"}, row.split))
    row = next(same, rows[0])
    options = {**facts.options, **row.options, **row.list_protocol()}
    changed = replace(facts, options=options, wording=row.wording, decoding=row.decoding or {})
    write_facts(run, replace(changed, split=row.split or facts.split))


@pytest.mark.slow
@pytest.mark.usefixtures("_counts_as_release")
@pytest.mark.parametrize("name", NAMES)
def test_a_run_with_its_own_prompts_is_compared_in_no_table(name: str, tmp_path: Path) -> None:
    runs = run_all(name, tmp_path, write_own_prompts(name, tmp_path))
    assert list_compared(name, runs) == []
    for run in runs:
        ask_as_the_paper(name, run)
    found = list_compared(name, runs)
    # The other papers' prompts were not released; the sample has no editor of MER-Bench's paper
    # (test_paper_rules.py has runs with its editors).
    assert bool(found) == (name in ("mquest", "punmemecn")), found
    for run in runs:  # the paper's prompts at another temperature
        facts = read_facts(run)
        write_facts(run, replace(facts, decoding={**facts.decoding, "temperature": 1.5}))
    assert list_compared(name, runs) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_published_row_names_its_wording(name: str) -> None:
    path = find_benchmark(name).home / "expected" / "published.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert rows
    assert all(row.get("wording") in ("official", "printed", "none") for row in rows)


@pytest.mark.slow
@needs_shared_data
@pytest.mark.parametrize("name", NAMES)
def test_printed_commands_carry_the_official_wording(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path))
    add_release(name, SHARED_DATA / name)
    parts = paper(name).parts
    commands = {c for part in parts for c in part.commands}
    official = {row.task for row in find_rows(name) if row.wording == "official"}
    for command in commands:
        assert "$" not in command, command
        assert ";" not in command, command
        asked = set(re.findall(rf"memantics run {name}(?:/(\w+))?", command)) & {*official, ""}
        if asked and official and "detector/" not in command:
            assert "--set wording=official" in command, command
    assert commands or name == "mquest"


@pytest.mark.slow
def test_every_run_on_a_page_is_shown_or_listed_as_left_out(tmp_path: Path) -> None:
    runs = []
    for place, (limit, options) in enumerate(
        ((4, {}), (5, {}), (4, {}), (4, {"order": "letter_only"}))
    ):
        settings = mm.EvaluationSettings(data="sample", limit=limit, options=options)
        done = mm.evaluate("mquest", "fake/keys", out=tmp_path / str(place), settings=settings)
        runs.append(done.folder)
    labels = {part.label for part in paper("mquest", data="sample").parts}
    for label in (None, *sorted(labels)):
        sheet = paper("mquest", runs, data="sample", parts=[label] if label else [])
        shown = {folder for part in sheet.parts for cell in part.cells for folder in cell.runs}
        shown |= {folder for part in sheet.parts for folder in part.runs}
        left = [line for line in sheet.about if line.startswith("Left out: ")]
        for run in runs:
            assert (str(run) in shown) != any(f" {run} " in line for line in left), (label, run)
    (part,) = paper("mquest", runs, data="sample", parts=["Table 2"]).parts
    assert sum(row.kind == "own" for row in part.rows) == 4, "each run has a row"
