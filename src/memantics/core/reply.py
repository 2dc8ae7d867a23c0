"""JSON in the reply of a model: found whole or not at all, and never trusted.

A reply may stand in a fence, between prose, or come as several values. What looks like JSON and
is not (cut off, a key twice, a stray quote) is an :class:`Unparsed` that says where, so that the
model can be asked again: picking the readable pieces out of a broken list would lose the rest
without anybody noticing.
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
    """Every JSON object and array of a reply, in order; prose and fences around them are passed.

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
    """Whether lists and objects stand in each other beyond the limit; each Python has its own."""
    level: list[Any] = list(values)
    for _ in range(MAX_DEPTH):
        inner = (one for box in level for one in (box.values() if isinstance(box, dict) else box))
        level = [one for one in inner if isinstance(one, dict | list)]
    return bool(level)


def read_object(text: str, shape: type[Shape]) -> Shape:
    """The one JSON object of a reply, checked against its shape.

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
    """The only value; empty ones and repetitions of the same value do not count."""
    full = [value for value in values if value] or values[:1]
    different = {json.dumps(value, sort_keys=True): value for value in full}
    if not different:
        raise Unparsed("the reply holds no JSON")
    if len(different) > 1:
        raise Unparsed(f"the reply holds {len(different)} JSON values: give exactly one")
    return full[0]


def conform_value(shape: type[Shape], value: JsonValue) -> Shape:
    """Check a value of a reply; the complaint names the first fields that are wrong.

    Fields that nobody asked for are passed over: they do not make the others wrong.
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
    """A value without the fields at those places."""
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
    """A fault in plain words, as one would say it to whoever wrote the reply."""
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
    """Refuse a key that comes twice: the standard reader would drop the first without a word."""
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
    """What a reply must hold, as fields and as a JSON schema, from the record that reads it.

    Fields that have a default are not asked for, unless they are named: ``narrower`` says what a
    field may hold in this request, where that is less than the record reads.

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
    """The schema of a closed object that has all of its fields, as strict decoding demands."""
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
    """The fields of a property; a list that may be left out has none."""
    if schema["type"] == "object":
        return [Field(f"{name}.{part}", "text") for part in schema["properties"]]
    if schema["type"] == "array" and not required:
        return []
    words = ["true", "false"] if schema["type"] == "boolean" else schema.get("enum")
    if words is None:
        return [Field(name, "text")]
    return [Field(name, "choice", tuple(Option(word, word) for word in words))]
