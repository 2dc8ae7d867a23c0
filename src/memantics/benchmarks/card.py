"""Dataset cards of benchmarks: ``card.toml`` in a benchmark's folder, with validated fields."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from memantics.core.data import load_toml
from memantics.core.errors import DataError, InputError, UnknownName, first_fault, require_known
from memantics.core.files import read_regular_text
from memantics.core.records import Closed
from memantics.core.task import InvalidPolicy

CardName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]

CardLanguage = Literal[
    "en", "zh", "ar", "de", "es", "hi", "it", "fr", "pt", "bg", "mk", "ro", "ru", "tr", "bn",
    "ta", "te", "ml", "ur", "id", "ja", "ko", "vi",
]  # fmt: skip


class OptionCard(Closed):
    """An option of a task, with the value that the paper uses if it differs from the default.

    A ``later`` option was added in a later version. It is not stored with a run while it has its
    default, so that earlier runs stay valid. A ``scoring`` option changes only scores; ``score
    --set`` can change it after a run.
    """

    name: CardName
    help: str
    default: str
    choices: tuple[str, ...] = ()
    paper: str = ""
    later: bool = False
    scoring: bool = False


class TaskCard(Closed):
    """One task of a benchmark; ``best`` is the highest value of its main metric."""

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
    """The official release of a benchmark: source, supported revision, and terms of use."""

    source: str
    revision: str
    licence: str
    unit: str
    complete: int
    obtain: str


class SampleCard(Closed):
    """The sample of a benchmark; ``images`` "shared": its images are those of the sample data."""

    licence: str
    images: Literal["shared", "own"] = "shared"


class PublishCard(Closed):
    """The annotation workflows whose results ``write.py`` publishes in the benchmark's format."""

    workflows: tuple[str, ...]


class Card(Closed):
    """The dataset card of a benchmark.

    ``format`` names the benchmark whose code reads and runs this one. Such a benchmark consists of
    data only, in the official format of that other benchmark, in its folder ``data``. ``canary`` is
    a unique string in the files; a model that reproduces it was trained on them.
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
        """Return the card of the task with this name."""
        for task in self.task:
            if task.name == name:
                return task
        raise UnknownName(
            "task", f"{self.name}/{name}", [f"{self.name}/{t.name}" for t in self.task]
        )


def read_card(path: Path) -> Card:
    """Read and validate a dataset card; an error names the invalid key."""
    try:
        return _parse_card(read_regular_text(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(path, str(error), hint="the card is not UTF-8 TOML") from error
    except ValidationError as error:
        raise DataError(
            path, first_fault(error), hint="see docs/how-to/add-a-benchmark.md"
        ) from error


@lru_cache(maxsize=64)
def _parse_card(text: str) -> Card:
    """Parse a dataset card once per process, since commands look up benchmarks several times."""
    return Card.model_validate(load_toml(text))


def resolve_options(task: TaskCard, given: Mapping[str, str]) -> dict[str, str]:
    """Merge the user's options with the defaults; raise an error for unknown names and values.

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
    """Return the policy for invalid answers: the user's choice, else the task's default."""
    try:
        return InvalidPolicy.read(given or task.invalid)
    except InputError as error:
        raise InputError(f"task {task.name}: {error.what}", hint=error.hint) from error
