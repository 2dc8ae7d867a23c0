"""The public names: a closed list, loaded when used, typed as they are."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

import memantics as mm
from tests.places import ROOT

NAMES = [
    "Analysis",
    "Audit",
    "ChatFigures",
    "DataError",
    "Dataset",
    "Detector",
    "Drift",
    "DriftLimits",
    "Edited",
    "Expert",
    "ExpertOptions",
    "ExportSettings",
    "Exported",
    "FactorContrasts",
    "Grouped",
    "HumanScores",
    "ImageError",
    "ImportSettings",
    "Imported",
    "InputError",
    "Judgement",
    "KnowledgeStore",
    "MemanticsError",
    "MissingExtra",
    "ModelError",
    "NearMeme",
    "Passage",
    "PowerAnalysis",
    "ProbeReport",
    "PunVerdict",
    "Reappraisal",
    "ReappraisalDrafts",
    "RedonePaper",
    "Remade",
    "Run",
    "Runs",
    "ScreenSettings",
    "Screened",
    "Study",
    "SuiteComparison",
    "Tour",
    "UnknownName",
    "__version__",
    "analyze",
    "analyze_async",
    "audit",
    "audit_chains",
    "build",
    "collect",
    "compare",
    "contrast",
    "demo",
    "detect_pun",
    "detect_pun_async",
    "drift",
    "edit",
    "edit_async",
    "evaluate",
    "evaluate_async",
    "export_humans",
    "export_task",
    "group_look_alikes",
    "import_answers",
    "judge",
    "judge_async",
    "list_benchmarks",
    "list_models",
    "load_dataset",
    "load_run",
    "measure_chats",
    "paper",
    "power",
    "probe",
    "probe_async",
    "publish",
    "read_aloud",
    "reappraisal",
    "reappraisal_async",
    "reappraise",
    "reappraise_async",
    "remake",
    "remake_async",
    "report",
    "results",
    "retrieve",
    "retrieve_background",
    "score",
    "score_humans",
    "score_preferences",
    "screen",
    "starter",
    "study",
]
HEAVY = {"aiohttp", "numpy", "pydantic", "PIL", "rich", "typer", "torch", "pyarrow", "jieba"}


def test_the_list_is_what_is_promised() -> None:
    assert mm.__all__ == NAMES
    assert dir(mm) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there_and_documented(name: str) -> None:
    found = getattr(mm, name)
    assert name == "__version__" or inspect.getdoc(found)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        mm.evalute  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_and_the_table_agree() -> None:
    tree = ast.parse((ROOT / "src/memantics/__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        (alias.name, (node.module or "").removeprefix("memantics."))
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    table = {(name, place) for place, names in mm._PLACES.items() for name in names}
    assert typed == table | {("build", "actions"), ("starter", "memantics")}
    assert {name for name, _ in typed} | {"__version__"} == set(NAMES)


def test_verbs_stay_verbs_when_rooms_of_the_same_name_are_imported() -> None:
    code = (
        "import memantics.report.tables, memantics.reappraise.records, memantics.build.extract\n"
        "import memantics as mm\n"
        "assert callable(mm.report) and callable(mm.reappraise) and callable(mm.build.knowledge)\n"
        "from memantics import report\n"
        "assert report is mm.report\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_importing_loads_nothing_heavy() -> None:
    code = "import memantics, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & HEAVY == set()
