"""Every kind of model: ours, and those of packages that are installed beside us."""

from __future__ import annotations

from memantics.core.errors import InputError, UnknownName
from memantics.core.model import Model
from memantics.core.plugins import Plugins
from memantics.models.kinds import ModelKind, ModelSettings

MODEL_KINDS = Plugins(
    "memantics.models",
    ModelKind,
    {
        "openai": "memantics.models.openai:KIND",
        "local": "memantics.models.local:KIND",
        "embedded": "memantics.registry.models:EMBEDDED",
        "llm": "memantics.models.llm:KIND",
        "baseline": "memantics.models.baseline:KIND",
        "recorded": "memantics.models.recorded:KIND",
        "humans": "memantics.models.humans:KIND",
        "inspect": "memantics.models.inspect:KIND",
        "fake": "memantics.models.fake:KIND",
        "detector": "memantics.registry.models:DETECTOR",
    },
)


def open_model(name: str, settings: ModelSettings) -> Model:
    """The model called ``KIND/NAME``."""
    head, _, rest = name.partition("/")
    kind = MODEL_KINDS.find(head)
    if kind is None:
        known = ", ".join(sorted(MODEL_KINDS.names()))
        hint = f"for a model on a server write openai/{name}; known: {known}"
        raise InputError(f"unknown kind of model {head!r}", hint=hint)
    if not rest:
        raise InputError(f"model {name!r} lacks its name", hint=f"such as {kind.example}")
    return kind.open(name, settings)


# Made of rooms that the models themselves do not know.


def _open_detector(name: str, settings: ModelSettings) -> Model:
    from memantics.detector.answering import DetectorModel, open_writer

    return open_writer(name, settings.params) or DetectorModel(name)


def _open_embedded(name: str, _: ModelSettings) -> Model:
    """The embedded reader with the phonetic engine and the experts in use."""
    from memantics.detector.opinions import open_judges
    from memantics.models.embedded import EmbeddedReader
    from memantics.models.embedded.reader import open_senses
    from memantics.registry.ear import PhoneticEar
    from memantics.vision.roles import read_image_text

    if name != EmbeddedReader.name:
        raise UnknownName("model", name, [EmbeddedReader.name])
    return EmbeddedReader(open_senses(open_judges(), PhoneticEar, read_image_text))


EMBEDDED = ModelKind(
    "embedded", "embedded/reader", "our offline baseline, not a VLM", _open_embedded
)
DETECTOR = ModelKind(
    "detector",
    "detector/FILE",
    "a detector of harmful memes: fast, neural, exported or LoRA; or a tuned writer of intents",
    _open_detector,
)
