"""Tasks on their data: what a run, a suite or a score asks the registry for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from memantics import __version__
from memantics.core.card import TaskCard, read_card, resolve_options
from memantics.core.data import DataKind, Found, Source, open_once
from memantics.core.errors import DataError, InputError, StoreError, UnknownName
from memantics.core.model import Model
from memantics.core.registry import find_registered, read_registry
from memantics.core.rundir import RunFacts
from memantics.core.task import Task
from memantics.models.kinds import ModelSettings
from memantics.registry.benchmarks import find_tasks
from memantics.registry.contract import Benchmark, TaskRef
from memantics.registry.models import open_model
from memantics.registry.services import open_probe_tools
from memantics.run.evaluate import PosedTask, pose
from memantics.run.facts import DataFacts, Scope, Variation, read_shots, show_shots
from memantics.run.probes import probe_task
from memantics.run.score import MOST_DRAWS, RANDOM

# Which data a benchmark runs on, and what a run remembers of them.


def find_source(benchmark: Benchmark, kind: DataKind | None) -> Source:
    """The data to run on: as asked, else the registered release, else the sample."""
    registered = kind == "release" or benchmark.card.name in read_registry()
    if kind == "starter" or benchmark.card.like or not registered:
        return benchmark.sample()
    return find_registered(benchmark.card.name).source


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
    plugin = Benchmark(folder, read_card(folder / "card.toml")).plugin
    return plugin.survey(open_once(plugin.open_release, source))


def pose_task(
    ref: TaskRef,
    options: Mapping[str, str],
    scope: Scope,
    variation: Variation | None = None,
    *,
    unseen: bool = False,
) -> PosedTask:
    """A task on its data; options that it does not have are not its own.

    ``unseen``: nobody will be shown its images, so that a copy without them will do.
    """
    splits, change = ref.card.splits, variation or Variation()
    if scope.split is not None and scope.split not in splits:
        raise UnknownName(f"split of {ref.name}:", scope.split, splits)
    try:
        source = replace(find_source(ref.benchmark, scope.data), unseen=unseen)
    except StoreError:
        raise
    except InputError as error:
        # Like any other lack of data: the rest of a suite can do without it.
        raise DataError(ref.name, error.what, hint=error.hint) from error
    known = {option.name for option in ref.card.option}
    chosen = {name: value for name, value in options.items() if name in known}
    split = scope.split or ref.pick_split(source)
    path = _find_prompts(change.prompts, ref)
    task = ref.make(chosen, split, source, change.invalid, path)
    wording = "official" if chosen.get("wording") == "official" else ""
    if path is not None:
        # A folder may hold prompts for other options: then this task asks in our words.
        plain = ref.make(chosen, split, source, change.invalid).prompts
        wording = f"own ({path.name})" if task.prompts != plain else wording
    if change.shots is not None:
        task = show_shots(task, read_shots(change.shots))
    if change.probe:
        tools = replace(open_probe_tools(change.rewordings), canary=ref.benchmark.card.canary)
        task = probe_task(task, change.probe, tools)
    describe, cards = partial(describe_data, ref.benchmark, source), (ref.benchmark.card, ref.card)
    return replace(pose(cards, task, describe, replace(scope, split=split)), wording=wording)


def _find_prompts(folder: Path | None, ref: TaskRef) -> Path | None:
    """The user's prompts for a benchmark: those in a folder of its name, else all of them."""
    if folder is None:
        return None
    inner = folder / ref.benchmark.card.name
    if inner.is_dir():
        return inner
    # A folder that is divided by benchmark says nothing about the others.
    divided = folder.is_dir() and not any(folder.glob("*.md")) and any(folder.iterdir())
    return None if divided else folder


def open_baselines(card: TaskCard) -> tuple[Model, ...]:
    """The trivial models whose figures stand beside every run of a task.

    Of one that draws there are several, with their own seeds: scoring takes their mean.
    """
    names = dict.fromkeys(card.baselines)
    draws = [f"{RANDOM}?seed={n}" for n in range(1, MOST_DRAWS)] if RANDOM in names else []
    return tuple(open_model(name, ModelSettings()) for name in (*names, *draws))


def open_task_of_run(
    facts: RunFacts, invalid: str | None, scoring: Mapping[str, str] | None = None
) -> tuple[TaskRef, Task]:
    """The task of a finished run, without its data: it can parse and score.

    ``scoring`` are options in the place of the run's that change how answers are counted.
    """
    ref = find_tasks([facts.task])[0]
    options = facts.options
    if scoring:
        known = [option.name for option in ref.card.option if option.scoring]
        if unknown := sorted(scoring.keys() - set(known)):
            raise UnknownName(f"option that {facts.task} is scored by:", unknown[0], known)
        options = resolve_options(ref.card, {**options, **scoring})
    task = ref.make(options, facts.split, None, invalid or facts.invalid)
    return ref, probe_task(task, facts.probe, None) if facts.probe else task
