"""Homophones: what a caption may mean when it is read aloud.

>>> from memantics.phonetics import Settings, explain, read_aloud
>>> readings = read_aloud("压力山大", settings=Settings(model="dictionary"))
>>> readings.sound
'yā lì shān dà'
"""

from memantics.phonetics.detector import (
    FEATURES,
    DetectionScores,
    PunDetector,
    extract_features,
    score_detection,
)
from memantics.phonetics.evaluation import Figures, evaluate, format_figures
from memantics.phonetics.harm import StressScores, disguise, judge_aloud, stress
from memantics.phonetics.reading import (
    DoubleMeaning,
    Heard,
    Reading,
    Settings,
    SoundChange,
    explain,
    hint,
)
from memantics.phonetics.speech import read_aloud, read_many

__all__ = [
    "FEATURES",
    "DetectionScores",
    "DoubleMeaning",
    "Figures",
    "Heard",
    "PunDetector",
    "Reading",
    "Settings",
    "SoundChange",
    "StressScores",
    "disguise",
    "evaluate",
    "explain",
    "extract_features",
    "format_figures",
    "hint",
    "judge_aloud",
    "read_aloud",
    "read_many",
    "score_detection",
    "stress",
]
