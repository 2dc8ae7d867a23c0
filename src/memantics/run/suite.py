"""Many runs at once: every model is kept busy, and no run waits for what it does not need.

Runs of one model share its limiter, and a further one begins as soon as calls in flight fall below
the limit; different models go on side by side. Two runs of one task by one model never overlap:
what they have in common comes from the cache and is paid for once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from memantics.core.cache import Cache
from memantics.core.errors import MemanticsError, StoreError, Unavailable
from memantics.core.model import Model
from memantics.core.waiting import raise_first
from memantics.run.ask import AskSettings
from memantics.run.calling import Limiter
from memantics.run.engine import Progress
from memantics.run.evaluate import Ended, Job, Scorer, evaluate, score_here

Lane = tuple[Model, list[Job]]


@dataclass(frozen=True, slots=True)
class SuiteSettings:
    """How a suite goes about it. None of this shapes the answers.

    ``together`` is how many runs of one model may be open at once. Models named in ``alone`` wait
    for each other, since a machine may not hold two of them. ``score`` should leave this process
    its time where a run is large: while it counts, other runs ask.
    """

    ask: AskSettings = field(default_factory=AskSettings)
    together: int = 8
    alone: frozenset[str] = frozenset()
    look_every: float = 0.02
    score: Scorer = score_here


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How one run of a suite ended: with figures, with an error, or with a fault of ours."""

    job: Job
    ended: Ended | None = None
    error: MemanticsError | None = None
    fault: Exception | None = None

    @property
    def broken(self) -> bool:
        """Whether no figures came out, so that what needs them cannot begin."""
        return self.error is not None or self.fault is not None


class SuiteWatch(Protocol):
    """Whoever watches a suite."""

    def begin(self, job: Job) -> None:
        """Note that a run begins."""
        ...

    def show(self, job: Job, progress: Progress) -> None:
        """Show how far a run is."""
        ...

    def end(self, result: RunEnd) -> None:
        """Note that a run is over."""
        ...


async def run_suite(
    jobs: Sequence[Job], cache: Cache | None, settings: SuiteSettings, watch: SuiteWatch
) -> list[RunEnd]:
    """Run all jobs, each after those it needs; results come in the order of the jobs.

    A run that cannot go on stops nothing but what needs it. Models are closed after their last
    run. Cancelling lets calls in flight end, as in :func:`~memantics.run.ask.ask`.
    """
    return await _Suite(jobs, cache, settings, watch).run()


class _Suite:
    """One suite in progress."""

    def __init__(
        self, jobs: Sequence[Job], cache: Cache | None, settings: SuiteSettings, watch: SuiteWatch
    ) -> None:
        self._jobs = jobs
        self._cache = cache
        self._settings = settings
        self._watch = watch
        self._results: dict[Path, RunEnd] = {}

    async def run(self) -> list[RunEnd]:
        lanes: dict[int, Lane] = {}
        for job in self._jobs:
            lanes.setdefault(id(job.model), (job.model, []))[1].append(job)
        ordered = _captioners_first(lanes.values())
        crowd = [lane for lane in ordered if lane[0].name not in self._settings.alone]
        loners = [lane for lane in ordered if lane[0].name in self._settings.alone]
        await _all([self._run_lanes(loners), *(self._run_lanes([lane]) for lane in crowd)])
        return [self._results[job.folder] for job in self._jobs]

    async def _run_lanes(self, lanes: Sequence[Lane]) -> None:
        for model, jobs in lanes:
            try:
                await self._run_lane(jobs)
            finally:
                await model.close()

    async def _run_lane(self, jobs: Sequence[Job]) -> None:
        """All runs of one model."""
        limiter = Limiter(self._settings.ask.concurrency, self._settings.ask.clock)
        waiting, active = list(jobs), dict[asyncio.Task[None], Job]()
        try:
            while waiting or active:
                self._drop_hopeless(waiting)
                free = not active or limiter.in_flight < limiter.limit
                if free and len(active) < self._settings.together:
                    job = self._pick(waiting, active.values())
                    if job is not None:
                        waiting.remove(job)
                        active[asyncio.create_task(self._run_job(job, limiter))] = job
                for task in await _first(active, self._settings.look_every):
                    del active[task]
                    task.result()
        finally:
            await _cancel(active)

    def _pick(self, waiting: Iterable[Job], active: Iterable[Job]) -> Job | None:
        """The next run that has all it needs, and whose task is not being asked already."""
        busy = {job.facts.task for job in active}
        for job in waiting:
            ready = all(need.folder in self._results for need in job.needs.values())
            if ready and job.facts.task not in busy:
                return job
        return None

    def _drop_hopeless(self, waiting: list[Job]) -> None:
        """End what cannot begin: its model is not there, or what it needs has no answers."""
        for job in list(waiting):
            known = [
                self._results[n.folder] for n in job.needs.values() if n.folder in self._results
            ]
            causes = [result for result in known if result.broken]
            causes += [
                result
                for result in self._results.values()
                if result.job.model is job.model and isinstance(result.error, Unavailable)
            ]
            if causes:
                waiting.remove(job)
                self._end(RunEnd(job, error=causes[0].error, fault=causes[0].fault))

    async def _run_job(self, job: Job, limiter: Limiter) -> None:
        self._watch.begin(job)
        settings = replace(self._settings.ask, limiter=limiter)
        show = partial(self._watch.show, job)
        try:
            ended = await evaluate(job, self._cache, settings, show, self._settings.score)
            result = RunEnd(job, ended)
        except MemanticsError as error:
            result = RunEnd(job, error=error)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            fault = StoreError(f"{where}{error.strerror or error}")
            result = RunEnd(job, error=fault)
        except Exception as error:  # noqa: BLE001 - a fault in one task is told after the others
            result = RunEnd(job, fault=error)
        self._end(result)

    def _end(self, result: RunEnd) -> None:
        self._results[result.job.folder] = result
        self._watch.end(result)


def _captioners_first(lanes: Iterable[Lane]) -> list[Lane]:
    """Models that others need go first: of those that are alone, none waits for a later one."""
    lanes = list(lanes)
    needed = {
        id(need.model)
        for model, jobs in lanes
        for job in jobs
        for need in job.needs.values()
        if need.model is not model
    }
    return sorted(lanes, key=lambda lane: id(lane[0]) not in needed)


async def _all(lanes: Iterable[Coroutine[None, None, None]]) -> None:
    """Wait for all; when this is cancelled or one fails, cancel the others *once*.

    Cancelling twice, as ``gather`` with a clean-up would, cuts short the grace that calls in
    flight are given.
    """
    tasks = [asyncio.create_task(lane) for lane in lanes]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _cancel(tasks)
    raise_first(tasks)


async def _first(active: Iterable[asyncio.Task[None]], seconds: float) -> set[asyncio.Task[None]]:
    """What has ended after at most that many seconds."""
    tasks = set(active)
    if not tasks:
        await asyncio.sleep(seconds)
        return set()
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return done


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
