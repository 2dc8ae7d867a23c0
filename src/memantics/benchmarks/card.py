"""Benchmark cards: ``card.toml`` in a benchmark's folder, typed and closed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from memantics.core.data import load_toml
from memantics.core.errors import DataError, InputError, UnknownName, first_fault, require_known
from memantics.core.records import Closed
from memantics.core.task import InvalidPolicy

CardName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]

CardLanguage = Literal["en", "zh", "ar", "de", "es", "hi"]


class OptionCard(Closed):
    """One choice a user has, with the paper's behaviour named where it differs from ours.

    One that came ``later`` is not among a run's options while it has its default: runs of before
    must go on. One of ``scoring`` changes figures alone: ``score --set`` may change it afterwards.
    """

    name: CardName
    help: str
    default: str
    choices: tuple[str, ...] = ()
    paper: str = ""
    later: bool = False
    scoring: bool = False


class TaskCard(Closed):
    """One task of a benchmark. ``best`` is the highest value that its main figure can reach."""

    name: CardName
    title: str
    main: str
    best: float = 1.0
    unit: str = "items"
    invalid: str = "wrong"
    baselines: tuple[str, ...]
    needs_images: bool = True
    splits: tuple[str, ...] = ("all",)
    option: tuple[OptionCard, ...] = ()


class ReleaseCard(Closed):
    """The official release: where it is, which revision we read, what it may be used for."""

    source: str
    revision: str
    licence: str
    unit: str
    complete: int
    obtain: str


class SampleCard(Closed):
    """The sample that ships with the benchmark; ``images`` "shared": those of the sample data."""

    licence: str
    images: Literal["shared", "own"] = "shared"


class PublishCard(Closed):
    """By which workflows people make what is published in this format, by its ``write.py``."""

    workflows: tuple[str, ...]


class Card(Closed):
    """A benchmark's card.

    ``like`` names the family whose code reads and asks it: such a benchmark is data alone, in
    that family's official format, in its folder ``data``. ``canary`` is a string unlike any other
    that its files hold, so that a model which trained on them can be told by it.
    """

    name: CardName
    format: CardName | None = None
    title: str
    summary: str
    languages: tuple[CardLanguage, ...]
    warning: str = ""
    citation: str
    revision: str = ""
    canary: str = ""
    release: ReleaseCard | None = None
    sample: SampleCard
    publish: PublishCard | None = None
    task: Annotated[tuple[TaskCard, ...], Field(min_length=1)]

    def find_task(self, name: str) -> TaskCard:
        """The task of that name."""
        for task in self.task:
            if task.name == name:
                return task
        raise UnknownName(
            "task", f"{self.name}/{name}", [f"{self.name}/{t.name}" for t in self.task]
        )


def read_card(path: Path) -> Card:
    """Read and check a card; an error names the key."""
    try:
        return _parse_card(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(path, str(error), hint="a card is UTF-8 TOML") from error
    except ValidationError as error:
        raise DataError(
            path, first_fault(error), hint="see docs/how-to/add-a-benchmark.md"
        ) from error


@lru_cache(maxsize=64)
def _parse_card(text: str) -> Card:
    """Read once in a process: most commands look for benchmarks several times."""
    return Card.model_validate(load_toml(text))


def resolve_options(task: TaskCard, given: Mapping[str, str]) -> dict[str, str]:
    """Lay the user's options over the defaults; unknown names and values are refused.

    >>> card = TaskCard(name="qa", title="", main="accuracy", baselines=(), option=(
    ...     OptionCard(name="order", help="", default="explain", choices=("explain", "answer")),))
    >>> resolve_options(card, {"order": "answer"})
    {'order': 'answer'}
    """
    known = {option.name: option for option in task.option}
    for name, value in given.items():
        require_known("option", name, known)
        choices = known[name].choices
        if choices and value not in choices:
            raise UnknownName(f"value of option {name}:", value, choices)
    chosen = {name: given.get(name, option.default) for name, option in known.items()}
    return {n: v for n, v in chosen.items() if not (known[n].later and v == known[n].default)}


def read_policy(task: TaskCard, given: str | None) -> InvalidPolicy:
    """The policy for invalid answers: the user's, else the task's own."""
    try:
        return InvalidPolicy.read(given or task.invalid)
    except InputError as error:
        raise InputError(f"task {task.name}: {error.what}", hint=error.hint) from error
