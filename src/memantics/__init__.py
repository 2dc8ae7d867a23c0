"""Memantics: a workbench for computational meme understanding.

>>> import memantics as mm
>>> mm.read_aloud("压力山大").caption
'压力山大'

``docs/python.md`` shows every function. A name is loaded when it is first used, so that importing
the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

# Packages below us tell their makers who uses them, unless these are set before they are loaded.
for _quiet, _value in (
    ("ORT_DISABLE_TELEMETRY", "1"),
    ("HF_HUB_DISABLE_TELEMETRY", "1"),
    ("RAY_USAGE_STATS_ENABLED", "0"),
):
    os.environ.setdefault(_quiet, _value)

if TYPE_CHECKING:
    from memantics import starter
    from memantics.actions import build
    from memantics.actions.analyze import Analysis, analyze, analyze_async
    from memantics.actions.answers import (
        Exported,
        ExportSettings,
        Imported,
        ImportSettings,
        export_task,
        import_answers,
    )
    from memantics.actions.audit import Audit, audit
    from memantics.actions.chains import audit_chains
    from memantics.actions.chat_quality import ChatFigures, measure_chats
    from memantics.actions.collect import collect
    from memantics.actions.compare import (
        FactorContrasts,
        PowerAnalysis,
        SuiteComparison,
        compare,
        contrast,
        power,
    )
    from memantics.actions.datasets import Dataset, list_benchmarks, list_models, load_dataset
    from memantics.actions.demo import Tour, demo
    from memantics.actions.detect import Detector
    from memantics.actions.drift import Drift, DriftLimits, drift
    from memantics.actions.edit import Edited, edit, edit_async
    from memantics.actions.evaluate import Run, Runs, evaluate, evaluate_async, load_run, results
    from memantics.actions.expert import Expert, ExpertOptions
    from memantics.actions.humans import (
        HumanScores,
        export_humans,
        score_humans,
        score_preferences,
    )
    from memantics.actions.judge import Judgement, judge, judge_async
    from memantics.actions.knowledge import KnowledgeStore
    from memantics.actions.look_alikes import Grouped, group_look_alikes
    from memantics.actions.paper import RedonePaper, paper
    from memantics.actions.phonetics import (
        PunVerdict,
        detect_pun,
        detect_pun_async,
        read_aloud,
    )
    from memantics.actions.probe import ProbeReport, probe, probe_async
    from memantics.actions.publish import publish
    from memantics.actions.reappraise import (
        Reappraisal,
        ReappraisalDrafts,
        reappraisal,
        reappraisal_async,
        reappraise,
        reappraise_async,
    )
    from memantics.actions.remake import Remade, remake, remake_async
    from memantics.actions.report import report
    from memantics.actions.retrieve import NearMeme, Passage, retrieve, retrieve_background
    from memantics.actions.score import score
    from memantics.actions.screen import Screened, ScreenSettings, screen
    from memantics.actions.study import Study, study
    from memantics.core.errors import (
        DataError,
        ImageError,
        InputError,
        MemanticsError,
        MissingExtra,
        ModelError,
        UnknownName,
    )

__version__ = "0.2.0"

# Where each public name is defined. The list is closed: tests/test_exported_names.py holds it.
_PLACES = {
    "actions.analyze": ("Analysis", "analyze", "analyze_async"),
    "actions.answers": (
        "ExportSettings",
        "Exported",
        "ImportSettings",
        "Imported",
        "export_task",
        "import_answers",
    ),
    "actions.audit": ("Audit", "audit"),
    "actions.chains": ("audit_chains",),
    "actions.chat_quality": ("ChatFigures", "measure_chats"),
    "actions.collect": ("collect",),
    "actions.compare": (
        "FactorContrasts",
        "PowerAnalysis",
        "SuiteComparison",
        "compare",
        "contrast",
        "power",
    ),
    "actions.datasets": ("Dataset", "list_benchmarks", "list_models", "load_dataset"),
    "actions.demo": ("Tour", "demo"),
    "actions.detect": ("Detector",),
    "actions.edit": ("Edited", "edit", "edit_async"),
    "actions.evaluate": ("Run", "Runs", "evaluate", "evaluate_async", "load_run", "results"),
    "actions.expert": ("Expert", "ExpertOptions"),
    "actions.humans": (
        "HumanScores",
        "export_humans",
        "score_humans",
        "score_preferences",
    ),
    "actions.judge": ("Judgement", "judge", "judge_async"),
    "actions.knowledge": ("KnowledgeStore",),
    "actions.look_alikes": ("Grouped", "group_look_alikes"),
    "actions.paper": ("RedonePaper", "paper"),
    "actions.phonetics": ("PunVerdict", "detect_pun", "detect_pun_async", "read_aloud"),
    "actions.probe": ("ProbeReport", "probe", "probe_async"),
    "actions.publish": ("publish",),
    "actions.reappraise": (
        "Reappraisal",
        "ReappraisalDrafts",
        "reappraisal",
        "reappraisal_async",
        "reappraise",
        "reappraise_async",
    ),
    "actions.remake": ("Remade", "remake", "remake_async"),
    "actions.report": ("report",),
    "actions.retrieve": ("NearMeme", "Passage", "retrieve", "retrieve_background"),
    "actions.score": ("score",),
    "actions.drift": ("Drift", "DriftLimits", "drift"),
    "actions.screen": ("ScreenSettings", "Screened", "screen"),
    "actions.study": ("Study", "study"),
    "core.errors": (
        "DataError",
        "ImageError",
        "InputError",
        "MemanticsError",
        "MissingExtra",
        "ModelError",
        "UnknownName",
    ),
}
_MODULES = {"build": "memantics.actions.build", "starter": "memantics.starter"}
_HOME = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
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


if not TYPE_CHECKING:  # else a type checker would take any name for granted

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            value = importlib.import_module(_MODULES[name])
        elif name in _HOME:
            value = getattr(importlib.import_module(f"memantics.{_HOME[name]}"), name)
        else:
            raise AttributeError(f"module 'memantics' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__


class _Face(ModuleType):
    """Keeps verbs in place where a room has the same name, as ``memantics.report`` does.

    Importing a submodule binds it on its package, which would hide the public function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
