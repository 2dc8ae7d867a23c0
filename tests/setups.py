"""Tasks made with services of a test's own, or with none."""

from __future__ import annotations

from collections.abc import Mapping

from memantics.benchmarks.card import resolve_options
from memantics.benchmarks.plugin import TaskSetup
from memantics.benchmarks.registry import find_tasks
from memantics.core.data import Source
from memantics.core.task import InvalidPolicy, Services, Task

NOTHING, WRONG = Services(), InvalidPolicy()


def make_setup(
    name: str,
    options: Mapping[str, str],
    source: Source | None,
    split: str = "all",
    invalid: InvalidPolicy = WRONG,
    services: Services = NOTHING,
) -> TaskSetup:
    ref = find_tasks([name])[0]
    chosen = resolve_options(ref.card, options)
    folder = ref.benchmark.home
    return TaskSetup(name, ref.card, folder, chosen, split, source, invalid, services)


def make_task(setup: TaskSetup) -> Task:
    return find_tasks([setup.name])[0].benchmark.plugin.make_task(setup)
