"""``memantics run`` over several tasks and models, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.background import serve_in_background
from tests.commands import Ran, Shell
from tests.suite.toys import environment, write_toy


@pytest.fixture
def toys(shell: Shell) -> Path:
    for place, name in enumerate(("alpha", "beta")):
        write_toy(shell.folder / "toys", name, 10_000 * (place + 1), 6)
    return shell.folder / "toys"


def run(shell: Shell, toys: Path, *words: str, url: str = "") -> Ran:
    return shell.run("run", *words, **environment(shell, toys, url))


def test_tasks_without_data_are_skipped_and_named(shell: Shell, toys: Path) -> None:
    ran = run(shell, toys, "alpha", "beta", "-m", "fake/keys")
    assert ran.code == 0, ran
    reason = "rare.json: is not in this copy; ask its owner"
    assert ran.err.splitlines() == [f"skipped {name}/rare: {reason}" for name in ("alpha", "beta")]
    assert "skipped: alpha/rare: rare.json: is not in this copy" in ran.out
    assert "alpha/choice, sample data" in ran.out
    named = run(shell, toys, "alpha/rare", "-m", "fake/keys")
    assert (named.code, named.err) == (2, f"error: {reason}\n")


def test_skipped_tasks_stand_in_the_json_too(shell: Shell, toys: Path) -> None:
    ran = run(shell, toys, "alpha", "-m", "fake/keys", "--json")
    *rows, last = json.loads(ran.out)
    assert [row["facts"]["task"] for row in rows] == ["alpha/choice", "alpha/note", "alpha/use"]
    assert last == {
        "task": "alpha/rare",
        "skipped": "rare.json: is not in this copy; ask its owner",
    }


@pytest.mark.slow
def test_one_model_that_is_not_there(shell: Shell, toys: Path) -> None:
    words = ("alpha/choice", "beta/choice", "-m", "openai/x", "-m", "fake/keys", "--json")
    ran = run(shell, toys, *words, url="http://127.0.0.1:9/v1")
    assert ran.code == 2
    assert [line.partition("; ")[0] for line in ran.err.splitlines()] == [
        "error: openai/x: 127.0.0.1:9 cannot be reached: Connection refused",
        "2 of 4 runs did not finish",
    ]
    rows = json.loads(ran.out)
    assert [row["facts"]["model"] for row in rows if "scores" in row] == ["fake/keys"] * 2
    assert all("cannot be reached" in row["error"] for row in rows if "scores" not in row)


def test_a_dry_run_sends_and_writes_nothing(shell: Shell, toys: Path) -> None:
    with serve_in_background() as server:
        words = ("alpha", "-m", "openai/x", "-m", "openai/y", "--price", "1,2")
        ran = run(shell, toys, *words, "--set", "style=plain,loud", "--dry-run", url=server.url)
        assert ran.code == 0, ran
        assert server.total == 0
    assert not (shell.folder / "runs").exists()
    assert not (shell.folder / "home" / "cache.sqlite").exists()
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:3] == ["total", "24", "24"] for line in lines)
    assert "All models: 48 items, 48 calls" in ran.out
    assert "alpha/choice style=loud" in ran.out
    assert "a guess" in ran.out


def test_a_dry_run_in_json_tells_what_is_left(shell: Shell, toys: Path) -> None:
    run(shell, toys, "alpha/choice", "-m", "fake/keys")
    words = ("alpha/choice", "-m", "fake/keys", "--dry-run", "--json", "--set", "style=plain,loud")
    first, second = json.loads(run(shell, toys, *words).out)
    assert (first["options"]["style"], first["done"], first["calls"]) == ("plain", 6, 0)
    assert (second["options"]["style"], second["done"], second["calls"]) == ("loud", 0, 6)


def test_the_captioner_may_be_another_model(shell: Shell, toys: Path) -> None:
    words = ("alpha/use", "-m", "fake/keys", "--captioner", "fake/echo", "--json")
    note, use = json.loads(run(shell, toys, *words).out)
    assert (note["facts"]["task"], note["facts"]["model"]) == ("alpha/note", "fake/echo")
    assert use["facts"]["needs"] == {"note": Path(note["folder"]).name}
    table = run(shell, toys, *words[:-1]).out
    assert "(needed by others)" in table
    assert "alpha/use, sample data" in table
    assert "alpha/note, sample data" not in table


def test_a_sample_is_part_of_the_run_and_of_its_table(shell: Shell, toys: Path) -> None:
    words = ("alpha/choice", "-m", "fake/keys", "--sample", "3", "--seed", "5")
    [row] = json.loads(run(shell, toys, *words, "--json").out)
    assert (row["facts"]["sample"], row["facts"]["seed"]) == (3, 5)
    assert row["scores"]["counts"]["answered"] == 4
    assert "sample of 3 items, seed 5" in run(shell, toys, *words).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "2", "--sample", "2"], "cannot be combined"),
        (["--seed", "2"], "add --sample N"),
        (["--set", "style=plain", "--set", "style=loud"], "given twice"),
        (["--set", "style=plain,laut"], "unknown value of option style: 'laut'"),
        (["--set", "gamma:style=plain"], "unknown task 'gamma'"),
        (["--captioner", "nobody"], "unknown model kind"),
    ],
)
def test_contradictions(shell: Shell, toys: Path, words: list[str], said: str) -> None:
    ran = run(shell, toys, "alpha/choice", "-m", "fake/keys", *words)
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
