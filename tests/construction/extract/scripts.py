"""Scripted models for the extraction: what each says about each dimension of each meme."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memantics.core.memes import Meme
from memantics.core.records import Image, Request
from memantics.core.samples import image_path
from memantics.models.client import ModelClient
from memantics.models.engine import AskSettings, RetrySettings
from memantics.models.fake import FakeModel, ScriptedReply
from memantics.understanding.extraction.chain import Extraction, ExtractSettings, extract_memes

Saying = Callable[[str, str, Request], ScriptedReply]
HASTY = AskSettings(retries=RetrySettings(per_call=0, first=0.0))


def text_of(request: Request) -> str:
    parts = (part for message in request.messages for part in message.parts)
    return "\n".join(part for part in parts if isinstance(part, str))


def stage_of(request: Request) -> tuple[str, str]:
    """Which stage and dimension a request is about."""
    text = text_of(request)
    found = re.search(r'one dimension of its meaning only: "[^"]+" \((\w+)\)', text)
    if found:
        return "individuals", found.group(1)
    label = re.search(r'entries of the dimension "([^"]+)"', text)
    return "relations", label.group(1) if label else ""


def meme_of(request: Request) -> str:
    parts = (part for message in request.messages for part in message.parts)
    (image,) = (part for part in parts if isinstance(part, Image))
    return image.path.stem


def one(name: str, **more: object) -> str:
    entry = {"name": name, "label": name, "description": "", "kind": "Harmful", **more}
    return json.dumps({"individuals": [entry]})


EMPTY = '{"individuals": []}'


def by_dimension(
    said: Mapping[str, ScriptedReply], otherwise: ScriptedReply = EMPTY
) -> Callable[[Request], ScriptedReply]:
    """A script that says one thing for each dimension (``relations:LABEL`` for second passes)."""

    def script(request: Request) -> ScriptedReply:
        stage, name = stage_of(request)
        if stage == "relations":
            return said.get(f"relations:{name}", '{"relations": []}')
        return said.get(name, otherwise)

    return script


def memes(*names: str, text: str = "") -> list[Meme]:
    return [Meme(name, image_path(name), text) for name in names]


def extract(
    folder: Path,
    script: Callable[[Request], ScriptedReply],
    own: Sequence[Meme] | None = None,
    settings: ExtractSettings | None = None,
) -> list[Extraction]:
    return extract_with(FakeModel(script), folder, own, settings)


def extract_with(
    model: FakeModel,
    folder: Path,
    own: Sequence[Meme] | None = None,
    settings: ExtractSettings | None = None,
) -> list[Extraction]:
    async def run() -> list[Extraction]:
        with ModelClient(model, folder, settings=HASTY) as client:
            found = extract_memes(client, own or memes("en-001"), settings or ExtractSettings())
            return [extraction async for extraction in found]

    return asyncio.run(run())
