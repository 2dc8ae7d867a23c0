"""Ask a model every item of a task, log each answer, and score the model's option probabilities.

The scores are calibration error, Brier score and risk (error rate) at each coverage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from pydantic import JsonValue

from memantics.core.errors import DataError, ImageError
from memantics.core.images import load_images
from memantics.core.model import Model
from memantics.core.records import (
    NO_REPLY,
    Answer,
    Form,
    Item,
    Odds,
    Outcome,
    Request,
    Score,
    Status,
)
from memantics.core.rundir import ItemStanding, RunWriter
from memantics.core.task import ItemWalk, Task, Unparsed
from memantics.core.waiting import raise_first
from memantics.metrics import calibration
from memantics.models.cache import Cache, request_digest
from memantics.models.engine import (
    AskSettings,
    Called,
    Engine,
    Progress,
    RetrySettings,
    Stopped,
    bump_seed,
    read_reply,
)

__all__ = ["AskSettings", "Progress", "RetrySettings", "ask"]

_COVERAGES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_THRESHOLDS = (0.5, 0.7, 0.9, 0.95)


def choose(masses: Mapping[str, float], form: Form) -> str:
    """Return the most probable option; in a tie, the earliest.

    >>> from memantics.core.records import Field, Option
    >>> form = Form("?", (Field("answer", "choice", (Option("A", ""), Option("B", ""))),))
    >>> choose({"A": 0.2, "B": 0.3}, form), choose({"A": 0.2, "B": 0.2}, form)
    ('B', 'A')
    """
    return max((option.key for option in form.fields[0].options), key=lambda k: masses.get(k, 0.0))


def state_odds(masses: Mapping[str, float], form: Form, task: Task, gold: JsonValue) -> Odds | None:
    """Return probabilities over the options; None if no option equals the gold label."""
    keys = [option.key for option in form.fields[0].options]
    for key in keys:
        # The gold label and the option labels may be written differently.
        with suppress(Unparsed):
            if task.parse(key, form) == gold:
                return Odds(calibration.normalise(masses, keys), key)
    return None


def score_certainty(outcomes: Sequence[Outcome]) -> Iterator[Score]:
    """Compute calibration metrics over the items whose options have probabilities."""
    odds = [outcome.odds for outcome in outcomes if outcome.odds is not None]
    if not odds:
        return
    stated, golds = [chances.stated for chances in odds], [chances.gold for chances in odds]
    sure = [max(chances.stated.values()) for chances in odds]
    right = [_likeliest(chances.stated) == chances.gold for chances in odds]
    n = len(odds)
    yield Score("calibration_error", calibration.calibration_error(sure, right), n)
    yield Score("brier", calibration.brier_score(stated, golds), n)
    yield Score("area_under_risk", calibration.area_under_risk(sure, right), n)
    for fill_bin in calibration.fill_bins(sure, right):
        label = f"{fill_bin.low:.1f} to {fill_bin.high:.1f}"
        yield Score("right", fill_bin.right, fill_bin.n, by="confidence", label=label)
    points = calibration.risk_coverage(sure, right)
    for share in _COVERAGES:
        reached = next(p for p in points if p.coverage >= share - 1e-9)
        yield Score("risk", reached.risk, reached.n, by="coverage", label=f"{share:.0%}")
    for least in _THRESHOLDS:
        kept = [hit for certainty, hit in zip(sure, right, strict=True) if certainty >= least]
        value = sum(kept) / len(kept) if kept else None
        yield Score("right", value, len(kept), by="abstaining below", label=f"{least:g}")


def _likeliest(stated: Mapping[str, float]) -> str:
    return max(stated, key=lambda key: stated[key])


# Cached answers never yield to the event loop, which must still handle Ctrl-C.
_BREATH = 0.05


def watch_nothing(_: Progress) -> None:
    """Ignore progress updates."""


async def ask(
    task: Task,
    model: Model,
    writer: RunWriter,
    cache: Cache | None = None,
    settings: AskSettings | None = None,
    watch: Callable[[Progress], None] = watch_nothing,
) -> Progress:
    """Ask a model every item that is not finished yet; return the counts by status.

    Writer, cache and model belong to the caller and stay open. An error that affects all later
    items (wrong key, full disk, damaged data) is raised after the running calls have ended. All
    answers are on disk by then, and the same call resumes the run.
    """
    engine = Engine(model, cache, settings or AskSettings())
    return await _Asking(task, writer, engine).run(watch)


class _Asking:
    """One run in progress: asks its items and stores the answers."""

    def __init__(self, task: Task, writer: RunWriter, engine: Engine) -> None:
        self._task = task
        self._writer = writer
        self._engine = engine
        self._clock = engine.settings.clock
        self._seen: set[str] = set()
        self._breath = 0.0

    async def run(self, watch: Callable[[Progress], None]) -> Progress:
        engine, whole = self._engine, self._task.items
        items = whole.walk(self._is_over) if isinstance(whole, ItemWalk) else whole()
        watching = asyncio.create_task(self._watch(watch))
        count = min(engine.settings.concurrency, engine.limiter.maximum)
        workers = [asyncio.create_task(self._work(items)) for _ in range(max(1, count))]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            await engine.stop(workers)
            if isinstance(items, Generator):
                items.close()  # Closing the generator also closes its open files.
            watching.cancel()
            watch(engine.progress)
        raise_first(workers)
        engine.flush()
        return engine.progress

    async def _watch(self, watch: Callable[[Progress], None]) -> None:
        while True:
            await asyncio.sleep(self._engine.settings.watch_every)
            watch(self._engine.progress)

    async def _work(self, items: Iterator[Item | str]) -> None:
        try:
            for item in items:
                if self._engine.stopping:
                    return
                if isinstance(item, str):
                    self._pass(item)
                else:
                    await self._finish(item)
                if self._clock.now() - self._breath > _BREATH:
                    await asyncio.sleep(0)
                    self._breath = self._clock.now()
        except BaseException:
            # The item is counted immediately, since fast models never yield to the event loop.
            self._engine.halt()
            raise

    def _is_over(self, name: str) -> bool:
        """Whether the item was finished before the run was resumed."""
        last = self._writer.known.get(name)
        return last is not None and self._has_ended(last)

    def _has_ended(self, last: ItemStanding) -> bool:
        used_up = last.status != "failed" and last.attempt + 1 >= self._task.invalid.attempts
        return last.status == "answered" or used_up

    def _meet(self, name: str) -> ItemStanding | None:
        """Return the progress of an item before the run was resumed; look it up only once."""
        if name in self._seen:
            raise DataError(name, "two items have the same id", hint="give each item a unique id")
        self._seen.add(name)
        return self._writer.known.get(name)

    def _pass(self, name: str) -> None:
        """Count an item that was finished before the run was resumed."""
        last = self._meet(name)
        assert last is not None, name
        self._engine.count_item(last.status, resumed=True)

    async def _finish(self, item: Item) -> None:
        """Ask one item until it is finished, continuing from its stored progress."""
        last = self._meet(item.id)
        if last is not None and self._has_ended(last):
            self._engine.count_item(last.status, resumed=True)
        else:
            await self._go_on(item, last)

    async def _go_on(self, item: Item, last: ItemStanding | None) -> None:
        """Ask an unfinished item."""
        attempts = self._task.invalid.attempts
        attempt, complaint = 0, None
        if last is not None:
            attempt = last.attempt if last.status == "failed" else last.attempt + 1
            complaint = last.complaint
        if self._task.complete is not None:
            item = await asyncio.to_thread(self._task.complete, item)
        status: Status = "failed"
        for number in range(attempt, max(attempts, attempt + 1)):
            try:
                answer = await self._attempt(item, number, complaint)
            except Stopped:
                return
            status, complaint = answer.status, answer.reason
            if status in ("answered", "failed"):
                break
            if self._engine.stopping and number + 1 < attempts:
                return
        self._engine.count_item(status)

    async def _attempt(self, item: Item, number: int, complaint: str | None) -> Answer:
        """Make one attempt at an item (with retries of the call), parse the reply, and store it."""
        engine = self._engine
        try:
            request = self._task.ask(item, complaint)
        except ImageError as error:
            self._note_item(item, number, None)
            failed = Answer(item.id, number, "failed", NO_REPLY, reason=str(error), calls=0)
            return self._record(failed)
        self._note_item(item, number, request)
        request, digest, fault = _address(item, bump_seed(request, number))
        if fault and engine.model.cacheable:
            failed = Answer(item.id, number, "failed", NO_REPLY, reason=fault, calls=0)
            return self._record(failed)
        key = engine.cache_key(request, digest, number) if engine.cache is not None else b""
        called = await engine.fetch(request, key)
        answer = self._record(self._judge(item, number, digest, called))
        engine.keep(key, called)
        return answer

    def _judge(self, item: Item, number: int, digest: str, called: Called) -> Answer:
        """Return the status and the parsed value of a finished model call."""
        reply = called.reply or NO_REPLY
        status: Status = "failed"
        value, reason = None, called.reason
        if called.reply is not None:
            said = reply
            if reply.masses and not reply.refusal:
                said = replace(reply, text=choose(reply.masses, item.form))
            status, value, reason = read_reply(said, lambda text: self._task.parse(text, item.form))
        return Answer(
            item.id,
            number,
            status,
            reply,
            value,
            reason,
            digest,
            seconds=round(called.seconds, 4),
            calls=called.calls,
            cached=called.calls == 0 and called.reply is not None,
        )

    def _note_item(self, item: Item, number: int, request: Request | None) -> None:
        """Store an item in the run directory when it is first asked."""
        if number or item.id in self._writer.known:
            return
        try:
            self._writer.add_item(item, request.messages if request else ())
        except TypeError as error:
            raise DataError(item.id, f"the item cannot be written as JSON: {error}") from error

    def _record(self, answer: Answer) -> Answer:
        """Store an attempt in the run directory; from here on it survives a crash."""
        try:
            self._writer.add_answer(answer)
        except TypeError as error:
            reason = f"the parsed value cannot be written as JSON: {error}"
            answer = replace(answer, status="unparsed", value=None, reason=reason)
            self._writer.add_answer(answer)
        self._engine.count_attempt(answer.reply, cached=answer.cached)
        return answer


def _address(item: Item, request: Request) -> tuple[Request, str, str]:
    """Return the request with its loaded images and its hash, or the error of its images."""
    try:
        loaded = load_images(request)
        return loaded, request_digest(loaded), ""
    except ImageError as error:
        return request, "", str(error)
    except TypeError as error:
        raise DataError(item.id, f"its request cannot be written as JSON: {error}") from error
