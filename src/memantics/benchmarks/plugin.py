"""The contract of a benchmark: ``plugin.py`` in its folder holds one :class:`BenchmarkPlugin`.

A benchmark is a reader of releases and a factory of tasks; statistics, audit hooks and human
ratings are optional. Everything is typed: mypy finds a wrong signature, and loading a folder
without a plugin fails. Exports for human ratings share the functions at the end of the module.
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
    """What a task is made from. Without a source it can parse and score, not ask.

    ``name`` is BENCHMARK/TASK, ``card`` the task's card, ``folder`` where the benchmark's prompts
    lie; ``options`` are complete, checked against the card. ``own_prompts`` is a folder of prompts
    in the place of ours, ``find_official`` reads the authors' own from a copy of their release.
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
        """The prompt files by name: ours, the authors' own, or those of the user."""
        known = read_prompts(self.folder / "prompts")
        if self.options.get("wording") == "official" and self.source is not None:
            if self.find_official is None:
                raise InputError(
                    f"the release of {self.name} holds no prompts", hint="leave wording out"
                )
            known = {**known, **self.find_official(self.source, self.options)}
        if self.own_prompts is not None:
            known = replace_prompts(known, self.own_prompts, self.name)
        return known

    def need_source(self) -> Source:
        """The data; an error where there are none."""
        if self.source is None:
            name = self.name.partition("/")[0]
            raise DataError(name, "no data to ask about", hint=f"memantics data add {name} DIR")
        return self.source

    def picture(
        self,
        image: Path | None,
        meme: str,
        hint: str = "add the images (data add --images DIR), or --set images=present",
    ) -> Image | None:
        """The image of a meme; without it, an error, or None where such items are left out."""
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
        """The task of these functions; ``used`` are the prompts (or hashes) a run remembers."""
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
        """The value of an option; one that came later than the first runs may be left out."""
        return self.options.get(name) or next(o.default for o in self.card.option if o.name == name)

    def read_whole(self, option: str, low: int, high: int) -> int:
        """The whole number that an option holds."""
        text = self.option(option)
        # int() of thousands of digits is an error of its own.
        if text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high:
            return int(text)
        raise InputError(
            f"option {option} of {self.name}: {text!r} is not a number from {low} to {high:,}",
            hint=f"such as --set {option}={max(low, min(high, 100))}",
        )

    def read_number(self, option: str, low: float, high: float) -> float:
        """The number that an option holds."""
        text = self.option(option)
        try:
            value = float(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise InputError(
                f"option {option} of {self.name} is {text!r}",
                hint=f"give a number from {low:g} to {high:g}",
            )
        return value


@dataclass(frozen=True, slots=True)
class AuditHooks(Generic[R]):
    """What only this benchmark's data can show.

    ``pictures`` names the image files of a complete copy, so that checks that look at no image
    also work on a copy without them. ``shown``: by task, the options under which a prompt shows
    all the text there is about a meme. ``makers``: which models wrote parts of the data; asked of
    releases only. ``rated``: the fields of a judge's reply that are its verdict. ``narrow`` cuts a
    release down to a split, so that ``findings`` are about it; ``across`` are findings that compare
    splits with one another, whichever is audited.
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
    """What an export for human ratings wrote."""

    queue: Path
    key: Path
    memes: int
    settings: int
    rows: int


class HumanRatings(Protocol):
    """Puts the answers of runs before people, blind to who gave them."""

    def __call__(self, runs: Sequence[Path], out: Path, seed: int, memes: int) -> HumanExport:
        """Write a queue and its key into the folder ``out``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPlugin(Generic[R]):
    """What a benchmark's folder offers; ``R`` is what its reader returns.

    ``statistics`` recomputes the paper's figures by key. ``pick_split`` chooses a split where the
    user names none (default: the first of the card). ``official_prompts`` reads the authors' own
    prompts from a copy of their release. ``must_name``: by item, groups of words of each of which a
    chain of thought must name one. ``labels``: what classifiers can learn from a release, by name.
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
    """The facts of runs that can be rated side by side: one task, one set of data, each once."""
    if not folders:
        raise InputError("no run was given", hint=f"give run directories of {task}")
    found = []
    for folder in folders:
        facts = read_facts(folder)
        if facts.task.partition("/")[2] != task.partition("/")[2]:
            raise InputError(f"{folder} is a run of {facts.task}", hint=f"give runs of {task}")
        found.append(facts)
    if len({run_facts.fingerprint for run_facts in found}) < len(found):
        raise InputError("a run was given twice", hint="give each setting once")
    if len({run_facts.data.get("checksum") for run_facts in found}) > 1:
        raise InputError("these runs are on different data", hint="give runs on the same data")
    return found


def copy_image(source: Path, queue: Path, name: str) -> str | None:
    """Put an image into the queue, which must be complete on its own; None where there is none."""
    if not source.is_file():
        return None
    place = inside(queue, f"images/{name}{source.suffix.lower()}")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(read_bytes(source))
    return f"images/{place.name}"


def name_origin(name: str, run: str, model: str, options: Mapping[str, str]) -> dict[str, object]:
    """Where an item of a queue comes from, as a line of the key; kept from those who rate."""
    return {"id": name, "run": run, "model": model, "options": options}


def write_apart(path: Path, rows: Iterable[object]) -> None:
    """Write a new file of lines: one that is there may have been handed out already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.writelines(dump_line(row) for row in rows)
    except FileExistsError:
        raise StoreError(f"{path} exists already", hint="choose another --out") from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}", hint="choose another --out"
        ) from error
