"""Build Inspect tasks from the tasks of Memantics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from inspect_ai import Task as InspectTask
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import JSONSchema

from memantics import __version__, evaluation
from memantics.core.errors import InputError
from memantics.core.records import Item, Message, Outcome, Request
from memantics.core.task import Need, Task
from memantics.evaluation import (
    Setup,
    mark_sample,
    name_metrics,
    open_scoring,
    pack_item,
    pose_setup,
    read_setup,
    score_outcomes,
    show_messages,
    show_value,
    unpack_item,
)

# The solver sends the task's request and retries invalid answers by the task's policy.


def judge_output(task: Task, item: Item, output: ModelOutput) -> evaluation.Judged:
    """Parse the output of a model; an error in the parser counts as no answer."""
    said, stopped = output.completion, output.stop_reason == "content_filter"
    refusal = output.error or said or "content filter" if stopped else ""
    return evaluation.judge_text(task, item, said, refusal)


def read_config(request: Request, attempt: int = 0) -> dict[str, Any]:
    """Convert a request's sampling settings and schema to Inspect's config."""
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
    """Ask an item in the same way as ``memantics run`` does."""
    setup = evaluation.Setup(task, data, split, invalid, tuple(sorted((options or {}).items())))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        spare_download(get_model())
        task = evaluation.pose_setup(setup).task
        item = evaluation.unpack_item(state.metadata["item"])
        if task.needs:
            task, item = await feed_item(setup, task, item)
            state.metadata["item"] = pack_item(item)
        complaint: str | None = None
        for attempt in range(task.invalid.attempts):
            request = task.ask(item, complaint)
            if attempt or task.needs:
                state.messages = show_messages(request.messages)
            config = read_config(request, attempt)
            if not task.needs:
                # Settings in the user's command override this configuration of the task.
                config = {k: v for k, v in config.items() if k in ("seed", "response_schema")}
            state = await generate(state, tool_calls="none", **config)
            state.metadata["attempts"] = attempt + 1
            judged = judge_output(task, item, state.output)
            if judged.status == "answered":
                break
            complaint = judged.reason
        return state

    return solve


def spare_download(model: Model) -> None:
    """Let Inspect's mock model count tokens by length.

    By default it downloads a tokenizer, and without a network it retries for minutes.
    """

    async def count(text: str) -> int:
        return len(text) // 4 + 1

    if type(model.api).__name__ == "MockLLM":
        setattr(model.api, "count_text_tokens", count)  # noqa: B010 - it is no field of ours


async def feed_item(setup: evaluation.Setup, task: Task, item: Item) -> tuple[Task, Item]:
    """Insert answers to other tasks about the item's meme, which the task uses as input."""
    fed: dict[str, Mapping[str, str]] = {}
    for need in task.needs:
        answer = await ask_need(setup, need, item.group)
        fed[need.name] = {} if answer is None else {item.group: answer}
    if task.feed is None:
        return task, item
    ready = task.feed(fed)
    return ready, next(candidate for candidate in ready.items() if candidate.id == item.id)


async def ask_need(setup: evaluation.Setup, need: Need, meme: str) -> str | None:
    """Ask a prerequisite task, with the model in the Inspect role ``captioner`` if there is one."""
    first = evaluation.find_need(setup, need)
    task = evaluation.pose_setup(first).task
    item = next((candidate for candidate in task.items() if candidate.group == meme), None)
    if item is None:
        return None
    if task.needs:
        task, item = await feed_item(first, task, item)
    model: Model = get_model(role=evaluation.CAPTIONER) if need.captioner else get_model()
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
    """Return the settings that all requests of a task share: temperature and length."""
    plain = replace(request, schema=None, sampling=replace(request.sampling, seed=None))
    return GenerateConfig(**read_config(plain))


def make_task(
    name: str,
    data: str | None,
    split: str | None,
    invalid: str | None,
    options: Mapping[str, object],
) -> InspectTask:
    """Build the Inspect task for ``BENCHMARK/TASK``; errors in options are shown in one line."""
    setup = read_setup(name, data, split, invalid, options)
    question = pose_setup(setup)
    # From here on the split is explicit, so that Inspect's log names it.
    setup = Setup(name, question.data.kind, question.split, invalid, setup.options)
    task = pose_setup(setup).task
    items = list(task.items())
    plain: dict[str, Any] = setup.plain
    return InspectTask(
        dataset=MemoryDataset(
            [make_sample(task, item) for item in items],
            name=f"{name} ({question.data.kind}, {question.split})",
        ),
        solver=ask(**plain),
        scorer=read_answer(**plain),
        metrics=[task_metrics(**plain)],
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


def make_sample(task: Task, item: Item) -> Sample:
    """Convert an item to an Inspect sample whose input is the first request."""
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


def _ask_first(task: Task, item: Item) -> list[ChatMessage]:
    if not task.needs:
        return show_messages(task.ask(item, None).messages, inline=False)
    if not item.images:
        return [ChatMessageUser(content=item.form.question)]
    return show_messages([Message("user", (*item.images, item.form.question))], inline=False)


def explain(error: InputError) -> Exception:
    """Convert a Memantics error to the error type that Inspect shows without a traceback."""
    from inspect_ai._util.error import PrerequisiteError

    return PrerequisiteError(str(error))


# Scoring of each sample for Inspect's viewer, and the task's metrics over all samples.


@metric(scores="unreduced")
def task_metrics(
    task: str,
    data: str | None = None,
    split: str | None = None,
    invalid: str | None = None,
    options: dict[str, str] | None = None,
) -> Metric:
    """Compute the task's metrics with their confidence intervals, and the counts of statuses."""
    setup = Setup(task, data, split, invalid, tuple(sorted((options or {}).items())))

    def compute(scores: list[SampleScore]) -> Value:
        scoring = open_scoring(setup)
        rows, counts = score_outcomes(scoring, [read_outcome(score) for score in scores])
        found = name_metrics(rows, scoring.main)
        # Inspect counts a failed model call as an error of its sample.
        kept = {status: n for status, n in counts.items() if status != "failed"}
        return found | {f"{status} items": float(n) for status, n in kept.items()}

    return compute


def read_outcome(score: SampleScore) -> Outcome:
    """Rebuild the outcome of an item from its Inspect score."""
    facts = score.score.metadata or {}
    item = unpack_item(facts["item"])
    return Outcome(item, facts["status"], facts["value"], facts["attempts"])


@scorer(metrics=[], name="memantics")
def read_answer(
    task: str,
    data: str | None = None,
    split: str | None = None,
    invalid: str | None = None,
    options: dict[str, str] | None = None,
) -> Scorer:
    """Parse the answer as the task does, and score it."""
    setup = Setup(task, data, split, invalid, tuple(sorted((options or {}).items())))

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's seam
        scoring = open_scoring(setup)
        item = unpack_item(state.metadata["item"])
        judged = judge_output(scoring, item, state.output)
        mark = find_mark(scoring, item, Outcome(item, judged.status, judged.value))
        return Score(
            value=mark_sample(judged.status, judged.value, item.gold, mark),
            answer=show_value(judged.value),
            explanation=judged.reason or None,
            metadata={
                "status": judged.status,
                "value": judged.value,
                "attempts": int(state.metadata.get("attempts", 1)),
                "item": state.metadata["item"],
            },
        )

    return score


def find_mark(task: Task, item: Item, outcome: Outcome) -> float | None:
    """Return the item's value of the main metric if that value is neither "correct" nor "wrong"."""
    if task.marks is not None:
        marks = task.marks([outcome]).get(task.main)
        return marks[0] if marks else None
    if item.gold is None or isinstance(item.gold, dict | list):
        rows = (row for row in task.score([outcome]) if row.key == task.main and not row.by)
        return next((row.value for row in rows), None)
    return None
