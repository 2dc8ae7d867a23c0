"""The command as a user runs it, on the sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.benchmarks.registry import find_benchmark, find_benchmarks
from memantics.evaluation.audits.labels import choose_label
from memantics.evaluation.reports.runs import SAMPLE_NOTE
from tests.commands import Shell

TABLE = [
    {
        "task": "qa",
        "system": "made up",
        "metrics": {"macro_f1": 0.9, "macro_precision": 0.5, "macro_recall": 0.5},
        "digits": 2,
        "source": "Table 9",
        "feasible": None,
    }
]


@pytest.mark.slow
@pytest.mark.parametrize("name", find_benchmarks())
def test_every_benchmark_can_be_audited(shell: Shell, name: str) -> None:
    ran = shell.run("audit", name, "--data", "sample", "--json", "--out", "audit.html")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["benchmark"] == name
    assert found["findings"]
    assert sum(found["counts"].values()) == len(found["findings"])
    for own in found["findings"]:
        assert own["verdict"] in ("broken", "worth knowing", "sound")
        assert own["meaning"]
        assert own["advice"]
        assert own["measured"]
        score = own["score"]
        assert score["value"] is not None
        if score["low"] is not None:
            assert score["low"] - 1e-9 <= score["value"] <= score["high"] + 1e-9
    page = (shell.folder / "audit.html").read_text(encoding="utf-8")
    assert SAMPLE_NOTE in page
    # A plain audit does not look for leaks through metadata, and says so where a label exists.
    hints = {gap["hint"] for gap in found["gaps"]}
    assert ("add --all" in hints) == bool(choose_label(find_benchmark(name), ""))


def test_the_terminal_shows_verdicts_and_what_to_do(shell: Shell) -> None:
    ran = shell.run("audit", "punmemecn/detection", "--data", "sample")
    assert ran.code == 0
    assert "Baseline: always “pun”" in ran.out
    assert "f1 0.500" in ran.out
    assert "Advice: " in ran.out
    assert "published figures" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_model_is_asked_and_its_answers_are_kept(shell: Shell) -> None:
    command = ("audit", "mquest", "--data", "sample", "-m", "baseline/majority", "--json")
    ran = shell.run(*command, "--limit", "24")
    found = {own["key"]: own for own in json.loads(ran.out)["findings"] if own["model"]}
    assert found.keys() == {"blind", "permutation", "position.model"}
    assert found["position.model"]["score"]["value"] == 1.0
    assert found["position.model"]["verdict"] == "broken"
    folders = sorted((shell.folder / "runs" / "audit").iterdir())
    assert len(folders) == 5
    # They are ordinary run directories.
    assert shell.run("score", folders[0]).code == 0


@pytest.mark.slow
def test_a_judge_is_asked_in_every_way(shell: Shell) -> None:
    ran = shell.run("audit", "mer_bench", "--data", "sample", "-m", "baseline/constant", "--json")
    assert ran.code == 0, ran.err
    found = {own["key"]: own for own in json.loads(ran.out)["findings"] if own["model"]}
    ways = ("again", "placement", "rationale", "unseen", "swapped")
    assert found.keys() == {f"judge.{way}" for way in ways}
    # It says the same whatever it is shown: of one mind, and blind.
    assert found["judge.again"]["score"]["value"] == 1.0
    assert found["judge.unseen"]["verdict"] == "broken"


def test_failed_calls_end_with_one(shell: Shell) -> None:
    ran = shell.run(
        "audit", "mquest", "--data", "sample", "-m", "recorded/answers.jsonl", "--limit", "20"
    )
    assert ran.code == 2
    line = {"prompt": "x", "text": "A"}
    (shell.folder / "answers.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    ran = shell.run(
        "audit", "mquest", "--data", "sample", "-m", "recorded/answers.jsonl", "--limit", "20"
    )
    assert ran.code == 1
    assert "calls failed" in ran.err


def test_any_published_table_can_be_checked(shell: Shell) -> None:
    (shell.folder / "table.json").write_text(json.dumps(TABLE), encoding="utf-8")
    ran = shell.run("audit", "mquest", "--data", "sample", "--published", "table.json", "--json")
    own = next(f for f in json.loads(ran.out)["findings"] if f["title"] == "table.json")
    assert own["verdict"] == "broken"
    assert "made up" in own["details"][0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "unknown benchmark"),
        (("mquest/nothing",), "unknown task"),
        (("mquest", "--set", "nothing=1"), "unknown option"),
        (("mquest", "--set", "order=nothing"), "unknown value"),
        (("mquest", "--split", "nothing"), "unknown split"),
        (("mquest", "--model", "nothing/x"), "unknown model kind"),
        (("mquest", "--published", "nothing.json"), "no such file"),
        (("mquest", "--data", "release"), "no release of mquest"),
    ],
)
def test_bad_input_is_one_line(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    assert words in shell.refused("audit", *arguments)


def test_a_broken_table_is_refused(shell: Shell) -> None:
    (shell.folder / "table.json").write_text('[{"task": "qa"}]', encoding="utf-8")
    assert "system" in shell.refused("audit", "mquest", "--published", "table.json")


@pytest.mark.slow
def test_a_page_that_cannot_be_written_is_refused(shell: Shell) -> None:
    (shell.folder / "taken").write_text("", encoding="utf-8")
    out = Path("taken") / "audit.html"
    assert "taken" in shell.refused("audit", "mer_bench", "--data", "sample", "--out", out)
