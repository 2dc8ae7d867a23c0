"""``fake/builder``: a valid reply to any JSON schema, made of words of the prompt.

It understands nothing. It lets whole chains of construction run offline, in docs and in tests:
the same request always gets the same reply.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import orjson
from pydantic import JsonValue

from memantics.core.records import Field, Image, Request
from memantics.models.replies import render_reply

_TEXT = (
    "a quiet small bright old friendly tall round plain busy morning evening picture figure corner "
    "friend joke plan table window street garden office letter number colour moment habit story "
    "reader worker neighbour visitor question promise surprise answer mistake holiday weather"
)
_WORDS = tuple(re.findall(r"\w+", _TEXT))
_ENCLOSED = re.compile(r"<([^<>\n]{1,60}) ([0-9a-f]{8})>\n(.*?)\n</\1 \2>", re.DOTALL)
_DEPTH = 20
_NO_SCHEMA: Mapping[str, JsonValue] = {"type": "string"}


def build_reply(request: Request) -> str:
    """A reply that the request's schema accepts; without a schema, a short text."""
    texts = [
        PurePath(part.path).name if isinstance(part, Image) else part
        for message in request.messages
        for part in message.parts
    ]
    seed = hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()
    if request.schema is None and request.form.fields:
        values = {
            field.name: _choose(field, f"{seed}\0{field.name}") for field in request.form.fields
        }
        return render_reply(request.form, values)
    schema = dict(request.schema or _NO_SCHEMA)
    value = _Generator(schema, _find_words(texts), seed).make(schema, "reply", 0)
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _choose(field: Field, seed: str) -> JsonValue:
    """A value for a field of a form."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    if field.options:
        return field.options[number % len(field.options)].key
    if field.kind == "integer":
        return field.low + number % max(1, field.high - field.low + 1)
    return number % 2 == 0 if field.kind == "boolean" else _WORDS[number % len(_WORDS)]


def _find_words(texts: Sequence[str]) -> list[str]:
    """Words of the material in the prompt, then our own: replies should fit the meme a little."""
    found: list[str] = []
    for text in texts:
        for match in _ENCLOSED.finditer(text):
            # Names of dimensions and references are no words.
            body = re.sub(r"(?m)^\w+/\S*:?", " ", match.group(3))
            found += re.findall(r"[^\W\d_]{2,16}", body)[:200]
    usual = [word.lower() for word in found if not re.search(r"[a-z][A-Z]", word)]
    return list(dict.fromkeys((*usual, *_WORDS)))


class _Generator:
    def __init__(self, root: Mapping[str, JsonValue], words: Sequence[str], seed: str) -> None:
        self._root = root
        self._words = words
        self._seed = seed

    def _draw(self, place: str, below: int) -> int:
        digest = hashlib.sha256(f"{self._seed}\0{place}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % max(1, below)

    def make(self, schema: JsonValue, place: str, depth: int) -> JsonValue:
        """A value for a part of the schema; ``place`` makes every part its own draw."""
        if not isinstance(schema, dict) or depth > _DEPTH:
            return None
        groups = self._follow(schema)
        if "const" in groups:
            return groups["const"]
        choices = groups.get("enum")
        if isinstance(choices, list) and choices:
            return choices[self._draw(place, len(choices))]
        for word in ("anyOf", "oneOf", "allOf"):
            parts = groups.get(word)
            if isinstance(parts, list) and parts:
                return self.make(parts[self._draw(f"{place}|", len(parts))], place, depth + 1)
        kind = groups.get("type", "object" if "properties" in groups else "string")
        if isinstance(kind, list):
            kind = kind[0]
        return self._make_kind(str(kind), groups, place, depth)

    def _follow(self, schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        for _ in range(_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            node: JsonValue = dict(self._root)
            for part in reference.removeprefix("#/").split("/"):
                node = node.get(part) if isinstance(node, dict) else None
            schema = node if isinstance(node, dict) else {}
        return schema

    def _make_kind(
        self, kind: str, schema: Mapping[str, JsonValue], place: str, depth: int
    ) -> JsonValue:
        if kind == "object":
            fields = schema.get("properties")
            named = fields if isinstance(fields, Mapping) else {}
            made = {
                name: self.make(group, f"{place}.{name}", depth + 1)
                for name, group in named.items()
            }
            # A verdict and its type go together, which a schema cannot say.
            if {"harmful", "type"} <= made.keys():
                made["harmful"] = made["type"] != "none"
            return made
        if kind == "array":
            return self._make_list(schema, place, depth)
        if kind in ("integer", "number"):
            low, high = _bound(schema, "minimum", 0), _bound(schema, "maximum", 10)
            return low + self._draw(place, high - low + 1)
        if kind == "boolean":
            return self._draw(place, 2) == 0
        return None if kind == "null" else self._make_text(schema, place)

    def _make_list(
        self, schema: Mapping[str, JsonValue], place: str, depth: int
    ) -> list[JsonValue]:
        # Where an empty list is allowed, it is given now and then: that is an answer, too.
        usual = 1 if self._draw(f"{place}?", 8) else 0
        low, high = _bound(schema, "minItems", usual), _bound(schema, "maxItems", 3)
        count = low + self._draw(f"{place}#", min(high, low + 2) - low + 1) if low else 0
        items = schema.get("items", {})
        made = [self.make(items, f"{place}.{n}", depth + 1) for n in range(count)]
        listed = items.get("enum") if isinstance(items, dict) else None
        if isinstance(listed, list) and listed and made:
            # Of names to choose from, those who list them put the one that matters first.
            made[0] = listed[0]
        # Lists of references read better without repetitions, and some schemas forbid them.
        seen = {orjson.dumps(value): value for value in made}
        return list(seen.values()) if len(seen) >= low else made

    def _make_text(self, schema: Mapping[str, JsonValue], place: str) -> str:
        field = place.rpartition(".")[2]
        count = 2 if field == "name" else 3 + self._draw(f"{place}#", 3)
        start, step = self._draw(f"{place}@", len(self._words)), 1 + self._draw(f"{place}+", 5)
        words = [self._words[(start + step * n) % len(self._words)] for n in range(count)]
        text = "_".join(words) if field == "name" else " ".join(words).capitalize()
        text += "?" if field == "question" else ""
        low, high = _bound(schema, "minLength", 0), _bound(schema, "maxLength", 10**6)
        while len(text) < low:
            text += " " + words[len(text) % len(words)]
        return text[:high]


def _bound(schema: Mapping[str, JsonValue], name: str, usual: int) -> int:
    value = schema.get(name)
    return int(value) if isinstance(value, int | float) else usual
