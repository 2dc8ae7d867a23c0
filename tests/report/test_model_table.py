"""Models × tasks: marks as an independent computation has them, and forms that can be set."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from statistics import fmean, pvariance

import pytest
from scipy import stats
from statsmodels.stats import (  # type: ignore[import-untyped,unused-ignore]
    contingency_tables,
    multitest,
)

import memantics as mm
from memantics.core.records import Outcome
from memantics.evaluation.report import render_table, tabulate_models
from memantics.evaluation.reports.model_table import (
    MetricCell,
    ModelRow,
    ModelTable,
    TaskColumn,
    render_csv_table,
    render_html_table,
    render_latex_table,
    render_markdown_table,
)
from memantics.web.plot import ForestLine, draw_forest
from tests.commands import Shell
from tests.compare.test_compare import choices, puns, side
from tests.latex import check_latex
from tests.runs import pick, write_run

ITEMS = [f"m{n:03}" for n in range(120)]


def draw_right(skill: float, seed: int) -> dict[str, bool]:
    chance = random.Random(seed)
    return {name: chance.random() < skill for name in ITEMS}


def write_choices(
    folder: Path, right: Mapping[str, bool], groups: Mapping[str, str] | None = None
) -> Path:
    path = choices(folder, right, groups)
    mm.score(path)
    return path


@pytest.fixture
def made_up(tmp_path: Path) -> list[Path]:
    skills = {"strong": 0.9, "middling": 0.7, "weak": 0.66}
    return [
        write_choices(tmp_path / name, draw_right(skill, place))
        for place, (name, skill) in enumerate(skills.items())
    ]


def stars(p: float) -> str:
    return "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else ""


def right_of(folder: Path) -> dict[str, bool]:
    def judge(outcome: Outcome) -> bool:
        return outcome.status == "answered" and outcome.value == outcome.item.gold

    return {outcome.item.id: judge(outcome) for outcome in side(folder).outcomes}


def test_marks_equal_those_of_statsmodels_on_made_up_runs(made_up: list[Path]) -> None:
    rights = {f"fake/{path.name}": right_of(path) for path in made_up}
    names = list(rights)
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
    plain = []
    for one, other in pairs:
        cells = [[0, 0], [0, 0]]
        for item in ITEMS:
            cells[rights[one][item]][rights[other][item]] += 1
        plain.append(contingency_tables.mcnemar(cells, exact=False, correction=False).pvalue)
    corrected = dict(zip(pairs, multitest.multipletests(plain, method="holm")[1], strict=True))
    best = max(names, key=lambda name: sum(rights[name].values()))
    table = tabulate_models(made_up)
    for row in table.rows:
        (cell,) = row.cells
        if row.label in names and row.label != best:
            pair = (best, row.label) if (best, row.label) in corrected else (row.label, best)
            assert cell is not None
            assert cell.mark == stars(corrected[pair])
    assert any(row.cells[0] and row.cells[0].mark for row in table.rows)
    # The strong one is better than all others; between the others nothing is sure.
    found = mm.compare(made_up)
    assert [row.found.corrected for row in found.rows] == pytest.approx(list(corrected.values()))
    assert find(table, best).best
    bh = mm.compare(made_up, correction="bh")
    expected = multitest.multipletests(plain, method="fdr_bh")[1]
    assert [row.found.corrected for row in bh.rows] == pytest.approx(list(expected))


def find(table: ModelTable, label: str, column: int = 0) -> MetricCell:
    cell = next(row.cells[column] for row in table.rows if row.label == label)
    assert cell is not None
    return cell


def test_marks_equal_an_independent_computation_on_real_runs(tmp_path: Path) -> None:
    """Answers about the sample data, several questions a meme: the test by meme."""
    models = ["fake/keys", "baseline/longest", "baseline/positive"]
    runs = mm.evaluate_suite("mquest/qa", models, out=tmp_path)
    folders = [run.folder for run in runs]
    plain = []
    for place, first in enumerate(folders):
        for second in folders[place + 1 :]:
            net: dict[str, list[int]] = {}
            answers = {o.item.id: o for o in side(second).outcomes}
            for outcome in side(first).outcomes:
                other = answers[outcome.item.id]
                gain = (other.value == other.item.gold) - (outcome.value == outcome.item.gold)
                net.setdefault(outcome.item.group, []).append(gain)
            left = [
                fmean(gain for meme, gains in net.items() if meme != out for gain in gains)
                for out in net
            ]
            error = sqrt((len(left) - 1) * pvariance(left))
            mean = fmean(gain for gains in net.values() for gain in gains)
            plain.append(2 * stats.t.sf(abs(mean) / error, len(left) - 1))
    expected = multitest.multipletests(plain, method="holm")[1]
    found = mm.compare(folders)
    # Rows stand in the order of the table, pairs in both orders.
    got = {frozenset((row.first, row.second)): row.found.corrected for row in found.rows}
    names = [run.model for run in runs]
    pairs = [frozenset((a, b)) for place, a in enumerate(names) for b in names[place + 1 :]]
    assert [got[pair] for pair in pairs] == pytest.approx(list(expected))


def test_two_models_alike_get_neither_bold_nor_marks(tmp_path: Path) -> None:
    right = draw_right(0.6, 1)
    runs = [write_choices(tmp_path / name, right) for name in ("a", "b")]
    table = tabulate_models(runs)
    for label in ("fake/a", "fake/b"):
        cell = find(table, label)
        assert (cell.best, cell.mark) == (False, "")


def test_the_correction_is_over_all_tasks(tmp_path: Path, made_up: list[Path]) -> None:
    golds = {f"{n}-pun": "pun" if n % 2 else "non-pun" for n in range(40)}
    more = []
    for name, flip in (("strong", 4), ("weak", 3)):
        calls = {
            item: gold if place % flip else "pun"
            for place, (item, gold) in enumerate(golds.items())
        }
        path = puns(tmp_path / f"puns-{name}", calls, golds)
        mm.score(path)
        more.append(path)
    found = mm.compare([*made_up, *more])
    assert len(found.rows) == 4
    assert {row.task for row in found.rows} == {"mquest/qa", "punmemecn/detection"}
    plain = [row.found.p for row in found.rows]
    expected = multitest.multipletests(plain, method="holm")[1]
    assert [row.found.corrected for row in found.rows] == pytest.approx(list(expected))
    frame = found.to_pandas()
    assert list(frame["corrected"]) == pytest.approx(list(expected))


def test_repeats_are_one_row_and_stay_with_their_memes(tmp_path: Path) -> None:
    runs = mm.evaluate_suite(
        "mquest/qa",
        ["fake/keys", "baseline/random"],
        out=tmp_path,
        settings=mm.EvaluationSettings(repeat=2, limit=8),
    )
    assert len(runs) == 4
    table = tabulate_models([run.folder for run in runs])
    assert find(table, "baseline/random").seeds == 2
    (row,) = mm.compare([run.folder for run in runs]).rows
    memes = set(runs[0].to_pandas().meme)
    assert (row.found.items, row.found.memes) == (16, len(memes))
    assert "± is the SD across repeats." in table.legend


@pytest.mark.parametrize("style", ["booktabs", "acl", "neurips"])
def test_latex_can_be_set(style: str, made_up: list[Path]) -> None:
    text = render_table(made_up, "latex", style)  # type: ignore[arg-type]
    # Two lines of heads, and two for each of three models and the baseline.
    assert check_latex(text) == 10
    assert (r"\begin{table*}" in text) == (style == "acl")
    above = text.index(r"\caption") < text.index(r"\begin{tabular}")
    assert above == (style == "neurips")
    assert r"\textbf{" in text


def test_hostile_names_break_no_form(tmp_path: Path) -> None:
    name = r"a & b_c % \evil{x} $y$ <b>~^#"
    runs = []
    for place, label in enumerate((name, "plain")):
        path = write_choices(tmp_path / str(place), draw_right(0.9 - place / 2, place))
        facts = (path / "run.json").read_text(encoding="utf-8")
        quoted = label.replace("\\", "\\\\")
        facts = facts.replace(f'"fake/{place}"', f'"{quoted}"')
        (path / "run.json").write_text(facts, encoding="utf-8")
        runs.append(path)
    check_latex(render_table(runs, "latex"))
    assert "<b>" not in render_table(runs, "html")
    assert r"\_c" in render_table(runs, "md")
    rows = list(csv.reader(io.StringIO(render_table(runs, "csv"))))
    assert {row[0] for row in rows} >= {name, "plain"}
    assert "<b>" not in draw_forest([ForestLine("<b>", "<b>", (0.1, None, None))])


@pytest.mark.slow
def test_the_command_writes_the_table_in_every_form(tmp_path: Path, made_up: list[Path]) -> None:
    shell = Shell(tmp_path)
    check_latex(shell.done("report", *made_up, "--format", "latex", "--style", "acl"))
    assert "| model |" in shell.done("report", *made_up, "--format", "markdown", "--table")
    assert shell.done("report", *made_up, "--format", "csv", "--table").startswith("model,trivial")
    assert shell.done("report", *made_up, "--format", "html", "--table").startswith("<table")
    shell.done("report", *made_up, "--format", "latex", "--out", "t.tex")
    check_latex((tmp_path / "t.tex").read_text(encoding="utf-8"))
    shell.done("report", *made_up, "--out", "page.html", "--no-images")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="models"' in page
    assert page.index('id="models"') < page.index('class="task"')
    assert "--style works with LaTeX only" in shell.refused(
        "report", *made_up, "--format", "csv", "--style", "acl"
    )
    said = shell.refused("report", *made_up, "--format", "json", "--table")
    assert "unknown table format" in said


def test_compare_over_a_suite_has_a_table_a_picture_and_one_to_be_against(
    tmp_path: Path, made_up: list[Path]
) -> None:
    shell = Shell(tmp_path)
    words: list[str | Path] = ["compare", *made_up, "--against", "fake/weak", "--plot", "p.svg"]
    assert "Holm" in shell.done(*words)
    rows = json.loads(shell.done(*words, "--json"))
    assert [row["first"] for row in rows] == ["fake/weak"] * 2
    assert (tmp_path / "p.svg").read_text(encoding="utf-8").count("<circle") == 2
    assert "BH" in shell.done("compare", *made_up, "--correction", "bh")
    assert "unknown model 'nobody'" in shell.refused("compare", *made_up, "--against", "nobody")


def test_how_many_memes_a_difference_needs(tmp_path: Path, made_up: list[Path]) -> None:
    shell = Shell(tmp_path)
    out = shell.done("power", "mquest/qa", "--effect", "3", "--runs", tmp_path)
    assert "detect a difference of 3 percentage points with 80 % power" in " ".join(out.split())
    found = mm.power("mquest/qa", effect=3, runs=tmp_path)
    assert len(found.rows) == 3
    assert mm.power("mquest/qa", effect=6, runs=tmp_path).needed == pytest.approx(
        found.needed / 4, abs=1
    )
    empty = tmp_path / "empty"
    assert "holds 0 runs" in shell.refused("power", "mquest/qa", "--effect", "3", "--runs", empty)
    assert "is not a valid effect" in shell.refused(
        "power", "mquest/qa", "--effect", "0", "--runs", tmp_path
    )


def test_runs_and_results_are_data_frames(tmp_path: Path, made_up: list[Path]) -> None:
    assert made_up
    results = mm.results(tmp_path)
    frame = results.to_pandas()
    chosen = frame[(frame.metric == "accuracy") & (frame.by == "") & (frame.label == "fake/weak")]
    run = next(run for run in results if run.model == "fake/weak")
    assert list(chosen.value) == [run.scores["accuracy"].value]
    items = run.to_pandas()
    assert list(items.item) == ITEMS
    right = items.answer.str.endswith("A")
    assert right.mean() == pytest.approx(run.scores["accuracy"].value)
    assert repr(run) == f"<Run mquest/qa fake/weak: accuracy {chosen.value.iloc[0]:.3f}, n = 120>"
    with pytest.raises(mm.InputError, match="has no run directories"):
        mm.results(tmp_path / "nothing")


def test_every_kind_of_footnote_comes_once_and_memes_stand_beside_items(tmp_path: Path) -> None:
    """Three models with other rates of invalid replies: one footnote, with proportions of items."""
    names = [f"{n}-{k}" for n in range(5) for k in range(4)]
    folders = []
    for label, invalid in (("a", 2), ("b", 5), ("c", 1)):
        answers = {n: "no idea" if p < invalid else "Answer: A" for p, n in enumerate(names)}
        folder = write_run(
            tmp_path / label,
            "mquest/qa",
            answers,
            golds=dict.fromkeys(names, "A"),
            groups={name: name[0] for name in names},
            tags={"dimension": "Scene", "kind": "R"},
            form=pick("A", "B", "C", "D"),
            model=f"fake/{label}",
        )
        mm.score(folder)
        folders.append(folder)
    table = tabulate_models(folders)
    (column,) = table.columns
    assert (column.n, column.memes, column.size) == (20, 5, "n = 20, 5 memes")
    invalid_notes = [note for note in table.notes if "invalid" in note]
    assert len(invalid_notes) == 1
    for part in ("as a proportion of items", "fake/a: 10.0 %", "fake/b: 25.0 %", "fake/c: 5.0 %"):
        assert part in invalid_notes[0]
    for render in (render_markdown_table, render_latex_table, render_html_table):
        assert "5 memes" in str(render(table))
    assert "mquest/qa memes" in render_csv_table(table)


def test_footnotes_of_many_tasks_break_into_lines() -> None:
    """A footnote with a value per task is one paragraph whose lines fit a terminal."""
    models = [f"provider/a-model-with-a-long-name-{n}" for n in range(4)]
    parts = "; ".join(f"{name}, 谐音/task: - 12.5 %" for name in models)
    note = f"invalid replies (refused or unparsed): {parts}"
    cell = MetricCell(0.5, 0.4, 0.6, 9, notes=(note, "short"))
    table = ModelTable(
        (TaskColumn("a/task", "accuracy", 9, ""),), (ModelRow("model", (cell,)),), ()
    )
    _, *lines = render_markdown_table(table).rpartition("\n\n")[2].splitlines()
    assert len(lines) > 3
    for line in lines:
        assert sum(1 + (char in "谐音") for char in line) <= 80
        assert line[0].isalpha() or line.startswith("<sup>b</sup>")
    read = " ".join(render_markdown_table(table).rpartition("\n\n")[2].split())
    assert read == f"<sup>a</sup> {note} <sup>b</sup> short"
