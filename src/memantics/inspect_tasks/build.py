"""A task of ours put together as a task of Inspect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageUser, GenerateConfig

from memantics import __version__
from memantics.actions.inspection import Setup, pose_setup, read_setup
from memantics.core.errors import InputError
from memantics.core.records import Item, Message
from memantics.core.task import Task as Own
from memantics.inspect_tasks.scoring import figures, read_answer
from memantics.inspect_tasks.solver import ask, narrow_config
from memantics.report.inspection import pack_item, show_messages
from memantics.report.payload import show_value


def make_task(
    name: str,
    data: str | None,
    split: str | None,
    invalid: str | None,
    options: Mapping[str, object],
) -> Task:
    """The task called ``BENCHMARK/TASK``; what is wrong with an option is said in one line."""
    setup = read_setup(name, data, split, invalid, options)
    question = pose_setup(setup)
    # From here on the split is the one that was picked, so that a log says which.
    setup = Setup(name, question.data.kind, question.split, invalid, setup.options)
    task = pose_setup(setup).task
    items = list(task.items())
    plain: dict[str, Any] = setup.plain
    return Task(
        dataset=MemoryDataset(
            [make_sample(task, item) for item in items],
            name=f"{name} ({question.data.kind}, {question.split})",
        ),
        solver=ask(**plain),
        scorer=read_answer(**plain),
        metrics=[figures(**plain)],
        config=GenerateConfig() if task.needs else narrow_config(task.ask(items[0], None)),
        version=__version__,
        metadata={
            "title": f"{question.cards[0].title}: {question.cards[1].title}",
            "main": task.main,
            "options": dict(task.options),
            "prompts": dict(task.prompts),
            "data": question.data.kind,
            "checksum": question.data.checksum,
            "invalid": str(task.invalid),
        },
    )


def make_sample(task: Own, item: Item) -> Sample:
    """An item as a sample; its first request, where no other answers are needed for it."""
    return Sample(
        id=item.id,
        input=_ask_first(task, item),
        target=show_value(item.gold),
        metadata={
            **item.tags,
            "meme": item.group,
            "item": pack_item(item),
            "shown by": f"memantics prompts show {task.name} --item {item.id}",
        },
    )


def _ask_first(task: Own, item: Item) -> list[ChatMessage]:
    if not task.needs:
        return show_messages(task.ask(item, None).messages, inline=False)
    if not item.images:
        return [ChatMessageUser(content=item.form.question)]
    return show_messages([Message("user", (*item.images, item.form.question))], inline=False)


def explain(error: InputError) -> Exception:
    """Our error as the one that Inspect shows without a traceback."""
    from inspect_ai._util.error import PrerequisiteError

    return PrerequisiteError(str(error))
