"""What a task sends, its prompt files to change, and help that guides."""

from __future__ import annotations

import re
from pathlib import Path

from memantics import __version__
from memantics.cli.main import COMMANDS, GROUPS
from memantics.core.rundir import read_items
from memantics.evaluation.options import TRIVIAL_MODELS, complete_models, complete_tasks
from tests.commands import Shell


def test_the_shown_prompt_is_what_a_run_sends(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shown = shell.done("prompts", "show", "mquest/qa", "--data", "sample")
    shell.done("run", "mquest/qa", "--data", "sample", "--model", "fake/keys", "--limit", "1")
    (folder,) = (tmp_path / "runs").iterdir()
    (line,) = read_items(folder)
    (text,) = (part for part in line.messages[0].parts if isinstance(part, str))
    assert text in shown
    assert "<image " in shown
    other = shell.run(
        "prompts", "show", "mquest/qa", "--item", "en-002_ToxicityAssessment_qa_bf1c401c"
    )
    assert "en-002_Tox" in other.err
    assert "has no item 'x'" in shell.refused("prompts", "show", "mquest/qa", "--item", "x")
    assert "several tasks" in shell.refused("prompts", "show", "punmemecn")


def test_copied_prompts_are_those_that_are_asked_with(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    out = shell.done("prompts", "copy", "mquest/qa", "mine")
    assert "memantics run mquest/qa --prompts mine --model MODEL" in " ".join(out.split())
    path = tmp_path / "mine/mquest/explain_first.md"
    path.write_text("Look closely. " + path.read_text(encoding="utf-8"), encoding="utf-8")
    words = ("run", "mquest/qa", "--prompts", "mine", "--model", "fake/keys", "--limit", "1")
    shell.done(*words)
    (folder,) = (tmp_path / "runs").iterdir()
    (line,) = read_items(folder)
    assert "Look closely." in str(line.messages)
    # What was changed stays.
    again = shell.run("prompts", "copy", "mquest/qa", "mine")
    assert "already exist and were kept" in again.err
    assert path.read_text(encoding="utf-8").startswith("Look closely.")


def test_commands_are_listed_in_groups_by_what_a_person_wants(tmp_path: Path) -> None:
    out = Shell(tmp_path).done("--help")
    heads = re.findall(r"─ ([A-Z][a-z ]+?) ─", out)
    wanted = ["Analyse a meme", "Evaluate models", "Your data", "Build a benchmark", "Moderate"]
    assert set(wanted) <= set(heads)
    assert "Commands" not in heads
    known = {name for commands in GROUPS.values() for name in commands}
    assert known == {name.partition(" ")[0] for name in COMMANDS}


def test_the_short_flag_says_the_version(tmp_path: Path) -> None:
    assert Shell(tmp_path).done("-V") == f"memantics {__version__}\n"


def test_names_are_completed() -> None:
    assert complete_tasks("mques") == ["mquest", "mquest/qa"]
    assert complete_tasks("nothing") == []
    assert complete_models("emb") == ["embedded/reader"]
    assert complete_models("baseline/l") == ["baseline/longest"]
    assert len(complete_models("baseline/")) == len(TRIVIAL_MODELS)


def test_the_shell_completes_a_task(tmp_path: Path) -> None:
    ran = Shell(tmp_path).run(
        "run",
        "punmemecn/det",
        _MEMANTICS_COMPLETE="complete_bash",
        COMP_WORDS="memantics run punmemecn/det",
        COMP_CWORD="2",
    )
    assert ran.out.split() == ["punmemecn/detection"]
