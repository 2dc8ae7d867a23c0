"""The public names: a closed list, loaded when used, typed as they are."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import memantics as mm
from memantics.core.lazy import read_offers
from tests.places import ROOT

NAMES = [
    "Analysis",
    "AnalyzeSettings",
    "Audit",
    "AuditSettings",
    "CallSettings",
    "ChatMetrics",
    "Classifier",
    "ClassifierOptions",
    "CollectSettings",
    "DataError",
    "Dataset",
    "Detector",
    "DraftSettings",
    "Drift",
    "DriftLimits",
    "Edited",
    "EditorSettings",
    "EvaluationSettings",
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
    "PerturbationReport",
    "PowerAnalysis",
    "PunVerdict",
    "Reappraisal",
    "ReappraisalDrafts",
    "ReappraiseSettings",
    "Regenerated",
    "ReproducedPaper",
    "Run",
    "Runs",
    "ScreenSettings",
    "Screened",
    "Study",
    "StudyEncoders",
    "StudySettings",
    "SuiteComparison",
    "TableColumns",
    "Tour",
    "UnknownName",
    "__version__",
    "analyze",
    "analyze_async",
    "audit",
    "audit_reasoning",
    "build",
    "collect",
    "compare",
    "contrast",
    "demo",
    "detect_pun",
    "detect_pun_async",
    "draft_reappraisals",
    "draft_reappraisals_async",
    "drift",
    "edit",
    "edit_async",
    "evaluate",
    "evaluate_async",
    "evaluate_suite",
    "evaluate_suite_async",
    "export_human_eval",
    "export_task",
    "group_hard_negatives",
    "import_answers",
    "judge",
    "judge_async",
    "list_benchmarks",
    "list_models",
    "load_dataset",
    "load_run",
    "measure_chats",
    "paper",
    "perturb",
    "perturb_async",
    "power",
    "publish",
    "read_homophones",
    "reappraise",
    "reappraise_async",
    "regenerate",
    "regenerate_async",
    "report",
    "results",
    "retrieve",
    "retrieve_background",
    "samples",
    "score",
    "score_human_eval",
    "score_preferences",
    "screen",
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


def test_what_the_package_offers_comes_from_the_packages_that_own_it() -> None:
    homes = read_offers((ROOT / "src/memantics/__init__.py").read_text(encoding="utf-8"))
    assert set(homes) | {"__version__"} == set(NAMES)
    depths = {
        home.count(".") for home, _ in homes.values() if not home.startswith("memantics.core")
    }
    assert depths == {1}, "import from memantics.PACKAGE, which says what it offers"


def test_verbs_stay_verbs_when_rooms_of_the_same_name_are_imported() -> None:
    code = (
        "import memantics.evaluation.report, memantics.understanding.reappraise\n"
        "import memantics.construction.build\n"
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
