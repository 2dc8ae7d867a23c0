"""Other packages add models and report formats; a broken one harms nobody else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import memantics as mm
from memantics.core.errors import InputError
from memantics.core.plugins import Plugins
from memantics.evaluation.metrics import METRICS
from memantics.evaluation.reports.tables import REPORT_FORMS
from memantics.models.kinds import MODEL_KINDS, ModelKind
from tests.commands import Shell
from tests.places import ROOT
from tests.plugins.conftest import Install

FAULTS = {
    "missing": ("gone_module:KIND", "cannot be loaded: ModuleNotFoundError: No module named"),
    "raising": ("raising:KIND", "cannot be loaded: ZeroDivisionError: division by zero"),
    "nameless": ("memantics_says:NONE", "cannot be loaded: AttributeError"),
    "other": ("memantics_says:REPORT", "is not a ModelKind"),
}


@pytest.mark.usefixtures("says")
def test_a_model_and_a_page_of_another_package(shell: Shell) -> None:
    ran = shell.run("run", "mquest/qa", "--model", "says/A", "--limit", "4", "--out", "runs")
    assert ran.code == 0, ran
    (run,) = (shell.folder / "runs").iterdir()
    answers = (run / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(answer)["reply"]["text"] for answer in answers} == {"A"}
    page = shell.run("report", run, "--format", "list")
    assert page.code == 0, page
    assert "<li>says/A on mquest/qa: " in page.out
    written = mm.report(run, shell.folder / "runs.list")
    assert written.read_text(encoding="utf-8") == page.out.rstrip("\n")
    assert "says/WORD" in shell.run("models", "list").out


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_plug_in_is_one_line_and_harms_no_other(
    says: Install, shell: Shell, fault: str
) -> None:
    value, reason = FAULTS[fault]
    site = says("broken", {"memantics.models": {"broken": value}})
    (site / "raising.py").write_text("KIND = 1 / 0\n", encoding="utf-8")
    ran = shell.run("run", "mquest/qa", "--model", "broken/X", "--limit", "1")
    assert ran.code == 2
    assert f"plug-in 'broken' ({value} of broken 1.0)" in ran.err
    assert reason in ran.err
    assert "Traceback" not in ran.err
    listed = shell.run("models", "list", "--json")
    assert listed.code == 0
    kinds = {kind["name"]: kind["what"] for kind in json.loads(listed.out)}
    assert reason in kinds["broken/…"]
    assert {"says/WORD", "openai/NAME"} <= set(kinds)


def test_names_of_ours_cannot_be_taken_and_two_packages_share_none(says: Install) -> None:
    taken = {"memantics.models": {"openai": "memantics_says:KIND", "says": "memantics_says:KIND"}}
    says("another", taken)
    openai = MODEL_KINDS.find("openai")
    assert openai is not None
    assert openai.kind == "openai"
    with pytest.raises(InputError, match=r"provided by another 1\.0 and memantics-says 1\.0"):
        MODEL_KINDS.find("says")
    kinds = dict(MODEL_KINDS.all())
    assert isinstance(kinds["says"], InputError)
    assert isinstance(kinds["openai"], ModelKind)


def test_a_package_that_is_on_the_path_twice_is_one(
    says: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tmp_path / "site", tmp_path / "again")
    monkeypatch.syspath_prepend(tmp_path / "again")
    kind = MODEL_KINDS.find("says")
    assert kind is not None
    assert kind.example == "says/WORD"


def test_packages_are_looked_through_only_for_names_that_are_not_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**_: str) -> None:
        raise AssertionError("metadata were read")

    monkeypatch.setattr("memantics.core.plugins.entry_points", refuse)
    for plugins in (MODEL_KINDS, METRICS, REPORT_FORMS):
        assert isinstance(plugins, Plugins)
        assert all(isinstance(plugins.find(name), plugins.kind) for name in plugins.ours)
    with pytest.raises(AssertionError, match="metadata"):
        MODEL_KINDS.find("says")


def test_an_unknown_form_is_told_the_known_ones(shell: Shell) -> None:
    run = next((ROOT / "tests" / "compat" / "fixtures" / "runs").iterdir())
    ran = shell.run("report", run, "--format", "pdf")
    assert ran.code == 2
    assert "unknown format 'pdf'" in ran.err
    assert "csv, html, json, latex, md" in ran.err
