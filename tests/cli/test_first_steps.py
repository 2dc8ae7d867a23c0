"""What a newcomer meets first: bare model names, unfinished runs, a detector of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

import memantics as mm
from memantics.core.errors import InputError, MemanticsError, StoreError
from memantics.evaluation.reports.runs import split_unfinished
from memantics.moderation.training import find_detector, forget_detector, use_detector
from tests.commands import Shell


def test_a_bare_model_name_is_told_its_kind(shell: Shell) -> None:
    line = shell.run("run", "mquest", "--model", "gpt-4o").err
    assert "unknown model kind 'gpt-4o'" in line
    assert "openai/gpt-4o" in line


def test_reports_leave_unfinished_runs_out_and_name_them(shell: Shell) -> None:
    done = shell.run("run", "mquest", "--model", "baseline/longest", "--limit", "2")
    assert done.code == 0
    (run,) = (shell.folder / "runs").iterdir()
    half = shell.folder / "runs" / "half"
    half.mkdir()
    (half / "run.json").write_bytes((run / "run.json").read_bytes())
    (shell.folder / "runs" / "other").mkdir()
    folders = sorted((shell.folder / "runs").iterdir())
    shown = shell.run("report", *folders, "--out", shell.folder / "report.html")
    assert shown.code == 0
    assert f"skipped: {half} has no readable scores.json" in " ".join(shown.err.split())
    assert "other is not a run directory" in " ".join(shown.err.split())
    assert split_unfinished([run]) == ([run], {})
    with pytest.raises(StoreError, match="not a run directory"):
        split_unfinished([shell.folder / "runs" / "other"])


def test_a_detector_in_use_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    assert find_detector() is None
    mine = mm.Detector.load_sample().save(tmp_path / "mine.zip")
    assert use_detector(mine) == mine
    assert find_detector() == mine
    assert find_detector("another.zip") == Path("another.zip")  # a named one counts first
    mine.unlink()
    with pytest.raises(InputError, match="the default detector does not exist any more"):
        find_detector()
    (tmp_path / "home" / "detector.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be read"):
        find_detector()
    forget_detector()
    forget_detector()
    assert find_detector() is None


def test_what_is_no_detector_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    (tmp_path / "x.zip").write_bytes(b"no")
    with pytest.raises(MemanticsError):
        use_detector(tmp_path / "x.zip")
    assert find_detector() is None
