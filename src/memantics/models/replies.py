"""Between values and text: the reply that a form asks for, and what ``--param`` values say."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from pydantic import JsonValue

from memantics.core.errors import Rejected
from memantics.core.records import Form


def render_reply(form: Form, values: Mapping[str, JsonValue]) -> str:
    """The reply text for one value per field: a key, plain text, or a JSON object.

    Dots in field names go deeper, and the object keeps the order of the fields.

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
    """The reply that chooses one option, where a form may also ask for reasons in words.

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
    """Objects within objects, by the dots in names.

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
    """The JSON value that a text writes, else the text itself."""
    try:
        parsed: JsonValue = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed
