"""What a suite will run: every task, every combination of options, every model, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memantics.core.card import TaskCard
from memantics.core.errors import DataError, InputError
from memantics.core.model import Model
from memantics.core.task import Need
from memantics.run.evaluate import Job, PosedTask, plan
from memantics.run.facts import folder_name
from memantics.run.grid import Setting, expand, fix
from memantics.run.variation import repeat_facts, repeat_task


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """A task that can be asked. ``named`` tasks were asked for one by one: they must run.

    ``pose`` puts it on its data, given options and the split (None: as the user said).
    """

    name: str
    card: TaskCard
    pose: Callable[[Mapping[str, str], str | None], PosedTask]
    named: bool = True


@dataclass(frozen=True, slots=True)
class SuiteDesk:
    """What is the same for all runs of a suite.

    ``find`` gives the task of a name, ``open_baselines`` the trivial models of a task.
    """

    out: Path
    find: Callable[[str], TaskChoice]
    open_baselines: Callable[[TaskCard], tuple[Model, ...]]
    settings: tuple[Setting, ...] = ()
    prices: tuple[float, float] | None = None
    captioner: Model | None = None
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Skipped:
    """A task that cannot run on this copy of the data, and why."""

    task: str
    error: DataError


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """The runs, each after those it needs. ``asked`` are the folders of those asked for."""

    jobs: tuple[Job, ...]
    asked: frozenset[Path]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class _Posed:
    """A question and those whose answers it needs."""

    question: PosedTask
    needs: Mapping[str, tuple[Need, _Posed]] = field(default_factory=dict)


def plan_suite(
    choices: Sequence[TaskChoice], models: Sequence[Model], desk: SuiteDesk
) -> SuitePlan:
    """Pose every question before any model is asked, and say what will be run.

    A task that was not named one by one is skipped where its data are not there.
    """
    planner = _Planner(desk)
    asked: dict[Path, None] = {}
    skipped: list[Skipped] = []
    for choice in choices:
        posed: list[_Posed] = []
        try:
            posed += [
                planner.pose(choice, options)
                for options in expand(choice.name, choice.card, desk.settings)
            ]
        except DataError as error:
            if choice.named:
                raise
            skipped.append(Skipped(choice.name, error))
            continue
        for one in posed:
            asked.update(
                (planner.add(one, model, number).folder, None)
                for model in models
                for number in range(desk.repeat)
            )
    if not asked and skipped:
        raise _nothing_left(skipped)
    return SuitePlan(tuple(planner.jobs.values()), frozenset(asked), tuple(skipped))


def _nothing_left(skipped: Sequence[Skipped]) -> InputError:
    first = skipped[0].error
    if len({str(skip.error) for skip in skipped}) == 1:
        return first
    return InputError(
        f"none of {len(skipped)} tasks has its data here; {skipped[0].task}: {first.what}",
        hint=first.hint,
    )


class _Planner:
    """Collects the runs; what two of them share is planned once."""

    def __init__(self, desk: SuiteDesk) -> None:
        self.jobs: dict[Path, Job] = {}
        self._desk = desk
        self._posed: dict[tuple[str, frozenset[tuple[str, str]], str], _Posed] = {}

    def pose(
        self, choice: TaskChoice, options: Mapping[str, str], trail: tuple[str, ...] = ()
    ) -> _Posed:
        """The question of a task and, below it, those that it needs."""
        return self._complete(choice.pose(options, None), (*trail, choice.name))

    def _complete(self, question: PosedTask, trail: tuple[str, ...]) -> _Posed:
        needs: dict[str, tuple[Need, _Posed]] = {}
        for need in question.task.needs:
            if need.task in trail:
                raise DataError(need.task, f"needs its own answers ({' > '.join(trail)})")
            needs[need.name] = (need, self._pose_need(need, question.scope.split, trail))
        return _Posed(question, needs)

    def _pose_need(self, need: Need, split: str, trail: tuple[str, ...]) -> _Posed:
        choice = self._desk.find(need.task)
        options = fix(choice.name, choice.card, self._desk.settings) | dict(need.options)
        key = (need.task, frozenset(options.items()), split)
        if key not in self._posed:
            text = split if split in choice.card.splits else None
            question = choice.pose(options, text)
            self._posed[key] = self._complete(question, (*trail, choice.name))
        return self._posed[key]

    def add(self, posed: _Posed, model: Model, repeat: int = 0) -> Job:
        """A run of a question by a model, after the runs it needs; each is there once."""
        desk = self._desk
        needs: dict[str, Job] = {}
        for name, (need, first) in posed.needs.items():
            value = desk.captioner if need.captioner and desk.captioner is not None else model
            needs[name] = self.add(first, value)
        baselines = desk.open_baselines(posed.question.cards[1])
        job = plan(posed.question, model, baselines, (desk.out, desk.prices), needs)
        if repeat:
            facts, task = repeat_facts(job.facts, repeat), repeat_task(job.task, repeat)
            folder = desk.out / folder_name(facts)
            job = replace(job, facts=facts, task=task, folder=folder)
        return self.jobs.setdefault(job.folder, job)
