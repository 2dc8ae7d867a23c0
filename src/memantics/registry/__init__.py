"""Names to objects: the only place that knows every benchmark and every kind of model."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from pydantic import JsonValue

from memantics import __version__
from memantics.core.card import Card, TaskCard, read_card, read_policy
from memantics.core.data import DataKind, Found, Source
from memantics.core.errors import DataError, InputError, StoreError, UnknownName
from memantics.core.model import Model
from memantics.core.published import PublishedRow, read_published
from memantics.core.registry import find_registered, read_registry, read_shelf
from memantics.core.rundir import RunFacts
from memantics.core.task import InvalidPolicy, Task
from memantics.models.kinds import MODEL_KINDS, ModelKind, ModelSettings, open_model
from memantics.run.evaluate import PosedTask, pose
from memantics.run.facts import DataFacts, Scope
from memantics.run.plan import TaskChoice

# The kinds of models are reached through here too: callers need one place for names.
__all__ = [
    "MODEL_KINDS",
    "STARTER_IMAGES",
    "Benchmark",
    "ModelKind",
    "ModelSettings",
    "TaskRef",
    "Wish",
    "describe_data",
    "find_benchmark",
    "find_benchmarks",
    "find_published",
    "find_source",
    "find_tasks",
    "list_choices",
    "make_choice",
    "open_baselines",
    "open_layout_check",
    "open_model",
    "open_task_of_run",
    "pose_task",
]

PACKAGE = Path(__file__).parent.parent
STARTER_IMAGES = PACKAGE / "starter" / "images"


class Loader(Protocol):
    """What ``load.py``, ``survey.py`` and ``statistics.py`` of a benchmark offer together."""

    open_release: Callable[[Source], object]
    survey: Callable[[object], Found]
    statistics: Callable[[object], Mapping[str, JsonValue]]


LayoutTags = Callable[[Path, Path], Mapping[str, str]]
Looking = Callable[[Task, Callable[[bool], LayoutTags]], Task]
Listener = tuple[str, Callable[[str], str]]
Hearing = Callable[[Task, Callable[[], Listener]], Task]
TaskMaker = Callable[[str, Mapping[str, str], str, Source | None, InvalidPolicy], Task]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark's folder and card; its code is loaded on demand."""

    folder: Path
    card: Card

    @property
    def runnable(self) -> bool:
        """Whether it has tasks yet, or is read only."""
        return bool(self.card.like) or (self.folder / "task.py").is_file()

    def load_part(self, part: str) -> ModuleType:
        """Import one module of the folder, wherever it lies, or of the family it is like."""
        if self.card.like:
            known = sorted(
                path.parent.name for path in (PACKAGE / "benchmarks").glob("*/card.toml")
            )
            if self.card.like not in known:
                raise UnknownName(f"family of {self.card.name}:", self.card.like, known)
            return importlib.import_module(f"memantics.benchmarks.{self.card.like}.{part}")
        if self.folder.parent == PACKAGE / "benchmarks":
            return importlib.import_module(f"memantics.benchmarks.{self.folder.name}.{part}")
        path = self.folder / f"{part}.py"
        if not path.is_file():
            raise DataError(path, "is missing", hint="see docs/add-a-benchmark.md")
        return importlib.import_module(f"{self._open_package()}.{part}")

    def _open_package(self) -> str:
        """Make a folder outside of Memantics a package: its modules may import each other."""
        place = str(self.folder.resolve())
        # Two folders of one name are two packages.
        mark = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = f"memantics_benchmark_{self.card.name}_{mark}"
        if name not in sys.modules:
            package = ModuleType(name)
            package.__path__ = [place]
            sys.modules[name] = package
        return name

    def open(self, source: Source) -> object:
        """Read a release."""
        return cast("Loader", self.load_part("load")).open_release(source)

    def survey(self, release: object) -> Found:
        """Say what a release holds."""
        return cast("Loader", self.load_part("survey")).survey(release)

    def recompute(self, release: object) -> Mapping[str, JsonValue]:
        """Recompute the paper's figures from a release."""
        return cast("Loader", self.load_part("statistics")).statistics(release)

    def sample(self) -> Source:
        """The sample that ships with it; a published benchmark brings its data along whole."""
        if self.card.like:
            return Source("release", self.folder / "data", self.folder / "data" / "images")
        root = self.folder / "sample"
        if not root.is_dir():
            raise DataError(root, "this benchmark ships no sample", hint="use --data release")
        shared = self.card.sample.images == "starter"
        return Source("starter", root, STARTER_IMAGES if shared else root / "images")


@dataclass(frozen=True, slots=True)
class TaskRef:
    """One task of one benchmark."""

    benchmark: Benchmark
    card: TaskCard

    @property
    def name(self) -> str:
        """``BENCHMARK/TASK``."""
        return f"{self.benchmark.card.name}/{self.card.name}"

    def make(
        self, options: Mapping[str, str], split: str, source: Source | None, invalid: str | None
    ) -> Task:
        """Build the task; without a source it can only parse and score."""
        module = self.benchmark.load_part("task")
        maker = cast("TaskMaker", module.make)
        if self.benchmark.card.like:
            options = {own.name: own.default for own in self.card.option} | dict(options)
        task = maker(self.card.name, options, split, source, read_policy(self.card, invalid))
        if self.benchmark.card.like:
            task = replace(task, name=self.name)
        # A task that also looks at layouts says how; benchmarks cannot import ``vision``.
        look = cast("Looking | None", getattr(module, "look", None))
        # Likewise for what a caption sounds like: they cannot import ``phonetics``.
        hear = cast("Hearing | None", getattr(module, "hear", None))
        if source is not None and look is not None:
            task = look(task, open_layout_check)
        return task if hear is None or source is None else hear(task, open_listener)

    def pick_split(self, source: Source) -> str:
        """The split where the user names none: the card's first, or what the benchmark says."""
        module = self.benchmark.load_part("task")
        pick: Callable[[Source], str] | None = getattr(module, "pick_split", None)
        return pick(source) if pick else self.card.splits[0]


@cache
def open_layout_check(captions: bool) -> LayoutTags:
    """What is told about the layouts of a source and its edit, as tags of an item."""
    from memantics.vision.layout import LayoutCheck

    check = LayoutCheck(_open_line_finder() if captions else None)
    return lambda source, edited: check.compare(source, edited).tag()


@cache
def open_listener() -> Listener:
    """The name of the language model behind it, and a function from captions to reading hints."""
    from memantics.phonetics import hint, read_aloud

    return read_aloud("好").model, lambda caption: hint(read_aloud(caption))


def _open_line_finder() -> Callable[[bytes, str], list[tuple[int, int, int, int]]]:
    """The embedded reader's OCR and its table of readings, for boxes instead of words."""
    from memantics.models.embedded.ocr import open_reader

    def find_lines(data: bytes, name: str) -> list[tuple[int, int, int, int]]:
        with open_reader() as ocr:
            return [line.box for line in ocr.read(data, name).lines]

    return find_lines


def find_benchmarks() -> dict[str, Benchmark]:
    """Every folder with a card: ours, those below ``$MEMANTICS_BENCHMARKS``, and the published."""
    roots = [PACKAGE / "benchmarks"]
    roots += [Path(p) for p in os.environ.get("MEMANTICS_BENCHMARKS", "").split(os.pathsep) if p]
    cards: dict[Path, None] = {}
    for root in roots:
        paths = sorted(root.glob("*/card.toml"))
        if not paths:
            raise InputError(
                f"MEMANTICS_BENCHMARKS: no benchmark below {root}",
                hint="name the folder in which the benchmarks' folders lie",
            )
        cards |= dict.fromkeys(path.resolve() for path in paths)
    cards |= dict.fromkeys(folder / "card.toml" for folder in read_shelf())
    found: dict[str, Benchmark] = {}
    for path in cards:
        card = read_card(path)
        if card.name in found:
            raise DataError(path, f"a benchmark {card.name!r} exists already")
        found[card.name] = Benchmark(path.parent, card)
    return found


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of that name."""
    known = find_benchmarks()
    if name not in known:
        raise UnknownName("benchmark", name, known)
    return known[name]


def find_tasks(names: list[str]) -> list[TaskRef]:
    """Tasks by ``NAME``, ``NAME/TASK`` or ``suite``; each once, in the order asked."""
    refs: dict[str, TaskRef] = {}
    for name in names:
        for ref in _expand(name):
            refs.setdefault(ref.name, ref)
    return list(refs.values())


def _expand(name: str) -> list[TaskRef]:
    if name == "suite":
        return [ref for b in find_benchmarks().values() if b.runnable for ref in _tasks_of(b)]
    head, _, tail = name.partition("/")
    known = find_benchmarks()
    if head not in known:
        raise UnknownName("benchmark", head, [*known, "suite"])
    benchmark = known[head]
    if not benchmark.runnable:
        ready = ", ".join(b.card.name for b in known.values() if b.runnable)
        raise InputError(
            f"{head} can be read but not run yet", hint=f"benchmarks that run: {ready}"
        )
    return [TaskRef(benchmark, benchmark.card.find_task(tail))] if tail else _tasks_of(benchmark)


def _tasks_of(benchmark: Benchmark) -> list[TaskRef]:
    return [TaskRef(benchmark, task) for task in benchmark.card.task]


def find_published(tasks: Iterable[str]) -> dict[str, list[PublishedRow]]:
    """Papers' rows by task; a benchmark that is not here has none, and its runs still show."""
    heads = {task.partition("/")[0] for task in tasks}
    found: dict[str, list[PublishedRow]] = {}
    for name, benchmark in find_benchmarks().items():
        if name in heads:
            for row in read_published(benchmark.folder / "expected" / "published.json"):
                found.setdefault(f"{name}/{row.task}", []).append(row)
    return found


def find_source(benchmark: Benchmark, kind: DataKind | None) -> Source:
    """The data to run on: as asked, else the registered release, else the sample."""
    registered = kind == "release" or benchmark.card.name in read_registry()
    if kind == "starter" or benchmark.card.like or not registered:
        return benchmark.sample()
    return find_registered(benchmark.card.name).source


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user says about the data of a run; ``None`` leaves it to the benchmark."""

    kind: DataKind | None = None
    split: str | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    invalid: str | None = None


def pose_task(ref: TaskRef, options: Mapping[str, str], wish: Wish) -> PosedTask:
    """A task on its data; options that it does not have are not its own."""
    splits = ref.card.splits
    if wish.split is not None and wish.split not in splits:
        raise UnknownName(f"split of {ref.name}:", wish.split, splits)
    try:
        source = find_source(ref.benchmark, wish.kind)
    except StoreError:
        raise
    except InputError as error:
        # Like any other lack of data: the rest of a suite can do without it.
        raise DataError(ref.name, error.what, hint=error.hint) from error
    own = {option.name for option in ref.card.option}
    chosen = {name: value for name, value in options.items() if name in own}
    split = wish.split or ref.pick_split(source)
    task = ref.make(chosen, split, source, wish.invalid)
    scope = Scope(split, wish.limit, wish.sample, wish.seed)
    return pose((ref.benchmark.card, ref.card), task, describe_data(ref.benchmark, source), scope)


def list_choices(names: list[str], wish: Wish) -> list[TaskChoice]:
    """The tasks that a user asked for; those given as ``NAME/TASK`` must run."""
    return [make_choice(ref, wish, named=ref.name in names) for ref in find_tasks(names)]


def make_choice(ref: TaskRef, wish: Wish, *, named: bool = True) -> TaskChoice:
    """A task that a suite can pose."""

    def pose_it(options: Mapping[str, str], split: str | None) -> PosedTask:
        return pose_task(ref, options, replace(wish, split=split or wish.split))

    return TaskChoice(ref.name, ref.card, pose_it, named)


def describe_data(benchmark: Benchmark, source: Source) -> DataFacts:
    """Which data these are: those of a release as they were registered, the sample as it is."""
    card = benchmark.card
    if card.like:
        found = _survey_sample(benchmark.folder, source)
        licence = card.sample.licence
        return DataFacts("release", found.checksum, found.records, card.revision, licence)
    if source.kind == "release":
        entry = find_registered(card.name)
        release = card.release
        return DataFacts(
            "release",
            entry.checksum,
            entry.records,
            release.revision if release else "",
            release.licence if release else "",
        )
    found = _survey_sample(benchmark.folder, source)
    return DataFacts("starter", found.checksum, found.records, __version__, card.sample.licence)


@cache
def _survey_sample(folder: Path, source: Source) -> Found:
    """What a sample holds; looked at once, since it ships with the package."""
    benchmark = Benchmark(folder, read_card(folder / "card.toml"))
    return benchmark.survey(benchmark.open(source))


def open_baselines(card: TaskCard) -> tuple[Model, ...]:
    """The trivial models whose figures stand beside every run of a task."""
    return tuple(open_model(name, ModelSettings()) for name in card.baselines)


def open_task_of_run(facts: RunFacts, invalid: str | None) -> tuple[TaskRef, Task]:
    """The task of a finished run, without its data: it can parse and score."""
    ref = find_tasks([facts.task])[0]
    return ref, ref.make(facts.options, facts.split, None, invalid or facts.invalid)
