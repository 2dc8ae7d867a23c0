"""A project with a workflow of one's own becomes a benchmark that runs, without a plugin."""

from __future__ import annotations

import json
import re

import pytest
from pydantic import JsonValue

from memantics.annotation.workflow import WorkflowField
from memantics.core.rundir import read_stored_items
from tests.commands import Shell
from tests.construction.publish.queues import make_queue, pick_memes
from tests.places import ROOT
from tests.report import test_paper_chains as chains

pytestmark = pytest.mark.slow
GUIDE = ROOT / "docs" / "how-to" / "write-a-workflow.md"


def say(field: WorkflowField, person: int, number: int) -> JsonValue:
    return field.allowed[number % 2] if field.kind == "choice" else 3


def test_an_exported_project_is_a_benchmark(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "say", say)
    written = next(
        text
        for text in re.findall(r"```toml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
        if text.startswith('name = "how-funny"')
    )
    (shell.folder / "own.toml").write_text(written, "utf-8")
    make_queue(shell.folder / "queue", "how-funny", pick_memes("en", 6))
    words = ["queue", "--db", "lab.db", "--workflow", str(shell.folder / "own.toml")]
    chains.simulate(shell, words)
    shell.done("annotate", "export", "1", "--db", "lab.db", "--out", "queue/annotations.jsonl")
    refused = shell.refused("publish", "queue", "--name", "funny", "--licence", "CC0-1.0")
    assert "--workflow FILE.toml" in refused
    shell.done("annotate", "export", "1", "--db", "lab.db", "--what", "huggingface", "--out", "hub")
    assert len(list((shell.folder / "hub/train/images").iterdir())) == 6
    assert "Is it funny?" in (shell.folder / "hub/README.md").read_text("utf-8")
    shell.done("data", "add", "hub", "--label", "funny")
    run = json.loads(shell.done("run", "hub", "--model", "baseline/random", "--json"))[0]
    items = [item for item, _ in read_stored_items(shell.folder / run["folder"])]
    assert sorted(str(item.gold) for item in items) == ["A"] * 3 + ["B"] * 3
    assert {option.text for option in items[0].form.fields[0].options} == {"no", "yes"}
