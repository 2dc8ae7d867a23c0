"""Tasks for another harness (Inspect): made from names and plain values, judged text by text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, cast

from pydantic import JsonValue, TypeAdapter

from memantics.core.data import DataKind
from memantics.core.errors import InputError, UnknownName
from memantics.core.records import Item, Outcome, Reply, Score, Status
from memantics.core.task import Need, Task
from memantics.models.wire import split_thought
from memantics.registry import TaskRef, find_benchmarks, find_tasks, pose_task
from memantics.run.engine import read_reply
from memantics.run.evaluate import PosedTask
from memantics.run.facts import Scope, Variation
from memantics.run.score import count_statuses, keep_scored

_ITEM = TypeAdapter(Item)
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


@dataclass(frozen=True, slots=True)
class Setup:
    """Which task, on which data, with which options."""

    task: str
    data: str | None = None
    split: str | None = None
    invalid: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def plain(self) -> dict[str, object]:
        """The arguments from which it can be made again."""
        return {
            "task": self.task,
            "data": self.data,
            "split": self.split,
            "invalid": self.invalid,
            "options": dict(self.options),
        }


def read_setup(
    task: str,
    data: str | None,
    split: str | None,
    invalid: str | None,
    options: Mapping[str, object],
) -> Setup:
    """Read what a user gave after ``-T``; Inspect has made numbers and booleans of some words.

    >>> read_setup("mquest/qa", None, None, None, {"order": "answer_first"}).options
    (('order', 'answer_first'),)
    """
    if data not in (None, "starter", "release"):
        raise UnknownName("data", str(data), ("starter", "release"))
    ref = _find(task)
    known = {option.name: option.choices for option in ref.card.option}
    read: dict[str, str] = {}
    for name, value in options.items():
        if name not in known:
            raise UnknownName("option", name, [*known, "data", "split", "invalid"])
        read[name] = read_value(name, value, known[name])
    return Setup(task, data, split, invalid, tuple(sorted(read.items())))


def read_value(name: str, value: object, choices: tuple[str, ...]) -> str:
    """An option's value as it was written.

    >>> read_value("hint", False, ("off", "pinyin")), read_value("prompt", 2, ("1", "2"))
    ('off', '2')
    """
    if isinstance(value, bool):
        words = _YES if value else _NO
        return next((word for word in words if word in choices), words[0])
    if isinstance(value, list | dict):
        raise InputError(
            f"option {name} takes one value", hint="run the task once for each: inspect eval-set"
        )
    return str(value)


def list_task_names() -> tuple[str, ...]:
    """Every task, ``BENCHMARK/TASK``, also of benchmarks elsewhere."""
    runnable = [name for name, benchmark in find_benchmarks().items() if benchmark.runnable]
    return tuple(ref.name for ref in find_tasks(runnable))


def _find(task: str) -> TaskRef:
    return find_tasks([task])[0]


@cache
def pose_setup(setup: Setup) -> PosedTask:
    """The task on its data; read once."""
    kind = cast("DataKind | None", setup.data)
    scope, variation = Scope(kind, setup.split), Variation(setup.invalid)
    posed = pose_task(_find(setup.task), dict(setup.options), scope, variation)
    task, complete = posed.task, posed.task.complete
    if complete is None:
        return posed
    # Inspect asks what a sample says: its items must be complete from the start.
    return replace(posed, task=replace(task, items=lambda: map(complete, task.items())))


@cache
def open_scoring(setup: Setup) -> Task:
    """The task without its data: it can parse and score."""
    ref = _find(setup.task)
    split = setup.split or ref.card.splits[0]
    return ref.make(dict(setup.options), split, None, setup.invalid)


def find_need(setup: Setup, need: Need) -> Setup:
    """The task whose answers another one needs: same data, same split where it has that one."""
    card = _find(need.task).card
    split = setup.split if setup.split in card.splits else None
    return Setup(need.task, setup.data, split, None, tuple(sorted(need.options.items())))


@dataclass(frozen=True, slots=True)
class Judged:
    """What an output says."""

    status: Status
    value: JsonValue = None
    reason: str = ""


def judge_text(task: Task, item: Item, text: str, refusal: str = "") -> Judged:
    """Parse a model's text, its thoughts set aside."""
    reply = Reply(split_thought(text)[1], refusal=refusal)
    return Judged(*read_reply(reply, lambda said: task.parse(said, item.form)))


def score_outcomes(
    task: Task, outcomes: Sequence[Outcome]
) -> tuple[Sequence[Score], Mapping[str, int]]:
    """The task's figures and the counts of statuses."""
    return task.score(keep_scored(outcomes, task.invalid)), count_statuses(outcomes)


def unpack_item(packed: object) -> Item:
    """An item from a sample's metadata."""
    return _ITEM.validate_python(packed)


Role = Literal["captioner"]
CAPTIONER: Role = "captioner"
