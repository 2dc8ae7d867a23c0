"""What a server takes, measured by a few small calls."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
from PIL import Image as Pillow
from pydantic import JsonValue

from memantics.core.errors import InputError, ModelError
from memantics.core.records import Field, Form, Image, Message, Option, Reply, Request, Sampling
from memantics.core.reply import describe_object
from memantics.core.result import Result, Table
from memantics.core.waiting import make_sync
from memantics.models.kinds import ModelSettings, open_model
from memantics.models.openai import NO_FORMAT, OpenAIModel

_LETTERS = Form("?", (Field("answer", "choice", (Option("A", "A"), Option("B", "B"))),))
_KEYS = ("plover", "garnet")


@dataclass(frozen=True, slots=True)
class Abilities(Result):
    """What a server was seen to do with each part of a request, in a word or two."""

    model: str
    images: str
    several_images: str
    schema: str
    logprobs: str
    seeds: str
    reasoning: str


class _Prober:
    def __init__(self, name: str, settings: ModelSettings, folder: Path) -> None:
        self._name, self._settings, self._folder = name, settings, folder

    async def ask(
        self, *parts: str | Image, params: Mapping[str, str] | None = None, **changes: object
    ) -> Reply | str:
        """The reply, or why there is none."""
        names = {"answer_tokens": "24", **self._settings.params, **(params or {})}
        model = open_model(self._name, replace(self._settings, params=names))
        request = Request((Message("user", parts),), _LETTERS)
        try:
            return await model.answer(replace(request, **changes))  # type: ignore[arg-type]
        except ModelError as error:
            return str(error)
        finally:
            await model.close()

    def draw(self, colour: str) -> Image:
        """A picture of one colour."""
        path = self._folder / f"{colour}.png"
        Pillow.new("RGB", (64, 64), colour).save(path)
        return Image(path)

    async def probe(self) -> Abilities:
        first = await self.ask("Say A or B.")
        if isinstance(first, str):
            raise InputError(f"{self._name} does not answer: {first}", hint="check --base-url")
        red, blue = self.draw("red"), self.draw("blue")
        return Abilities(
            self._name,
            images=await self._compare((red,), (blue,)),
            several_images=await self._compare((red, blue), (blue, red)),
            schema=await self._try_schema(),
            logprobs=await self._try_logprobs(),
            seeds=await self._try_seeds(),
            reasoning="given" if first.reasoning else "none seen",
        )

    async def _compare(self, one: tuple[Image, ...], other: tuple[Image, ...]) -> str:
        replies = [await self.ask(*images, "Which colour?") for images in (one, other)]
        if any(isinstance(reply, str) for reply in replies):
            return "refused"
        texts = [reply.text for reply in replies if isinstance(reply, Reply)]
        return "seen" if texts[0] != texts[1] else "taken, no difference seen"

    async def _try_schema(self) -> str:
        word: JsonValue = {"type": "string", "enum": [_KEYS[1]]}
        schema = describe_object(**{_KEYS[0]: word})
        reply = await self.ask("Say hello.", schema=schema, params={"answer_tokens": "64"})
        if isinstance(reply, str) or reply.adapted == NO_FORMAT:
            return "refused"
        try:
            obeyed = orjson.loads(reply.text) == {_KEYS[0]: _KEYS[1]}
        except orjson.JSONDecodeError:
            obeyed = False
        return "obeyed" if obeyed else "ignored"

    async def _try_logprobs(self) -> str:
        model = open_model(self._name, self._settings)
        if not isinstance(model, OpenAIModel):
            return "none"
        reply = await self.ask("Say A or B. Only the letter.", params={"top_logprobs": "5"})
        await model.close()
        if isinstance(reply, str):
            return "refused"
        return "given" if reply.masses else "none seen"

    async def _try_seeds(self) -> str:
        said: list[str] = []
        for seed in (1, 1, 2, 3):
            reply = await self.ask("Tell a story.", sampling=Sampling(1.5, 24, seed))
            if isinstance(reply, str):
                return "refused"
            said.append(reply.text)
        if said[0] != said[1]:
            return "ignored"
        return "obeyed" if len(set(said)) > 1 else "no difference seen"


async def measure_server_async(
    model: str,
    *,
    base_url: str | None = None,
    params: Mapping[str, str] | None = None,
    timeout: float = 120.0,
) -> Abilities:
    """Measure what a server takes: images, schemas, log-probabilities, seeds, reasoning.

    It sends eleven small calls. What a model makes of colours and letters says nothing about how
    well it reads memes.
    """
    if not model.startswith("openai/"):
        raise InputError(f"{model} is not a server", hint="give openai/NAME with --base-url")
    settings = ModelSettings(base_url, 1, timeout, dict(params or {}))
    with tempfile.TemporaryDirectory() as folder:
        return await _Prober(model, settings, await asyncio.to_thread(Path, folder)).probe()


measure_server = make_sync(measure_server_async)


def tabulate(found: Mapping[str, Abilities]) -> Table:
    """Servers by name, with what each was seen to do."""
    columns = ("server", "images", "several images", "schema", "logprobs", "seeds", "reasoning")
    names = ("images", "several_images", "schema", "logprobs", "seeds", "reasoning")
    rows = tuple(
        (server, *(getattr(abilities, n) for n in names)) for server, abilities in found.items()
    )
    return Table(columns, rows)
