"""What a kind of model is, and what a user may say about a model.

A kind is a module with a record ``KIND`` that :mod:`memantics.registry.models` names, or one that
another package names as an entry point of the group ``memantics.models``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memantics.core.model import Model
from memantics.models.params import read_params
from memantics.models.replies import json_or_text

if TYPE_CHECKING:
    from memantics.models.wire import WireSettings


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a user says about a model besides its name. ``params`` go to the server as they are."""

    base_url: str | None = None
    concurrency: int = 32
    timeout: float = 120.0
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelKind:
    """One kind of model: how it is named and what answers.

    ``open`` is given the whole name, ``KIND/NAME``; its errors are those of ``core.errors``.
    """

    kind: str
    example: str
    what: str
    open: Callable[[str, ModelSettings], Model]


def read_wire_settings(params: Mapping[str, str]) -> WireSettings:
    """``--param`` values: those the wire format knows by name, the rest into the body as JSON."""
    from memantics.models.wire import WireSettings

    known = WireSettings.model_fields.keys() - {"extra"}
    named = {name: value for name, value in params.items() if name in known}
    extra = {name: json_or_text(value) for name, value in params.items() if name not in named}
    return read_params(WireSettings, named | {"extra": extra}, "openai/… models")
