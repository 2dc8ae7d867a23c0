"""Asking: the task's own request, again while the answer is invalid, as its policy says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from inspect_ai.model import GenerateConfig, Model, ModelOutput, ResponseSchema, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import JSONSchema

from memantics.actions import inspection
from memantics.core.records import Item, Request
from memantics.core.task import Need, Task
from memantics.report.inspection import pack_item, show_messages


def judge_output(task: Task, item: Item, output: ModelOutput) -> inspection.Judged:
    """Parse an output; a parser that stumbles over a strange answer found none."""
    said, stopped = output.completion, output.stop_reason == "content_filter"
    refusal = output.error or said or "content filter" if stopped else ""
    return inspection.judge_text(task, item, said, refusal)


def read_config(request: Request, attempt: int = 0) -> dict[str, Any]:
    """A request's sampling and schema in Inspect's words; what it leaves open is not there."""
    sampling = request.sampling
    schema = request.schema and ResponseSchema(
        name="answer", json_schema=JSONSchema.model_validate(dict(request.schema)), strict=True
    )
    found = {
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed if sampling.seed is None else sampling.seed + attempt,
        "response_schema": schema or None,
    }
    return {name: value for name, value in found.items() if value is not None}


@solver
def ask(
    task: str,
    data: str | None = None,
    split: str | None = None,
    invalid: str | None = None,
    options: dict[str, str] | None = None,
) -> Solver:
    """Ask an item as the task does."""
    setup = inspection.Setup(task, data, split, invalid, tuple(sorted((options or {}).items())))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        spare_download(get_model())
        value = inspection.pose_setup(setup).task
        item = inspection.unpack_item(state.metadata["item"])
        if value.needs:
            value, item = await feed_item(setup, value, item)
            state.metadata["item"] = pack_item(item)
        complaint: str | None = None
        for attempt in range(value.invalid.attempts):
            request = value.ask(item, complaint)
            if attempt or value.needs:
                state.messages = show_messages(request.messages)
            config = read_config(request, attempt)
            if not value.needs:
                # These are the task's configuration, which the user's command overrides.
                config = {k: v for k, v in config.items() if k in ("seed", "response_schema")}
            state = await generate(state, tool_calls="none", **config)
            state.metadata["attempts"] = attempt + 1
            judged = judge_output(value, item, state.output)
            if judged.status == "answered":
                break
            complaint = judged.reason
        return state

    return solve


def spare_download(model: Model) -> None:
    """Let Inspect's mock model count tokens by length.

    It would fetch a table of tokens for that, and without a network tries for minutes.
    """

    async def count(text: str) -> int:
        return len(text) // 4 + 1

    if type(model.api).__name__ == "MockLLM":
        setattr(model.api, "count_text_tokens", count)  # noqa: B010 - it is no field of ours


async def feed_item(setup: inspection.Setup, task: Task, item: Item) -> tuple[Task, Item]:
    """The task and the item with the answers about the item's meme that they need."""
    fed: dict[str, Mapping[str, str]] = {}
    for need in task.needs:
        answer = await ask_need(setup, need, item.group)
        fed[need.name] = {} if answer is None else {item.group: answer}
    if task.feed is None:
        return task, item
    ready = task.feed(fed)
    return ready, next(value for value in ready.items() if value.id == item.id)


async def ask_need(setup: inspection.Setup, need: Need, meme: str) -> str | None:
    """What the model (or the one in the role ``captioner``) answers to the task before."""
    first = inspection.find_need(setup, need)
    task = inspection.pose_setup(first).task
    item = next((value for value in task.items() if value.group == meme), None)
    if item is None:
        return None
    if task.needs:
        task, item = await feed_item(first, task, item)
    model: Model = get_model(role=inspection.CAPTIONER) if need.captioner else get_model()
    complaint: str | None = None
    for attempt in range(task.invalid.attempts):
        request = task.ask(item, complaint)
        config = GenerateConfig(**read_config(request, attempt))
        output = await model.generate(show_messages(request.messages), config=config)
        judged = judge_output(task, item, output)
        if judged.status == "answered":
            return judged.value if isinstance(judged.value, str) else None
        complaint = judged.reason
    return None


def narrow_config(request: Request) -> GenerateConfig:
    """What holds for all requests of a task: temperature and length."""
    plain = replace(request, schema=None, sampling=replace(request.sampling, seed=None))
    return GenerateConfig(**read_config(plain))
