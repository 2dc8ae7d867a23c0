"""Execute runs: one task with one model from items to scores, and many runs concurrently.

Runs of one model share its rate limiter. The next run begins as soon as the number of running calls
falls below the limit. Different models run in parallel. Two runs of one task by one model never
overlap, so that shared requests come from the cache and are paid for once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from memantics.benchmarks.card import Card, TaskCard
from memantics.benchmarks.protocol import find_decoding
from memantics.benchmarks.registry import DataFacts
from memantics.core.errors import DataError, InputError, MemanticsError, StoreError, Unavailable
from memantics.core.language import read_script
from memantics.core.model import Model
from memantics.core.records import Item
from memantics.core.rundir import RunFacts, RunWriter, Scores, read_facts, write_facts
from memantics.core.task import ItemWalk, Task
from memantics.core.tracing import trace_run
from memantics.core.waiting import raise_first
from memantics.evaluation.ask import ask
from memantics.evaluation.facts import Scope, add_needs, describe, folder_name, now
from memantics.evaluation.scoring import read_outcomes, score_run
from memantics.models.cache import Cache
from memantics.models.engine import AskSettings, Limiter, Progress

# Names of form fields that hold the text of a meme.
CAPTIONS = ("text", "caption")
# Tag of items that repeat a question about a meme with another seed.
TURN = "turn"
_TOLD = (*CAPTIONS, "source_caption")
Stratum = tuple[str, ...]


# A limited run selects items round-robin over languages and question types; the selection is always
# the same.


@dataclass(frozen=True, slots=True)
class Chosen:
    """The ids of the selected items, and the tags used for stratification (or ``meme``)."""

    ids: frozenset[str]
    spread: str


def choose(
    items: Iterable[Item], limit: int, kinds: Sequence[str], languages: Sequence[str] = ()
) -> Chosen | None:
    """Select the items of a limited run; None if these are simply the first items.

    An item's stratum is its language, if the dataset card names several, and its ``kinds`` (tags).
    The language comes from the tag ``language``, else from the script of the caption or question.
    Each stratum gives one item per round until ``limit`` is reached; empty strata are skipped.
    Within a stratum, items are ordered by meme in the order of the data. Repeated questions with
    another seed (tag ``turn``) come last, so that more memes are covered. Gold answers are not
    used. The selection is deterministic, and a larger limit only adds items.

    >>> from memantics.core.records import Form
    >>> items = [Item(f"{n}", f"{n}", "", Form("", ()), tags={"kind": k}) for n, k in
    ...          enumerate("aaaab")]
    >>> chosen = choose(items, 3, ["kind"])
    >>> sorted(chosen.ids), chosen.spread
    (['0', '1', '4'], 'kind')
    >>> choose(items, 5, ["kind"]), choose(items, 3, [])
    (None, None)
    """
    ids: list[str] = []
    meme_of: list[int] = []
    stratum_of: list[int] = []
    memes: dict[str, int] = {}
    strata: dict[Stratum, int] = {}
    repeats: list[int] = []
    seen: Counter[tuple[int, int]] = Counter()
    for item in items:
        ids.append(item.id)
        meme_of.append(memes.setdefault(item.group, len(memes)))
        stratum = _find_stratum(item, kinds, languages)
        stratum_of.append(strata.setdefault(stratum, len(strata)))
        about = meme_of[-1], stratum_of[-1]
        repeats.append(seen[about] if TURN in item.tags else 0)
        seen[about] += 1
    turns, taken = _order_turns(strata), Counter[tuple[int, int]]()
    keys: list[tuple[int, int, int, int]] = []
    for place in sorted(range(len(ids)), key=meme_of.__getitem__):
        number = stratum_of[place]
        line = repeats[place], number
        if taken[line] < limit:
            keys.append((repeats[place], taken[line], turns[number], place))
            taken[line] += 1
    order = [place for *_, place in sorted(keys)[:limit]]
    if not order or max(order) < limit:
        return None
    names = ("language", *kinds)
    varied = [name for name, *values in zip(names, *strata, strict=True) if len({*values}) > 1]
    return Chosen(frozenset(ids[place] for place in order), ", ".join(varied) or "meme")


def _order_turns(strata: Mapping[Stratum, int]) -> list[int]:
    """Order the strata so that languages alternate; otherwise few items could have one language."""
    seen: Counter[str] = Counter()
    languages: dict[str, int] = {}
    keys: list[tuple[int, int]] = []
    for language, *_ in strata:
        keys.append((seen[language], languages.setdefault(language, len(languages))))
        seen[language] += 1
    ranks = {key: turn for turn, key in enumerate(sorted(keys))}
    return [ranks[key] for key in keys]


def _find_stratum(item: Item, kinds: Sequence[str], languages: Sequence[str]) -> Stratum:
    language = ""
    if len(languages) > 1:
        context = item.form.context
        told = next((context[name] for name in _TOLD if context.get(name)), item.form.question)
        language = item.tags.get("language") or read_script(told)
    # A few captions in another language do not form a stratum.
    known_language = language if language in languages else ""
    return (known_language, *(item.tags.get(kind, "") for kind in kinds))


@dataclass(frozen=True, slots=True)
class Job:
    """A task, a model and the folder of their run. ``needs`` are the runs that must finish first.

    If ``asked`` is false, the user did not request the run; another run needs its answers.
    ``metrics`` names extra metrics (None: those of the last scoring).
    """

    facts: RunFacts
    folder: Path
    task: Task
    model: Model
    baselines: tuple[Model, ...]
    total: int
    needs: Mapping[str, Job] = field(default_factory=dict)
    asked: bool = True
    metrics: tuple[str, ...] | None = None


JobScorer = Callable[[Job], Awaitable[Scores]]


@dataclass(frozen=True, slots=True)
class PosedTask:
    """A task on its data, before a model is chosen.

    ``first`` is the task with the first items of its limit, if others are selected. ``needs`` are
    the prerequisite tasks whose answers it uses, by name.
    """

    cards: tuple[Card, TaskCard]
    task: Task
    data: DataFacts
    scope: Scope
    total: int
    wording: str = ""
    first: Task | None = None
    needs: Mapping[str, PosedTask] = field(default_factory=dict)

    @property
    def split(self) -> str:
        """The split of the data."""
        return self.scope.split or ""

    @property
    def unspread(self) -> PosedTask | None:
        """The same task with the first items, as other tools select them."""
        if self.first is None:
            return None
        return replace(self, task=self.first, scope=replace(self.scope, spread=""), first=None)


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run. ``waiting`` items were not asked, because answers that they need failed.

    The run has no scores if every item waits.
    """

    progress: Progress
    scores: Scores | None
    waiting: int = 0


def pose(
    cards: tuple[Card, TaskCard],
    task: Task,
    describe_data: Callable[[], DataFacts],
    scope: Scope,
    *,
    images: bool = False,
) -> PosedTask:
    """Limit a task to its scope and count its items, so that damaged data fail before paid calls.

    The data are described afterwards, from the records that were read for counting. ``images``
    states that items without an image were skipped.
    """
    if scope.sample is not None:
        memes, total = draw_memes(task.items(), scope.sample, scope.seed or 0)
        task = narrow(task, lambda meme: meme in memes)
    else:
        if scope.limit is not None:
            chosen = _choose(task, scope.limit, cards[0])
            first = _cut(task, scope.limit)
            if chosen is not None:
                task, scope = _pick(task, chosen.ids), replace(scope, spread=chosen.spread)
                return PosedTask(cards, task, describe_data(), scope, len(chosen.ids), first=first)
            task = first
        items = task.items
        total = items.count() if isinstance(items, ItemWalk) else sum(1 for _ in items())
    if not total:
        what, hint = "items", "choose another --split"
        if images:
            what, hint = "item with an image", f"add the images (data add --images DIR), or {hint}"
        raise DataError(task.name, f"split {scope.split!r} has no {what}", hint=hint)
    return PosedTask(cards, task, describe_data(), scope, total)


def _choose(task: Task, limit: int, card: Card) -> Chosen | None:
    if limit < 1:
        raise InputError(f"--limit {limit} selects no items", hint="give 1 or more")
    items = task.items.outline if isinstance(task.items, ItemWalk) else task.items
    return None if items is None else choose(items(), limit, task.kinds, card.languages)


def _pick(task: Task, ids: frozenset[str]) -> Task:
    """Restrict a task to some items, also after it received answers of other tasks."""
    whole, feed = task.items, task.feed

    def items() -> Iterator[Item]:
        left = len(ids)
        walk = whole.walk if isinstance(whole, ItemWalk) else lambda _: whole()
        for item in walk(lambda name: name not in ids):
            if not isinstance(item, str) and item.id in ids:
                yield item
                left -= 1
                if not left:
                    return

    return replace(task, items=items, feed=feed and (lambda fed: _pick(feed(fed), ids)))


def _cut(task: Task, limit: int) -> Task:
    """Restrict a task to its first items, also after it received answers of other tasks."""
    whole, feed = task.items, task.feed
    return replace(
        task,
        items=lambda: islice(whole(), limit),
        feed=feed and (lambda fed: _cut(feed(fed), limit)),
    )


def narrow(task: Task, keep: Callable[[str], bool]) -> Task:
    """Restrict a task to some memes, also after it received answers of other tasks."""
    whole, feed = task.items, task.feed
    return replace(
        task,
        items=lambda: (item for item in whole() if keep(item.group)),
        feed=feed and (lambda fed: narrow(feed(fed), keep)),
    )


def plan(
    question: PosedTask,
    model: Model,
    baselines: Sequence[Model],
    place: tuple[Path, tuple[float, float] | None],
    needs: Mapping[str, Job] | None = None,
) -> Job:
    """Describe a run and its folder; ``place`` is the folder that contains all runs."""
    out, prices = place
    needs = needs or {}
    facts = describe(question.cards, question.task, model, question.data, question.scope, prices)
    facts = replace(facts, wording=question.wording)
    facts = add_needs(facts, {name: job.facts for name, job in needs.items()})
    folder = out / folder_name(facts)
    return Job(facts, folder, question.task, model, tuple(baselines), question.total, needs)


async def score_here(job: Job) -> Scores:
    """Score a run on a thread of this process."""
    return await asyncio.to_thread(_score, job)


def _score(job: Job) -> Scores:
    return asyncio.run(score_run(job.folder, job.task, job.baselines, job.metrics))


async def evaluate(
    job: Job,
    cache: Cache | None,
    settings: AskSettings,
    watch: Callable[[Progress], None],
    score: JobScorer = score_here,
) -> Ended:
    """Ask the items that have no answer yet, then score; the run folder contains all results."""
    task, waiting = feed_needs(job)
    settings = replace(settings, total=job.total)
    if waiting == job.total:
        return Ended(Progress(total=job.total), None, waiting)
    with RunWriter(job.folder, job.facts) as writer:
        progress = await ask(task, job.model, writer, cache, settings, watch)
    facts = read_facts(job.folder)
    was_finished = facts.finished if progress.done == progress.resumed else ""
    finished = "" if waiting else was_finished or now()
    adapted = tuple(dict.fromkeys([*facts.adapted, *progress.adapted]))
    facts = replace(facts, finished=finished, prices=job.facts.prices, adapted=adapted)
    write_facts(job.folder, replace(facts, decoding=_find_decoding(task, job.model)))
    return Ended(progress, await score(job), waiting)


def _find_decoding(task: Task, model: Model) -> Mapping[str, JsonValue]:
    """Return the decoding parameters of a task's requests, as the model sends them."""
    item = next(iter(task.items()), None)
    return {} if item is None else find_decoding(task.ask(item, None).sampling, model.identity)


def feed_needs(job: Job) -> tuple[Task, int]:
    """Insert answers of other tasks that the task needs; also return the number of waiting items.

    An item waits if the call for its meme in the other task has failed, because its own answer
    would never be replaced. A refused or unparsed reply is final: the prompt then states that the
    other task has no answer for that meme.
    """
    if job.task.feed is None or not job.needs:
        return job.task, 0
    fed: dict[str, Mapping[str, str]] = {}
    lost: set[str] = set()
    for name, first in job.needs.items():
        fed[name], ended = read_fed(first)
        lost |= {item.group for item in first.task.items()} - ended
    task = job.task.feed(fed)
    if not lost:
        return task, 0
    waiting = sum(item.group in lost for item in task.items())
    return narrow(task, lambda meme: meme not in lost), waiting


def read_fed(job: Job) -> tuple[dict[str, str], set[str]]:
    """Return a run's answers by meme, and all memes whose status is final."""
    fed: dict[str, str] = {}
    ended: set[str] = set()
    for outcome in read_outcomes(job.folder, job.task):
        if outcome.status == "failed":
            continue
        ended.add(outcome.item.group)
        if outcome.status == "answered" and isinstance(outcome.value, str):
            fed.setdefault(outcome.item.group, outcome.value)
    return fed, ended


def draw_memes(items: Iterable[Item], count: int, seed: int) -> tuple[frozenset[str], int]:
    """Sample memes until they have ``count`` items; return the memes and the number of items.

    All items of a sampled meme are included, since metrics over pairs and triples need them, so the
    number of items may exceed ``count``. Sampling uses the hash of seed and meme, so tasks on the
    same memes get the same sample.

    >>> from memantics.core.records import Form
    >>> items = [Item(str(n), f"meme-{n // 2}", "", Form("", ())) for n in range(20)]
    >>> memes, held = draw_memes(items, 5, seed=1)
    >>> len(memes), held
    (3, 6)
    """
    sizes = Counter(item.group for item in items)
    drawn: set[str] = set()
    held = 0
    for meme in sorted(sizes, key=lambda meme: _rank(meme, seed)):
        if held >= count:
            break
        drawn.add(meme)
        held += sizes[meme]
    return frozenset(drawn), held


def _rank(meme: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{meme}".encode("utf-8", "surrogatepass")).digest()


Lane = tuple[Model, list[Job]]


@dataclass(frozen=True, slots=True)
class SuiteSettings:
    """Concurrency settings of a suite; they do not affect the answers.

    ``together`` is the maximum number of open runs per model. Models in ``alone`` run one after
    another, since two may not fit into memory. ``score`` should run large scoring jobs in another
    process.
    """

    ask: AskSettings = field(default_factory=AskSettings)
    together: int = 8
    alone: frozenset[str] = frozenset()
    look_every: float = 0.02
    score: JobScorer = score_here


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How one run of a suite ended: with scores, with an error, or with an internal fault."""

    job: Job
    ended: Ended | None = None
    error: MemanticsError | None = None
    fault: Exception | None = None

    @property
    def broken(self) -> bool:
        """Whether the run has no scores, so that dependent runs cannot begin."""
        return self.error is not None or self.fault is not None


class SuiteWatch(Protocol):
    """Receiver of progress updates of a suite."""

    def begin(self, job: Job) -> None:
        """Called when a run begins."""
        ...

    def show(self, job: Job, progress: Progress) -> None:
        """Called when a run has made progress."""
        ...

    def end(self, result: RunEnd) -> None:
        """Called when a run has ended."""
        ...


async def run_suite(
    jobs: Sequence[Job], cache: Cache | None, settings: SuiteSettings, watch: SuiteWatch
) -> list[RunEnd]:
    """Run all jobs, each after the jobs it needs; return results in the order of the jobs.

    A failed run stops only the runs that need it. Models are closed after their last run.
    Cancelling lets running calls finish, as in :func:`~memantics.evaluation.ask.ask`.
    """
    return await _Suite(jobs, cache, settings, watch).run()


class _Suite:
    """A suite of runs in progress."""

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
        """Execute all runs of one model."""
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
        """Return the next job whose prerequisites are finished and whose task is not running."""
        busy = {job.facts.task for job in active}
        for job in waiting:
            ready = all(need.folder in self._results for need in job.needs.values())
            if ready and job.facts.task not in busy:
                return job
        return None

    def _drop_hopeless(self, waiting: list[Job]) -> None:
        """End jobs that cannot begin because the model or needed answers are missing."""
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
            with trace_run(job.facts.task, job.facts.model, job.folder.name) as trace:
                ended = await evaluate(job, self._cache, settings, show, self._settings.score)
                trace.add(ended.scores.scores if ended.scores is not None else ())
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
    """Sort models so that models whose answers others need come first."""
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
    """Wait for all asyncio tasks; if cancelled or one fails, cancel the others exactly once.

    A second cancellation, as ``gather`` with a clean-up would send, would end the grace period of
    running calls.
    """
    tasks = [asyncio.create_task(lane) for lane in lanes]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _cancel(tasks)
    raise_first(tasks)


async def _first(active: Iterable[asyncio.Task[None]], seconds: float) -> set[asyncio.Task[None]]:
    """Return the asyncio tasks that ended within that many seconds."""
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
