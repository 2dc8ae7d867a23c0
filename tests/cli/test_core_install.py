"""What works after ``pip install .`` alone, and what the rest says to install."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memantics.core import errors
from memantics.core.errors import MissingExtra, need_packages
from memantics.moderation.neural.encoding import read_splitter
from tests.commands import Shell
from tests.compat.make import TEXTS
from tests.compat.test_formats import FIXTURES, PREDICTIONS
from tests.core_install import block_extras, find_extras

pytestmark = pytest.mark.slow

LARGE = {"pyarrow", "scipy", "sklearn"}


@pytest.fixture
def core(tmp_path: Path) -> dict[str, str]:
    """What a process is given so that only the core is there."""
    return block_extras(tmp_path / "core")


def test_large_packages_are_no_part_of_the_core() -> None:
    assert LARGE | {"torch", "pandas", "fastapi"} <= find_extras()
    assert not {"numpy", "mpmath", "onnxruntime", "jieba"} & find_extras()


def test_memes_are_evaluated_compared_and_audited(tmp_path: Path, core: dict[str, str]) -> None:
    shell = Shell(tmp_path).apart
    shell.done("sample", "copy", "pack", **core)
    models = ("-m", "baseline/longest", "-m", "fake/keys")
    shell.done("run", "mquest/qa", *models, "--limit", "20", **core)
    runs = sorted((tmp_path / "runs").iterdir())
    assert len(runs) == 2
    shell.done("report", *runs, "--out", "report.html", **core)
    (found,) = json.loads(shell.done("compare", *runs, "--json", **core))
    assert found["differences"][0]["key"] == "accuracy"
    assert "Audit of M-QUEST, sample data" in shell.done("audit", "mquest", **core)


def test_detectors_judge_and_explain_without_the_packages_that_trained_them(
    tmp_path: Path, core: dict[str, str]
) -> None:
    shell = Shell(tmp_path).apart
    file = FIXTURES / "fast.zip"
    said = json.loads(shell.done("detector", "predict", file, *TEXTS, "--json", **core))
    for row, old in zip(said, PREDICTIONS["fast.zip"], strict=True):
        assert row["probability"] == pytest.approx(old["probability"], abs=1e-6)
    assert TEXTS[0] in shell.done("detector", "explain", file, TEXTS[0], **core)


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("screen", "pack/memes.csv"), "parquet"),
        (("publish", "pack", "--name", "mine", "--licence", "CC0-1.0"), "parquet"),
        (("build", "shards", "pack/memes"), "parquet"),
        (("detector", "train", "--data", "sample", "--out", "mine.zip"), "train"),
        (("classifier", "train", "punmemecn/sentiment_type"), "train"),
    ],
)
def test_what_needs_more_says_what_to_install(
    words: tuple[str, ...], extra: str, tmp_path: Path, core: dict[str, str]
) -> None:
    told = Shell(tmp_path).apart.refused(*words, **core)
    assert f"need an optional package; pip install 'memantics[{extra}]'" in told


def test_verdicts_leave_the_annotation_app_without_parquet(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    shell, without = Shell(tmp_path).apart, block_extras(tmp_path / "core", LARGE)
    shutil.copytree(FIXTURES / "annotate", tmp_path / "annotate")
    words = ("annotate", "export", "1", "--db", tmp_path / "annotate" / "annotate.db", "--out")
    shell.done(*words, "verdicts.jsonl", "--what", "verdicts", **without)
    assert (tmp_path / "verdicts.jsonl").is_file()
    told = shell.refused(*words, "raw.parquet", "--what", "raw", "--format", "parquet", **without)
    assert "Parquet tables need an optional package; pip install 'memantics[parquet]'" in told


def test_networks_say_what_they_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"networks need .*memantics\[tokenizers\]"):
        read_splitter(b"{}", 0)


def test_one_absent_package_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"one", "two"}
    monkeypatch.setattr(errors, "find_spec", lambda name: name if name in there else None)
    need_packages("things", "extra", "one", "two")
    with pytest.raises(MissingExtra, match=r"things need .* pip install 'memantics\[extra\]'"):
        need_packages("things", "extra", "one", "three")
