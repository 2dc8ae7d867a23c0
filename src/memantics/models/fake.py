"""``fake/…``: scripted, deterministic models for testing tasks offline.

``fake/drafter`` drafts captions, intents and chats from a small list of sentences, chosen by the
hash of the request. It answers other requests like ``fake/builder``.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import PurePath

import orjson
from pydantic import JsonValue

from memantics.core.data import toml_beside
from memantics.core.errors import ModelError, Transient, UnknownName
from memantics.core.records import Field, Image, Reply, Request
from memantics.models.kinds import ModelKind, render_reply

# ``fake/builder`` returns a valid reply to any JSON schema, made of words of the prompt, without
# any understanding. With it, whole construction chains run offline in docs and tests. The same
# request always gets the same reply.

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
    """Return a reply that conforms to the request's schema; without a schema, a short text."""
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
    made = _Generator(schema, _find_words(texts), seed, _find_quotes(texts))
    value = made.make(schema, "reply", 0)
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _choose(field: Field, seed: str) -> JsonValue:
    """Return a pseudo-random value for a field of a form."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    if field.options:
        return field.options[number % len(field.options)].key
    if field.kind == "integer":
        return field.low + number % max(1, field.high - field.low + 1)
    return number % 2 == 0 if field.kind == "boolean" else _WORDS[number % len(_WORDS)]


def _find_words(texts: Sequence[str]) -> list[str]:
    """Return words from the prompt's texts, then built-in words, so that replies fit the meme."""
    found: list[str] = []
    for text in texts:
        for match in _ENCLOSED.finditer(text):
            # Names of dimensions and ids of individuals are excluded from the words.
            body = re.sub(r"(?m)^\w+/\S*:?", " ", match.group(3))
            found += re.findall(r"[^\W\d_]{2,16}", body)[:200]
    usual = [word.lower() for word in found if not re.search(r"[a-z][A-Z]", word)]
    return list(dict.fromkeys((*usual, *_WORDS)))


def _find_quotes(texts: Sequence[str]) -> dict[str, str]:
    """Return the label of each known fact of the prompt, to quote it as evidence."""
    lines = (line for text in texts for line in text.splitlines())
    found = (re.match(r"(\w+/\S+): ([^(]+)", line) for line in lines)
    return {match[1]: match[2].strip() for match in found if match}


class _Generator:
    def __init__(
        self,
        root: Mapping[str, JsonValue],
        words: Sequence[str],
        seed: str,
        quotes: Mapping[str, str],
    ) -> None:
        self._root = root
        self._words = words
        self._seed = seed
        self._quotes = quotes

    def _draw(self, place: str, below: int) -> int:
        digest = hashlib.sha256(f"{self._seed}\0{place}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % max(1, below)

    def make(self, schema: JsonValue, place: str, depth: int) -> JsonValue:
        """Return a value for a node of the JSON schema; ``place`` is the node's random seed."""
        if not isinstance(schema, dict) or depth > _DEPTH:
            return None
        resolved = self._follow(schema)
        if "const" in resolved:
            return resolved["const"]
        choices = resolved.get("enum")
        if isinstance(choices, list) and choices:
            return choices[self._draw(place, len(choices))]
        for word in ("anyOf", "oneOf", "allOf"):
            parts = resolved.get(word)
            if isinstance(parts, list) and parts:
                return self.make(parts[self._draw(f"{place}|", len(parts))], place, depth + 1)
        kind = resolved.get("type", "object" if "properties" in resolved else "string")
        if isinstance(kind, list):
            kind = kind[0]
        return self._make_kind(str(kind), resolved, place, depth)

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
                name: self.make(subschema, f"{place}.{name}", depth + 1)
                for name, subschema in named.items()
            }
            # The verdict and its type must be consistent, which a JSON schema cannot express.
            if {"harmful", "type"} <= made.keys():
                made["harmful"] = made["type"] != "none"
            if made.keys() == {"fact", "words"}:
                made["words"] = self._quotes.get(str(made["fact"]), made["words"])
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
        # If an empty list is allowed, it is returned in some cases, because it is a valid answer.
        usual = 1 if self._draw(f"{place}?", 8) else 0
        low, high = _bound(schema, "minItems", usual), _bound(schema, "maxItems", 3)
        count = low + self._draw(f"{place}#", min(high, low + 2) - low + 1) if low else 0
        items = schema.get("items", {})
        made = [self.make(items, f"{place}.{n}", depth + 1) for n in range(count)]
        listed = items.get("enum") if isinstance(items, dict) else None
        if isinstance(listed, list) and listed and made:
            # Prompts usually list the most important name first.
            made[0] = listed[0]
        # Lists of ids contain no repetitions, because some schemas forbid them.
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


@cache
def _read_stock() -> Mapping[str, Mapping[str, Sequence[str]]]:
    return toml_beside(__file__, "stock.toml")


def draft_reply(request: Request) -> str:
    """Return a reply to a drafting request, according to the fields of its schema."""
    fields = (request.schema or {}).get("properties")
    names = set(fields) if isinstance(fields, Mapping) else set()
    draw = _Draw(request)
    stock = _read_stock()["zh" if request.form.language == "zh" else "en"]
    if names == {"turns", "sender"}:
        return _dump(_make_chat(draw, stock))
    if names == {"caption"}:
        return _dump({"caption": draw.pick(stock["captions"], "c")})
    if names == {"intents"}:
        whom = draw.pick(stock["whom"], "w")
        return _dump({"intents": [f"{draw.pick(stock['verbs'], 'v')}{whom}"]})
    if names == {"background"}:
        return _dump({"background": _make_background(draw, stock["known"])})
    if names == {"same"}:
        return _dump({"same": False})
    return build_reply(request)


class _Draw:
    """Pseudo-random choices seeded by the hash of a request and its sampling seed."""

    def __init__(self, request: Request) -> None:
        parts = [
            part.path.name if isinstance(part, Image) else part
            for message in request.messages
            for part in message.parts
        ]
        said = "\0".join((*parts, str(request.sampling.seed)))
        self._seed = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()

    def below(self, limit: int, place: str) -> int:
        digest = hashlib.sha256(f"{self._seed}/{place}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % limit

    def pick(self, options: Sequence[str], place: str) -> str:
        return options[self.below(len(options), place)]


def _make_background(draw: _Draw, stock: Sequence[str]) -> list[JsonValue]:
    start, count = draw.below(len(stock), "k"), draw.below(3, "n")
    return [
        {"sentence": stock[(start + place) % len(stock)], "certain": place == 0}
        for place in range(count)
    ]


def _make_chat(draw: _Draw, stock: Mapping[str, Sequence[str]]) -> dict[str, JsonValue]:
    parts = ("open", "reply", "close") if draw.below(3, "long") else ("open", "reply")
    lines = [draw.pick(stock[part], part) for part in parts]
    turns: list[JsonValue] = [
        {"speaker": "AB"[number % 2], "text": line} for number, line in enumerate(lines)
    ]
    return {"turns": turns, "sender": "AB"[len(lines) % 2]}


def _dump(value: JsonValue) -> str:
    return orjson.dumps(value).decode()


ScriptedReply = str | Reply | ModelError
Script = Callable[[Request], ScriptedReply]


class FakeModel:
    """A model whose answers come from a function of the request.

    The function returns a text or a reply, or returns (or raises) an error. ``asked`` counts the
    calls.

    >>> from memantics.core.records import Form, Message
    >>> hello = Request((Message("user", ("Hello",)),), Form("", ()))
    >>> asyncio.run(FakeModel(lambda request: "B").answer(hello)).text
    'B'
    """

    note = "fake"

    def __init__(
        self,
        script: Script,
        name: str = "scripted",
        *,
        cacheable: bool = False,
        seconds: float = 0.0,
    ) -> None:
        self.name = f"fake/{name}"
        self.cacheable = cacheable
        self.asked = 0
        self.closed = False
        self._script = script
        self._seconds = seconds

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The name of the model; a name must always stand for the same script."""
        return {"name": self.name}

    async def answer(self, request: Request) -> Reply:
        """Answer with the scripted function."""
        self.asked += 1
        if self._seconds:
            await asyncio.sleep(self._seconds)
        said = self._script(request)
        if isinstance(said, ModelError):
            raise said
        return Reply(said) if isinstance(said, str) else said

    async def close(self) -> None:
        """Record that the model was closed."""
        self.closed = True


def play(lines: Sequence[ScriptedReply]) -> Script:
    """Return a script that gives the listed replies in turn, then repeats the last one.

    >>> script = play(["no idea", "B"])
    >>> from memantics.core.records import Form
    >>> [script(Request((), Form("", ()))) for _ in range(3)]
    ['no idea', 'B', 'B']
    """
    rest = list(reversed(lines))
    return lambda _: rest.pop() if len(rest) > 1 else rest[0]


def echo(request: Request) -> str:
    """Repeat the texts of the last turn of the request."""
    return "\n".join(part for part in request.messages[-1].parts if isinstance(part, str))


def pick_keys(request: Request) -> str:
    """Return a valid reply to any form, which depends on the form alone."""
    form = request.form
    return render_reply(form, {field.name: _pick(field, form.question) for field in form.fields})


def _pick(field: Field, question: str) -> JsonValue:
    digest = hashlib.sha256(f"{field.name}\0{question}".encode()).digest()
    number = int.from_bytes(digest[:4], "big")
    if field.options:
        return field.options[number % len(field.options)].key
    if field.kind == "integer":
        return field.low + number % (field.high - field.low + 1)
    return number % 2 == 0 if field.kind == "boolean" else "a short text"


def decline(request: Request) -> Reply:  # noqa: ARG001 - a script takes the request
    """Return a refusal to answer."""
    return Reply("", refusal="a fake model declines")


def babble(request: Request) -> str:  # noqa: ARG001 - a script takes the request
    """Return a text that no parser accepts."""
    return "…"


def break_down(request: Request) -> ScriptedReply:  # noqa: ARG001 - a script takes the request
    """Fail on every call."""
    return Transient("the fake model simulates a failure")


SCRIPTS: Mapping[str, Script] = {
    "babble": babble,
    "break": break_down,
    "builder": build_reply,
    "drafter": draft_reply,
    "decline": decline,
    "echo": echo,
    "keys": pick_keys,
}


def open_fake(name: str) -> FakeModel:
    """Open the fake model with that name.

    >>> open_fake("fake/echo").name
    'fake/echo'
    """
    short = name.removeprefix("fake/")
    if short not in SCRIPTS:
        raise UnknownName("model", name, [f"fake/{known}" for known in SCRIPTS])
    return FakeModel(SCRIPTS[short], short)


KIND = ModelKind("fake", "fake/NAME", "scripted models for tests", lambda name, _: open_fake(name))
