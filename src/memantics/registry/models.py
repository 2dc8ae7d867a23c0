"""Every kind of model: ours, and those of packages that are installed beside us."""

from __future__ import annotations

from memantics.core.errors import InputError
from memantics.core.model import Model
from memantics.core.plugins import Plugins
from memantics.models.kinds import ModelKind, ModelSettings

MODEL_KINDS = Plugins(
    "memantics.models",
    ModelKind,
    {
        "openai": "memantics.models.openai:KIND",
        "local": "memantics.models.local:KIND",
        "embedded": "memantics.registry.ear:KIND",
        "llm": "memantics.models.llm:KIND",
        "baseline": "memantics.models.baseline:KIND",
        "recorded": "memantics.models.recorded:KIND",
        "humans": "memantics.models.humans:KIND",
        "inspect": "memantics.models.inspect:KIND",
        "fake": "memantics.models.fake:KIND",
        "detector": "memantics.detector.answering:KIND",
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
