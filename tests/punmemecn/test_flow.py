"""From recorded answers to the table, through the engine and again from the run directory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memantics.core.records import Item
from memantics.core.rundir import RunFacts, RunWriter, Scores
from memantics.core.task import Task
from memantics.evaluation.ask import ask
from memantics.evaluation.scoring import score_run
from memantics.models.cache import Cache, request_digest
from memantics.models.engine import AskSettings
from memantics.models.fake import FakeModel
from memantics.models.recorded import RecordedModel
from tests.punmemecn.release import make_task, write_release

FACTS = RunFacts(
    "punmemecn", "t", "t", "m", "items", "model", "", {}, {}, "all", None, "wrong", {}, {}, "",
    "0", "f", "now",
)  # fmt: skip


def record(path: Path, task: Task, reply: Callable[[Item], str]) -> RecordedModel:
    """A recording in which each item of a task got this reply."""
    lines = []
    for item in task.items():
        request = task.ask(item, None)
        lines.append({"prompt": request_digest(request), "text": reply(item)})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return RecordedModel(path)


async def run(task: Task, model: RecordedModel | FakeModel, folder: Path) -> Scores:
    with RunWriter(folder, FACTS) as writer:
        await ask(task, model, writer)
    await model.close()
    return await score_run(folder, task, [])


def values(scores: Scores, by: str = "") -> dict[str, float | None]:
    return {f"{s.key} {s.label}".strip(): s.value for s in scores.scores if s.by == by}


def test_recorded_detection(tmp_path: Path) -> None:
    source = write_release(tmp_path / "data", range(1, 5))
    task = make_task("detection", source, prompt="4")
    replies = {"pun": "双关", "similar_image": "非双关", "similar_text": "双关！"}
    model = record(tmp_path / "r.jsonl", task, lambda item: replies[item.tags["role"]])
    scores = asyncio.run(run(task, model, tmp_path / "run"))
    assert scores.counts == {"answered": 12, "refused": 0, "unparsed": 0, "failed": 0}
    expected = {"f1": 2 / 3, "tpr": 1.0, "tnr": 0.5, "precision": 0.5, "balanced_accuracy": 0.75}
    assert values(scores) == pytest.approx(expected | {"macro_f1": 2 / 3})
    by_role = {"accuracy pun": 1.0, "accuracy similar_image": 1.0, "accuracy similar_text": 0.0}
    assert values(scores, "role") == by_role
    without_data = make_task("detection", None, prompt="4")
    again = asyncio.run(score_run(tmp_path / "run", without_data, []))
    assert again.scores == scores.scores


def test_recorded_sentiment_on_the_balanced_set(tmp_path: Path) -> None:
    labels = ("self-positive", "both-neutral", "other-negative", "self-negative")
    source = write_release(tmp_path / "data", range(1, 9), labels)
    task = make_task("sentiment", source, per_target="6", language="en")

    def reply(item: Item) -> str:
        if item.tags["target"] == "both":
            return "no idea"
        return json.dumps({"target": item.tags["target"], "type": "negative"})

    model = record(tmp_path / "r.jsonl", task, reply)
    scores = asyncio.run(run(task, model, tmp_path / "run"))
    negatives = sum(
        item.tags["type"] == "negative" and item.tags["target"] != "both" for item in task.items()
    )
    assert scores.counts == {"answered": 12, "refused": 0, "unparsed": 6, "failed": 0}
    rows = values(scores)
    assert rows["target_accuracy"] == pytest.approx(12 / 18)
    assert rows["accuracy"] == pytest.approx(negatives / 18)
    assert set(values(scores, "humans").values()) >= {1.0}
    again = asyncio.run(score_run(tmp_path / "run", make_task("sentiment", None), []))
    assert again.counts["answered"] == 12  # the forms bring their language along


def test_recorded_chat_with_the_authors_order(tmp_path: Path) -> None:
    source = write_release(tmp_path / "data", range(1, 13))
    task = make_task("chat", source, order="authors", prompt="3", shots="ours")
    golds = [str(item.gold) for item in task.items()]
    model = record(tmp_path / "r.jsonl", task, lambda _item: "A")
    scores = asyncio.run(run(task, model, tmp_path / "run"))
    assert values(scores)["accuracy"] == pytest.approx(golds.count("A") / 12)
    positions = values(scores, "position")
    assert [positions[f"accuracy {letter}"] for letter in "ABCD" if letter in golds] == [
        1.0 if letter == "A" else 0.0 for letter in "ABCD" if letter in golds
    ]


@pytest.mark.parametrize(("temperature", "calls"), [("0.7", 12), ("0", 4)])
def test_the_cache_never_answers_a_repetition_that_is_to_be_drawn(
    temperature: str, calls: int, tmp_path: Path
) -> None:
    source = write_release(tmp_path / "data", range(1, 5))
    task = make_task("sentiment", source, per_target="12", temperature=temperature)
    reply = '{"情感指向对象": "自己", "情感类别": "积极"}'
    model = FakeModel(lambda _request: reply, cacheable=True)

    async def run_cached() -> None:
        cache = Cache(tmp_path / "cache.sqlite")
        with RunWriter(tmp_path / "run", FACTS) as writer:
            await ask(task, model, writer, cache, AskSettings(concurrency=1))
        cache.close()

    asyncio.run(run_cached())
    assert model.asked == calls
