"""Toys and a client to plan suites on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.core.model import Model
from memantics.evaluation.facts import Scope, Variation, read_settings
from memantics.evaluation.planning import EvaluationPlan, plan_evaluation
from memantics.evaluation.run import Job, RunEnd
from memantics.models.engine import Progress
from tests.suite.toys import write_toy

_NUMBERS = count(1)


@dataclass
class Bench:
    """Makes toys and plans suites of them."""

    root: Path
    skipped: dict[str, InputError] = field(default_factory=dict)

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
        scope: Scope = Scope(),  # noqa: B008 - frozen
        variation: Variation = Variation(),  # noqa: B008 - frozen
    ) -> list[Job]:
        opened = {model.name: model for model in [*models, *([captioner] if captioner else [])]}
        wanted = EvaluationPlan(
            names,
            [model.name for model in models],
            scope,
            read_settings("--set", settings),
            self.root / "runs",
            captioner.name if captioner else None,
            variation=variation,
        )
        jobs, self.skipped = plan_evaluation(wanted, opened.__getitem__)
        return jobs


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
