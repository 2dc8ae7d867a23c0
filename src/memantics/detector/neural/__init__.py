"""Networks that detect harmful memes (extra ``detector``); exported ones need no PyTorch."""

from memantics.detector.neural.asking import (
    Asked,
    Detector,
    Prediction,
    is_neural,
    open_neural,
    predict_neural,
    score_neural,
)
from memantics.detector.neural.export import export_onnx
from memantics.detector.neural.saved import load_neural
from memantics.detector.neural.seeds import Plan, Trained, train_neural
from memantics.detector.neural.settings import (
    PRESETS,
    Backbones,
    Shape,
    Training,
    check_backbones,
    choose_shape,
)

__all__ = [
    "PRESETS",
    "Asked",
    "Backbones",
    "Detector",
    "Plan",
    "Prediction",
    "Shape",
    "Trained",
    "Training",
    "check_backbones",
    "choose_shape",
    "export_onnx",
    "is_neural",
    "load_neural",
    "open_neural",
    "predict_neural",
    "score_neural",
    "train_neural",
]
