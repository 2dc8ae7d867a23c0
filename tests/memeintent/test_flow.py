"""Captioner, background, intent: one after the other, by two models, to the figures."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from memantics.benchmarks.registry import find_tasks
from memantics.core.records import Image, Request
from memantics.core.rundir import RunWriter, last_answers, read_items
from memantics.core.task import Task
from memantics.evaluation.ask import ask
from memantics.evaluation.scoring import read_outcomes
from memantics.models.fake import FakeModel
from tests.runs import make_facts


def make(name: str, options: Mapping[str, str]) -> Task:
    ref = find_tasks([name])[0]
    return ref.make(options, "all", ref.benchmark.sample(), None)


def run(task: Task, model: FakeModel, folder: Path) -> dict[str, str]:
    """Ask a task and return its answers by meme."""
    with RunWriter(folder, make_facts(task.name, model.name, task.options)) as writer:
        asyncio.run(ask(task, model, writer))
    groups = {line.item.id: line.item.group for line in read_items(folder)}
    return {groups[name]: str(answer.value) for name, answer in last_answers(folder).items()}


def text_of(request: Request) -> str:
    return "\n".join(str(p) for p in request.messages[-1].parts if isinstance(p, str))


def test_a_text_model_works_with_another_models_eyes(tmp_path: Path) -> None:
    seen: list[str] = []

    def look(request: Request) -> str:
        image = next(p for p in request.messages[-1].parts if isinstance(p, Image))
        return f"a drawing called {image.path.stem}"

    def think(request: Request) -> str:
        assert not any(isinstance(p, Image) for m in request.messages for p in m.parts)
        text = text_of(request)
        seen.append(text)
        name = text.partition("a drawing called ")[2].split()[0]
        if "one fact a line" in text:
            return f"* everybody knows {name}"
        assert f"* everybody knows {name}" in text
        return f"the meme plays with {name}"

    captioner, writer = FakeModel(look, "eyes"), FakeModel(think, "brain")
    options = {"role": "text", "shots": "few", "captions": "model", "background": "auto"}
    intent = make("memeintent/intent", options)
    answers: dict[str, Mapping[str, str]] = {}
    for need in reversed(intent.needs):
        first = make(need.task, need.options)
        if first.feed is not None:
            first = first.feed(answers)
        model = captioner if need.captioner else writer
        answers[need.name] = run(first, model, tmp_path / need.name)
    assert intent.feed is not None
    said = run(intent.feed(answers), writer, tmp_path / "intent")
    memes = len(list(intent.items()))
    assert len(said) == memes == captioner.asked
    assert writer.asked == 2 * memes
    assert all(text.startswith("the meme plays with en-") for text in said.values())
    # Without its data the task still reads and scores the run.
    bare = find_tasks(["memeintent/intent"])[0].make(options, "all", None, None)
    scores = bare.score(read_outcomes(tmp_path / "intent", bare))
    without = next(score for score in scores if score.key == "without_background")
    assert (without.value, without.n) == (0.0, memes)
