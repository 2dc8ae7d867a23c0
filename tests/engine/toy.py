"""A small task, a run directory's facts and a clock that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from PIL import Image as Pillow

from memantics.core.records import (
    Field,
    Form,
    Image,
    Item,
    Message,
    MessagePart,
    Option,
    Request,
    Sampling,
)
from memantics.core.rundir import RunFacts
from memantics.core.task import InvalidPolicy, Task, Unparsed

OPTIONS = tuple(Option(key, f"choice {key}") for key in "ABCD")
FACTS = RunFacts(
    benchmark="toy",
    task="toy/choice",
    title="Toy",
    main="accuracy",
    unit="items",
    model="openai/toy",
    model_note="",
    identity={},
    options={},
    split="all",
    limit=None,
    invalid="wrong",
    prompts={},
    data={},
    warning="",
    version="0",
    fingerprint="toy",
    started="2025-01-01T00:00:00Z",
)


def draw_image(folder: Path, name: str = "meme.png") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if not path.exists():
        Pillow.new("RGB", (8, 8), "teal").save(path)
    return path


def toy_form(number: int) -> Form:
    return Form(f"Question about item-{number}?", (Field("answer", "choice", OPTIONS),))


def toy_request(number: int = 0, *parts: MessagePart) -> Request:
    form = toy_form(number)
    return Request((Message("user", (*parts, form.question)),), form)


def toy_task(
    count: int, image: Path | None = None, invalid: str = "wrong", seed: int | None = None
) -> Task:
    images = (Image(image),) if image else ()

    def items() -> Iterator[Item]:
        for number in range(count):
            yield Item(f"item-{number}", f"meme-{number}", "B", toy_form(number), images)

    def ask(item: Item, complaint: str | None) -> Request:
        note = f"\nYour last answer did not count: {complaint}." if complaint else ""
        parts: tuple[MessagePart, ...] = (*item.images, item.form.question + note)
        return Request((Message("user", parts),), item.form, Sampling(seed=seed))

    def parse(text: str, form: Form) -> str:
        if text not in [option.key for option in form.fields[0].options]:
            raise Unparsed("no letter")
        return text

    policy = InvalidPolicy.read(invalid)
    return Task("toy/choice", items, ask, parse, lambda _: (), "accuracy", policy)


def facts(fingerprint: str = "toy") -> RunFacts:
    return replace(FACTS, fingerprint=fingerprint)


class FakeClock:
    """Time passes only by sleeping; ``slept`` remembers for how long."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        due = self.time + seconds
        await asyncio.sleep(0)
        self.time = max(self.time, due)
