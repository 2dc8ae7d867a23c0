"""A redone paper: what a cell may claim, and the layout of every declared paper."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from memantics.benchmarks.paper import (
    Cell,
    PaperPart,
    PaperRow,
    PaperSheet,
    find_score,
    same_system,
    score_cell,
)
from memantics.benchmarks.registry import SAMPLE_IMAGES, find_benchmarks
from memantics.cli.annotate import FIRST
from memantics.cli.main import make_app
from memantics.core.errors import DataError, InputError
from memantics.core.records import Score
from memantics.evaluation.paper import _make_block, paper
from tests.commands import Shell
from tests.places import ROOT, SHARED_DATA, needs_shared_data

DECLARED = sorted(n for n, b in find_benchmarks().items() if (b.home / "paper.py").is_file())
GOLDEN = ROOT / "tests" / "golden"


def lay_out(sheet: PaperSheet) -> str:
    """The layout of a paper: its parts, their columns and rows."""
    lines = []
    for part in sheet.parts:
        lines.append(f"{part.label}: {part.caption}")
        lines += [f"  {part.stub} | {' | '.join(part.columns)}"] if part.rows else []
        lines += [f"    {row.section and row.section + ': '}{row.label}" for row in part.rows]
        lines += [f"  text: {text.heading}" for text in part.texts]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", DECLARED)
def test_the_layout_is_the_golden_one(name: str) -> None:
    path = GOLDEN / f"paper-{name}.txt"
    found = lay_out(paper(name, data="sample"))
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


@pytest.mark.parametrize("name", DECLARED)
def test_no_cell_claims_what_was_not_computed(name: str) -> None:
    """On the sample nothing is compared with the paper, and what is empty says what fills it."""
    sheet = paper(name, data="sample")
    cells = [cell for part in sheet.parts for cell in part.cells]
    assert cells
    for part in sheet.parts:
        assert all(len(row.cells) == len(part.columns) for row in part.rows), part.label
    for cell in cells:
        assert cell.status not in ("reproduced", "within interval", "differs")
        if cell.status == "empty":
            assert cell.fill.startswith("memantics ")
        assert cell.status != "closed" or cell.reason


@cache
def whole_app() -> Any:
    return typer.main.get_command(make_app(lazy=False))


def parse(words: str) -> tuple[str, set[str]]:
    """The command that words name, and the flags in them that it does not have."""
    own, rest = whole_app(), shlex.split(words)[1:]
    named: list[str] = []
    while rest and rest[0] in getattr(own, "commands", {}):
        own, named, rest = own.commands[rest[0]], [*named, rest[0]], rest[1:]
    if named == ["annotate"]:
        own = own.commands[FIRST]  # "annotate QUEUE" names no command
    known = {flag for each in own.params for flag in each.opts}
    return " ".join(named), {word for word in rest if word.startswith("--")} - known


@pytest.mark.parametrize("name", DECLARED)
def test_commands_that_fill_cells_exist(name: str) -> None:
    sheet = paper(name, data="sample")
    told = [command for part in sheet.parts for command in part.commands]
    told += [text.body for part in sheet.parts for text in part.texts]
    pieces = (own.strip() for words in told for own in re.split(r"\n|;|&&", words))
    commands = {own for own in pieces if own.startswith("memantics ")}
    assert commands or not told
    for own in commands:
        named, unknown = parse(own)
        assert named, own
        assert unknown == set(), own


@pytest.mark.parametrize("name", DECLARED)
def test_every_form_holds_every_table(name: str, tmp_path: Path) -> None:
    sheet = paper(name, data="sample")
    page = sheet.save(tmp_path / "p.html").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(sheet.render("csv"))))
    latex, markdown = sheet.render("latex"), sheet.render("md")
    for part in sheet.parts:
        assert f">{part.label}</h2>" in page
        assert f"## {part.label}: " in markdown
        shown = [cell for cell in part.cells if cell.status != "none"]
        assert len([row for row in rows if row["part"] == part.label]) == len(shown)
        assert not part.rows or f"\\caption{{{part.label}. " in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}")
    assert json.loads(sheet.render("json"))["counts"] == sheet.counts


@pytest.mark.parametrize(
    ("cell", "status"),
    [
        (Cell(50.0, 50.04, digits=1), "reproduced"),
        (Cell(50.0, 49.94, digits=1), "differs"),
        (Cell(50.0, 50.09, digits=1), "reproduced"),  # truncated
        (Cell(50.0, 50.1, digits=1), "differs"),
        (Cell(50.0, 52.0, 50.0, 54.0, digits=1), "within interval"),
        (Cell(50.0, 52.0, 50.1, 54.0, digits=1), "differs"),
        (Cell(54.0, 52.0, 50.1, 54.0, digits=1), "within interval"),
        (Cell(50.0, 50.0, compared=False), "computed"),
        (Cell(None, 50.0), "computed"),
        (Cell(50.0, 50.0, arithmetic=True), "arithmetic"),
        (Cell(50.0, 50.0, arithmetic=True, compared=False), "arithmetic"),
        (Cell(50.0, fill="memantics run"), "empty"),
        (Cell(50.0, fill="memantics run", reason="no"), "empty"),
        (Cell(50.0, reason="not released"), "closed"),
        (Cell(), "none"),
        (Cell(value=0), "computed"),
    ],
)
def test_what_a_cell_may_claim(cell: Cell, status: str) -> None:
    assert cell.status == status


def test_notes_of_rows_are_told_once_below_the_table() -> None:
    lost, other = Cell(1, 2, note="lost"), Cell(1, 2)
    rows = (
        PaperRow("a", (lost, lost), section="s"),
        PaperRow("b", (lost, Cell()), section="s"),
        PaperRow("c", (lost, other)),
        PaperRow("d", (other, other)),
        PaperRow("e", (replace(other, note="late"), Cell())),
    )
    assert PaperPart("T", "", ("x", "y"), rows).remarks == ("s (a, b): lost", "e: late")
    assert PaperPart("T", "", ("x", "y"), rows[:2]).remarks == ("lost",), "it holds for all rows"
    many = tuple(PaperRow(name, (lost,)) for name in "abcde")
    assert PaperPart("T", "", ("x",), (*many, rows[3])).remarks == ("a, b, 3 more rows: lost",)
    assert PaperPart("T", "", ("x",), (*many[1:], rows[3])).remarks == ("b, c, d, e: lost",)


def test_the_better_of_a_column_is_darker_and_equals_are_plain() -> None:
    values = (
        (0.0, 5.0, None),
        (25.0, 5.0, 1.0),
        (74.9, 5.0, 2.0),
        (75.0, 5.0, 3.0),
        (100.0, 5.0, 0),
    )
    rows = tuple(
        PaperRow(str(n), tuple(Cell(value=v) for v in own)) for n, own in enumerate(values)
    )
    part = PaperPart("T", "", ("a", "b", "c"), rows, shaded=True)
    shades = list(zip(*_make_block(1, part)["shades"], strict=True))
    assert shades[0] == ("shade1", "shade2", "shade3", "shade4", "shade4")
    assert set(shades[1]) == {""}
    assert shades[2][0] == ""
    assert set(_make_block(1, replace(part, shaded=False))["shades"]) == {("", "", "")}


def test_every_row_with_a_value_is_a_polygon() -> None:
    values = ((1.0, 2.0, None), (0.0, 0.0, 0.0), (None, None, None))
    rows = tuple(
        PaperRow(str(n), tuple(Cell(value=v) for v in own)) for n, own in enumerate(values)
    )
    part = PaperPart("F", "", ("north", "south <east>", "west"), rows, radar=True)
    drawn = dict(_make_block(1, part)["radars"])
    assert list(drawn) == ["0", "1"]
    assert "outer ring 2.00; north: 1.00; south &lt;east&gt;: 2.00; west: –" in drawn["0"]
    # North stands at half of the radius of 66, upwards from the middle (150, 92).
    assert 'class="area" points="150.0,59.0 ' in drawn["0"]
    assert 'class="area" points="150.0,92.0 150.0,92.0 150.0,92.0"' in drawn["1"]


def test_a_table_of_statements_shows_them_plainly() -> None:
    """MER-Bench's Table I speaks of other data sets: nothing of it could be computed."""
    sheet = paper("mer_bench", data="sample")
    first, other = sheet.parts[0], sheet.parts[7]
    assert (first.label, first.stated, other.stated) == ("Table I", True, False)
    assert PaperPart("", "").stated is False
    page = sheet.render()
    table = page[page.index('id="part-1"') : page.index('id="part-2"')]
    assert "badge" not in table
    assert '<td class="number quiet">Image-Text</td>' in table


def test_scores_are_found_by_name_and_part() -> None:
    scores = [Score("f1", 0.25, 8), Score("f1", 0.5, 4, by="type", label="sexual")]
    whole, part = find_score(scores, "f1"), find_score(scores, "f1[type=sexual]")
    assert whole is not None
    assert whole.n == 8
    assert part is not None
    assert part.n == 4
    assert find_score(scores, "f1[type=other]") is None
    assert score_cell(None).status == "none"
    assert score_cell(Score("f1", None, 0)).value is None
    assert score_cell(whole, 1).value == 25


@pytest.mark.parametrize(
    ("model", "system", "same"),
    [
        ("openai/Qwen/Qwen2-VL-7B-Instruct", "Qwen2-VL-7B-Instruct", True),
        ("local/models/qwen2_vl_7b_instruct", "Qwen2-VL-7B-Instruct", True),
        ("openai/Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2-VL-7B-Instruct", False),
        ("openai/gpt-4o-mini", "GPT-4o", False),
    ],
)
def test_a_system_is_known_by_its_name(model: str, system: str, same: bool) -> None:
    assert same_system(model, system) is same


def ask(shell: Shell, task: str, model: str) -> Path:
    ran = shell.run("run", task, "--data", "sample", "-m", model, "--json")
    assert ran.code == 0, ran
    [result] = json.loads(ran.out)
    return shell.folder / str(result["folder"])


@pytest.mark.slow
def test_runs_verdicts_and_traits_fill_the_page(shell: Shell) -> None:
    runs = [ask(shell, "mquest", model) for model in ("fake/keys", "baseline/longest")]
    traits = shell.folder / "traits.csv"
    traits.write_text("model,size\nfake/keys,small\nbaseline/longest,none\n", encoding="utf-8")
    sheet = paper("mquest", runs, data="sample", traits=traits)
    parts = {part.label: part for part in sheet.parts}
    rows = {row.label: row for row in parts["Table 2"].rows}
    accuracy = rows["fake/keys"].cells[0]
    assert (rows["fake/keys"].kind, accuracy.status, accuracy.n) == ("own", "computed", 72)
    assert [row.label for row in parts["Table 2"].rows].count("baseline/longest") == 1
    assert rows["BLIP2-Flan-T5-xl"].cells[0].status == "empty"
    assert parts["Figure 2"].columns == ("fake/keys", "baseline/longest")
    assert len(parts["Figure 3"].texts) == 3
    grouped = {row.section: row for row in parts["Table 2 by model traits"].rows}
    assert grouped["size: small"].cells[0].value == accuracy.value
    shown = shell.run("paper", "mquest", *runs, "--data", "sample", "--out", "p.html")
    assert shown.code == 0
    assert "paper: p.html" in shown.out
    printed = shell.run("paper", "mquest", "--data", "sample", "--format", "csv")
    assert printed.out.startswith("part,section,row,kind,column,paper,released,value")


def test_a_run_of_another_benchmark_is_refused(shell: Shell) -> None:
    run = ask(shell, "toxicn_mm/detection", "baseline/majority")
    with pytest.raises(InputError, match="is a run of toxicn_mm, not of mquest"):
        paper("mquest", run, data="sample")


def test_bad_tables_of_traits_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "traits.csv"
    for text in ("model,size\n", "model\nx\n", "model,size\nx\n", "model,size\nx,1,2\n"):
        table.write_text(text, encoding="utf-8")
        with pytest.raises(DataError):
            paper("mquest", data="sample", traits=table)
    with pytest.raises(InputError, match="no such file"):
        paper("mquest", data="sample", annotations=tmp_path / "nowhere.jsonl")


@pytest.mark.slow
def test_a_published_benchmark_has_its_familys_tables(shell: Shell) -> None:
    for words in (
        ("build", "knowledge", "sample", "--model", "fake/builder", "--limit", "6"),
        ("build", "questions", "builds/sample", "--model", "fake/builder"),
        ("publish", "builds/sample", "--name", "ours", "--licence", "CC0-1.0", "--unreviewed"),
    ):
        ran = shell.run(*words)
        assert ran.code == 0, ran
    stats = json.loads(shell.run("data", "stats", "ours", "--json").out)
    assert {row["verdict"] for row in stats["statistics"]} <= {"no reference", "not recomputable"}
    assert not [row for row in stats["statistics"] if row["key"].startswith("arithmetic.")]
    assert not [note for note in stats["found"]["notes"] if "of the release's" in note]
    assert {row["key"]: row["value"] for row in stats["statistics"]}["memes"] == 6
    sheet = paper("ours")
    assert "in the tables of M-QUEST" in sheet.title
    table = next(part for part in sheet.parts if part.label == "Table 1")
    whole = next(row for row in table.rows if row.label == "M-Quest")
    assert (whole.cells[10].paper, whole.cells[10].value) == (307, 6)
    assert {cell.status for row in table.rows for cell in row.cells} <= {
        "computed",
        "empty",
        "none",
    }


@pytest.mark.slow
@needs_shared_data
def test_the_released_part_with_two_models_leaves_only_published_systems_empty(
    shell: Shell, tmp_path: Path
) -> None:
    """Images are not in the part: any picture does for models that do not look."""
    images = tmp_path / "images"
    images.mkdir()
    picture = (SAMPLE_IMAGES / "en-001.png").read_bytes()
    for folder in (SHARED_DATA / "mquest" / "qa").iterdir():
        (images / f"{folder.name.removesuffix('_qa')}.png").write_bytes(picture)
    words = ("data", "add", "mquest", SHARED_DATA / "mquest", "--images", images)
    assert shell.run(*words).code == 0
    runs = []
    for model in ("fake/keys", "baseline/longest"):
        ran = shell.run("run", "mquest", "--split", "toxmquest350", "-m", model, "--json")
        assert ran.code == 0, ran
        runs.append(shell.folder / str(json.loads(ran.out)[0]["folder"]))
    sheet = paper("mquest", runs)
    parts = {part.label: part for part in sheet.parts}
    own = [row for row in parts["Table 2"].rows if row.kind == "own"]
    assert [row.label for row in own] == ["fake/keys", "baseline/longest"]
    assert all(cell.value is not None and cell.n for row in own for cell in row.cells)
    empty = {
        (part.label, row.label)
        for part in sheet.parts
        for row in part.rows
        if any(cell.status == "empty" for cell in row.cells)
    }
    systems = {("Table 2", row.label) for row in parts["Table 2"].rows if row.kind == "paper"}
    judged = {("Figure 5", row.label) for row in parts["Figure 5"].rows}
    lacking = {row for row in empty if row[0] == "Further statistics"}
    assert empty <= systems | judged | lacking
    assert all("file" in label.casefold() for _, label in lacking), lacking
    toxic = parts["Table 1"].rows[0]
    assert toxic.cells[0].status == "computed"  # 200 of 1,000 memes: not compared


@pytest.mark.slow
@needs_shared_data
def test_metrics_of_the_paper_itself_are_never_called_reproduced(shell: Shell) -> None:
    added = shell.run("data", "add", "mquest", SHARED_DATA / "mquest")
    assert added.code == 0, added
    shown = json.loads(shell.run("data", "stats", "mquest", "--json").out)["statistics"]
    own = [row for row in shown if row["key"].startswith("arithmetic.")]
    assert len(own) == 14
    assert {row["verdict"] for row in own} == {"computed from the paper"}
    sheet = paper("mquest")
    [text] = [part for part in sheet.parts if part.label == "Values in the text"]
    status = {row.label: row.cells[0].status for row in text.rows}
    assert status["M-QUEST questions per meme"] == "arithmetic"
    # What is at hand is a part of the release: no value of it agrees or differs.
    assert status["Questions, Scene"] == "computed"
    assert any("not compared with the paper" in line for line in sheet.about)
    assert status["M-QUEST questions as released"] == "closed"
