"""The settings stored in ``run.json``: fingerprint, folder name, options, examples and repeats.

An option with several values gives one run per combination.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from memantics import __version__
from memantics.benchmarks.card import Card, TaskCard
from memantics.benchmarks.registry import DataFacts
from memantics.core.errors import DataError, InputError, UnknownName, first_fault, require_known
from memantics.core.files import read_regular_text
from memantics.core.images import read_bytes
from memantics.core.model import Answerer
from memantics.core.parameters import (
    DataFlag,
    Flag,
    InvalidFlag,
    Limit,
    Rewordings,
    SampleFlag,
    Seed,
    SplitFlag,
)
from memantics.core.records import Image, Item, Message, Request
from memantics.core.rundir import RunFacts
from memantics.core.task import Task


@dataclass(frozen=True, slots=True)
class Scope:
    """The items to ask: a split, a limited number of items, or a random sample with a seed.

    ``None`` selects the benchmark's default; an opened task has its ``split`` set. ``spread`` names
    the tags by which ``limit`` is stratified; if it is empty, the first items are used.
    """

    data: DataFlag = None
    split: SplitFlag = None
    limit: Limit = None
    sample: SampleFlag = None
    seed: Seed = None
    spread: str = ""

    def __post_init__(self) -> None:
        """Raise an error if settings contradict each other."""
        if self.limit is not None and self.sample is not None:
            hint = "remove one of them"
            raise InputError("--limit and --sample cannot be combined", hint=hint)
        if self.seed is not None and self.sample is None:
            hint = "add --sample N, or remove --seed"
            raise InputError("--seed has no effect without --sample", hint=hint)


def describe(
    cards: tuple[Card, TaskCard],
    task: Task,
    model: Answerer,
    data: DataFacts,
    scope: Scope,
    prices: tuple[float, float] | None = None,
) -> RunFacts:
    """Collect the settings of a new run for ``run.json``."""
    card, task_card = cards
    shape: dict[str, JsonValue] = {
        "task": task.name,
        "options": dict(task.options),
        "prompts": dict(task.prompts),
        "attempts": task.invalid.attempts,
        "identity": dict(model.identity),
        "data": data.checksum,
        "kind": data.kind,
        "split": scope.split,
        "limit": scope.limit,
    }
    seed = None if scope.sample is None else scope.seed or 0
    if scope.sample is not None:
        shape["sample"] = [scope.sample, seed]
    if scope.spread:
        shape["spread"] = scope.spread
    if task.perturbation:
        shape["perturbation"] = task.perturbation
    return RunFacts(
        benchmark=card.name,
        task=task.name,
        title=f"{card.title}: {task_card.title}",
        main=task.main,
        unit=task_card.unit,
        model=model.name,
        model_note=model.note,
        identity=model.identity,
        options=task.options,
        split=scope.split or "",
        limit=scope.limit,
        invalid=str(task.invalid),
        prompts=task.prompts,
        data=asdict(data),
        # The sample data are harmless; the content warning applies to the official release.
        warning=card.warning if data.kind == "release" else "",
        version=__version__,
        fingerprint=fingerprint(shape),
        started=now(),
        prices=prices,
        sample=scope.sample,
        seed=seed,
        perturbation=task.perturbation,
        spread=scope.spread,
    )


def add_needs(facts: RunFacts, needs: Mapping[str, RunFacts]) -> RunFacts:
    """Add the settings of the runs whose answers are part of the requests."""
    if not needs:
        return facts
    shape: dict[str, JsonValue] = {
        "run": facts.fingerprint,
        "needs": {name: need.fingerprint for name, need in needs.items()},
    }
    folders = {name: folder_name(need) for name, need in needs.items()}
    return replace(facts, fingerprint=fingerprint(shape), needs=folders)


def fingerprint(shape: Mapping[str, JsonValue]) -> str:
    """Hash all settings that affect the answers of a run.

    >>> len(fingerprint({"task": "mquest/qa"}))
    16
    """
    body = orjson.dumps(shape, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(body).hexdigest()[:16]


def folder_name(facts: RunFacts) -> str:
    """Make a readable folder name that is unique for each run.

    The name ends with a part of the fingerprint, so the same command finds its folder again.
    """
    words = re.sub(r"[^A-Za-z0-9.]+", "-", f"{facts.task}_{facts.model}").strip("-.")
    return f"{words[:80]}-{facts.fingerprint[:8]}"


def now() -> str:
    """Return the current time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# Variations of a run: few-shot examples and repeats.

ScoreBy = Literal["reply", "logprobs"]
# Retries add small numbers to a seed, so the seeds of repeated runs are far apart.
_STRIDE = 1000


@dataclass(frozen=True, slots=True)
class Variation:
    """Changes to runs: policy for invalid answers, perturbation, prompts, examples, repeats.

    ``prompts`` is a folder of replacement prompts, ``shots`` a file of few-shot examples. ``score``
    is ``reply``, or ``logprobs`` to choose the option with the highest log-probability.
    ``max_tokens`` limits the answer, ``thinking_tokens`` the reasoning before it.
    """

    invalid: InvalidFlag = None
    perturbation: Annotated[
        str,
        Flag(
            "Perturbation: image=swapped|blank, caption=removed|reworded|shuffled, "
            "meme=removed, options=permuted, contamination=caption|id|template|canary.",
            metavar="WHAT=HOW",
        ),
    ] = ""
    rewordings: Rewordings = None
    prompts: Annotated[
        Path | None, Flag("Folder with replacement prompt files of the same names.", metavar="DIR")
    ] = None
    shots: Annotated[
        Path | None,
        Flag("Few-shot examples with images (JSON lines).", metavar="FILE"),
    ] = None
    repeat: Annotated[
        int, Flag("Number of repeats with different seeds. Default: 1.", min=1, max=100)
    ] = 1
    score: Annotated[
        ScoreBy,
        Flag(
            "How to find the answer: parse the reply (reply), or take the most probable option "
            "(logprobs)."
        ),
    ] = "reply"
    max_tokens: Annotated[
        int | None, Flag("Maximum number of answer tokens, without reasoning.", min=1)
    ] = None
    thinking_tokens: Annotated[
        int | None, Flag("Maximum number of reasoning tokens, in addition to the answer's.", min=1)
    ] = None

    def __post_init__(self) -> None:
        require_known("score", self.score, get_args(ScoreBy))
        for name in ("repeat", "max_tokens", "thinking_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name}={value} is not a positive number", hint="give 1 or more")


class _Shot(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    answer: str
    images: tuple[str, ...] = ()


_SHOT = TypeAdapter(_Shot)


@dataclass(frozen=True, slots=True)
class Shots:
    """Few-shot examples as earlier turns of the conversation, and their hash."""

    messages: tuple[Message, ...]
    hash: str


def read_shots(path: Path) -> Shots:
    """Read few-shot examples: JSON lines with ``text``, ``answer`` and ``images``."""
    try:
        lines = read_regular_text(path).splitlines()
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
        raise DataError(path, "has no few-shot examples", hint="write one JSON object per line")
    return Shots(tuple(messages), digest.hexdigest()[:16])


def show_shots(task: Task, shots: Shots) -> Task:
    """Add few-shot examples before the last question of each request."""

    def change(request: Request) -> Request:
        *before, last = request.messages
        return replace(request, messages=(*before, *shots.messages, last))

    return replace(_asking(task, change), prompts={**task.prompts, "shots": shots.hash})


def repeat_task(task: Task, number: int) -> Task:
    """Return the task with the seed of a repeat; the first repeat is the unchanged task."""
    if not number:
        return task

    def change(request: Request) -> Request:
        seed = (request.sampling.seed or 0) + number * _STRIDE
        return replace(request, sampling=replace(request.sampling, seed=seed))

    return _asking(task, change)


def repeat_facts(facts: RunFacts, number: int) -> RunFacts:
    """Return the settings of a repeat; the first repeat is the plain run itself."""
    if not number:
        return facts
    shape: dict[str, JsonValue] = {"run": facts.fingerprint, "repeat": number}
    return replace(
        facts, fingerprint=fingerprint(shape), repeat=number, repeat_of=facts.fingerprint
    )


def _asking(task: Task, change: Callable[[Request], Request]) -> Task:
    """Return the task with a function that changes its requests."""
    ask, feed = task.ask, task.feed

    def asking(item: Item, complaint: str | None) -> Request:
        return change(ask(item, complaint))

    return replace(task, ask=asking, feed=feed and (lambda fed: _asking(feed(fed), change)))


# Splits at a comma that has no backslash before it.
_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True, slots=True)
class Setting:
    """An option set by the user; ``where`` is a benchmark, a task, or empty for all tasks."""

    where: str
    option: str
    values: tuple[str, ...]

    def concerns(self, task: str) -> bool:
        """Whether the option applies to that task."""
        return not self.where or task == self.where or task.startswith(f"{self.where}/")


def read_settings(flag: str, texts: Sequence[str] | None) -> tuple[Setting, ...]:
    r"""Read ``[NAME[/TASK]:]OPTION=VALUE[,VALUE…]``; ``\,`` is a comma inside a value.

    >>> read_settings("--set", ["mquest:order=answer_first,letter_only"])
    (Setting(where='mquest', option='order', values=('answer_first', 'letter_only')),)
    """
    read: dict[tuple[str, str], Setting] = {}
    for text in texts or ():
        head, equals, tail = text.partition("=")
        where, _, option = head.rpartition(":")
        if not equals or not option:
            raise InputError(
                f"{flag} {text!r} is not NAME=VALUE",
                hint=f"for example {flag} order=seeded or {flag} mquest/qa:order=answer_first",
            )
        if (where, option) in read:
            raise InputError(
                f"{flag} {head} is given twice",
                hint=f"for one run per value, use {flag} {head}=A,B",
            )
        values = tuple(part.replace("\\,", ",") for part in _COMMA.split(tail))
        read[where, option] = Setting(where, option, tuple(dict.fromkeys(values)))
    return tuple(read.values())


def check_settings(
    settings: Sequence[Setting], asked: Mapping[str, TaskCard], known: Mapping[str, TaskCard]
) -> None:
    """Raise an error if a task does not have a given option or value.

    ``asked`` are the tasks to run, ``known`` all tasks: an option may also apply to a task whose
    answers another task needs.
    """
    for setting in settings:
        cards = {
            task: card
            for task, card in (known if setting.where else asked).items()
            if setting.concerns(task)
        }
        if not cards:
            raise UnknownName(
                "task", setting.where, {*known, *(t.partition("/")[0] for t in known)}
            )
        known_options = {option.name for card in cards.values() for option in card.option}
        require_known("option", setting.option, known_options)
        for value in setting.values:
            _check_value(setting, value, cards)


def _check_value(setting: Setting, value: str, cards: Mapping[str, TaskCard]) -> None:
    allowed: dict[str, tuple[str, ...]] = {
        task: option.choices
        for task, card in cards.items()
        for option in card.option
        if option.name == setting.option
    }
    taken = [task for task, choices in allowed.items() if not choices or value in choices]
    if not taken:
        every = {choice for choices in allowed.values() for choice in choices}
        raise UnknownName(f"value of option {setting.option}:", value, every)
    for task in allowed:
        if task not in taken:
            raise InputError(
                f"option {setting.option} of {task} has no value {value!r}",
                hint=f"name the task with this value: --set {taken[0]}:{setting.option}={value}",
            )


def expand(task: str, card: TaskCard, settings: Sequence[Setting]) -> tuple[dict[str, str], ...]:
    """Return the options of each run of a task: one run for every combination of values.

    A setting for a task overrides one for its benchmark, which overrides one for all.

    >>> from memantics.benchmarks.card import OptionCard
    >>> options = tuple(OptionCard(name=name, help="", default="1") for name in ("prompt", "seed"))
    >>> card = TaskCard(name="chat", title="", main="accuracy", baselines=(), option=options)
    >>> expand("pun/chat", card, read_settings("--set", ["seed=4", "prompt=1,2", "pun:seed=5"]))
    ({'prompt': '1', 'seed': '5'}, {'prompt': '2', 'seed': '5'})
    """
    chosen: dict[str, tuple[str, ...]] = {}
    for option in card.option:
        matching = [s for s in settings if s.option == option.name and s.concerns(task)]
        if matching:
            chosen[option.name] = max(matching, key=lambda setting: len(setting.where)).values
    return tuple(dict(zip(chosen, values, strict=True)) for values in product(*chosen.values()))


def fix(task: str, card: TaskCard, settings: Sequence[Setting]) -> dict[str, str]:
    """Return the options of a prerequisite task; only settings that name that task apply."""
    named = [setting for setting in settings if setting.where == task]
    for setting in named:
        if len(setting.values) > 1:
            raise InputError(
                f"{task} is needed by another task, so {setting.option} takes one value",
                hint=f"--set {task}:{setting.option}={setting.values[0]}",
            )
    return expand(task, card, named)[0]


def name_groups(unit: str, items: int, groups: int) -> str:
    """Name what a task's items are grouped by: memes, or groups of memes if an item is a meme.

    A group of PunMemeCN is a pun with the two memes made from it.

    >>> name_groups("questions", 152, 14), name_groups("memes", 60, 20)
    ('memes', 'groups of memes')
    """
    return "groups of memes" if unit == "memes" and groups < items else "memes"
