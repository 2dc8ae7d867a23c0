"""A benchmark's folder: its card at once, its plugin (``plugin.py``) on demand."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import JsonValue

from memantics.core.card import Card, TaskCard, read_card, read_policy, resolve_options
from memantics.core.data import Found, Source, Statistic
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.paper import Paper
from memantics.core.paper_file import FILE, read_paper
from memantics.core.plugins import Plugins
from memantics.core.services import Services
from memantics.core.statistic import Expected, compare, read_expected
from memantics.core.task import Task
from memantics.tasks.plugin import BenchmarkPlugin, TaskSetup
from memantics.tasks.recipe import list_expected, make_plugin, read_recipe

PACKAGE = Path(__file__).parent.parent
SHIPPED = PACKAGE / "benchmarks"
RECIPES = PACKAGE / "recipes"
# What a task may ask for besides its data, such as homophone readings. Named, not imported:
# benchmarks import no models.
SERVICES = Plugins("memantics.services", Services, {"ours": "memantics.registry.services:SERVICES"})
STARTER_IMAGES = PACKAGE / "starter" / "images"


def list_roots() -> list[Path]:
    """The folders below which benchmarks lie: ours, and those of ``$MEMANTICS_BENCHMARKS``."""
    named = os.environ.get("MEMANTICS_BENCHMARKS", "").split(os.pathsep)
    return [SHIPPED, *(Path(root) for root in named if root)]


def list_recipes(root: Path) -> list[Path]:
    """The recipes in a folder; a card beside code is none."""
    return [path for path in sorted(root.glob("*.toml")) if path.name not in ("card.toml", FILE)]


def _open_package(folder: Path) -> str:
    """Make a folder outside of Memantics a package: its modules may import each other."""
    place = str(folder.resolve())
    # Two folders of one name are two packages.
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
    """A benchmark's folder and card. One that is published is read by the family it is like.

    ``recipe`` is the file that tells a data set without code of its own.
    """

    folder: Path
    card: Card
    recipe: Path | None = None

    @property
    def home(self) -> Path:
        """The folder whose code reads and asks it; that of our prompts where a recipe does."""
        if self.recipe is not None:
            return RECIPES
        if not self.card.like:
            return self.folder
        families = {path.parent.name: path.parent for path in SHIPPED.glob("*/card.toml")}
        if self.card.like not in families:
            outside = (path for root in list_roots()[1:] for path in root.glob("*/card.toml"))
            families |= {read_card(path).name: path.parent for path in outside}
        if self.card.like not in families:
            raise UnknownName(f"family of {self.card.name}:", self.card.like, sorted(families))
        return families[self.card.like]

    @property
    def runnable(self) -> bool:
        """Whether there is code that reads and asks it."""
        return bool(self.card.like or self.recipe) or (self.folder / "plugin.py").is_file()

    @property
    def plugin(self) -> BenchmarkPlugin[Any]:
        """What its folder offers; imported once."""
        if self.recipe is not None:
            return make_plugin(read_recipe(self.recipe))
        plugin = getattr(self.load_part("plugin"), "PLUGIN", None)
        if not isinstance(plugin, BenchmarkPlugin):
            raise DataError(
                self.home / "plugin.py",
                "holds no PLUGIN of type BenchmarkPlugin",
                hint="see docs/add-a-benchmark.md",
            )
        return plugin

    @property
    def paper(self) -> Paper[Any]:
        """Its paper as its folder, or its family's, declares it."""
        if not (self.home / "paper.py").is_file():
            if (self.home / FILE).is_file():
                return read_paper(self.home / FILE)
            raise InputError(
                f"{self.card.name} declares no paper", hint=f"see docs/redo-a-paper.md on {FILE}"
            )
        paper = getattr(self.load_part("paper"), "PAPER", None)
        if not isinstance(paper, Paper):
            raise DataError(self.home / "paper.py", "holds no PAPER of type Paper")
        return paper

    def load_part(self, part: str) -> ModuleType:
        """Import one module of its folder, wherever that lies."""
        home = self.home
        if not (home / f"{part}.py").is_file():
            raise DataError(home / f"{part}.py", "is missing", hint="see docs/add-a-benchmark.md")
        shipped = home.parent == SHIPPED
        package = f"memantics.benchmarks.{home.name}" if shipped else _open_package(home)
        return importlib.import_module(f"{package}.{part}")

    def open(self, source: Source) -> object:
        """Read a release."""
        return self.plugin.open_release(source)

    def survey(self, release: object) -> Found:
        """Say what a release holds."""
        return self.plugin.survey(release)

    def recompute(self, release: object) -> Mapping[str, JsonValue]:
        """Recompute the paper's figures from a release."""
        return self.plugin.statistics(release)

    def expect(self) -> tuple[Expected, ...]:
        """The figures that its paper, or its family's, prints; none where no file says so."""
        if self.recipe is not None:
            return list_expected(read_recipe(self.recipe))
        path = self.home / "expected" / "statistics.json"
        return read_expected(path) if path.is_file() or self.home.parent == SHIPPED else ()

    def compare(self, values: Mapping[str, JsonValue]) -> list[Statistic]:
        """Figures of a copy beside the paper's; those of one's own data have no reference."""
        expected = self.expect()
        if self.card.like:
            expecteds = [row for row in expected if row.basis == "copy"]
            expected = tuple(
                row.model_copy(update={"paper": None, "known": None}) for row in expecteds
            )
            values = {row.key: values.get(row.key) for row in expected}
        return compare(expected, values)

    def sample(self) -> Source:
        """The sample that ships with it; a published benchmark brings its data along whole."""
        if self.recipe is not None:
            name = self.card.name
            raise DataError(name, "ships no sample", hint=f"memantics data add {name} DIR")
        if self.card.like:
            data = self.folder / "data"
            return Source("release", data, data / "images", published=True)
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
        self,
        options: Mapping[str, str],
        split: str,
        source: Source | None,
        invalid: str | None,
        prompts: Path | None = None,
    ) -> Task:
        """Build the task; without a source it can only parse and score."""
        plugin, home, card = self.benchmark.plugin, self.benchmark.home, self.card
        if self.benchmark.card.like:
            # A published benchmark may leave options out: its family's card knows them all.
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
        """The split where the user names none: the card's first, or what the benchmark says."""
        pick = self.benchmark.plugin.pick_split
        return pick(source) if pick else self.card.splits[0]
