"""Every kind of model, also those made of rooms that the models themselves do not know."""

from __future__ import annotations

from dataclasses import replace

from memantics.core.model import Model
from memantics.models.kinds import MODEL_KINDS as PLAIN_KINDS
from memantics.models.kinds import ModelKind, ModelSettings, open_kind


def _open_detector(name: str, settings: ModelSettings) -> Model:
    from memantics.detector.answering import DetectorModel, open_writer

    return open_writer(name, settings.params) or DetectorModel(name)


def _open_embedded(name: str, settings: ModelSettings) -> Model:
    """The embedded reader with the phonetic engine and the experts in use."""
    from memantics.detector.opinions import open_judges
    from memantics.models.embedded import EmbeddedReader
    from memantics.models.embedded.reader import open_senses
    from memantics.registry.ear import PhoneticEar

    if name != EmbeddedReader.name:
        return _PLAIN["embedded"].open(name, settings)
    return EmbeddedReader(open_senses(open_judges(), PhoneticEar))


_PLAIN = {kind.kind: kind for kind in PLAIN_KINDS}
MODEL_KINDS = (
    *(
        replace(kind, open=_open_embedded) if kind.kind == "embedded" else kind
        for kind in PLAIN_KINDS
    ),
    ModelKind(
        "detector",
        "detector/FILE",
        "a detector of harmful memes: fast, neural, exported or LoRA; or a tuned writer of intents",
        _open_detector,
    ),
)


def open_model(name: str, settings: ModelSettings) -> Model:
    """The model called ``KIND/NAME``."""
    return open_kind(name, settings, MODEL_KINDS)
