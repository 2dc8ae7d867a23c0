"""Every kind of model, also those made of rooms that the models themselves do not know."""

from __future__ import annotations

from memantics.core.model import Model
from memantics.models.kinds import MODEL_KINDS as PLAIN_KINDS
from memantics.models.kinds import ModelKind, ModelSettings, open_kind


def _open_detector(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    from memantics.detector.answering import DetectorModel

    return DetectorModel(name)


MODEL_KINDS = (
    *PLAIN_KINDS,
    ModelKind(
        "detector",
        "detector/FILE",
        "a detector of harmful memes: fast, neural, exported or LoRA",
        _open_detector,
    ),
)


def open_model(name: str, settings: ModelSettings) -> Model:
    """The model called ``KIND/NAME``."""
    return open_kind(name, settings, MODEL_KINDS)
