"""Names to objects: the only place that knows every benchmark and every kind of model."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

import orjson
from pydantic import JsonValue

from memantics import __version__
from memantics.core.card import Card, TaskCard, read_card, read_policy
from memantics.core.data import DataKind, Found, Source
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.model import Model
from memantics.core.registry import find_registered, read_registry
from memantics.core.rundir import RunFacts
from memantics.core.task import InvalidPolicy, Task
from memantics.models.baseline import open_baseline
from memantics.run.evaluate import Question, pose
from memantics.run.facts import DataFacts, Scope

PACKAGE = Path(__file__).parent
STARTER_IMAGES = PACKAGE / "starter" / "images"


class Loader(Protocol):
    """What ``load.py``, ``survey.py`` and ``statistics.py`` of a benchmark offer together."""

    open_release: Callable[[Source], object]
    survey: Callable[[object], Found]
    statistics: Callable[[object], Mapping[str, JsonValue]]


TaskMaker = Callable[[str, Mapping[str, str], str, Source | None, InvalidPolicy], Task]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark's folder and card; its code is loaded on demand."""

    folder: Path
    card: Card

    @property
    def runnable(self) -> bool:
        """Whether it has tasks yet, or is read only."""
        return (self.folder / "task.py").is_file()

    def load_part(self, part: str) -> ModuleType:
        """Import one module of the folder, wherever it lies."""
        if self.folder.parent == PACKAGE / "benchmarks":
            return importlib.import_module(f"memantics.benchmarks.{self.folder.name}.{part}")
        name = f"memantics_benchmark_{self.folder.name}.{part}"
        if name not in sys.modules:
            path = self.folder / f"{part}.py"
            spec = importlib.util.spec_from_file_location(name, path)
            if spec is None or spec.loader is None or not path.is_file():
                raise DataError(path, "is missing", hint="see docs/add-a-benchmark.md")
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
        return sys.modules[name]

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
        """The sample that ships with it."""
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
        maker = cast("TaskMaker", self.benchmark.load_part("task").make)
        return maker(self.card.name, options, split, source, read_policy(self.card, invalid))


def find_benchmarks() -> dict[str, Benchmark]:
    """Every folder with a card: ours, and those below ``$MEMANTICS_BENCHMARKS``."""
    roots = [PACKAGE / "benchmarks"]
    roots += [Path(p) for p in os.environ.get("MEMANTICS_BENCHMARKS", "").split(os.pathsep) if p]
    found: dict[str, Benchmark] = {}
    for root in roots:
        for path in sorted(root.glob("*/card.toml")):
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


def find_source(benchmark: Benchmark, kind: DataKind | None) -> Source:
    """The data to run on: as asked, else the registered release, else the sample."""
    if kind == "starter" or (kind is None and benchmark.card.name not in read_registry()):
        return benchmark.sample()
    return find_registered(benchmark.card.name).source


def pose_task(
    ref: TaskRef,
    options: Mapping[str, str],
    scope: tuple[DataKind | None, str | None, int | None],
    invalid: str | None,
) -> Question:
    """A task on its data; ``scope`` is kind of data, split and limit as the user gave them."""
    kind, split, limit = scope
    splits = ref.card.splits
    if split is not None and split not in splits:
        raise UnknownName(f"split of {ref.name}:", split, splits)
    source = find_source(ref.benchmark, kind)
    own = {option.name for option in ref.card.option}
    chosen = {name: value for name, value in options.items() if name in own}
    task = ref.make(chosen, split or splits[0], source, invalid)
    data = describe_data(ref.benchmark, source)
    return pose((ref.benchmark.card, ref.card), task, data, Scope(split or splits[0], limit))


def describe_data(benchmark: Benchmark, source: Source) -> DataFacts:
    """Which data these are: those of a release as they were registered, the sample as it is."""
    card = benchmark.card
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
    found = benchmark.survey(benchmark.open(source))
    return DataFacts("starter", found.checksum, found.records, __version__, card.sample.licence)


def open_task_of_run(facts: RunFacts, invalid: str | None) -> tuple[TaskRef, Task]:
    """The task of a finished run, without its data: it can parse and score."""
    ref = find_tasks([facts.task])[0]
    return ref, ref.make(facts.options, facts.split, None, invalid or facts.invalid)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a user says about a model besides its name. ``params`` go to the server as they are."""

    base_url: str | None = None
    concurrency: int = 32
    timeout: float = 120.0
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelKind:
    """One kind of model: how it is named and what answers."""

    kind: str
    example: str
    what: str
    open: Callable[[str, ModelSettings], Model]


def open_model(name: str, settings: ModelSettings) -> Model:
    """The model called ``KIND/NAME``."""
    kinds = {kind.kind: kind for kind in MODEL_KINDS}
    head, slash, rest = name.partition("/")
    if head not in kinds:
        raise UnknownName("kind of model", head, kinds)
    if not slash or not rest:
        raise InputError(f"model {name!r} lacks its name", hint=f"such as {kinds[head].example}")
    return kinds[head].open(name, settings)


def _open_openai(name: str, settings: ModelSettings) -> Model:
    from memantics.models.openai import OpenAIModel, OpenAISettings
    from memantics.models.wire import WireSettings

    base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL")
    if not base_url:
        raise InputError(
            f"model {name!r} needs the address of its server",
            hint="give --base-url, such as http://localhost:8000/v1, or set OPENAI_BASE_URL",
        )
    return OpenAIModel(
        name.removeprefix("openai/"),
        base_url,
        os.environ.get("OPENAI_API_KEY", ""),
        OpenAISettings(
            wire=WireSettings(**_wire(settings.params)),
            connections=settings.concurrency,
            timeout=settings.timeout,
        ),
    )


def _wire(params: Mapping[str, str]) -> dict[str, Any]:
    """``--param`` values: those the wire format knows by name, the rest into the body as JSON."""
    closed = {
        "token_field": ("max_tokens", "max_completion_tokens"),
        "structured": ("strict", "object", "off"),
        "image_detail": ("auto", "low", "high"),
    }
    named: dict[str, Any] = {}
    extra: dict[str, JsonValue] = {}
    for name, value in params.items():
        if name in closed:
            if value not in closed[name]:
                raise UnknownName(f"value of --param {name}:", value, closed[name])
            named[name] = value
        elif name == "reasoning_effort":
            named[name] = value
        else:
            extra[name] = _json_or_text(value)
    return named | {"extra": extra}


def _json_or_text(value: str) -> JsonValue:
    try:
        parsed: JsonValue = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed


def _open_embedded(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    from memantics.models.embedded import EmbeddedReader

    if name != EmbeddedReader.name:
        raise UnknownName("model", name, [EmbeddedReader.name])
    return EmbeddedReader()


def _open_baseline(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    return open_baseline(name)


def _open_recorded(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    from memantics.models.recorded import RecordedModel

    return RecordedModel(Path(name.removeprefix("recorded/")))


def _open_fake(name: str, settings: ModelSettings) -> Model:  # noqa: ARG001
    from memantics.models.fake import open_fake

    return open_fake(name)


def _open_inspect(name: str, settings: ModelSettings) -> Model:
    from memantics.models.inspect import InspectModel, InspectSettings

    return InspectModel(
        name,
        InspectSettings(
            base_url=settings.base_url,
            timeout=int(settings.timeout),
            connections=settings.concurrency,
        ),
    )


MODEL_KINDS = (
    ModelKind("openai", "openai/NAME", "any OpenAI-compatible server (--base-url)", _open_openai),
    ModelKind("embedded", "embedded/reader", "our offline baseline, not a VLM", _open_embedded),
    ModelKind(
        "baseline",
        "baseline/longest",
        "trivial: constant, longest, majority, positive, random",
        _open_baseline,
    ),
    ModelKind("recorded", "recorded/FILE", "answers of an earlier run, replayed", _open_recorded),
    ModelKind(
        "inspect",
        "inspect/PROVIDER/NAME",
        "any provider of Inspect (extra: inspect)",
        _open_inspect,
    ),
    ModelKind("fake", "fake/NAME", "scripted models, for tests", _open_fake),
)
