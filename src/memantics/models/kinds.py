"""Model types (``openai``, ``local``, ``recorded``, …): open a model by its name ``KIND/NAME``.

A model type (kind) is a module with a record ``KIND``. It is listed in ``MODEL_KINDS``, or an
installed package names it as an entry point of the group ``memantics.models``. The helpers parse
``--param`` values and write the reply text that a form asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar, get_args

import orjson
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.fields import FieldInfo

from memantics.core.errors import InputError, Rejected, UnknownName, require_known
from memantics.core.model import Model
from memantics.core.plugins import Plugins
from memantics.core.records import Form
from memantics.core.rundir import ANSWERS

if TYPE_CHECKING:
    from memantics.models.wire import WireSettings


def render_reply(form: Form, values: Mapping[str, JsonValue]) -> str:
    """Return the reply text for the given field values: a key, plain text, or a JSON object.

    Dots in field names separate levels of the JSON object, which keeps the order of the fields.

    >>> from memantics.core.records import Field
    >>> render_reply(Form("Which?", (Field("answer", "choice"),)), {"answer": "B"})
    'B'
    >>> fields = (Field("text.rationale", "text"), Field("text.quality", "integer"))
    >>> render_reply(Form("Judge.", fields, reply="json"),
    ...              {"text.quality": 3, "text.rationale": "plain"})
    '{"text":{"rationale":"plain","quality":3}}'
    """
    missing = [field.name for field in form.fields if field.name not in values]
    if missing or not form.fields:
        raise Rejected(f"form: no value for {', '.join(missing) or 'any field: it has none'}")
    if form.reply != "json":
        return _plain(values[form.fields[0].name])
    return orjson.dumps(nest({field.name: values[field.name] for field in form.fields})).decode()


def answer_choice(form: Form, key: str) -> str:
    """Return the reply that chooses one option; a reason is added if the form asks for one.

    >>> from memantics.core.records import Field, Option
    >>> options = (Option("yes", "yes"), Option("no", "no"))
    >>> form = Form("?", (Field("why", "text"), Field("verdict", "choice", options)), reply="json")
    >>> answer_choice(form, "no")
    '{"why":"-","verdict":"no"}'
    """
    choices = [field for field in form.fields if field.options]
    words = [field.name for field in form.fields if field.kind == "text" and not field.options]
    if form.reply != "json" or len(choices) != 1 or len(words) + 1 != len(form.fields):
        return key
    return render_reply(form, {**dict.fromkeys(words, "-"), choices[0].name: key})


def nest(values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Convert a mapping with dotted names to nested objects.

    >>> nest({"a.b": 1, "a.c": True, "d": None})
    {'a': {'b': 1, 'c': True}, 'd': None}
    """
    tree: dict[str, JsonValue] = {}
    for name, value in values.items():
        *path, last = name.split(".")
        node = tree
        for part in path:
            child = node.setdefault(part, {})
            if not isinstance(child, dict):
                raise Rejected(f"form: field {name!r} lies inside another field")
            node = child
        if last in node:
            raise Rejected(f"form: field {name!r} is there twice, or holds another field")
        node[last] = value
    return tree


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def json_or_text(value: str) -> JsonValue:
    """Parse a text as JSON; return the text itself if it is not JSON."""
    try:
        parsed: JsonValue = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed


# ``--param`` values are parsed into a settings record: it defines the allowed values, and errors
# list them.

Params = TypeVar("Params", bound=BaseModel)


def read_params(
    shape: type[Params], given: Mapping[str, object], what: str, flag: str = "--param"
) -> Params:
    """Parse the ``--param`` settings of ``what``; reject unknown names and invalid values.

    >>> from pydantic import Field
    >>> class Settings(BaseModel):
    ...     seed: int = Field(default=0, ge=0, le=9)
    >>> read_params(Settings, {"seed": "7"}, "toys").seed
    7
    >>> read_params(Settings, {"seed": "x"}, "toys", "-p")
    Traceback (most recent call last):
    memantics.core.errors.InputError: -p seed=x is not a valid value; use a whole number from 0 to 9
    """
    for name in given:
        require_known(f"{flag} of {what}:", name, shape.model_fields)
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name = str(fault["loc"][0])
        field, value = shape.model_fields[name], str(given[name])
        if fault["type"] == "literal_error":
            raise UnknownName(f"value of {flag} {name}:", value, _list_words(field)) from error
        wanted = field.description or _say_bounds(field)
        raise InputError(
            f"{flag} {name}={value} is not a valid value", hint=f"use {wanted}"
        ) from error


def _list_words(field: FieldInfo) -> list[str]:
    """Return the values of a ``Literal`` type, also of an optional one."""
    kinds = get_args(field.annotation)
    return [word for kind in kinds for word in get_args(kind) or (kind,) if isinstance(word, str)]


def _say_bounds(field: FieldInfo) -> str:
    kinds = (field.annotation, *get_args(field.annotation))
    number = "a whole number" if int in kinds else "a number"
    bounds = [getattr(rule, end, None) for end in ("ge", "le") for rule in field.metadata]
    low, high = [bound for bound in bounds if bound is not None] or (None, None)
    return f"{number} from {low:,} to {high:,}" if low is not None else number


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Model settings besides the name. ``params`` are sent to the server unchanged."""

    base_url: str | None = None
    concurrency: int = 32
    timeout: float = 120.0
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelKind:
    """One type of model: how it is named and opened.

    ``open`` receives the whole name, ``KIND/NAME``, and raises errors of ``core.errors``.
    """

    kind: str
    example: str
    what: str
    open: Callable[[str, ModelSettings], Model]


def read_wire_settings(params: Mapping[str, str]) -> WireSettings:
    """Parse ``--param`` values; unknown names go into the request body as JSON."""
    from memantics.models.wire import WireSettings

    known = WireSettings.model_fields.keys() - {"extra"}
    named = {name: value for name, value in params.items() if name in known}
    extra = {name: json_or_text(value) for name, value in params.items() if name not in named}
    return read_params(WireSettings, named | {"extra": extra}, "openai/… models")


MODEL_KINDS = Plugins(
    "memantics.models",
    ModelKind,
    {
        "openai": "memantics.models.openai:KIND",
        "local": "memantics.models.local:KIND",
        "embedded": "memantics.workbench.embedded:KIND",
        "llm": "memantics.models.llm:KIND",
        "baseline": "memantics.models.baseline:KIND",
        "recorded": "memantics.models.recorded:KIND",
        "humans": "memantics.models.humans:KIND",
        "inspect": "memantics.models.inspect:KIND",
        "fake": "memantics.models.fake:KIND",
        "detector": "memantics.moderation.answering:KIND",
    },
)


_OF_FILES = {"recorded", "humans", "local", "llm", "detector"}  # named by a path
_GENERAL = {ANSWERS, "calls.jsonl"}  # files that are named by their folder
_SUFFIXES = {".jsonl", ".csv", ".zip", ".gguf"}


def show_model(name: str) -> str:
    """Return the name of a model for a page: of a path, only the last part.

    >>> show_model("recorded/runs/intent/answers.jsonl"), show_model("local//srv/qwen2.5-vl")
    ('recorded/intent', 'local/qwen2.5-vl')
    >>> show_model("openai/Qwen/Qwen2.5-VL-7B-Instruct"), show_model("a person")
    ('openai/Qwen/Qwen2.5-VL-7B-Instruct', 'a person')
    """
    kind, _, rest = name.partition("/")
    path = PurePath(rest)
    if kind not in _OF_FILES or not path.name:
        return name
    if path.name in _GENERAL and path.parent.name:
        path = path.parent
    return f"{kind}/{path.stem if path.suffix in _SUFFIXES else path.name}"


def name_models(models: Iterable[str]) -> dict[str, str]:
    """Return the name that a page shows for each model; equal names are shown in full."""
    shown = {model: show_model(model) for model in models}
    counts = Counter(shown.values())
    return {model: name if counts[name] == 1 else model for model, name in shown.items()}


def open_model(name: str, settings: ModelSettings) -> Model:
    """Open the model called ``KIND/NAME``."""
    head, _, rest = name.partition("/")
    kind = MODEL_KINDS.find(head)
    if kind is None:
        known = ", ".join(sorted(MODEL_KINDS.names()))
        hint = f"for a model on a server use openai/{name}; known kinds: {known}"
        raise InputError(f"unknown model kind {head!r}", hint=hint)
    if not rest:
        raise InputError(f"model {name!r} has no name", hint=f"for example {kind.example}")
    return kind.open(name, settings)
