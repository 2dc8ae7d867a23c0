"""Moderation of memes: train, evaluate and explain detectors and classifiers, screen, drift."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memantics.moderation.card import SAMPLE_LIMIT as SAMPLE_LIMIT
    from memantics.moderation.classifier import Classifier as Classifier
    from memantics.moderation.classifier import ClassifierOptions as ClassifierOptions
    from memantics.moderation.classifier import LabelInfo as LabelInfo
    from memantics.moderation.classifier import forget_classifier as forget_classifier
    from memantics.moderation.classifier import list_labels as list_labels
    from memantics.moderation.classifier import tabulate_labels as tabulate_labels
    from memantics.moderation.classifier import tabulate_predictions as tabulate_predictions
    from memantics.moderation.classifier import tabulate_used as tabulate_used
    from memantics.moderation.classifier import use_classifier as use_classifier
    from memantics.moderation.detect import Detector as Detector
    from memantics.moderation.detect import Measured as Measured
    from memantics.moderation.detect import Moderator as Moderator
    from memantics.moderation.detector import Compared as Compared
    from memantics.moderation.detector import Explained as Explained
    from memantics.moderation.detector import Predicted as Predicted
    from memantics.moderation.detector import TrainedFile as TrainedFile
    from memantics.moderation.detector import compare_detectors as compare_detectors
    from memantics.moderation.detector import explain_meme as explain_meme
    from memantics.moderation.detector import explain_meme_label as explain_meme_label
    from memantics.moderation.detector import measure_classifier as measure_classifier
    from memantics.moderation.detector import measure_detector as measure_detector
    from memantics.moderation.detector import predict_harm as predict_harm
    from memantics.moderation.detector import predict_labels as predict_labels
    from memantics.moderation.detector import train_classifier as train_classifier
    from memantics.moderation.detector import train_detector as train_detector
    from memantics.moderation.drift import DailySample as DailySample
    from memantics.moderation.drift import SampleChoice as SampleChoice
    from memantics.moderation.drift import choose_sample as choose_sample
    from memantics.moderation.drift import drift as drift
    from memantics.moderation.evaluation import DetectorEvaluation as DetectorEvaluation
    from memantics.moderation.explanation import Explanation as Explanation
    from memantics.moderation.explanation import LabelExplanation as LabelExplanation
    from memantics.moderation.judges import DetectorSummary as DetectorSummary
    from memantics.moderation.labels import LabelEvaluation as LabelEvaluation
    from memantics.moderation.lora.judging import PromptLanguage as PromptLanguage
    from memantics.moderation.lora.judging import QuestionStyle as QuestionStyle
    from memantics.moderation.lora.tuning import Tuning as Tuning
    from memantics.moderation.match_index import MatchEntry as MatchEntry
    from memantics.moderation.match_list import DetectorArgument as DetectorArgument
    from memantics.moderation.match_list import add_to_match_list as add_to_match_list
    from memantics.moderation.match_list import export_match_list as export_match_list
    from memantics.moderation.match_list import import_match_list as import_match_list
    from memantics.moderation.match_list import read_match_list as read_match_list
    from memantics.moderation.match_list import remove_from_match_list as remove_from_match_list
    from memantics.moderation.pages import Drift as Drift
    from memantics.moderation.pages import DriftLimits as DriftLimits
    from memantics.moderation.retrain import Retrained as Retrained
    from memantics.moderation.retrain import retrain as retrain
    from memantics.moderation.scale.driver import ScaleProgress as ScaleProgress
    from memantics.moderation.scale.tables import TableColumns as TableColumns
    from memantics.moderation.screen import Screened as Screened
    from memantics.moderation.screen import screen as screen
    from memantics.moderation.screening import ScreenSettings as ScreenSettings
    from memantics.moderation.study.running import STUDY as STUDY
    from memantics.moderation.study.running import Study as Study
    from memantics.moderation.study.study import StudySettings as StudySettings
    from memantics.moderation.study.study import study as study
    from memantics.moderation.study.variants import StudyEncoders as StudyEncoders
    from memantics.moderation.subjects import MOST_TEXT as MOST_TEXT
    from memantics.moderation.subjects import Subject as Subject
    from memantics.moderation.train_networks import TrainedNetwork as TrainedNetwork
    from memantics.moderation.train_networks import TunedModel as TunedModel
    from memantics.moderation.train_networks import TuneOptions as TuneOptions
    from memantics.moderation.train_networks import train_network as train_network
    from memantics.moderation.train_networks import tune_model as tune_model
    from memantics.moderation.training import ExportedDetector as ExportedDetector
    from memantics.moderation.training import PointSet as PointSet
    from memantics.moderation.training import export as export
    from memantics.moderation.training import find_detector as find_detector
    from memantics.moderation.training import forget_detector as forget_detector
    from memantics.moderation.training import set_point as set_point
    from memantics.moderation.training import tabulate as tabulate
    from memantics.moderation.training import use_detector as use_detector
    from memantics.moderation.verdict import HARMFUL as HARMFUL
    from memantics.moderation.verdict import Verdict as Verdict
    from memantics.moderation.wrap import WrappedDetector as WrappedDetector
    from memantics.moderation.wrap import wrap_classifier as wrap_classifier
else:
    from memantics.core.lazy import offer

    offer(__name__, __file__)
