"""How a run may depart from its task's own way of asking: demonstrations, and repeats."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from memantics.core.errors import DataError, InputError, UnknownName, first_fault
from memantics.core.images import read_bytes
from memantics.core.parameters import Flag, Invalid, Rewordings
from memantics.core.records import Image, Item, Message, Request
from memantics.core.rundir import RunFacts
from memantics.core.task import Task
from memantics.run.facts import fingerprint

ScoreBy = Literal["reply", "logprobs"]
# Later attempts add small numbers to a seed: repeats must stay apart from them.
_STRIDE = 1000


@dataclass(frozen=True, slots=True)
class Variation:
    """How runs depart from a task's way: invalid answers, probes, prompts, repeats, what is scored.

    ``prompts`` is a folder of prompts in the place of ours, ``shots`` a file of demonstrations.
    ``score`` is ``reply``, or ``logprobs`` to take the option that the server's log-probabilities
    make likeliest. ``max_tokens`` bounds the answer, ``thinking_tokens`` the thinking before it.
    """

    invalid: Invalid = None
    probe: Annotated[
        str,
        Flag(
            "Change one thing: picture=swapped|blank, caption=removed|reworded|shuffled, "
            "meme=removed, options=permuted, memory=caption|id|template|canary.",
            metavar="WHAT=HOW",
        ),
    ] = ""
    rewordings: Rewordings = None
    prompts: Annotated[
        Path | None, Flag("Prompts in the place of ours: files of the same names.", metavar="DIR")
    ] = None
    shots: Annotated[
        Path | None,
        Flag("Demonstrations with images: JSON lines, shown before.", metavar="FILE"),
    ] = None
    repeat: Annotated[int, Flag("Ask everything N times, by seed.", min=1, max=100)] = 1
    score: Annotated[ScoreBy, Flag("Read the reply, or take the option that is likeliest.")] = (
        "reply"
    )
    max_tokens: Annotated[
        int | None, Flag("Tokens of an answer, without the thinking before it.", min=1)
    ] = None
    thinking_tokens: Annotated[
        int | None, Flag("Tokens for thinking, on top of the answer's.", min=1)
    ] = None

    def __post_init__(self) -> None:
        if self.score not in get_args(ScoreBy):
            raise UnknownName("score", self.score, get_args(ScoreBy))
        for name in ("repeat", "max_tokens", "thinking_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name}={value} is not possible", hint="give 1 or more")


class _Shot(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    answer: str
    images: tuple[str, ...] = ()


_SHOT = TypeAdapter(_Shot)


@dataclass(frozen=True, slots=True)
class Shots:
    """Demonstrations: earlier turns of the talk, and the hash by which runs remember them."""

    messages: tuple[Message, ...]
    hash: str


def read_shots(path: Path) -> Shots:
    """Read demonstrations: JSON lines with ``text``, ``answer`` and ``images`` beside the file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, f"cannot be read: {error}", hint="check --shots") from error
    messages: list[Message] = []
    digest = hashlib.sha256()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            shot = _SHOT.validate_json(line)
        except ValidationError as error:
            hint = '{"text": "…", "answer": "…", "images": ["…"]}'
            raise DataError(path, first_fault(error), row=number, hint=hint) from error
        images = tuple(Image(path.parent / name) for name in shot.images)
        for part in (shot.text, shot.answer):
            digest.update(part.encode() + b"\0")
        for image in images:
            digest.update(hashlib.sha256(read_bytes(image.path)).digest())
        messages += (Message("user", (*images, shot.text)), Message("assistant", (shot.answer,)))
    if not messages:
        raise DataError(path, "holds no demonstration", hint="write one JSON object a line")
    return Shots(tuple(messages), digest.hexdigest()[:16])


def show_shots(task: Task, shots: Shots) -> Task:
    """The task with demonstrations before its last question, also once it has been fed."""

    def change(request: Request) -> Request:
        *before, last = request.messages
        return replace(request, messages=(*before, *shots.messages, last))

    return replace(_asking(task, change), prompts={**task.prompts, "shots": shots.hash})


def repeat_task(task: Task, number: int) -> Task:
    """The task as it is asked in a repeat: with another seed; the first is the task itself."""
    if not number:
        return task

    def change(request: Request) -> Request:
        seed = (request.sampling.seed or 0) + number * _STRIDE
        return replace(request, sampling=replace(request.sampling, seed=seed))

    return _asking(task, change)


def repeat_facts(facts: RunFacts, number: int) -> RunFacts:
    """The facts of a repeat; the first is a plain run, which is therefore not asked twice."""
    if not number:
        return facts
    shape: dict[str, JsonValue] = {"run": facts.fingerprint, "repeat": number}
    return replace(
        facts, fingerprint=fingerprint(shape), repeat=number, repeat_of=facts.fingerprint
    )


def _asking(task: Task, change: Callable[[Request], Request]) -> Task:
    """The task with its requests changed."""
    ask, feed = task.ask, task.feed

    def asking(item: Item, complaint: str | None) -> Request:
        return change(ask(item, complaint))

    return replace(task, ask=asking, feed=feed and (lambda fed: _asking(feed(fed), change)))
