"""What works after ``pip install memantics`` alone, and what the rest says to install."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from perf.core_smoke import CORE, Step, run, walk

import memantics as mm
from memantics.core import errors
from memantics.core.errors import (
    OFFLINE,
    MissingExtra,
    explain_absence,
    need_offline,
    need_packages,
)
from memantics.moderation.neural.encoding import read_splitter
from tests.commands import Shell
from tests.compat.make import TEXTS
from tests.compat.test_formats import FIXTURES, PREDICTIONS
from tests.core_install import block_extras, find_extras
from tests.places import ROOT

pytestmark = pytest.mark.slow

LARGE = {"pyarrow", "scipy", "sklearn"}
MEMES = "pack/memes"
# A command of every part that needs more than the core, and the extra that it must name.
NEEDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("run", "mquest/qa", "--model", "embedded/reader", "--limit", "1"), "offline"),
    (("run", "punmemecn/pinyin", "--model", "baseline/longest", "--limit", "1"), "offline"),
    (("analyze", "pack/memes/en-001.png"), "offline"),
    (("demo", "--out", "demo"), "offline"),
    (("pun", "压力山大"), "offline"),
    (("reappraise", "pack/memes/en-001.png"), "offline"),
    (("collect", MEMES, "--out", "collected"), "offline"),
    (("kb", "import", "pack", "--store", "store"), "offline"),
    (("detector", "predict", "sample", "a text"), "offline"),
    (("build", "pairs", MEMES, "--out", "pairs"), "offline"),
    (("build", "chats", MEMES, "--model", "fake/drafter", "--out", "chats"), "offline"),
    (("screen", "pack/memes.csv"), "offline,parquet"),
    (("publish", "pack", "--name", "mine", "--licence", "CC0-1.0"), "parquet"),
    (("build", "shards", MEMES), "offline,parquet"),
    (("detector", "train", "--data", "sample", "--out", "mine.zip"), "train"),
    (("classifier", "train", "punmemecn/sentiment_type"), "train"),
    (("annotate", "pack"), "annotate"),
    (("serve",), "serve"),
    (("mcp",), "mcp"),
    (("decisions", "verify"), "annotate"),
    (("export-inspect", "runs/one"), "inspect"),
    (("run", "mquest/qa", "--model", "inspect/openai/gpt", "--limit", "1"), "inspect"),
    (("run", "mquest/qa", "--model", "local/nowhere", "--limit", "1"), "local"),
    (("run", "mquest/qa", "--model", "llm/smollm2", "--limit", "1"), "llm"),
)


def check_walk(steps: list[Step]) -> None:
    assert len(steps) == len(CORE)
    assert not [str(step) for step in steps if step.code]
    assert not [str(step) for step in steps if "Traceback" in step.err]


def check_needs(python: Path, folder: Path, environment: dict[str, str]) -> None:
    """Every command that needs an extra says in one line which, with exit code 2."""
    assert run(python, folder, ("samples", "copy", "pack"), environment).code == 0
    wrong = []
    for words, extra in NEEDS:
        step = run(python, folder, words, environment)
        told = [line for line in step.err.splitlines() if not line.startswith("note: ")]
        hint = f"need an optional package; pip install 'memantics[{extra}]'"
        if step.code != 2 or len(told) != 1 or hint not in told[0]:
            wrong.append(str(step))
    assert not wrong


@pytest.fixture
def blocked(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which only packages of the core can be imported."""
    paths = block_extras(tmp_path / "core")["PYTHONPATH"]
    return {"PYTHONPATH": f"{paths}:{ROOT / 'src'}"}


def test_what_runs_without_a_model_is_no_part_of_the_core() -> None:
    assert LARGE | {"torch", "pandas", "fastapi"} <= find_extras()
    assert set(OFFLINE) <= find_extras()
    assert not {"numpy", "PIL", "aiohttp", "pydantic", "jinja2"} & find_extras()


def test_the_core_evaluates_compares_reports_and_audits(
    tmp_path: Path, blocked: dict[str, str]
) -> None:
    check_walk(list(walk(Path(sys.executable), tmp_path, blocked)))


def test_every_other_command_names_its_extra(tmp_path: Path, blocked: dict[str, str]) -> None:
    check_needs(Path(sys.executable), tmp_path, blocked)


def test_a_fresh_environment_with_the_core_alone_does_the_same(tmp_path: Path) -> None:
    folder, work = tmp_path / "environment", tmp_path / "work"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = (python, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", ".")
    done = subprocess.run(install, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install here: {done.stderr.strip().splitlines()[-1:]}")
    work.mkdir()
    check_walk(list(walk(python, work)))
    check_needs(python, work, {})


def test_detectors_judge_without_the_packages_that_trained_them(tmp_path: Path) -> None:
    shell, without = Shell(tmp_path).apart, block_extras(tmp_path / "core", LARGE)
    file = FIXTURES / "fast.zip"
    said = json.loads(shell.done("detector", "predict", file, *TEXTS, "--json", **without))
    for row, old in zip(said, PREDICTIONS["fast.zip"], strict=True):
        assert row["probability"] == (
            old["probability"] and pytest.approx(old["probability"], abs=1e-6)
        )
    explained = shell.done("detector", "explain", file, TEXTS[0], **without)
    assert f"{PREDICTIONS['fast.zip'][0]['probability']:.2f}" in explained


def test_verdicts_leave_the_annotation_app_without_parquet(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    shell, without = Shell(tmp_path).apart, block_extras(tmp_path / "core", LARGE)
    shutil.copytree(FIXTURES / "annotate", tmp_path / "annotate")
    words = ("annotate", "export", "1", "--db", tmp_path / "annotate" / "annotate.db", "--out")
    shell.done(*words, "annotations.jsonl", "--what", "annotations", **without)
    assert (tmp_path / "annotations.jsonl").is_file()
    told = shell.refused(*words, "raw.parquet", "--what", "raw", "--format", "parquet", **without)
    assert "Parquet tables need an optional package; pip install 'memantics[parquet]'" in told


def test_networks_and_knowledge_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"networks need .*memantics\[tokenizers\]"):
        read_splitter(b"{}", 0)
    with pytest.raises(MissingExtra, match=r"knowledge graphs need .*memantics\[offline\]"):
        mm.KnowledgeStore.in_memory()


def test_one_absent_package_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"one", "two"}
    monkeypatch.setattr(errors, "find_spec", lambda name: name if name in there else None)
    need_packages("things", "extra", "one", "two")
    with pytest.raises(MissingExtra, match=r"things need .* pip install 'memantics\[extra\]'"):
        need_packages("things", "extra", "one", "three")
    need_offline("one", also={"more": ["two"]})
    with pytest.raises(MissingExtra, match=r"memantics\[more\]"):
        need_offline("one", what="things", also={"more": ["three"]})
    with pytest.raises(MissingExtra, match=r"things need .*memantics\[offline,more\]"):
        need_offline("jieba", what="things", also={"more": ["three"]})


def test_a_module_of_no_extra_stays_an_error_of_ours() -> None:
    assert explain_absence(ModuleNotFoundError("", name="memantics.nowhere")) is None
    assert str(explain_absence(ModuleNotFoundError("", name="cv2"))).endswith("[offline]'")
