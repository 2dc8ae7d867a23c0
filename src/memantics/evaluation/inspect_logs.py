"""Write runs as Inspect logs (extra ``inspect``), and describe tasks as data for Inspect.

Inspect's viewer and tools read the logs that this module writes.
"""

from __future__ import annotations

import base64
import importlib.util
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.benchmarks.registry import TaskRef, find_benchmarks, find_tasks
from memantics.core.data import DataKind
from memantics.core.errors import (
    ImageError,
    InputError,
    MissingExtra,
    StoreError,
    UnknownName,
    first_fault,
)
from memantics.core.files import refuse_unwritable
from memantics.core.images import probe, read_bytes
from memantics.core.records import (
    Answer,
    Image,
    Item,
    Message,
    MessagePart,
    Outcome,
    Reply,
    Score,
    Status,
)
from memantics.core.registry import is_inside
from memantics.core.rundir import ItemLine, dump_line, read_answers, read_items
from memantics.core.task import Need, Task
from memantics.evaluation.facts import Scope, Variation
from memantics.evaluation.reports.payload import OPEN, RIGHT, WRONG, judge_answer, show_value
from memantics.evaluation.reports.runs import Run
from memantics.evaluation.run import PosedTask
from memantics.evaluation.scoring import count_statuses, keep_scored
from memantics.evaluation.tasks import pose_task
from memantics.models.engine import read_reply
from memantics.models.wire import split_thought

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalResults, EvalSample, EvalSpec, EvalStats
    from inspect_ai.model import ChatMessage, Content, ModelOutput
    from inspect_ai.scorer import Score as Marked

SCORER = "memantics"
ItemMarks = Mapping[str, float | None]
_ITEM = TypeAdapter(Item)
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")
ModelRole = Literal["captioner"]
CAPTIONER: ModelRole = "captioner"


def check_inspect() -> None:
    """Raise an error if the package Inspect is not installed."""
    if importlib.util.find_spec("inspect_ai") is None:
        raise MissingExtra("Inspect logs", "inspect")


def name_task(task: str) -> str:
    """Return the name of a task in Inspect.

    >>> name_task("mquest/qa")
    'mquest_qa'
    """
    return task.replace("/", "_")


def name_metrics(scores: Iterable[Score], main: str) -> dict[str, float]:
    """Map metric names to values, the main metric first, since Inspect shows the first as result.

    >>> part = Score("f1", 1.0, 1, by="by", label="x")
    >>> rows = (Score("n", 2.0, 2), part, Score("f1", 0.5, 4, 0.1, 0.9))
    >>> name_metrics(rows, "f1")
    {'f1': 0.5, 'f1 low': 0.1, 'f1 high': 0.9, 'n': 2.0, 'f1 (by x)': 1.0}
    """
    ordered = sorted(scores, key=lambda score: (bool(score.by), score.key != main))
    found: dict[str, float] = {}
    for score in ordered:
        if score.value is None:
            continue
        name = f"{score.key} ({score.by} {score.label})" if score.by else score.key
        found.setdefault(name, score.value)
        if not score.by and score.low is not None and score.high is not None:
            found |= {f"{name} low": score.low, f"{name} high": score.high}
    return found


def mark_sample(status: str, value: JsonValue, gold: JsonValue, mark: float | None) -> str | float:
    """Return the value of one sample: Inspect's letter, the task's own value, or NaN if not scored.

    >>> mark_sample("answered", "B", "B", None), mark_sample("unparsed", None, "B", None)
    ('C', 'N')
    >>> mark_sample("answered", "so", ["so", "or so"], 0.4)
    0.4
    """
    verdict = judge_answer(status, value, gold)
    if verdict not in (RIGHT, WRONG, OPEN):
        return "N"
    if mark is not None:
        return mark
    return {RIGHT: "C", WRONG: "I"}.get(verdict, math.nan)


def show_messages(
    messages: Iterable[Message], *, inline: bool = True, images: bool = True
) -> list[ChatMessage]:
    """Convert messages to Inspect's format; ``inline`` embeds images instead of their paths."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds: dict[str, Any] = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }
    return [
        kinds[message.role](content=[_show_part(part, inline, images) for part in message.parts])
        for message in messages
    ]


def _show_part(part: MessagePart, inline: bool, images: bool) -> Content:
    from inspect_ai.model import ContentImage, ContentText

    if isinstance(part, str):
        return ContentText(text=part)
    if not images:
        return ContentText(text=f"[image {part.path.name}]")
    return ContentImage(image=encode_image(part) if inline else str(part.path.resolve()))


def encode_image(image: Image) -> str:
    """Encode an image file as a data URL without changing its bytes."""
    data = read_bytes(image.path)
    mime = probe(data, image.path.name).mime
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def pack_item(item: Item) -> dict[str, JsonValue]:
    """Convert an item to plain JSON, so that the Inspect log does not need the run directory."""
    packed: dict[str, JsonValue] = orjson.loads(dump_line(item))
    return packed


def write_log(run: Run, out: Path, marks: ItemMarks, places: Sequence[Path] | None = ()) -> Path:
    """Write the Inspect log of a run; ``marks`` are per-item values of the main metric.

    Images in the folders ``places`` are embedded in the log; None embeds no image.
    """
    check_inspect()
    from inspect_ai.log import write_eval_log

    try:
        log = build_log(run, marks, places)
    except ValidationError as error:
        raise StoreError(
            f"{run.folder} cannot be written as a log: {first_fault(error)}",
            hint="run it again with another --out",
        ) from error
    # File names follow Inspect's own logs; a name from a run must not lead out of the folder.
    words = (log.eval.created, name_task(run.task), run.facts.fingerprint)
    path = out / ("_".join(re.sub(r"[^0-9A-Za-z]+", "-", word)[:60] for word in words) + ".eval")
    with refuse_unwritable(path):
        out.mkdir(parents=True, exist_ok=True)
        write_eval_log(log, str(path))
    return path


def build_log(run: Run, marks: ItemMarks, places: Sequence[Path] | None) -> EvalLog:
    """Build the complete Inspect log of a run."""
    from inspect_ai.log import EvalLog

    attempts: dict[str, list[Answer]] = {}
    for answer in read_answers(run.folder):
        attempts.setdefault(answer.item, []).append(answer)
    lines = [line for line in read_items(run.folder) if line.item.id in attempts]
    samples = [
        _sample(run, line, attempts[line.item.id], marks.get(line.item.id), places)
        for line in lines
    ]
    return EvalLog(
        status="success" if run.facts.finished else "cancelled",
        eval=_spec(run, [line.item.id for line in lines]),
        results=_results(run, len(samples)),
        stats=_stats(run),
        samples=samples,
    )


def _spec(run: Run, ids: list[str]) -> EvalSpec:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec

    facts = run.facts
    packed = orjson.loads(dump_line(facts))
    return EvalSpec(
        eval_id=facts.fingerprint,
        run_id=facts.fingerprint,
        task_id=facts.fingerprint,
        created=facts.started,
        task=f"memantics/{name_task(run.task)}",
        task_version=facts.version,
        task_args={"data": run.kind, "split": facts.split, **facts.options},
        dataset=EvalDataset(
            name=f"{run.task} ({run.kind})", samples=len(ids), sample_ids=ids, shuffled=False
        ),
        model=facts.model,
        config=EvalConfig(limit=facts.limit, epochs=1),
        packages={"memantics": facts.version},
        metadata=packed,
    )


def _results(run: Run, samples: int) -> EvalResults:
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    scores = run.results
    counts = {f"{status} items": float(count) for status, count in scores.counts.items()}
    metrics = name_metrics(scores.scores, scores.main) | counts
    failed = scores.counts.get("failed", 0)
    return EvalResults(
        total_samples=samples,
        completed_samples=samples - failed,
        scores=[
            EvalScore(
                name=SCORER,
                scorer=SCORER,
                scored_samples=samples - failed,
                unscored_samples=failed,
                metrics={
                    name: EvalMetric(name=name, value=value) for name, value in metrics.items()
                },
            )
        ],
        metadata={
            "baselines": {
                baseline.model: name_metrics(baseline.scores, scores.main)
                for baseline in scores.baselines
            }
        },
    )


def _stats(run: Run) -> EvalStats:
    from inspect_ai.log import EvalStats
    from inspect_ai.model import ModelUsage

    usage = run.results.usage
    return EvalStats(
        started_at=run.facts.started,
        completed_at=run.facts.finished or "",
        model_usage={
            run.facts.model: ModelUsage(
                input_tokens=usage.tokens_in,
                output_tokens=usage.tokens_out,
                total_tokens=usage.tokens_in + usage.tokens_out,
            )
        },
    )


def _sample(
    run: Run,
    line: ItemLine,
    attempts: Sequence[Answer],
    mark: float | None,
    places: Sequence[Path] | None,
) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample

    item, last = line.item, attempts[-1]
    shown = line.messages if places is None else list(_bear(line.messages, places))
    asked = show_messages(shown, images=places is not None)
    output = _output(run.facts.model, last)
    error = None
    if last.status == "failed":
        error = EvalError(message=last.reason, traceback="", traceback_ansi="")
    return EvalSample(
        id=item.id,
        epoch=1,
        input=asked,
        target=show_value(item.gold),
        messages=[*asked, *(choice.message for choice in output.choices)],
        output=output,
        scores=None if error else {SCORER: _score(item, last, mark)},
        metadata={
            **item.tags,
            "meme": item.group,
            "item": pack_item(item),
            "attempts": orjson.loads(orjson.dumps(list(attempts))),
        },
        total_time=round(sum(answer.seconds for answer in attempts), 4),
        error=error,
    )


def _bear(messages: Iterable[Message], places: Sequence[Path]) -> Iterator[Message]:
    """Convert messages; a text replaces an image that is missing, excluded or not in the data."""
    for message in messages:
        parts: list[MessagePart] = []
        for part in message.parts:
            try:
                if isinstance(part, Image) and not is_inside(part.path, places):
                    parts.append(f"[image {part.path.name}: outside the registered data]")
                    continue
                if isinstance(part, Image):
                    probe(read_bytes(part.path), part.path.name)
                parts.append(part)
            except ImageError as error:
                parts.append(f"[{error.what}]")
        yield Message(message.role, tuple(parts))


def _output(model: str, answer: Answer) -> ModelOutput:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
        ModelUsage,
    )

    if answer.status == "failed":
        return ModelOutput(model=model, error=answer.reason)
    reply = answer.reply
    content: list[Content] = [ContentText(text=reply.text)]
    if reply.reasoning:
        content.insert(0, ContentReasoning(reasoning=reply.reasoning))
    reasons = {"length": "max_tokens", "stop": "stop", "": "stop"}
    stop: Any = reasons.get(reply.finish, "unknown")
    if answer.status == "refused":
        stop = "content_filter"
    return ModelOutput(
        model=model,
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant(content=content, model=model, source="generate"),
                stop_reason=stop,
            )
        ],
        usage=ModelUsage(
            input_tokens=reply.tokens_in,
            output_tokens=reply.tokens_out,
            total_tokens=reply.tokens_in + reply.tokens_out,
        ),
        time=answer.seconds,
    )


def _score(item: Item, answer: Answer, mark: float | None) -> Marked:
    from inspect_ai.scorer import Score as Marked

    return Marked(
        value=mark_sample(answer.status, answer.value, item.gold, mark),
        answer=show_value(answer.value),
        explanation=answer.reason or None,
        metadata={"status": answer.status, "value": answer.value, "attempts": answer.attempt + 1},
    )


@dataclass(frozen=True, slots=True)
class Setup:
    """A task with its data and options, as Inspect passes them."""

    task: str
    data: str | None = None
    split: str | None = None
    invalid: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def plain(self) -> dict[str, object]:
        """The Inspect arguments that recreate this setup."""
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
    """Read Inspect's task arguments (``-T``), some of which it converts to numbers and booleans.

    >>> read_setup("mquest/qa", None, None, None, {"order": "answer_first"}).options
    (('order', 'answer_first'),)
    """
    if data not in (None, "sample", "release"):
        raise UnknownName("data", str(data), ("sample", "release"))
    ref = _find(task)
    known = {option.name: option.choices for option in ref.card.option}
    read: dict[str, str] = {}
    for name, value in options.items():
        if name not in known:
            raise UnknownName("option", name, [*known, "data", "split", "invalid"])
        read[name] = read_value(name, value, known[name])
    return Setup(task, data, split, invalid, tuple(sorted(read.items())))


def read_value(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return the value of a task option as the user wrote it.

    >>> read_value("hint", False, ("off", "pinyin")), read_value("prompt", 2, ("1", "2"))
    ('off', '2')
    """
    if isinstance(value, bool):
        words = _YES if value else _NO
        return next((word for word in words if word in choices), words[0])
    if isinstance(value, list | dict):
        raise InputError(
            f"option {name} takes one value, not a list",
            hint="run the task once per value with inspect eval-set",
        )
    return str(value)


def list_task_names() -> tuple[str, ...]:
    """List every task as ``BENCHMARK/TASK``, including plug-in benchmarks."""
    runnable = [name for name, benchmark in find_benchmarks().items() if benchmark.runnable]
    return tuple(ref.name for ref in find_tasks(runnable))


def _find(task: str) -> TaskRef:
    return find_tasks([task])[0]


@cache
def pose_setup(setup: Setup) -> PosedTask:
    """Open a task on its data; the result is cached."""
    kind = cast("DataKind | None", setup.data)
    scope, variation = Scope(kind, setup.split), Variation(setup.invalid)
    posed = pose_task(_find(setup.task), dict(setup.options), scope, variation)
    task, complete = posed.task, posed.task.complete
    if complete is None:
        return posed
    # Inspect sends samples unchanged, so items must be complete when they are built.
    return replace(posed, task=replace(task, items=lambda: map(complete, task.items())))


@cache
def open_scoring(setup: Setup) -> Task:
    """Open a task without its data, for parsing and scoring only."""
    ref = _find(setup.task)
    split = setup.split or ref.card.splits[0]
    return ref.make(dict(setup.options), split, None, setup.invalid)


def find_need(setup: Setup, need: Need) -> Setup:
    """Find the prerequisite task whose answers another task uses, on the same data and split."""
    card = _find(need.task).card
    split = setup.split if setup.split in card.splits else None
    return Setup(need.task, setup.data, split, None, tuple(sorted(need.options.items())))


@dataclass(frozen=True, slots=True)
class Judged:
    """The parsed answer in a model output."""

    status: Status
    value: JsonValue = None
    reason: str = ""


def judge_text(task: Task, item: Item, text: str, refusal: str = "") -> Judged:
    """Parse the text of a model reply without its reasoning."""
    reply = Reply(split_thought(text)[1], refusal=refusal)
    return Judged(*read_reply(reply, lambda said: task.parse(said, item.form)))


def score_outcomes(
    task: Task, outcomes: Sequence[Outcome]
) -> tuple[Sequence[Score], Mapping[str, int]]:
    """Compute the task's metrics and the counts of statuses."""
    return task.score(keep_scored(outcomes, task.invalid)), count_statuses(outcomes)


def unpack_item(packed: object) -> Item:
    """Rebuild an item from the metadata of an Inspect sample."""
    return _ITEM.validate_python(packed)
