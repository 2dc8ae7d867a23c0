"""``fake/…``: scripted, deterministic models. They ship so that users can test tasks offline.

``fake/drafter`` drafts captions, intents and chats: sentences are drawn from a small stock by the
hash of the request; to other requests it says what ``fake/builder`` says.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import orjson
from pydantic import JsonValue

from memantics.core.data import toml_beside
from memantics.core.errors import ModelError, Transient, UnknownName
from memantics.core.records import Field, Image, Reply, Request
from memantics.models.builder import build_reply
from memantics.models.kinds import ModelKind
from memantics.models.replies import render_reply


@cache
def _read_stock() -> Mapping[str, Mapping[str, Sequence[str]]]:
    return toml_beside(__file__, "stock.toml")


def draft_reply(request: Request) -> str:
    """A reply to a drafting step by the fields of its schema."""
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
    """Choices by the hash of a request; its sampling seed counts, so that versions differ."""

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


Said = str | Reply | ModelError
Script = Callable[[Request], Said]


class FakeModel:
    """A model whose answers come from a function of the request.

    The function returns a text or a reply, or returns (or raises) the error that the call shall
    end with. ``asked`` counts the calls.

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
        """The name: a script is meant to be the same whenever it has the same name."""
        return {"name": self.name}

    async def answer(self, request: Request) -> Reply:
        """Do what the script says."""
        self.asked += 1
        if self._seconds:
            await asyncio.sleep(self._seconds)
        said = self._script(request)
        if isinstance(said, ModelError):
            raise said
        return Reply(said) if isinstance(said, str) else said

    async def close(self) -> None:
        """Remember that somebody closed it."""
        self.closed = True


def play(lines: Sequence[Said]) -> Script:
    """A script that says its lines in turn, and the last one for ever.

    >>> script = play(["no idea", "B"])
    >>> from memantics.core.records import Form
    >>> [script(Request((), Form("", ()))) for _ in range(3)]
    ['no idea', 'B', 'B']
    """
    rest = list(reversed(lines))
    return lambda _: rest.pop() if len(rest) > 1 else rest[0]


def echo(request: Request) -> str:
    """Say the texts of the last turn again."""
    return "\n".join(part for part in request.messages[-1].parts if isinstance(part, str))


def pick_keys(request: Request) -> str:
    """A valid reply to any form; which one depends on the form alone."""
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
    """Refuse."""
    return Reply("", refusal="a fake model declines")


def babble(request: Request) -> str:  # noqa: ARG001 - a script takes the request
    """Say what no parser takes for an answer."""
    return "…"


def break_down(request: Request) -> Said:  # noqa: ARG001 - a script takes the request
    """Fail, and fail again when repeated."""
    return Transient("a fake model breaks down")


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
    """The fake model of that name.

    >>> open_fake("fake/echo").name
    'fake/echo'
    """
    short = name.removeprefix("fake/")
    if short not in SCRIPTS:
        raise UnknownName("model", name, [f"fake/{known}" for known in SCRIPTS])
    return FakeModel(SCRIPTS[short], short)


KIND = ModelKind("fake", "fake/NAME", "scripted models, for tests", lambda name, _: open_fake(name))
