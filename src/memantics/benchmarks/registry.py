"""Lookup of benchmarks, tasks, published results and data by name.

The registry contains the built-in benchmarks, those below ``$MEMANTICS_BENCHMARKS``, dataset
configs and published benchmarks. The dataset card of a folder is read immediately, its
``plugin.py`` on demand.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import JsonValue

from memantics import __version__
from memantics.benchmarks.card import Card, TaskCard, read_card, read_policy, resolve_options
from memantics.benchmarks.dataset_config import read_dataset_config
from memantics.benchmarks.dataset_tasks import list_expected, make_card, make_plugin
from memantics.benchmarks.paper import Paper
from memantics.benchmarks.paper_file import FILE, read_paper
from memantics.benchmarks.plugin import BenchmarkPlugin, TaskSetup
from memantics.benchmarks.published import (
    Expected,
    PublishedRow,
    compare,
    read_expected,
    read_published,
)
from memantics.benchmarks.writing import Writer
from memantics.core.data import DataKind, Found, Source, Statistic, open_once
from memantics.core.errors import (
    DataError,
    InputError,
    UnknownName,
    require_known,
)
from memantics.core.plugins import Plugins
from memantics.core.registry import (
    add_to_shelf,
    find_registered,
    home,
    is_inside,
    read_registry,
    read_shelf,
)
from memantics.core.task import Services, Task

PACKAGE = Path(__file__).parent.parent
SHIPPED = PACKAGE / "benchmarks"
DATASET_CONFIGS = SHIPPED / "datasets"
# Services that a task may use besides its data, such as homophone readings. They are named as text
# and not imported, since benchmarks import no models.
SERVICES = Plugins("memantics.services", Services, {"ours": "memantics.evaluation.tasks:SERVICES"})
# A published benchmark of this format has a dataset config (``data/dataset.toml``) and no code.
DATASET, CONFIG = "dataset", "dataset.toml"
SAMPLE_IMAGES = PACKAGE / "core" / "samples" / "images"


def list_roots() -> list[Path]:
    """Return the parent folders of benchmarks: built-in, and those of ``$MEMANTICS_BENCHMARKS``."""
    named = os.environ.get("MEMANTICS_BENCHMARKS", "").split(os.pathsep)
    return [SHIPPED, *(Path(root) for root in named if root)]


def list_dataset_configs(root: Path) -> list[Path]:
    """Return the dataset configs in a folder, without dataset cards of benchmarks."""
    return [path for path in sorted(root.glob("*.toml")) if path.name not in ("card.toml", FILE)]


def _open_package(folder: Path) -> str:
    """Register a folder outside Memantics as a package with importable modules."""
    place = str(folder.resolve())
    # Two folders with the same name are two packages.
    mark = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    stem = re.sub(r"\W+", "_", folder.name)
    name = f"memantics_benchmark_{stem}_{mark}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [place]
        sys.modules[name] = package
    return name


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark's folder and dataset card.

    A published benchmark is read by the code of the benchmark that its card names as ``format``.
    ``dataset_config`` is the config file of a data set without code.
    """

    folder: Path
    card: Card
    dataset_config: Path | None = None

    @property
    def home(self) -> Path:
        """Return the folder with the code and prompts of this benchmark."""
        if self.dataset_config is not None:
            return DATASET_CONFIGS
        if not self.card.format:
            return self.folder
        homes = {path.parent.name: path.parent for path in SHIPPED.glob("*/card.toml")}
        if self.card.format not in homes:
            outside = (path for root in list_roots()[1:] for path in root.glob("*/card.toml"))
            homes |= {read_card(path).name: path.parent for path in outside}
        if self.card.format not in homes:
            raise UnknownName(
                f"benchmark format of {self.card.name}:", self.card.format, sorted(homes)
            )
        return homes[self.card.format]

    @property
    def runnable(self) -> bool:
        """Whether there is code to read and run the benchmark."""
        return (
            bool(self.card.format or self.dataset_config) or (self.folder / "plugin.py").is_file()
        )

    @property
    def plugin(self) -> BenchmarkPlugin[Any]:
        """Return the plugin in the benchmark's folder; it is imported once."""
        if self.dataset_config is not None:
            return make_plugin(read_dataset_config(self.dataset_config))
        plugin = getattr(self.load_part("plugin"), "PLUGIN", None)
        if not isinstance(plugin, BenchmarkPlugin):
            raise DataError(
                self.home / "plugin.py",
                "does not define the name PLUGIN with a value of the type BenchmarkPlugin",
                hint="see docs/how-to/add-a-benchmark.md",
            )
        return plugin

    @property
    def paper(self) -> Paper[Any]:
        """Return the paper declared in the benchmark's folder or in that of its format."""
        if not (self.home / "paper.py").is_file():
            if (self.home / FILE).is_file():
                return read_paper(self.home / FILE)
            raise InputError(
                f"{self.card.name} declares no paper",
                hint=f"see docs/how-to/reproduce-a-paper.md on {FILE}",
            )
        paper = getattr(self.load_part("paper"), "PAPER", None)
        if not isinstance(paper, Paper):
            raise DataError(
                self.home / "paper.py",
                "does not define the name PAPER with a value of the type Paper",
            )
        return paper

    def load_part(self, part: str) -> ModuleType:
        """Import one module of the benchmark's folder, also if the folder is not in a package."""
        home = self.home
        if not (home / f"{part}.py").is_file():
            raise DataError(
                home / f"{part}.py", "does not exist", hint="see docs/how-to/add-a-benchmark.md"
            )
        shipped = home.parent == SHIPPED
        package = f"memantics.benchmarks.{home.name}" if shipped else _open_package(home)
        return importlib.import_module(f"{package}.{part}")

    def open(self, source: Source) -> object:
        """Read a copy of the benchmark's data."""
        return self.plugin.open_release(source)

    def survey(self, release: object) -> Found:
        """Summarise a copy of the benchmark's data."""
        return self.plugin.survey(release)

    def recompute(self, release: object) -> Mapping[str, JsonValue]:
        """Recompute the paper's statistics from a copy of the data."""
        return self.plugin.statistics(release)

    def expect(self) -> tuple[Expected, ...]:
        """Return the statistics that the paper reports; empty if there is no such file."""
        if self.dataset_config is not None:
            return list_expected(read_dataset_config(self.dataset_config))
        path = self.home / "expected" / "statistics.json"
        return read_expected(path) if path.is_file() or self.home.parent == SHIPPED else ()

    def compare(self, values: Mapping[str, JsonValue]) -> list[Statistic]:
        """Compare the statistics of a copy with the paper's; user-published data have no paper."""
        expected = self.expect()
        if self.card.format:
            expecteds = [row for row in expected if row.basis == "copy"]
            expected = tuple(
                row.model_copy(update={"paper": None, "known": None}) for row in expecteds
            )
            values = {row.key: values.get(row.key) for row in expected}
        return compare(expected, values)

    def sample(self) -> Source:
        """Return the built-in sample; a user-published benchmark is its own sample."""
        if self.card.format:
            data = self.folder / "data"
            return Source("release", data, data / "images", published=True)
        if self.dataset_config is not None:
            name = self.card.name
            raise DataError(
                name,
                "has no sample",
                hint=f"register a release with 'memantics data add {name} DIR'",
            )
        root = self.folder / "sample"
        if not root.is_dir():
            raise DataError(root, "this benchmark has no sample", hint="use --data release")
        shared = self.card.sample.images == "shared"
        return Source("sample", root, SAMPLE_IMAGES if shared else root / "images")


@dataclass(frozen=True, slots=True)
class TaskRef:
    """One task of one benchmark."""

    benchmark: Benchmark
    card: TaskCard

    @property
    def name(self) -> str:
        """The name of the task, ``BENCHMARK/TASK``."""
        return f"{self.benchmark.card.name}/{self.card.name}"

    def make(
        self,
        options: Mapping[str, str],
        split: str,
        source: Source | None,
        invalid: str | None,
        prompts: Path | None = None,
    ) -> Task:
        """Build the task; without data it can only parse and score."""
        plugin, home, card = self.benchmark.plugin, self.benchmark.home, self.card
        if self.benchmark.card.format and self.benchmark.dataset_config is None:
            # A published benchmark may omit options, because the card of its format defines all of
            # them.
            options = {option.name: option.default for option in card.option} | dict(options)
            card = read_card(home / "card.toml").find_task(card.name)
        policy = read_policy(self.card, invalid)
        chosen = resolve_options(card, options)
        return plugin.make_task(
            TaskSetup(
                self.name,
                card,
                home,
                chosen,
                split,
                source,
                policy,
                SERVICES.find("ours") or Services(),
                prompts,
                plugin.official_prompts,
            )
        )

    def pick_split(self, source: Source) -> str:
        """Return the default split: the first in the card, or the benchmark's own choice."""
        pick = self.benchmark.plugin.pick_split
        return pick(source) if pick else self.card.splits[0]


# Data sets declared by a dataset config: built-in ones, and ``*.toml`` in the user's folders.


def find_dataset_configs() -> dict[str, Benchmark]:
    """Return every dataset config by file name; each becomes a benchmark without a sample.

    A config that ``data add`` wrote for a user's table replaces one of the same name.
    """
    roots = [DATASET_CONFIGS, *list_roots()[1:], find_own_dataset_configs()]
    found, own = {}, roots[-1]
    for path in (path for root in roots for path in list_dataset_configs(root)):
        try:
            card = make_card(path.stem, read_dataset_config(path))
        except InputError as error:
            if path.parent != own:
                raise
            _warn_once(f"{path} is ignored: {error.what}")
            continue
        found[path.stem] = Benchmark(path.parent, card, path)
    return found


@cache
def _warn_once(problem: str) -> None:
    """Say once that a config in the home folder is damaged; other data sets are not affected."""
    print(f"warning: {problem}", file=sys.stderr)


def find_own_dataset_configs() -> Path:
    """Return the folder of dataset configs that ``data add`` writes for tables."""
    return home() / "datasets"


def find_benchmarks() -> dict[str, Benchmark]:
    """Return all benchmarks: built-in, those of ``$MEMANTICS_BENCHMARKS``, and published ones."""
    cards: dict[Path, None] = {}
    for root in list_roots():
        paths = sorted(root.glob("*/card.toml"))
        if not paths and not list_dataset_configs(root):
            raise InputError(
                f"MEMANTICS_BENCHMARKS: no benchmark below {root}",
                hint="give the folder that contains the benchmark folders",
            )
        cards |= dict.fromkeys(path.resolve() for path in paths)
    cards |= dict.fromkeys(folder / "card.toml" for folder in read_shelf())
    found: dict[str, Benchmark] = {}
    for path in cards:
        card = read_card(path)
        if card.name in found:
            raise DataError(path, f"a benchmark named {card.name!r} already exists")
        found[card.name] = open_benchmark(path.parent, card)
    return found


def open_benchmark(folder: Path, card: Card) -> Benchmark:
    """Return the benchmark in a folder; data published without a plugin have a dataset config."""
    config = folder / "data" / CONFIG if card.format == DATASET else None
    return Benchmark(folder, card, config)


def add_published(folder: Path) -> Benchmark | None:
    """Register the published benchmark in a folder, such as a downloaded one; None if none is."""
    path = folder / "card.toml"
    card = read_card(path) if path.is_file() else None
    if card is None or not card.format:
        return None
    known = find_benchmarks().get(card.name)
    if known is not None and known.folder.resolve() != folder.resolve():
        raise InputError(
            f"a benchmark named {card.name!r} already exists in {known.folder}",
            hint=f"change the name in {path}",
        )
    benchmark = open_benchmark(folder, card)
    benchmark.open(benchmark.sample())
    add_to_shelf(folder)
    return benchmark


def find_benchmark(name: str) -> Benchmark:
    """Return the benchmark with a name."""
    known = find_benchmarks() | find_dataset_configs()
    require_known("benchmark", name, known)
    return known[name]


def find_warning(image: Path | None, collection: str = "") -> str:
    """Return the content warning of the registered data to which an image or collection belongs."""
    for name, release in read_registry().items():
        places = [path.resolve() for path in (release.root, release.images) if path is not None]
        if name == collection or (image is not None and is_inside(image, places)):
            return find_benchmark(name).card.warning
    return ""


def find_tasks(names: list[str]) -> list[TaskRef]:
    """Return tasks by ``NAME``, ``NAME/TASK`` or ``suite``, without repeats, in the given order.

    The suite does not include user-published benchmarks; name them in addition.
    """
    refs: dict[str, TaskRef] = {}
    for name in names:
        for ref in _expand(name):
            refs.setdefault(ref.name, ref)
    return list(refs.values())


def _expand(name: str) -> list[TaskRef]:
    if name == "suite":
        benchmarks = (b for b in find_benchmarks().values() if b.runnable and not b.card.format)
        return [ref for benchmark in benchmarks for ref in _tasks_of(benchmark)]
    head, _, tail = name.partition("/")
    known = find_benchmarks() | find_dataset_configs()
    if head not in known:
        raise UnknownName("benchmark", head, [*known, "suite"])
    benchmark = known[head]
    if not benchmark.runnable:
        ready = ", ".join(b.card.name for b in known.values() if b.runnable)
        raise InputError(
            f"{head} has a reader but no tasks, so it cannot be run",
            hint=f"runnable benchmarks: {ready}",
        )
    return [TaskRef(benchmark, benchmark.card.find_task(tail))] if tail else _tasks_of(benchmark)


def _tasks_of(benchmark: Benchmark) -> list[TaskRef]:
    return [TaskRef(benchmark, task) for task in benchmark.card.task]


def find_published(tasks: Iterable[str]) -> dict[str, list[PublishedRow]]:
    """Return published rows of papers by task; benchmarks that are not installed have none."""
    heads = {task.partition("/")[0] for task in tasks}
    found: dict[str, list[PublishedRow]] = {}
    for name, benchmark in find_benchmarks().items():
        if name in heads:
            for row in read_published(benchmark.folder / "expected" / "published.json"):
                found.setdefault(f"{name}/{row.task}", []).append(row)
    return found


# The benchmark in whose format the results of an annotation workflow are published.


def find_writer(workflow: str) -> tuple[Benchmark, Writer]:
    """Return the benchmark whose card names the workflow, and the writer of its format."""
    known = {
        name: benchmark
        for benchmark in find_benchmarks().values()
        for name in (benchmark.card.publish.workflows if benchmark.card.publish else ())
    }
    if workflow not in known:
        raise InputError(
            f"workflow {workflow!r} has no benchmark format; known: {', '.join(sorted(known))}",
            hint="give the file of your own workflow with --workflow FILE.toml",
        )
    benchmark = known[workflow]
    writer = getattr(benchmark.load_part("write"), "WRITER", None)
    if not isinstance(writer, Writer):
        raise DataError(
            benchmark.folder / "write.py",
            "does not define the name WRITER with a value of the type Writer",
            hint="see docs/how-to/add-a-benchmark.md",
        )
    return benchmark, writer


# The data that a benchmark runs on, and the data description stored with a run.


def find_source(benchmark: Benchmark, kind: DataKind | None) -> Source:
    """Return the data to run on: as requested, else the registered release, else the sample."""
    registered = kind == "release" or benchmark.card.name in read_registry()
    if kind == "sample" or benchmark.card.format or not registered:
        return benchmark.sample()
    return find_registered(benchmark.card.name).source


@dataclass(frozen=True, slots=True)
class DataFacts:
    """A description of the data that a run uses."""

    kind: DataKind
    checksum: str
    records: int
    revision: str
    licence: str


def describe_data(benchmark: Benchmark, source: Source) -> DataFacts:
    """Describe the data: a registered release, or the sample."""
    card = benchmark.card
    if card.format:
        found = _survey_sample(benchmark, source)
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
    found = _survey_sample(benchmark, source)
    return DataFacts("sample", found.checksum, found.records, __version__, card.sample.licence)


def _survey_sample(benchmark: Benchmark, source: Source) -> Found:
    return _survey_folder(benchmark.folder, benchmark.dataset_config, source)


@cache
def _survey_folder(folder: Path, config: Path | None, source: Source) -> Found:
    """Summarise the sample of a benchmark; cached, since it never changes."""
    plugin = Benchmark(folder, read_card(folder / "card.toml"), config).plugin
    return plugin.survey(open_once(plugin.open_release, source))
