"""Judges whose marks are functions of the answer, and a run of known answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue

import memantics as mm
from memantics.core.model import Model
from memantics.core.records import Reply, Request
from memantics.models import kinds as registered
from memantics.models.kinds import ModelKind

TASK = "memeintent/intent"
MEMES = 12


class Scripted:
    """A judge whose verdict is a function of the answer that it is shown."""

    note, cacheable = "scripted", False

    def __init__(self, name: str, verdict: Callable[[str], str]) -> None:
        self.name, self._verdict = name, verdict
        self.requests: list[Request] = []

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        return {"name": self.name}

    async def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(self._verdict(request.form.context["answer"]))

    async def close(self) -> None:
        pass


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    planted: dict[str, Model] = {}
    kind = ModelKind("judge", "judge/NAME", "", lambda name, _: planted[name])
    monkeypatch.setitem(globals(), "KIND", kind)
    monkeypatch.setitem(registered.MODEL_KINDS.ours, "judge", f"{__name__}:KIND")

    def add(name: str, verdict: Callable[[str], str]) -> Scripted:
        model = Scripted(f"judge/{name}", verdict)
        planted[model.name] = model
        return model

    return add


@pytest.fixture
def run(tmp_path: Path) -> mm.Run:
    """Answers ``the meme says 0`` to ``the meme says 11``."""
    items = list(mm.load_dataset(TASK))[:MEMES]
    rows = [
        {"image": item.images[0].path.name, "answer": f"the meme says {n}"}
        for n, item in enumerate(items)
    ]
    path = tmp_path / "said.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return mm.evaluate(
        TASK, f"humans/{path}", out=tmp_path / "runs", settings=mm.EvaluationSettings(limit=MEMES)
    )
