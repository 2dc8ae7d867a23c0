"""``paper.toml``: what it declares is shown, and a bad one says what is wrong and where."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memantics.benchmarks.paper_file import read_paper, read_paper_file
from memantics.benchmarks.registry import find_benchmarks
from memantics.core.errors import DataError, InputError
from memantics.evaluation.paper import paper
from tests.commands import Shell
from tests.places import ROOT

SHIPPED = sorted((ROOT / "src" / "memantics" / "benchmarks").glob("*/paper.toml"))
HEAD = 'title = "T"\n'
PART = '[[part]]\nlabel = "Table 1"\ncaption = "C."\n'


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_every_system_of_a_table_has_metrics_that_the_paper_prints(path: Path) -> None:
    """A row that names a system and finds none of its figures would stay bare unseen."""
    home = find_benchmarks()[path.parent.name].home
    published = (home / "expected" / "published.json").read_text(encoding="utf-8")
    for part in read_paper_file(path).part:
        for row in part.rows:
            if part.metrics and row.system and "released" not in part.label:
                assert f'"system": "{row.system}"' in published, (part.label, row.label)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("title = ", "Invalid value"),
        (HEAD, "part: Field required"),
        (HEAD + "part = []\n", "part: Tuple should have at least 1 item"),
        (HEAD + PART.replace("label", "lable"), "part.0.label: Field required"),
        (HEAD + PART + "colour = 1\n", "part.0.colour: Extra inputs are not permitted"),
        (HEAD + PART + PART, "part 'Table 1' is declared twice"),
        (
            HEAD + PART + 'columns = ["a", "b"]\nrows = [{ label = "r", cells = [1] }]\n',
            "row 'r' has 1 cells for 2 columns",
        ),
        (
            HEAD + PART + 'rows = [{ label = "r", keys = ["memes"] }]\n',
            "row 'r' has 1 keys for 0 columns",
        ),
        (
            HEAD + PART + 'columns = ["a"]\nmetrics = [{ task = "t", key = "f" }, '
            '{ task = "t", key = "g" }]\n',
            "2 metrics for 1 columns",
        ),
        (
            HEAD + PART + 'rows = [{ label = "r", system = "GPT-9" }]\n',
            "part 'Table 1': 'GPT-9' is not defined in this file",
        ),
        (HEAD + PART + 'fill = "memantics run $nam"\n', "a command uses nam, which has no value"),
        (HEAD + '[commands]\nx = "run $who"\n' + PART, "a command uses who"),
        (HEAD + PART + 'drawn = "pie"\n', "part.0.drawn: Input should be"),
    ],
)
def test_a_bad_file_says_what_and_where(text: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "paper.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_paper_file(path)
    assert fault in str(caught.value)
    assert "paper.toml" in str(caught.value)


def test_a_function_without_a_part_and_a_prompt_without_a_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "paper.toml"
    path.write_text(HEAD + PART, encoding="utf-8")
    with pytest.raises(DataError, match="declares no part Table 2"):
        read_paper(path, {"Table 2": lambda _, part: part.show()})
    with pytest.raises(DataError, match="No such file"):
        read_paper_file(tmp_path / "nowhere.toml")


def copy_example(shell: Shell) -> Path:
    """A benchmark of the user's own, in the folder where such are looked for."""
    place = shell.folder / "benchmarks" / "meanings"
    shutil.copytree(ROOT / "examples" / "meanings", place)
    return place


def test_a_benchmark_of_ones_own_needs_no_code_for_its_paper(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = copy_example(shell)
    monkeypatch.setenv("MEMANTICS_BENCHMARKS", str(place.parent))
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    with pytest.raises(InputError, match=r"declares no paper; .* on paper\.toml"):
        paper("meanings", data="sample")
    (place / "paper.toml").write_text(
        HEAD
        + PART
        + 'stub = "Set"\ncolumns = ["Size", "Share"]\nreason = "Quoted."\n'
        + 'rows = [{ label = "theirs", cells = [12, 3.5], section = "s" }, '
        + '{ label = "ours", cells = ["", "yes"] }]\nnotes = ["n"]\nofficial_notes = ["o"]\n',
        encoding="utf-8",
    )
    (part,) = paper("meanings", data="sample").parts
    assert (part.label, part.stub, part.notes) == ("Table 1", "Set", ("n",))
    first, second = part.rows
    assert [(cell.paper, cell.digits, cell.status) for cell in first.cells] == [
        (12, None, "closed"),
        (3.5, 2, "closed"),
    ]
    assert [cell.paper for cell in second.cells] == [None, "yes"]
    (place / "paper.toml").write_text(HEAD + PART + "digits = 'x'\n", encoding="utf-8")
    told = shell.refused(
        "paper", "meanings", "--data", "sample", MEMANTICS_BENCHMARKS=str(place.parent)
    )
    assert "part.0.digits" in told
