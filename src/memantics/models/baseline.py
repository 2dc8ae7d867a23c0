"""Trivial baselines: they answer from the question's form alone and ignore the meme.

========== ======================================================================= constant   the
first option, the lowest number, false, or one fixed sentence longest    the option with the longest
text (the first of equals) majority   the most frequent gold value of the data set
(``Field.majority``) positive   always the positive class (``Field.positive``) random     one draw
per field, seeded by the form and the names of the images ==========
=======================================================================

If a strategy does not apply to a field (a number has no longest option, a free text no positive
class), the strategy ``constant`` is used for that field; ``identity`` records this.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args
from urllib.parse import parse_qsl

import orjson
from pydantic import JsonValue

from memantics.core.errors import InputError, UnknownName
from memantics.core.records import Field, Form, Image, Reply, Request
from memantics.models.kinds import ModelKind, render_reply

Strategy = Literal["constant", "longest", "majority", "positive", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
NAMES = tuple(f"baseline/{strategy}" for strategy in STRATEGIES)
SENTENCES = {"en": "the meme makes fun of something", "zh": "这张表情包在开玩笑"}


class Baseline:
    """A trivial baseline model.

    >>> import asyncio
    >>> from memantics.core.records import Option
    >>> field = Field("answer", "choice", (Option("A", "a cat"), Option("B", "two brown dogs")))
    >>> request = Request((), Form("What is shown?", (field,)))
    >>> asyncio.run(Baseline("longest").answer(request)).text
    'B'
    """

    note = "trivial baseline"
    cacheable = False

    def __init__(self, strategy: Strategy, seed: int = 0) -> None:
        self.strategy = strategy
        self.seed = seed
        shown = f"?seed={seed}" if strategy == "random" and seed else ""
        self.name = f"baseline/{strategy}{shown}"

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The settings that determine the answers of the baseline."""
        facts: dict[str, JsonValue] = {"name": self.name, "fallback": "constant"}
        return facts | ({"seed": self.seed} if self.strategy == "random" else {})

    async def answer(self, request: Request) -> Reply:
        """Answer from the form of the question alone, without the meme."""
        values = dict(self._values(request))
        return Reply(render_reply(request.form, values), finish="stop", served_by=self.name)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _values(self, request: Request) -> Iterator[tuple[str, JsonValue]]:
        draw = random.Random(_digest(request, self.seed)) if self.strategy == "random" else None
        for field in request.form.fields:
            yield field.name, self._value(field, request.form.language, draw)

    def _value(self, field: Field, language: str, draw: random.Random | None) -> JsonValue:
        if draw is not None:
            return _draw(field, language, draw)
        if self.strategy == "longest" and field.options:
            return max(field.options, key=lambda option: len(option.text)).key
        wanted = {"majority": field.majority, "positive": field.positive}.get(self.strategy)
        value = None if wanted is None else _read(field, wanted)
        return constant(field, language) if value is None else value


def open_baseline(name: str, seed: int | None = None) -> Baseline:
    """Open ``baseline/STRATEGY``; ``random`` also accepts ``baseline/random?seed=N``.

    >>> open_baseline("baseline/random?seed=7").seed
    7
    """
    head, _, query = name.removeprefix("baseline/").partition("?")
    settings = dict(parse_qsl(query, keep_blank_values=True))
    given = settings.pop("seed", None)
    for strategy in STRATEGIES:
        if head == strategy:
            if settings or (query and (given is None or strategy != "random")):
                raise InputError(
                    f"model {name!r}: unknown setting",
                    hint="only baseline/random?seed=N has a setting",
                )
            return Baseline(strategy, _seed(name, given) if given is not None else seed or 0)
    raise UnknownName("model", name, NAMES)


def constant(field: Field, language: str) -> JsonValue:
    """Return a constant answer: the first option, the lowest number, false, or one sentence.

    >>> constant(Field("score", "integer", low=1, high=5), "en")
    1
    """
    if field.options:
        return field.options[0].key
    if field.kind == "integer":
        return field.low
    if field.kind == "boolean":
        return False
    return SENTENCES.get(language, SENTENCES["en"])


def _seed(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise InputError(
            f"model {name!r}: seed {text!r} is not a whole number", hint="for example 0 or 1"
        )
    return int(text)


def _draw(field: Field, language: str, draw: random.Random) -> JsonValue:
    if field.options:
        return draw.choice(field.options).key
    if field.kind == "integer":
        return draw.randint(field.low, max(field.low, field.high))
    if field.kind == "boolean":
        return draw.random() < 0.5
    return constant(field, language)


def _read(field: Field, text: str) -> JsonValue:
    """Convert a gold value that a data set stores as text to the type of its field."""
    if field.kind == "integer":
        return int(text) if text.lstrip("-").isdecimal() else None
    if field.kind == "boolean":
        return {"true": True, "false": False}.get(text.casefold())
    return text


def _digest(request: Request, seed: int) -> int:
    """Hash a question, independently of the order of requests, as a seed for random answers.

    Image names are hashed too, since some tasks ask the same question about every meme. Folders are
    not hashed, so that a moved data set gives the same random answers.
    """
    form: Form = request.form
    body = [
        seed,
        form.question,
        sorted(form.context.items()),
        [[f.name, f.kind, [[o.key, o.text] for o in f.options]] for f in form.fields],
        list(_image_names(request)),
    ]
    return int.from_bytes(hashlib.sha256(orjson.dumps(body)).digest()[:16], "big")


def _image_names(request: Request) -> Iterable[str]:
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Image):
                yield part.path.name
    for field in request.form.fields:
        for option in field.options:
            if option.image is not None:
                yield option.image.path.name


KIND = ModelKind(
    "baseline",
    "baseline/longest",
    "trivial: constant, longest, majority, positive, random",
    lambda name, _: open_baseline(name),
)
