"""Execute runs: one task with one model from items to scores, and many runs concurrently.

Runs of one model share its rate limiter, and a further run begins as soon as calls in flight fall
below the limit; different models run side by side. Two runs of one task by one model never overlap:
what they have in common comes from the cache and is paid for once.
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

from memantics.benchmarks.card import Card, TaskCard
from memantics.benchmarks.registry import DataFacts
from memantics.core.errors import DataError, InputError, MemanticsError, StoreError, Unavailable
from memantics.core.language import read_script
from memantics.core.model import Model
from memantics.core.records import Item
from memantics.core.rundir import RunFacts, RunWriter, Scores, read_facts, write_facts
from memantics.core.task import ItemWalk, Task
from memantics.core.waiting import raise_first
from memantics.evaluation.ask import ask
from memantics.evaluation.facts import Scope, add_needs, describe, folder_name, now
from memantics.evaluation.scoring import read_outcomes, score_run
from memantics.models.cache import Cache
from memantics.models.engine import AskSettings, Limiter, Progress

# The names under which forms hold what is printed on a meme.
CAPTIONS = ("text", "caption")
# The tag of items that ask the same question about the same meme again, under another seed.
TURN = "turn"
_TOLD = (*CAPTIONS, "source_caption")
Stratum = tuple[str, ...]


# Items of a limited run: one of each language and kind in turn, always the same ones.


@dataclass(frozen=True, slots=True)
class Chosen:
    """The ids of the chosen items, and by what they were chosen: names of tags, else ``meme``."""

    ids: frozenset[str]
    spread: str


def choose(
    items: Iterable[Item], limit: int, kinds: Sequence[str], languages: Sequence[str] = ()
) -> Chosen | None:
    """The items of a limited run; None where they are the first ones.

    An item's stratum is its language, where the benchmark's card names several, and its ``kinds``
    (tags). The tag ``language`` tells it, else the script of the caption or question. Every
    stratum gives one item, then every stratum a second one, and so on until there are ``limit``;
    one that has no more is passed over. Within a stratum items come meme by meme, in the order of
    the data. A question that is asked again under another seed (tag ``turn``) comes after all that
    are asked for the first time: else few memes would be asked often. Gold answers play no part.
    Nothing is drawn at random, and a larger limit only adds items.

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
    """The turn of each stratum: languages alternate, else few items might be of one alone."""
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
    # A few stray captions in another language make no stratum.
    known_language = language if language in languages else ""
    return (known_language, *(item.tags.get(kind, "") for kind in kinds))


@dataclass(frozen=True, slots=True)
class Job:
    """A task, a model, and where its run goes. ``needs`` are the runs that must end first.

    Only for another run's sake is it run where it was not ``asked`` for. ``metrics`` names those
    to compute besides the task's own (None: those of its last scoring).
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

    ``first`` is the task with the first items of its limit, where others are chosen; ``needs`` are
    the tasks whose answers it needs, by the name of the need.
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
        """The part of the data that it is on."""
        return self.scope.split or ""

    @property
    def unspread(self) -> PosedTask | None:
        """The same with the first items, as other tools limit a task."""
        if self.first is None:
            return None
        return replace(self, task=self.first, scope=replace(self.scope, spread=""), first=None)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. ``waiting`` items were not asked: what they need has failed so far.

    There are no scores where every item waits.
    """

    progress: Progress
    scores: Scores | None
    waiting: int = 0


def pose(
    cards: tuple[Card, TaskCard], task: Task, describe_data: Callable[[], DataFacts], scope: Scope
) -> PosedTask:
    """Limit a task to its scope and count its items: broken data shows before a call is paid.

    The data are described afterwards: what was read for counting need not be read again.
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
        raise DataError(
            task.name, f"split {scope.split!r} has no items", hint="choose another --split"
        )
    return PosedTask(cards, task, describe_data(), scope, total)


def _choose(task: Task, limit: int, card: Card) -> Chosen | None:
    if limit < 1:
        raise InputError(f"a limit of {limit} leaves no items", hint="give 1 or more")
    items = task.items.outline if isinstance(task.items, ItemWalk) else task.items
    return None if items is None else choose(items(), limit, task.kinds, card.languages)


def _pick(task: Task, ids: frozenset[str]) -> Task:
    """Some items of a task, also once it has been fed; nothing behind the last one is made."""
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
    """The first items of a task, also once it has been fed."""
    whole, feed = task.items, task.feed
    return replace(
        task,
        items=lambda: islice(whole(), limit),
        feed=feed and (lambda fed: _cut(feed(fed), limit)),
    )


def narrow(task: Task, keep: Callable[[str], bool]) -> Task:
    """The items of some memes, also once the task has been fed."""
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
    """Say what a run will be and where; ``place`` is the folder of all runs, and prices."""
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
    """Ask what is not answered yet, then score; the folder holds everything."""
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
    write_facts(job.folder, facts)
    return Ended(progress, await score(job), waiting)


def feed_needs(job: Job) -> tuple[Task, int]:
    """The task with the answers it needs, and how many of its items have to wait.

    An item waits while a call for its meme has failed: asked without that answer, it would stay
    so for ever. A refusal or a reply without an answer is the model's last word; the task is
    given nothing for that meme, and says so.
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
    """What a run answered, by meme, and all memes about which it has had its last word."""
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
    """Memes drawn until they hold ``count`` items, and how many items they hold.

    Memes are kept whole, since figures over pairs and triples need all of a meme; the last one
    may therefore bring more items than asked. The draw goes by the hash of seed and meme, so that
    tasks about the same memes get the same ones, whatever else the data hold.

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
    """How a suite goes about it. None of this shapes the answers.

    ``together`` is how many runs of one model may be open at once. Models named in ``alone`` wait
    for each other, since a machine may not hold two of them. ``score`` should leave this process
    its time where a run is large: while it counts, other runs ask.
    """

    ask: AskSettings = field(default_factory=AskSettings)
    together: int = 8
    alone: frozenset[str] = frozenset()
    look_every: float = 0.02
    score: JobScorer = score_here


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
    run. Cancelling lets calls in flight end, as in :func:`~memantics.evaluation.ask.ask`.
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
