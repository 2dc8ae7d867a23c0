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
    from memantics import starter as starter
    from memantics.actions import build as build
    from memantics.actions.analyze import Analysis as Analysis
    from memantics.actions.analyze import analyze as analyze
    from memantics.actions.analyze import analyze_async as analyze_async
    from memantics.actions.answers import Exported as Exported
    from memantics.actions.answers import ExportSettings as ExportSettings
    from memantics.actions.answers import Imported as Imported
    from memantics.actions.answers import ImportSettings as ImportSettings
    from memantics.actions.answers import export_task as export_task
    from memantics.actions.answers import import_answers as import_answers
    from memantics.actions.audit import Audit as Audit
    from memantics.actions.audit import audit as audit
    from memantics.actions.chains import audit_chains as audit_chains
    from memantics.actions.chat_quality import ChatFigures as ChatFigures
    from memantics.actions.chat_quality import measure_chats as measure_chats
    from memantics.actions.collect import collect as collect
    from memantics.actions.compare import FactorContrasts as FactorContrasts
    from memantics.actions.compare import PowerAnalysis as PowerAnalysis
    from memantics.actions.compare import SuiteComparison as SuiteComparison
    from memantics.actions.compare import compare as compare
    from memantics.actions.compare import contrast as contrast
    from memantics.actions.compare import power as power
    from memantics.actions.datasets import Dataset as Dataset
    from memantics.actions.datasets import list_benchmarks as list_benchmarks
    from memantics.actions.datasets import list_models as list_models
    from memantics.actions.datasets import load_dataset as load_dataset
    from memantics.actions.demo import Tour as Tour
    from memantics.actions.demo import demo as demo
    from memantics.actions.detect import Detector as Detector
    from memantics.actions.drift import Drift as Drift
    from memantics.actions.drift import DriftLimits as DriftLimits
    from memantics.actions.drift import drift as drift
    from memantics.actions.edit import Edited as Edited
    from memantics.actions.edit import edit as edit
    from memantics.actions.edit import edit_async as edit_async
    from memantics.actions.evaluate import Run as Run
    from memantics.actions.evaluate import Runs as Runs
    from memantics.actions.evaluate import evaluate as evaluate
    from memantics.actions.evaluate import evaluate_async as evaluate_async
    from memantics.actions.evaluate import load_run as load_run
    from memantics.actions.evaluate import results as results
    from memantics.actions.expert import Expert as Expert
    from memantics.actions.expert import ExpertOptions as ExpertOptions
    from memantics.actions.humans import HumanScores as HumanScores
    from memantics.actions.humans import export_humans as export_humans
    from memantics.actions.humans import score_humans as score_humans
    from memantics.actions.humans import score_preferences as score_preferences
    from memantics.actions.judge import Judgement as Judgement
    from memantics.actions.judge import judge as judge
    from memantics.actions.judge import judge_async as judge_async
    from memantics.actions.knowledge import KnowledgeStore as KnowledgeStore
    from memantics.actions.knowledge import NearMeme as NearMeme
    from memantics.actions.knowledge import Passage as Passage
    from memantics.actions.knowledge import retrieve as retrieve
    from memantics.actions.knowledge import retrieve_background as retrieve_background
    from memantics.actions.look_alikes import Grouped as Grouped
    from memantics.actions.look_alikes import group_look_alikes as group_look_alikes
    from memantics.actions.paper import RedonePaper as RedonePaper
    from memantics.actions.paper import paper as paper
    from memantics.actions.phonetics import PunVerdict as PunVerdict
    from memantics.actions.phonetics import detect_pun as detect_pun
    from memantics.actions.phonetics import detect_pun_async as detect_pun_async
    from memantics.actions.phonetics import read_aloud as read_aloud
    from memantics.actions.probe import ProbeReport as ProbeReport
    from memantics.actions.probe import probe as probe
    from memantics.actions.probe import probe_async as probe_async
    from memantics.actions.publish import publish as publish
    from memantics.actions.reappraise import Reappraisal as Reappraisal
    from memantics.actions.reappraise import ReappraisalDrafts as ReappraisalDrafts
    from memantics.actions.reappraise import reappraisal as reappraisal
    from memantics.actions.reappraise import reappraisal_async as reappraisal_async
    from memantics.actions.reappraise import reappraise as reappraise
    from memantics.actions.reappraise import reappraise_async as reappraise_async
    from memantics.actions.remake import Remade as Remade
    from memantics.actions.remake import remake as remake
    from memantics.actions.remake import remake_async as remake_async
    from memantics.actions.report import report as report
    from memantics.actions.score import score as score
    from memantics.actions.screen import Screened as Screened
    from memantics.actions.screen import ScreenSettings as ScreenSettings
    from memantics.actions.screen import screen as screen
    from memantics.actions.study import Study as Study
    from memantics.actions.study import study as study
    from memantics.core.errors import DataError as DataError
    from memantics.core.errors import ImageError as ImageError
    from memantics.core.errors import InputError as InputError
    from memantics.core.errors import MemanticsError as MemanticsError
    from memantics.core.errors import MissingExtra as MissingExtra
    from memantics.core.errors import ModelError as ModelError
    from memantics.core.errors import UnknownName as UnknownName

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
    "actions.knowledge": (
        "KnowledgeStore",
        "NearMeme",
        "Passage",
        "retrieve",
        "retrieve_background",
    ),
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

# Type checkers read the imports above: ``A as A`` says that a name is handed on.
_NAMES = sorted((*_HOME, *_MODULES, "__version__"))
__all__ = list(_NAMES)


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
