"""Parser for JSON in a model's reply; invalid JSON is rejected, never repaired.

A reply may contain code fences, prose, or several values. Invalid JSON (truncated, a duplicate key,
a stray quote) raises :class:`Unparsed` with the position, so that the model can be asked again.
Extracting only the readable elements of a broken list would silently lose the others.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from memantics.core.records import Field, Option
from memantics.core.task import Unparsed

MAX_REPLY = 2_000_000
MAX_DEPTH = 100
Shape = TypeVar("Shape", bound=BaseModel)

_START = re.compile(r"\{\s*(?=[\"}])|\[\s*(?=[\[{\"\]])")
_THOUGHT = "</think>"
_COMPLAINTS = 3
_DEEP = "the JSON is nested too deeply"


def find_values(text: str) -> list[JsonValue]:
    """Return every JSON object and array of a reply in order; skip prose and code fences.

    >>> find_values('Sure! {"name": "a } inside"} and [{"name": "b"}]. Bye [1]')
    [{'name': 'a } inside'}, [{'name': 'b'}]]
    >>> find_values('[{"name": "a"}, {"name": "b')
    Traceback (most recent call last):
    memantics.core.task.Unparsed: the JSON is cut off before its end: write less
    """
    if len(text) > MAX_REPLY:
        raise Unparsed(f"the reply has {len(text):,} characters: write at most {MAX_REPLY:,}")
    text = text.rpartition(_THOUGHT)[2]
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)
    values: list[JsonValue] = []
    place = 0
    while (match := _START.search(text, place)) is not None:
        try:
            value, place = decoder.raw_decode(text, match.start())
        except RecursionError:
            raise Unparsed(_DEEP) from None
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                raise Unparsed("the JSON is cut off before its end: write less") from None
            near = " ".join(text[max(0, error.pos - 20) : error.pos + 20].split())
            raise Unparsed(f"not valid JSON: {error.msg} near {near!r}") from None
        except ValueError as error:
            raise Unparsed(f"not valid JSON: {error}") from None
        values.append(value)
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(values):
        raise Unparsed(_DEEP)
    return values


def _is_deep(values: list[JsonValue]) -> bool:
    """Return whether values are nested too deeply; Python's own limit depends on the version."""
    level: list[Any] = list(values)
    for _ in range(MAX_DEPTH):
        inner = (one for box in level for one in (box.values() if isinstance(box, dict) else box))
        level = [one for one in inner if isinstance(one, dict | list)]
    return bool(level)


def read_object(text: str, shape: type[Shape]) -> Shape:
    """Parse the single JSON object of a reply into a record.

    >>> class Answer(BaseModel, extra="forbid"):
    ...     letter: str
    >>> read_object('Here you are: {"letter": "B"}', Answer).letter
    'B'
    >>> read_object('{"letter": "B"} or rather {"letter": "C"}', Answer)
    Traceback (most recent call last):
    memantics.core.task.Unparsed: the reply holds 2 JSON values: give exactly one
    """
    return conform_value(shape, take_one(find_values(text)))


def take_one(values: list[JsonValue]) -> JsonValue:
    """Return the only JSON value of a reply; ignore empty values and repetitions."""
    full = [value for value in values if value] or values[:1]
    different = {json.dumps(value, sort_keys=True): value for value in full}
    if not different:
        raise Unparsed("the reply holds no JSON")
    if len(different) > 1:
        raise Unparsed(f"the reply holds {len(different)} JSON values: give exactly one")
    return full[0]


def conform_value(shape: type[Shape], value: JsonValue) -> Shape:
    """Validate a value of a reply; the error names the first invalid fields.

    Fields that the record does not define are ignored.
    """
    try:
        return shape.model_validate(value, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    extra = [one["loc"] for one in found if one["type"] == "extra_forbidden"]
    if extra:
        return conform_value(shape, _without(value, {tuple(map(str, loc)) for loc in extra}))
    lines = [_complain(one) for one in found[:_COMPLAINTS]]
    more = f" (and {len(found) - _COMPLAINTS} more)" if len(found) > _COMPLAINTS else ""
    raise Unparsed("; ".join(lines) + more)


def _without(value: JsonValue, unasked: set[tuple[str, ...]]) -> JsonValue:
    """Return a copy of a value without the fields at the given locations."""
    if isinstance(value, dict):
        inner = {key: {place[1:] for place in unasked if place[0] == key} for key in value}
        return {
            key: _without(member, inner[key])
            for key, member in value.items()
            if () not in inner[key]
        }
    if isinstance(value, list):
        places = [{place[1:] for place in unasked if place[0] == str(n)} for n in range(len(value))]
        return [_without(member, places[n]) for n, member in enumerate(value)]
    return value


def _complain(fault: ErrorDetails) -> str:
    """Describe a validation error in plain words, for the model that wrote the reply."""
    place, limits = ".".join(map(str, fault["loc"])), fault.get("ctx", {})
    name = f"the field {place!r}" if place else "the reply"
    least, most = limits.get("min_length", 1), limits.get("max_length", 0)
    wanted = {
        "missing": "is missing",
        "string_type": "must be a text",
        "bool_type": "must be true or false",
        "int_type": "must be a whole number",
        "list_type": "must be a list",
        "model_type": "must be a JSON object",
        "literal_error": f"must be one of {limits.get('expected', '')}",
        "string_too_short": "is empty" if least == 1 else f"needs {least} characters at least",
        "string_too_long": f"may have {most} characters at most",
        "too_short": f"needs {least} entries at least",
        "too_long": f"may have {most} entries at most",
    }
    return f"{name} {wanted.get(fault['type'], fault['msg'][:1].lower() + fault['msg'][1:])}"


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Reject a duplicate key: the standard JSON parser would silently drop the first value."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} comes twice in one object")
    return made


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not a valid JSON value")


def describe_reply(
    shape: type[BaseModel], **narrower: JsonValue
) -> tuple[tuple[Field, ...], dict[str, JsonValue]]:
    """Derive the form fields and the JSON schema of a reply from its record.

    Fields with a default are not requested unless ``narrower`` names them. ``narrower`` restricts
    the allowed values of a field in this request.

    >>> class Look(BaseModel):
    ...     mood: Literal["glad", "sad"]
    ...     sure: bool
    ...     why: str = ""
    >>> fields, schema = describe_reply(Look)
    >>> [field.name for field in fields], schema["properties"]["mood"]
    (['mood', 'sure'], {'type': 'string', 'enum': ['glad', 'sad']})
    """
    asked = {
        name: narrower.get(name) or _describe_kind(part.annotation)
        for name, part in shape.model_fields.items()
        if part.is_required() or name in narrower
    }
    fields = [
        field
        for name, schema in asked.items()
        for field in _list_fields(name, schema, required=shape.model_fields[name].is_required())
    ]
    return tuple(fields), describe_object(**asked)


def describe_object(**properties: JsonValue) -> dict[str, JsonValue]:
    """Return the JSON schema of an object with only required fields, for strict decoding."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _describe_kind(kind: Any) -> JsonValue:
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        return {"type": "array", "items": _describe_kind(get_args(kind)[0])}
    return {"type": {str: "string", bool: "boolean", int: "integer"}[kind]}


def _list_fields(name: str, schema: Any, *, required: bool) -> list[Field]:
    """Return the form fields of a schema property; an optional list has none."""
    if schema["type"] == "object":
        return [Field(f"{name}.{part}", "text") for part in schema["properties"]]
    if schema["type"] == "array" and not required:
        return []
    words = ["true", "false"] if schema["type"] == "boolean" else schema.get("enum")
    if words is None:
        return [Field(name, "text")]
    return [Field(name, "choice", tuple(Option(word, word) for word in words))]
