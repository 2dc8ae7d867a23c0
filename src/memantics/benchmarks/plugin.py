"""The interface of a benchmark: ``plugin.py`` in its folder defines a :class:`BenchmarkPlugin`.

A benchmark consists of a reader of its data and a function that makes tasks. Statistics, audit
hooks and human ratings are optional. Loading a folder without a plugin fails. Exports for human
ratings use the functions at the end of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import JsonValue

from memantics.benchmarks.card import TaskCard
from memantics.core.data import Found, Source, inside
from memantics.core.errors import DataError, InputError, StoreError
from memantics.core.finding import Finding, Maker
from memantics.core.images import read_bytes
from memantics.core.labels import LabelSource
from memantics.core.prompt import Prompt, read_prompts, replace_prompts
from memantics.core.records import Form, Image, Item, Outcome, Request, Score
from memantics.core.rundir import RunFacts, dump_line, read_facts
from memantics.core.task import InvalidPolicy, Services, Task

R = TypeVar("R")
OfficialPrompts = Callable[[Source, Mapping[str, str]], Mapping[str, Prompt]]


@dataclass(frozen=True)
class TaskSetup:
    """The input for making a task; without data, the task can parse and score but not run.

    ``name`` is BENCHMARK/TASK, ``card`` the task's card, ``folder`` the benchmark's folder.
    ``options`` are complete and validated. ``own_prompts`` is a folder of prompts that replace the
    built-in ones; ``find_official`` reads the authors' prompts from a copy of their release.
    """

    name: str
    card: TaskCard
    folder: Path
    options: Mapping[str, str]
    split: str
    source: Source | None
    invalid: InvalidPolicy
    services: Services
    own_prompts: Path | None = None
    find_official: OfficialPrompts | None = None

    @cached_property
    def prompts(self) -> Mapping[str, Prompt]:
        """Return the prompts by name: the built-in ones, the authors', or the user's."""
        known = read_prompts(self.folder / "prompts")
        if self.options.get("wording") == "official" and self.source is not None:
            if self.find_official is None:
                raise InputError(
                    f"the release of {self.name} contains no prompts",
                    hint="omit the option wording",
                )
            known = {**known, **self.find_official(self.source, self.options)}
        if self.own_prompts is not None:
            known = replace_prompts(known, self.own_prompts, self.name)
        return known

    def need_source(self) -> Source:
        """Return the data; raise an error if there are none."""
        if self.source is None:
            name = self.name.partition("/")[0]
            raise DataError(
                name,
                "the task has no data to run on",
                hint=f"register the release with 'memantics data add {name} DIR'",
            )
        return self.source

    def picture(
        self,
        image: Path | None,
        meme: str,
        hint: str = "add the images (data add --images DIR), or use --set images=present",
    ) -> Image | None:
        """Return a meme's image; if missing, raise an error, or return None to skip the item."""
        if image is not None:
            return Image(image)
        if self.options.get("images") == "present":
            return None
        if self.source is not None and self.source.unseen:
            return Image(Path(meme))
        raise DataError(f"meme {meme}", "its image is not in this copy of the release", hint=hint)

    def make(
        self,
        items: Callable[[], Iterator[Item]],
        ask: Callable[[Item, str | None], Request],
        parse: Callable[[str, Form], JsonValue],
        score: Callable[[Sequence[Outcome]], tuple[Score, ...]],
        used: Iterable[Prompt] | Mapping[str, str],
    ) -> Task:
        """Return the task; ``used`` are the prompts (or hashes) recorded in ``run.json``."""
        hashes = (
            used if isinstance(used, Mapping) else {prompt.name: prompt.hash for prompt in used}
        )
        return Task(
            name=self.name,
            items=items,
            ask=ask,
            parse=parse,
            score=score,
            main=self.card.main,
            invalid=self.invalid,
            options=self.options,
            prompts=hashes,
        )

    def option(self, name: str) -> str:
        """Return the value of an option; an option added in a later version may be absent."""
        return self.options.get(name) or next(o.default for o in self.card.option if o.name == name)

    def read_whole(self, option: str, low: int, high: int) -> int:
        """Return an option as an integer."""
        text = self.option(option)
        # int() raises its own error for numbers of thousands of digits.
        if text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high:
            return int(text)
        raise InputError(
            f"option {option} of {self.name}: {text!r} is not an integer from {low} to {high:,}",
            hint=f"for example --set {option}={max(low, min(high, 100))}",
        )

    def read_number(self, option: str, low: float, high: float) -> float:
        """Return an option as a number."""
        text = self.option(option)
        try:
            value = float(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise InputError(
                f"option {option} of {self.name}: {text!r} is not a valid number",
                hint=f"give a number from {low:g} to {high:g}",
            )
        return value


@dataclass(frozen=True, slots=True)
class AuditHooks(Generic[R]):
    """Audit checks that are specific to one benchmark.

    ``pictures`` names the image files of a complete copy, so that checks without images also work
    on a copy that lacks them. ``shown`` gives, by task, the options whose prompt shows all text
    about a meme. ``makers`` names the models that wrote parts of the data. ``rated`` are the fields
    of a judge's reply that contain its scores. ``narrow`` restricts the data to a split, which
    ``findings`` then describe. ``across`` are findings that compare splits.
    """

    findings: Callable[[R], tuple[Finding, ...]] = lambda _: ()
    pictures: Callable[[R], Iterable[str]] = lambda _: ()
    shown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    makers: Callable[[R], tuple[Maker, ...]] = lambda _: ()
    rated: frozenset[str] = frozenset()
    narrow: Callable[[R, str], R] = lambda release, _: release
    across: Callable[[R], tuple[Finding, ...]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class HumanExport:
    """The files that an export for human ratings wrote."""

    queue: Path
    key: Path
    memes: int
    settings: int
    rows: int


class HumanRatings(Protocol):
    """The interface for exporting answers of runs for blind human rating."""

    def __call__(self, runs: Sequence[Path], out: Path, seed: int, memes: int) -> HumanExport:
        """Write an annotation queue and its key to the folder ``out``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPlugin(Generic[R]):
    """Everything that a benchmark provides; ``R`` is the type that its reader returns.

    ``statistics`` recomputes the paper's statistics by key. ``pick_split`` chooses the default
    split (default: the first in the dataset card). ``official_prompts`` reads the authors' prompts
    from a copy of their release. ``must_name`` gives, by item, groups of words; a chain of thought
    must name one word of each group. ``labels`` are the labels that classifiers can be trained on,
    by name.
    """

    open_release: Callable[[Source], R]
    survey: Callable[[R], Found]
    make_task: Callable[[TaskSetup], Task]
    statistics: Callable[[R], Mapping[str, JsonValue]] = lambda _: {}
    pick_split: Callable[[Source], str] | None = None
    audit: AuditHooks[R] = field(default_factory=AuditHooks)
    human_ratings: HumanRatings | None = None
    official_prompts: OfficialPrompts | None = None
    must_name: Callable[[R], Mapping[str, Sequence[frozenset[str]]]] | None = None
    labels: Mapping[str, LabelSource[R]] = field(default_factory=dict)


QUEUE, KEY = "queue", "key.jsonl"


def read_runs(folders: Sequence[Path], task: str) -> list[RunFacts]:
    """Return the settings of the runs to rate; check that task and data are the same."""
    if not folders:
        raise InputError("no run was given", hint=f"give run folders of {task}")
    found = []
    for folder in folders:
        facts = read_facts(folder)
        if facts.task.partition("/")[2] != task.partition("/")[2]:
            raise InputError(f"{folder} is a run of {facts.task}", hint=f"give runs of {task}")
        found.append(facts)
    if len({run_facts.fingerprint for run_facts in found}) < len(found):
        raise InputError("a run was given twice", hint="give each run once")
    if len({run_facts.data.get("checksum") for run_facts in found}) > 1:
        raise InputError("the runs use different data", hint="give runs on the same data")
    return found


def copy_image(source: Path, queue: Path, name: str) -> str | None:
    """Copy an image into the annotation queue, which is self-contained; None without an image."""
    if not source.is_file():
        return None
    place = inside(queue, f"images/{name}{source.suffix.lower()}")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(read_bytes(source))
    return f"images/{place.name}"


def name_origin(name: str, run: str, model: str, options: Mapping[str, str]) -> dict[str, object]:
    """Return the model and run behind a queue item for the key file, which raters do not see."""
    return {"id": name, "run": run, "model": model, "options": options}


def write_apart(path: Path, rows: Iterable[object]) -> None:
    """Write a new file of lines; raise an error if it exists, since raters may be using it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.writelines(dump_line(row) for row in rows)
    except FileExistsError:
        raise StoreError(f"{path} already exists", hint="choose another --out") from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}", hint="choose another --out"
        ) from error
