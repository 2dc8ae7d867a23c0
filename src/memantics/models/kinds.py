"""The kinds of models: names to objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from memantics.core.errors import InputError, UnknownName
from memantics.core.model import Model
from memantics.models.baseline import open_baseline
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
    """One kind of model: how it is named and what answers."""

    kind: str
    example: str
    what: str
    open: Callable[[str, ModelSettings], Model]


def open_kind(name: str, settings: ModelSettings, known: Sequence[ModelKind]) -> Model:
    """The model called ``KIND/NAME``, of one of the kinds."""
    kinds = {kind.kind: kind for kind in known}
    head, slash, rest = name.partition("/")
    if head not in kinds:
        hint = f"for a model on a server write openai/{name}; known: {', '.join(sorted(kinds))}"
        raise InputError(f"unknown kind of model {head!r}", hint=hint)
    if not slash or not rest:
        raise InputError(f"model {name!r} lacks its name", hint=f"such as {kinds[head].example}")
    return kinds[head].open(name, settings)


def _open_openai(name: str, settings: ModelSettings) -> Model:
    from memantics.models.openai import OpenAIModel, OpenAISettings

    base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL")
    if not base_url:
        raise InputError(
            f"model {name!r} needs the address of its server",
            hint="give --base-url, such as http://localhost:8000/v1, or set OPENAI_BASE_URL",
        )
    params = dict(settings.params)
    check = params.pop("check_name", "on")
    if check not in ("on", "off"):
        raise UnknownName("value of --param check_name:", check, ("on", "off"))
    return OpenAIModel(
        name.removeprefix("openai/"),
        base_url,
        os.environ.get("OPENAI_API_KEY", ""),
        OpenAISettings(
            wire=read_wire_settings(params),
            connections=settings.concurrency,
            timeout=settings.timeout,
            check_name=check != "off",
        ),
    )


def read_wire_settings(params: Mapping[str, str]) -> WireSettings:
    """``--param`` values: those the wire format knows by name, the rest into the body as JSON."""
    from memantics.models.wire import WireSettings

    closed = {
        "token_field": ("max_tokens", "max_completion_tokens"),
        "structured": ("strict", "object", "off"),
        "image_detail": ("auto", "low", "high"),
        "image_orientation": ("stored", "upright"),
    }
    named: dict[str, Any] = {}
    extra: dict[str, JsonValue] = {}
    for name, value in params.items():
        if name in closed:
            if value not in closed[name]:
                raise UnknownName(f"value of --param {name}:", value, closed[name])
            named[name] = value
        elif name in ("reasoning_effort", "thinking_field"):
            named[name] = value
        elif name in ("answer_tokens", "thinking_tokens", "top_logprobs"):
            named[name] = _read_count(name, value)
        else:
            extra[name] = json_or_text(value)
    return WireSettings(**named, extra=extra)


def _read_count(name: str, value: str) -> int:
    if value.isascii() and value.isdecimal() and 0 < len(value) < 8:
        return int(value)
    raise InputError(f"--param {name}={value} is no whole number", hint=f"such as {name}=20")


def _open_embedded(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    from memantics.models.embedded import EmbeddedReader

    if name != EmbeddedReader.name:
        raise UnknownName("model", name, [EmbeddedReader.name])
    return EmbeddedReader()


def _open_baseline(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    return open_baseline(name)


def _open_recorded(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    from memantics.models.recorded import RecordedModel

    return RecordedModel(Path(name.removeprefix("recorded/")))


def _open_humans(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    from memantics.models.humans import HumansModel

    return HumansModel(name)


def _open_fake(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    from memantics.models.fake import open_fake

    return open_fake(name)


def _open_inspect(name: str, settings: ModelSettings) -> Model:
    from memantics.models.inspect import InspectModel, InspectSettings

    return InspectModel(
        name,
        InspectSettings(
            base_url=settings.base_url,
            timeout=int(settings.timeout),
            connections=settings.concurrency,
        ),
    )


def _open_llm(name: str, settings: ModelSettings) -> Model:
    from memantics.models.llm import EmbeddedLlm, read_settings

    return EmbeddedLlm(name, read_settings(settings.params))


def _open_local(name: str, settings: ModelSettings) -> Model:
    from memantics.models.local import LocalModel, read_settings

    return LocalModel(name, read_settings(settings.params))


MODEL_KINDS = (
    ModelKind("openai", "openai/NAME", "any OpenAI-compatible server (--base-url)", _open_openai),
    ModelKind(
        "local",
        "local/PATH",
        "an open model in a folder here, through transformers (extra: local)",
        _open_local,
    ),
    ModelKind("embedded", "embedded/reader", "our offline baseline, not a VLM", _open_embedded),
    ModelKind(
        "llm",
        "llm/smollm2",
        "a tiny language model here, or llm/PATH.gguf; sees no image (extra: llm)",
        _open_llm,
    ),
    ModelKind(
        "baseline",
        "baseline/longest",
        "trivial: constant, longest, majority, positive, random",
        _open_baseline,
    ),
    ModelKind("recorded", "recorded/FILE", "answers of an earlier run, replayed", _open_recorded),
    ModelKind("humans", "humans/FILE", "what annotators said: a table of answers", _open_humans),
    ModelKind(
        "inspect",
        "inspect/PROVIDER/NAME",
        "any provider of Inspect (extra: inspect)",
        _open_inspect,
    ),
    ModelKind("fake", "fake/NAME", "scripted models, for tests", _open_fake),
)
