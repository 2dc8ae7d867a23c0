"""A client with a scripted model, for the drafting chains."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from memantics.core.memes import Meme
from memantics.core.model import Model
from memantics.core.records import Request
from memantics.core.samples import image_path, read_samples
from memantics.models.client import ModelClient
from memantics.models.engine import AskSettings, RetrySettings
from memantics.models.fake import FakeModel, ScriptedReply

HASTY = AskSettings(retries=RetrySettings(per_call=0, first=0.0))
T = TypeVar("T")


def text_of(request: Request) -> str:
    parts = (part for message in request.messages for part in message.parts)
    return "\n".join(part for part in parts if isinstance(part, str))


def fields_of(request: Request) -> set[str]:
    assert request.schema is not None
    properties = request.schema["properties"]
    assert isinstance(properties, dict)
    return set(properties)


def with_client(
    folder: Path,
    model: Model | Callable[[Request], ScriptedReply],
    chain: Callable[[ModelClient], Awaitable[T]],
) -> T:
    """Run a chain at a client whose call log lies in a folder."""
    own: Any = model if isinstance(model, FakeModel) or not callable(model) else FakeModel(model)

    async def run() -> T:
        with ModelClient(own, folder, None, HASTY) as client:
            return await chain(client)

    return asyncio.run(run())


def sample_memes(*ids: str, notes: bool = True) -> tuple[Meme, ...]:
    """Memes of the sample data, with their notes."""
    wanted = [own for own in read_samples() if not ids or own.id in ids]
    return tuple(
        Meme(
            own.id,
            image_path(own.id),
            own.text,
            own.language,
            {
                "meaning": own.meaning,
                "description": own.description,
                "sentiment": f"{own.sentiment.target}-{own.sentiment.type}",
            }
            if notes
            else {},
        )
        for own in wanted
    )


class LetterEncoder:
    """Counts of letters as vectors: deterministic, and quick."""

    version = "letters"

    def encode(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        rows = np.full((len(texts), 64), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for char in text:
                rows[row, ord(char) % 64] += 1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def all_different(values: Iterable[object]) -> bool:
    held = list(values)
    return len(set(held)) == len(held)
