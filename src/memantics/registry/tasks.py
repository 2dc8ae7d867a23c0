"""Tasks on their data: what a run, a suite or a score asks the registry for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from memantics.core.card import TaskCard
from memantics.core.data import DataKind
from memantics.core.errors import DataError, InputError, StoreError, UnknownName
from memantics.core.model import Model
from memantics.core.rundir import RunFacts
from memantics.core.task import Task
from memantics.models.kinds import ModelSettings
from memantics.registry.benchmarks import find_tasks
from memantics.registry.contract import TaskRef
from memantics.registry.data import describe_data, find_source
from memantics.registry.models import open_model
from memantics.registry.services import open_probe_tools
from memantics.run.evaluate import PosedTask, pose
from memantics.run.facts import Scope
from memantics.run.plan import TaskChoice
from memantics.run.probes import probe_task
from memantics.run.score import MOST_DRAWS, RANDOM
from memantics.run.variation import read_shots, show_shots


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user says about the data of a run; ``None`` leaves it to the benchmark."""

    kind: DataKind | None = None
    split: str | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    invalid: str | None = None
    probe: str = ""
    rewordings: Path | None = None
    prompts: Path | None = None
    shots: Path | None = None


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
    known = {option.name for option in ref.card.option}
    chosen = {name: value for name, value in options.items() if name in known}
    split = wish.split or ref.pick_split(source)
    path = _find_prompts(wish.prompts, ref)
    task = ref.make(chosen, split, source, wish.invalid, path)
    wording = "official" if chosen.get("wording") == "official" else ""
    if path is not None:
        # A folder may hold prompts for other options: then this task asks in our words.
        plain = ref.make(chosen, split, source, wish.invalid).prompts
        wording = f"own ({path.name})" if task.prompts != plain else wording
    if wish.shots is not None:
        task = show_shots(task, read_shots(wish.shots))
    if wish.probe:
        task = probe_task(task, wish.probe, open_probe_tools(wish.rewordings))
    scope = Scope(split, wish.limit, wish.sample, wish.seed)
    describe = partial(describe_data, ref.benchmark, source)
    return replace(pose((ref.benchmark.card, ref.card), task, describe, scope), wording=wording)


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


def list_choices(names: list[str], wish: Wish) -> list[TaskChoice]:
    """The tasks that a user asked for; those given as ``NAME/TASK`` must run."""
    return [make_choice(ref, wish, named=ref.name in names) for ref in find_tasks(names)]


def make_choice(ref: TaskRef, wish: Wish, *, named: bool = True) -> TaskChoice:
    """A task that a suite can pose."""

    def pose_it(options: Mapping[str, str], split: str | None) -> PosedTask:
        return pose_task(ref, options, replace(wish, split=split or wish.split))

    return TaskChoice(ref.name, ref.card, pose_it, named)


def open_baselines(card: TaskCard) -> tuple[Model, ...]:
    """The trivial models whose figures stand beside every run of a task.

    Of one that draws there are several, with their own seeds: scoring takes their mean.
    """
    names = dict.fromkeys(card.baselines)
    draws = [f"{RANDOM}?seed={n}" for n in range(1, MOST_DRAWS)] if RANDOM in names else []
    return tuple(open_model(name, ModelSettings()) for name in (*names, *draws))


def open_task_of_run(facts: RunFacts, invalid: str | None) -> tuple[TaskRef, Task]:
    """The task of a finished run, without its data: it can parse and score."""
    ref = find_tasks([facts.task])[0]
    task = ref.make(facts.options, facts.split, None, invalid or facts.invalid)
    return ref, probe_task(task, facts.probe, None) if facts.probe else task
