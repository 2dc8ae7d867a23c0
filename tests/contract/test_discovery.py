"""A benchmark in a folder of its own, found through ``MEMANTICS_BENCHMARKS``."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path

import pytest

from memantics.benchmarks.registry import find_benchmarks
from memantics.core.data import Source
from tests.commands import Shell
from tests.places import ROOT

EXAMPLE = ROOT / "examples" / "meanings"


def copy_example(root: Path, name: str) -> Path:
    """A newcomer's folder: the example under another name, with its own sample."""
    folder = root / name
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "card.toml"
    path.write_text(path.read_text("utf-8").replace("meanings", name), encoding="utf-8")
    return folder


def test_a_folder_beside_nothing_else_runs(shell: Shell, tmp_path: Path) -> None:
    copy_example(tmp_path / "mine", "my_memes")
    asked = ("--model", "baseline/majority", "--set", "text=given", "--json")
    ran = shell.run("run", "my_memes", *asked, MEMANTICS_BENCHMARKS=str(tmp_path / "mine"))
    assert ran.code == 0, ran.err
    scores = json.loads(ran.out)[0]["scores"]
    assert scores["counts"]["answered"] == 12
    assert "meanings" not in ran.out


def test_a_folder_that_was_named_in_place_of_its_parent_is_refused(shell: Shell) -> None:
    line = shell.refused("data", "list", MEMANTICS_BENCHMARKS=str(EXAMPLE))
    assert "no benchmark below" in line


def test_a_missing_module_is_named(shell: Shell, tmp_path: Path) -> None:
    (copy_example(tmp_path / "mine", "my_memes") / "plugin.py").unlink()
    line = shell.refused("data", "stats", "my_memes", MEMANTICS_BENCHMARKS=str(tmp_path / "mine"))
    assert "plugin.py: does not exist" in line


def test_a_record_with_an_unknown_field_is_refused_with_its_row(
    shell: Shell, tmp_path: Path
) -> None:
    path = copy_example(tmp_path / "mine", "my_memes") / "sample" / "memes.jsonl"
    rows = path.read_text("utf-8").splitlines()
    rows[1] = json.dumps(json.loads(rows[1]) | {"txt": "x"})
    path.write_text("\n".join(rows), encoding="utf-8")
    line = shell.refused("data", "stats", "my_memes", MEMANTICS_BENCHMARKS=str(tmp_path / "mine"))
    assert "memes.jsonl: row 2: unknown field 'txt'" in line


def test_two_folders_of_one_name_keep_their_code_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for root in (tmp_path / "one", tmp_path / "two"):
        folder = copy_example(root, "my_memes")
        monkeypatch.setenv("MEMANTICS_BENCHMARKS", str(root))
        plugin = find_benchmarks()["my_memes"].plugin
        table = plugin.open_release(Source("sample", folder / "sample"))
        meme = type(next(table.rows()))
        assert folder.samefile(Path(inspect.getfile(meme)).parent)
        found.append(plugin)
    assert found[0] is not found[1]


def test_a_plugin_of_the_wrong_type_is_named(shell: Shell, tmp_path: Path) -> None:
    (copy_example(tmp_path / "mine", "my_memes") / "plugin.py").write_text("PLUGIN = {}\n")
    line = shell.refused("data", "stats", "my_memes", MEMANTICS_BENCHMARKS=str(tmp_path / "mine"))
    assert "does not define the name PLUGIN with a value of the type BenchmarkPlugin" in line


def test_two_equal_options_are_refused(shell: Shell, tmp_path: Path) -> None:
    path = copy_example(tmp_path / "mine", "my_memes") / "sample" / "memes.jsonl"
    rows = path.read_text("utf-8").splitlines()
    row = json.loads(rows[2])
    rows[2] = json.dumps(row | {"others": [row["meaning"], *row["others"][1:]]})
    path.write_text("\n".join(rows), encoding="utf-8")
    line = shell.refused("data", "stats", "my_memes", MEMANTICS_BENCHMARKS=str(tmp_path / "mine"))
    assert "memes.jsonl: row 3: two of the 4 options are equal" in line
