"""Memantics: a workbench for computational meme understanding.

>>> import memantics as mm
>>> mm.read_homophones("压力山大").caption
'压力山大'

``docs/how-to/use-from-python.md`` documents every function. Each name is loaded at its first use,
so that the import is fast.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

# Packages below us report their use to their makers, unless these are set before they are loaded.
for _quiet, _value in (
    ("ORT_DISABLE_TELEMETRY", "1"),
    ("HF_HUB_DISABLE_TELEMETRY", "1"),
    ("RAY_USAGE_STATS_ENABLED", "0"),
):
    os.environ.setdefault(_quiet, _value)

__version__ = "0.3.0"
__all__ = ["__version__"]

if TYPE_CHECKING:
    from memantics.construction import ChatMetrics as ChatMetrics
    from memantics.construction import CollectSettings as CollectSettings
    from memantics.construction import Grouped as Grouped
    from memantics.construction import Regenerated as Regenerated
    from memantics.construction import build as build
    from memantics.construction import collect as collect
    from memantics.construction import compare_questions as compare_questions
    from memantics.construction import group_hard_negatives as group_hard_negatives
    from memantics.construction import measure_chats as measure_chats
    from memantics.construction import publish as publish
    from memantics.construction import rate_questions as rate_questions
    from memantics.construction import regenerate as regenerate
    from memantics.construction import regenerate_async as regenerate_async
    from memantics.construction import summarise_ratings as summarise_ratings
    from memantics.core import samples as samples
    from memantics.core.errors import DataError as DataError
    from memantics.core.errors import ImageError as ImageError
    from memantics.core.errors import InputError as InputError
    from memantics.core.errors import MemanticsError as MemanticsError
    from memantics.core.errors import MissingExtra as MissingExtra
    from memantics.core.errors import ModelError as ModelError
    from memantics.core.errors import UnknownName as UnknownName
    from memantics.core.retrieval import NearMeme as NearMeme
    from memantics.core.retrieval import Passage as Passage
    from memantics.evaluation import Audit as Audit
    from memantics.evaluation import AuditSettings as AuditSettings
    from memantics.evaluation import Dataset as Dataset
    from memantics.evaluation import EvaluationSettings as EvaluationSettings
    from memantics.evaluation import Exported as Exported
    from memantics.evaluation import ExportSettings as ExportSettings
    from memantics.evaluation import FactorContrasts as FactorContrasts
    from memantics.evaluation import HumanScores as HumanScores
    from memantics.evaluation import Imported as Imported
    from memantics.evaluation import ImportSettings as ImportSettings
    from memantics.evaluation import JudgeComparison as JudgeComparison
    from memantics.evaluation import JudgeDrift as JudgeDrift
    from memantics.evaluation import Judgement as Judgement
    from memantics.evaluation import PerturbationReport as PerturbationReport
    from memantics.evaluation import PowerAnalysis as PowerAnalysis
    from memantics.evaluation import RatingPlan as RatingPlan
    from memantics.evaluation import ReproducedPaper as ReproducedPaper
    from memantics.evaluation import Run as Run
    from memantics.evaluation import Runs as Runs
    from memantics.evaluation import SuiteComparison as SuiteComparison
    from memantics.evaluation import audit as audit
    from memantics.evaluation import audit_reasoning as audit_reasoning
    from memantics.evaluation import compare as compare
    from memantics.evaluation import compare_judges as compare_judges
    from memantics.evaluation import compare_judges_async as compare_judges_async
    from memantics.evaluation import contrast as contrast
    from memantics.evaluation import evaluate as evaluate
    from memantics.evaluation import evaluate_async as evaluate_async
    from memantics.evaluation import evaluate_suite as evaluate_suite
    from memantics.evaluation import evaluate_suite_async as evaluate_suite_async
    from memantics.evaluation import export_human_eval as export_human_eval
    from memantics.evaluation import export_task as export_task
    from memantics.evaluation import import_answers as import_answers
    from memantics.evaluation import judge as judge
    from memantics.evaluation import judge_async as judge_async
    from memantics.evaluation import judge_drift as judge_drift
    from memantics.evaluation import judge_drift_async as judge_drift_async
    from memantics.evaluation import list_benchmarks as list_benchmarks
    from memantics.evaluation import list_models as list_models
    from memantics.evaluation import load_dataset as load_dataset
    from memantics.evaluation import load_run as load_run
    from memantics.evaluation import paper as paper
    from memantics.evaluation import perturb as perturb
    from memantics.evaluation import perturb_async as perturb_async
    from memantics.evaluation import plan_ratings as plan_ratings
    from memantics.evaluation import power as power
    from memantics.evaluation import report as report
    from memantics.evaluation import results as results
    from memantics.evaluation import score as score
    from memantics.evaluation import score_human_eval as score_human_eval
    from memantics.evaluation import score_preferences as score_preferences
    from memantics.evaluation import score_subsets as score_subsets
    from memantics.models import CallSettings as CallSettings
    from memantics.moderation import AppealQueue as AppealQueue
    from memantics.moderation import CheckedPolicy as CheckedPolicy
    from memantics.moderation import Classifier as Classifier
    from memantics.moderation import ClassifierOptions as ClassifierOptions
    from memantics.moderation import Decision as Decision
    from memantics.moderation import DecisionSummary as DecisionSummary
    from memantics.moderation import Delivered as Delivered
    from memantics.moderation import Detector as Detector
    from memantics.moderation import Drift as Drift
    from memantics.moderation import DriftLimits as DriftLimits
    from memantics.moderation import ExportedStatements as ExportedStatements
    from memantics.moderation import PolicyDifference as PolicyDifference
    from memantics.moderation import PolicyTest as PolicyTest
    from memantics.moderation import PolicyTestSettings as PolicyTestSettings
    from memantics.moderation import RecordedDecisions as RecordedDecisions
    from memantics.moderation import ResolvedAppeals as ResolvedAppeals
    from memantics.moderation import Retained as Retained
    from memantics.moderation import ReviewerAccuracy as ReviewerAccuracy
    from memantics.moderation import Screened as Screened
    from memantics.moderation import ScreenSettings as ScreenSettings
    from memantics.moderation import Study as Study
    from memantics.moderation import StudyEncoders as StudyEncoders
    from memantics.moderation import StudySettings as StudySettings
    from memantics.moderation import TableColumns as TableColumns
    from memantics.moderation import VerifiedLog as VerifiedLog
    from memantics.moderation import appeal_decision as appeal_decision
    from memantics.moderation import check_policy as check_policy
    from memantics.moderation import deliver_webhooks as deliver_webhooks
    from memantics.moderation import diff_policies as diff_policies
    from memantics.moderation import drift as drift
    from memantics.moderation import explain_case as explain_case
    from memantics.moderation import export_decisions as export_decisions
    from memantics.moderation import init_policy as init_policy
    from memantics.moderation import measure_negative as measure_negative
    from memantics.moderation import measure_policy as measure_policy
    from memantics.moderation import measure_reviewers as measure_reviewers
    from memantics.moderation import queue_appeals as queue_appeals
    from memantics.moderation import record_reviews as record_reviews
    from memantics.moderation import resolve_appeals as resolve_appeals
    from memantics.moderation import retain_decisions as retain_decisions
    from memantics.moderation import screen as screen
    from memantics.moderation import show_policy as show_policy
    from memantics.moderation import study as study
    from memantics.moderation import summarise_decisions as summarise_decisions
    from memantics.moderation import verify_decisions as verify_decisions
    from memantics.understanding import DraftSettings as DraftSettings
    from memantics.understanding import Edited as Edited
    from memantics.understanding import EditorSettings as EditorSettings
    from memantics.understanding import KnowledgeStore as KnowledgeStore
    from memantics.understanding import PunVerdict as PunVerdict
    from memantics.understanding import Reappraisal as Reappraisal
    from memantics.understanding import ReappraisalDrafts as ReappraisalDrafts
    from memantics.understanding import ReappraiseSettings as ReappraiseSettings
    from memantics.understanding import detect_pun as detect_pun
    from memantics.understanding import detect_pun_async as detect_pun_async
    from memantics.understanding import draft_reappraisals as draft_reappraisals
    from memantics.understanding import draft_reappraisals_async as draft_reappraisals_async
    from memantics.understanding import edit as edit
    from memantics.understanding import edit_async as edit_async
    from memantics.understanding import read_homophones as read_homophones
    from memantics.understanding import reappraise as reappraise
    from memantics.understanding import reappraise_async as reappraise_async
    from memantics.understanding import retrieve as retrieve
    from memantics.understanding import retrieve_background as retrieve_background
    from memantics.workbench import Analysis as Analysis
    from memantics.workbench import AnalyzeSettings as AnalyzeSettings
    from memantics.workbench import Tour as Tour
    from memantics.workbench import analyze as analyze
    from memantics.workbench import analyze_async as analyze_async
    from memantics.workbench import demo as demo
else:
    from memantics.core.lazy import offer

    offer(__name__, __file__)
