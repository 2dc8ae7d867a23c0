"""The public names: a closed list, loaded when used, typed as they are."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import memantics as mm
from memantics.core.lazy import read_offers
from tests.places import ROOT

NAMES = [
    "Analysis",
    "AnalyzeSettings",
    "AppealQueue",
    "Audit",
    "AuditSettings",
    "CallSettings",
    "ChatMetrics",
    "CheckedPolicy",
    "Classifier",
    "ClassifierOptions",
    "CollectSettings",
    "DataError",
    "Dataset",
    "Decision",
    "DecisionSummary",
    "Delivered",
    "Detector",
    "DraftSettings",
    "Drift",
    "DriftLimits",
    "Edited",
    "EditorSettings",
    "EvaluationSettings",
    "ExportSettings",
    "Exported",
    "ExportedStatements",
    "FactorContrasts",
    "Grouped",
    "HumanScores",
    "ImageError",
    "ImportSettings",
    "Imported",
    "InputError",
    "JudgeComparison",
    "JudgeDrift",
    "Judgement",
    "KnowledgeStore",
    "MemanticsError",
    "MissingExtra",
    "ModelError",
    "NearMeme",
    "Passage",
    "PerturbationReport",
    "PolicyDifference",
    "PolicyTest",
    "PolicyTestSettings",
    "PowerAnalysis",
    "PunVerdict",
    "RatingPlan",
    "Reappraisal",
    "ReappraisalDrafts",
    "ReappraiseSettings",
    "RecordedDecisions",
    "Regenerated",
    "ReproducedPaper",
    "ResolvedAppeals",
    "Retained",
    "ReviewerAccuracy",
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
    "VerifiedLog",
    "__version__",
    "analyze",
    "analyze_async",
    "appeal_decision",
    "audit",
    "audit_reasoning",
    "build",
    "check_policy",
    "collect",
    "compare",
    "compare_judges",
    "compare_judges_async",
    "compare_questions",
    "contrast",
    "deliver_webhooks",
    "demo",
    "detect_pun",
    "detect_pun_async",
    "diff_policies",
    "draft_reappraisals",
    "draft_reappraisals_async",
    "drift",
    "edit",
    "edit_async",
    "evaluate",
    "evaluate_async",
    "evaluate_suite",
    "evaluate_suite_async",
    "explain_case",
    "export_decisions",
    "export_human_eval",
    "export_task",
    "group_hard_negatives",
    "import_answers",
    "init_policy",
    "judge",
    "judge_async",
    "judge_drift",
    "judge_drift_async",
    "list_benchmarks",
    "list_models",
    "load_dataset",
    "load_run",
    "measure_chats",
    "measure_negative",
    "measure_policy",
    "measure_reviewers",
    "paper",
    "perturb",
    "perturb_async",
    "plan_ratings",
    "power",
    "publish",
    "queue_appeals",
    "rate_questions",
    "read_homophones",
    "reappraise",
    "reappraise_async",
    "record_reviews",
    "regenerate",
    "regenerate_async",
    "report",
    "resolve_appeals",
    "results",
    "retain_decisions",
    "retrieve",
    "retrieve_background",
    "samples",
    "score",
    "score_human_eval",
    "score_preferences",
    "score_subsets",
    "screen",
    "show_policy",
    "study",
    "summarise_decisions",
    "summarise_ratings",
    "verify_decisions",
]
HEAVY = {"aiohttp", "numpy", "pydantic", "PIL", "rich", "typer", "torch", "pyarrow", "jieba"}


def test_the_list_is_what_is_promised() -> None:
    assert mm.__all__ == NAMES
    assert dir(mm) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there_and_documented(name: str) -> None:
    found = getattr(mm, name)
    assert name == "__version__" or inspect.getdoc(found)


@pytest.mark.parametrize("name", [name for name in NAMES if name[0].islower()])
def test_a_function_names_every_parameter_its_result_and_an_example(name: str) -> None:
    function = getattr(mm, name)
    if not inspect.isfunction(function):
        return
    told = inspect.getdoc(function) or ""
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD, "options are parameters"
        assert parameter.annotation is not inspect.Parameter.empty
        assert re.search(rf"\b{parameter.name}\b", told), f"{parameter.name} has no description"
    assert "Returns:" in told
    assert ">>>" in told


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


def test_a_module_is_found_before_any_other_name_was_used() -> None:
    """``mm.samples`` is a module of a package that imports none of its modules."""
    code = "import memantics as mm; print(mm.samples.copy.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "copy"
