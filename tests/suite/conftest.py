"""Toys and a desk to plan suites on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from memantics.core.model import Model
from memantics.registry import Wish, find_tasks, list_choices, make_choice, open_baselines
from memantics.run.evaluate import Job
from memantics.run.grid import read_settings
from memantics.run.plan import SuiteDesk, SuitePlan, plan_suite
from memantics.run.progress import Progress
from memantics.run.suite import RunEnd
from tests.suite.toys import write_toy

_NUMBERS = count(1)


@dataclass
class Bench:
    """Makes toys and plans suites of them."""

    root: Path

    def make_toy(self, items: int = 12, first: int = 10_000) -> str:
        # Modules are known by the name of their folder: every toy needs its own.
        name = f"toy{next(_NUMBERS)}"
        write_toy(self.root / "toys", name, first, items)
        return name

    def plan(
        self,
        names: list[str],
        models: Sequence[Model],
        *settings: str,
        captioner: Model | None = None,
        wish: Wish | None = None,
    ) -> SuitePlan:
        wish = wish or Wish()
        desk = SuiteDesk(
            out=self.root / "runs",
            find=lambda name: make_choice(find_tasks([name])[0], wish),
            open_baselines=open_baselines,
            settings=read_settings("--set", settings),
            captioner=captioner,
        )
        return plan_suite(list_choices(names, wish), models, desk)


@dataclass
class Witness:
    """Remembers what happened to which run, in order."""

    events: list[tuple[str, str]] = field(default_factory=list)
    shown: list[Progress] = field(default_factory=list)

    def begin(self, job: Job) -> None:
        self.events.append(("begin", job.folder.name))

    def show(self, job: Job, progress: Progress) -> None:
        self.shown.append(progress)

    def end(self, result: RunEnd) -> None:
        self.events.append(("end", result.job.folder.name))

    def place(self, event: str, job: Job) -> int:
        return self.events.index((event, job.folder.name))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("MEMANTICS_BENCHMARKS", str(tmp_path / "toys"))
    return Bench(tmp_path)


@pytest.fixture
def witness() -> Witness:
    return Witness()
