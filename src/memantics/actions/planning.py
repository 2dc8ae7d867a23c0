"""What an evaluation runs: every task, every combination of options, every model, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from memantics.actions.desk import Asking, make_asking
from memantics.actions.options import AskedModels, complete_tasks
from memantics.core.errors import DataError, InputError
from memantics.core.model import Model
from memantics.core.parameters import Argument, Flag, MadeBy
from memantics.core.task import Need
from memantics.models.batch import open_batch
from memantics.registry import (
    ModelSettings,
    TaskRef,
    find_tasks,
    open_baselines,
    open_model,
    pose_task,
)
from memantics.run.evaluate import Job, PosedTask, plan
from memantics.run.facts import Scope, Variation, folder_name, repeat_facts, repeat_task
from memantics.run.grid import Setting, check_settings, expand, fix, read_settings

AskingEngine = Literal["calls", "batch"]
_SERVER = "openai/"
# The most log-probabilities that hosted servers give at a token.
_TOP = 20


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is evaluated: tasks, models, data, options, and how models are asked."""

    tasks: Annotated[
        Sequence[str],
        Argument("NAME, NAME/TASK, or suite for all.", "names", complete=complete_tasks),
    ]
    models: AskedModels
    scope: Scope = field(default_factory=Scope)
    options: Annotated[
        tuple[Setting, ...],
        Flag(
            "Choose an option of a task; several values make a run of each combination.",
            "--set",
            metavar="[TASK:]OPTION=VALUE[,VALUE…]",
            kind=list[str],
            read=partial(read_settings, "--set"),
        ),
    ] = ()
    out: Annotated[Path, Flag("Where the run directories go.")] = Path("runs")
    captioner: Annotated[
        str | None,
        Flag("Who describes images for tasks that need it. Default: the model.", metavar="MODEL"),
    ] = None
    engine: Annotated[
        AskingEngine,
        Flag("How servers are asked: one call for each item, or batches at half the price."),
    ] = "calls"
    asking: Annotated[Asking, MadeBy(make_asking)] = field(default_factory=Asking)
    variation: Variation = field(default_factory=Variation)


def plan_evaluation(
    wanted: Evaluation, open_named: Callable[[str], Model] | None = None
) -> tuple[list[Job], dict[str, DataError]]:
    """Pose every question before any model is asked; what cannot run is refused here.

    Returns the runs, each after those it needs, and why tasks are left out: one that was not named
    one by one is, where its data are not there. ``open_named`` opens a model by its name.
    """
    settings = _ask_servers(wanted.variation, wanted.asking.settings, wanted.models)
    refs = find_tasks(list(wanted.tasks))
    known = {ref.name: ref.card for ref in find_tasks(["suite"])} if wanted.options else {}
    check_settings(wanted.options, {ref.name: ref.card for ref in refs}, known)
    models, captioner = dict.fromkeys(wanted.models), wanted.captioner
    names = dict.fromkeys([*models, *([captioner] if captioner else [])])
    opener = open_named or _choose_opener(wanted, settings)
    opened = {name: opener(name) for name in names}
    planner = _Planner(wanted, opened.get(captioner or ""))
    skipped: dict[str, DataError] = {}
    for ref in refs:
        try:
            posed = [
                planner.pose(ref, options) for options in expand(ref.name, ref.card, wanted.options)
            ]
        except DataError as error:
            if ref.name in wanted.tasks:
                raise
            skipped[ref.name] = error
            continue
        for question in posed:
            for name in models:
                for number in range(wanted.variation.repeat):
                    planner.add(question, opened[name], number)
    if not planner.jobs and skipped:
        raise _nothing_left(skipped)
    return list(planner.jobs.values()), skipped


def _choose_opener(wanted: Evaluation, settings: ModelSettings) -> Callable[[str], Model]:
    """Who opens models by their names: servers in batches where that is wanted."""
    if wanted.engine == "calls":
        return partial(open_model, settings=settings)
    if not any(name.startswith(_SERVER) for name in wanted.models):
        hint = "name a model openai/NAME, or leave --engine out"
        raise InputError("--engine batch is for models on servers", hint=hint)

    def open_named(name: str) -> Model:
        return (open_batch if name.startswith(_SERVER) else open_model)(name, settings)

    return open_named


def _ask_servers(
    variation: Variation, settings: ModelSettings, models: Sequence[str]
) -> ModelSettings:
    """The settings of models with what a variation asks of them; only servers can do it."""
    named = {
        "answer_tokens": variation.max_tokens,
        "thinking_tokens": variation.thinking_tokens,
        "top_logprobs": _TOP if variation.score == "logprobs" else None,
    }
    more = {name: str(value) for name, value in named.items() if value is not None}
    for model in models:
        if more and not model.startswith(_SERVER):
            flags = {"answer_tokens": "--max-tokens", "thinking_tokens": "--thinking-tokens"}
            raise InputError(
                f"{flags.get(next(iter(more)), '--score logprobs')} is for openai/… models,"
                f" not {model}",
                hint="serve the model, or leave the option out",
            )
    return replace(settings, params={**settings.params, **more})


def _nothing_left(skipped: Mapping[str, DataError]) -> InputError:
    task, first = next(iter(skipped.items()))
    if len({str(error) for error in skipped.values()}) == 1:
        return first
    return InputError(
        f"none of {len(skipped)} tasks has its data here; {task}: {first.what}", hint=first.hint
    )


class _Planner:
    """Collects the runs; what two of them share is planned once."""

    def __init__(self, wanted: Evaluation, captioner: Model | None) -> None:
        self.jobs: dict[Path, Job] = {}
        self._wanted = wanted
        self._captioner = captioner
        self._posed: dict[tuple[str, frozenset[tuple[str, str]], str], PosedTask] = {}

    def pose(
        self,
        ref: TaskRef,
        options: Mapping[str, str],
        split: str | None = None,
        trail: tuple[str, ...] = (),
    ) -> PosedTask:
        """The question of a task with those that it needs."""
        scope, variation = self._wanted.scope, self._wanted.variation
        scope = replace(scope, split=split or scope.split)
        question = pose_task(ref, options, scope, variation)
        trail = (*trail, ref.name)
        needs: dict[str, PosedTask] = {}
        for need in question.task.needs:
            if need.task in trail:
                raise DataError(need.task, f"needs its own answers ({' > '.join(trail)})")
            needs[need.name] = self._pose_need(need, question.split, trail)
        return replace(question, needs=needs)

    def _pose_need(self, need: Need, split: str, trail: tuple[str, ...]) -> PosedTask:
        (ref,) = find_tasks([need.task])
        options = fix(ref.name, ref.card, self._wanted.options) | dict(need.options)
        key = (need.task, frozenset(options.items()), split)
        if key not in self._posed:
            split_there = split if split in ref.card.splits else None
            self._posed[key] = self.pose(ref, options, split_there, trail)
        return self._posed[key]

    def add(self, question: PosedTask, model: Model, repeat: int = 0, *, asked: bool = True) -> Job:
        """A run of a question by a model, after the runs it needs; each is there once."""
        needs: dict[str, Job] = {}
        for need in question.task.needs:
            other = self._captioner if need.captioner and self._captioner is not None else model
            needs[need.name] = self.add(question.needs[need.name], other, asked=False)
        place = (self._wanted.out, self._wanted.asking.prices)
        job = plan(question, model, open_baselines(question.cards[1]), place, needs)
        if repeat:
            facts, task = repeat_facts(job.facts, repeat), repeat_task(job.task, repeat)
            folder = self._wanted.out / folder_name(facts)
            job = replace(job, facts=facts, task=task, folder=folder)
        known = self.jobs.get(job.folder, replace(job, asked=asked))
        # What others need may be asked for itself as well; it keeps its place before them.
        self.jobs[job.folder] = replace(known, asked=True) if asked else known
        return self.jobs[job.folder]


def note_greedy(jobs: Iterable[Job]) -> Iterator[str]:
    """Which repeats were asked at temperature 0, where a seed changes nothing; each task once.

    Repeats keep the temperature of the task's protocol.
    """
    tasks = {job.facts.task: job for job in jobs if job.facts.repeat and job.task.feed is None}
    for name, job in tasks.items():
        settings = job.model.identity.get("settings")
        extra = settings.get("extra") if isinstance(settings, dict) else None
        groups = extra.get("temperature") if isinstance(extra, dict) else None
        if groups is None:
            groups = job.task.ask(next(iter(job.task.items())), None).sampling.temperature
        if groups == 0:
            yield (
                f"note: {name} is asked at temperature 0, as its protocol says: repeats differ only"
                " where the server does; --param temperature=0.7 samples"
            )
