"""LoRA for tasks that are answered in words: a model learns to write what annotators wrote.

A lesson is a request as the task sends it and one of its gold texts. Held-out memes are answered
before and after, and scored by the task itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from memantics.core.errors import InputError, StoreError
from memantics.core.records import Item, Outcome, Score
from memantics.core.result import Result, Table
from memantics.core.task import Task, Unparsed
from memantics.detector.lora.judging import ADAPTER, FACTS, ChatProcessor, write_replies
from memantics.detector.lora.tuning import (
    RUNNING,
    Fitting,
    Tuning,
    TuningTools,
    check_tuning,
    fingerprint,
    open_network,
    save_tuned,
)
from memantics.detector.lora.wording import Lesson, part_groups
from memantics.detector.neural.checkpoint import Epoch, hold_folder, write_whole
from memantics.detector.neural.machine import get_torch

REPLIES = "replies.jsonl"
_BATCH, _LONGEST = 8, 512


@dataclass(frozen=True, slots=True)
class TunedWriter(Result):
    """What tuning gave: the task's figures on memes that were held out, before and after."""

    folder: Path
    task: str
    before: tuple[Score, ...]
    after: tuple[Score, ...]
    history: tuple[Epoch, ...]
    trained_on: int
    held_out: int

    def table(self) -> Table:
        """The figures over all held-out memes."""
        later = {score.key: score for score in self.after if not score.by}
        rows = [
            (score.key, f"{score.n:,}", _show(score), _show(later.get(score.key)))
            for score in self.before
            if not score.by
        ]
        return Table(("figure", ">n", ">held out, before", ">held out, after"), tuple(rows))


def tune_writer(
    model: Path, task: Task, tuning: Tuning, out: Path, tools: TuningTools | None = None
) -> TunedWriter:
    """Fit an adapter on a task's requests and gold texts; memes apart from them judge it."""
    check_tuning(model, tuning)
    with hold_folder(out):
        return _tune(model, task, tuning, out, tools or TuningTools())


def _tune(model: Path, task: Task, tuning: Tuning, out: Path, tools: TuningTools) -> TunedWriter:
    train, valid = part_groups(list_written(task), tuning.seed, tuning.train_groups)
    told = [[item.id, item.group, item.gold] for item in (*train, *valid)]
    mark = fingerprint(
        model, tuning, [task.name, dict(task.options), dict(task.prompts), sorted(told)]
    )
    network, conversation = open_network(model, tuning)
    with network.disable_adapter():
        first = _answer(network, conversation, task, valid)
    lessons = [Lesson(task.ask(item, None), text) for item in train for text in _list_texts(item)]
    history = Fitting(network, conversation, lessons, tuning, mark).run(out / RUNNING, tools.say)
    last = _answer(network, conversation, task, valid)
    before, after = (_score(task, valid, replies) for replies in (first, last))
    facts = {
        "wording": {
            "question": task.name.rpartition("/")[2],
            "task": task.name,
            "options": dict(task.options),
            "prompts": dict(task.prompts),
        },
        "before": [asdict(score) for score in before],
        "after": [asdict(score) for score in after],
        "held_out": len(valid),
        "lessons": len(lessons),
    }
    save_tuned(network, model, out, tuning, facts | tools.tell(history, len(train), mark))
    rows = zip(valid, first, last, strict=True)
    lines = [orjson.dumps({"id": row.id, "before": one, "after": two}) for row, one, two in rows]
    write_whole(out / REPLIES, b"\n".join(lines) + b"\n")
    return TunedWriter(out, task.name, before, after, history, len(train), len(valid))


def list_written(task: Task) -> tuple[Item, ...]:
    """The items of a task that people answered in words."""
    if task.needs:
        first = " and ".join(need.task for need in task.needs)
        raise InputError(
            f"{task.name} needs the answers of {first} first, and these are a model's",
            hint="tune with background=none, human or retrieved, and captions=data or none",
        )
    items = tuple(item for item in task.items() if _list_texts(item))
    if not items:
        raise InputError(
            f"{task.name} has no gold answers in words", hint="tune on memeintent/intent"
        )
    return items


def _list_texts(item: Item) -> list[str]:
    gold = item.gold if isinstance(item.gold, list) else []
    return [text for text in gold if isinstance(text, str) and text.strip()]


def _answer(
    network: Any, conversation: ChatProcessor, task: Task, items: Sequence[Item]
) -> list[str]:
    """A reply to each item, as long as the task allows."""
    network.eval()
    replies: list[str] = []
    with get_torch().inference_mode():
        for start in range(0, len(items), _BATCH):
            asked = [task.ask(item, None) for item in items[start : start + _BATCH]]
            rows = [conversation.render(Lesson(request)) for request in asked]
            longest = asked[0].sampling.max_tokens or _LONGEST
            replies += write_replies(network, conversation, rows, longest)
    return replies


def _score(task: Task, items: Sequence[Item], replies: Sequence[str]) -> tuple[Score, ...]:
    return task.score([_read(task, *pair) for pair in zip(items, replies, strict=True)])


def _read(task: Task, item: Item, reply: str) -> Outcome:
    try:
        return Outcome(item, "answered", task.parse(reply, item.form))
    except Unparsed:
        return Outcome(item, "unparsed")


def find_writer(folder: Path) -> dict[str, Any] | None:
    """What is known of a model that was tuned to write; None for anything else."""
    if not (folder / FACTS).is_file():
        return None
    try:
        facts = orjson.loads((folder / FACTS).read_bytes())
        writes = "task" in facts["wording"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise StoreError(
            f"{folder / FACTS} is damaged: {error}"[:200], hint="tune again"
        ) from error
    if writes and not (folder / ADAPTER).is_dir():
        raise StoreError(f"{folder} holds no {ADAPTER}", hint="tune it again")
    return dict(facts) if writes else None


def _show(score: Score | None) -> str:
    return "–" if score is None or score.value is None else f"{score.value:.3f}"
