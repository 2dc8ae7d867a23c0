"""Models that are loaded once per process, and batching of work from many requests.

While a batch is processed, new items wait and form the next batch. No item is delayed to fill a
batch, and batches grow with the load. Each queue is bounded and has one thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar, cast

from memantics.core.errors import MemanticsError
from memantics.models.client import CallSettings
from memantics.models.embedded.ocr import RememberingOcr
from memantics.moderation import (
    Detector,
    Moderator,
    Subject,
    Verdict,
    find_detector,
    open_attributes,
)
from memantics.serve.refusals import make_busy
from memantics.serve.settings import ServeSettings
from memantics.understanding import SAMPLE, KnowledgeStore
from memantics.workbench import LocalParts

Item = TypeVar("Item")
Found = TypeVar("Found")
T = TypeVar("T")
_TEXTS, _IMAGES = 64, 4
_THREADS = 4
# maximum characters and seconds of a batch that is processed without another thread
_FEW, _SHORT = 2000, 0.01


class Batcher(Generic[Item, Found]):
    """Collects items of all requests and processes up to ``most`` of them together, in order.

    ``waiting`` is the maximum queue length; further items are rejected.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Sequence[Found]],
        *,
        name: str,
        most: int,
        waiting: int,
        threads: int = 1,
    ) -> None:
        self._work = work
        self.name, self._most, self._room = name, most, waiting
        self._queue: deque[tuple[Item, asyncio.Future[Found]]] = deque()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"serve-{name}")
        self._free = threads
        self._running: set[asyncio.Task[None]] = set()
        self._called = False
        # Limits below which a batch is processed directly, since starting a thread would take
        # longer.
        self.is_quick: Callable[[Sequence[Item]], bool] = lambda _items: False
        self._pace = 0.05  # recent number of seconds per item
        self.batches: Callable[[int], None] = lambda _size: None

    @property
    def pace(self) -> float:
        """The recent number of seconds per item."""
        return self._pace

    @property
    def waiting(self) -> int:
        """The number of waiting items."""
        return len(self._queue)

    async def ask(self, items: Sequence[Item]) -> list[Found]:
        """Process items; either all of them are accepted or none."""
        if len(self._queue) + len(items) > self._room:
            raise make_busy(
                len(self._queue) * self._pace, f"too many requests wait for {self.name}"
            )
        loop = asyncio.get_running_loop()
        asked: list[asyncio.Future[Found]] = [loop.create_future() for _ in items]
        self._queue.extend(zip(items, asked, strict=True))
        if not self._called:
            # Items of other requests that arrive in the same loop iteration join the batch.
            self._called = True
            loop.call_soon(self._start)
        try:
            return [await one for one in asked]
        finally:
            # Items whose request was cancelled (time limit, closed connection) are skipped.
            for one in asked:
                one.cancel()

    def _start(self) -> None:
        self._called = False
        while self._queue and self._free:
            batch: list[tuple[Item, asyncio.Future[Found]]] = []
            while self._queue and len(batch) < self._most:
                item, asked = self._queue.popleft()
                if not asked.done():
                    batch.append((item, asked))
            if batch and self.is_quick([item for item, _ in batch]):
                self._finish(batch, self._work)
            elif batch:
                self._free -= 1
                task = asyncio.create_task(self._run(batch))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    async def _run(self, batch: list[tuple[Item, asyncio.Future[Found]]]) -> None:
        began = time.perf_counter()
        items = [item for item, _ in batch]
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._threads, self._work, items)
        await asyncio.wait([done])
        self._free += 1
        self._finish(batch, lambda _items: done.result(), began)
        self._start()

    def _finish(
        self,
        batch: list[tuple[Item, asyncio.Future[Found]]],
        work: Callable[[Sequence[Item]], Sequence[Found]],
        began: float | None = None,
    ) -> None:
        """Return the results of a batch, or its error, to each request."""
        began = time.perf_counter() if began is None else began
        try:
            found = work([item for item, _ in batch])
            for (_, asked), one in zip(batch, found, strict=True):
                if not asked.done():
                    asked.set_result(one)
        except Exception as error:  # noqa: BLE001 - each request says what happened
            for _, asked in batch:
                if not asked.done():
                    asked.set_exception(error)
        self._pace += ((time.perf_counter() - began) / len(batch) - self._pace) / 8
        self.batches(len(batch))

    async def close(self) -> None:
        """Finish accepted items, then stop the threads."""
        while self._running:
            await asyncio.wait(self._running)
        self._threads.shutdown(wait=True)


class ServiceEngine:
    """Detector, OCR and knowledge graph, each behind a bounded queue.

    ``texts`` and ``images`` are processed in batches; ``work`` runs any other function on a thread,
    with the same limit.
    """

    def __init__(self, settings: ServeSettings) -> None:
        models, room = settings.models, settings.bounds.waiting
        self._settings = models
        self.moderator = self._open()
        self.attributes = open_attributes(models.attributes)
        self.shadow = Moderator(Detector.load(models.shadow)) if models.shadow else None
        self.models = models.models
        # Images of clients are new, so no cache is used for them.
        self.calls: CallSettings = replace(models.calls, use_cache=False)
        self._store = models.store
        self.texts: Batcher[str | Subject, Verdict] = Batcher(
            self._judge, name="verdicts", most=_TEXTS, waiting=room
        )
        self.texts.is_quick = self._is_quick
        self.images: Batcher[bytes, Subject | MemanticsError] = Batcher(
            self._read, name="OCR", most=_IMAGES, waiting=room
        )
        self._others: Batcher[Callable[[], object], object] = Batcher(
            _call_first, name="other work", most=1, waiting=room, threads=_THREADS
        )

    def _open(self, ocr: RememberingOcr | None = None) -> Moderator:
        models = self._settings
        file = find_detector(models.detector)
        first = Detector.load(file) if file is not None else Detector.load_sample()
        others = [Detector.load(path) for path in models.others]
        for detector in (first, *others):
            if detector.match_list is not None:
                detector.match_list.check()
        return Moderator(first, ocr, models.language, others, models.text)

    def reload(self) -> str:
        """Load the detector files again and use them from the next batch on.

        The current batch ends with the old detectors. If a file cannot be loaded, the old detectors
        stay active.
        """
        attributes = open_attributes(self._settings.attributes)
        self.moderator, self.attributes = self._open(self.ocr), attributes
        self.__dict__.pop("parts", None)
        return self.moderator.name

    # A batch is scored by the detectors that are loaded when it begins.
    def _judge(self, items: Sequence[str | Subject]) -> list[Verdict]:
        return self.moderator.judge(items)

    def _read(self, images: Sequence[bytes]) -> list[Subject | MemanticsError]:
        return self.moderator.read(images)

    @property
    def detector(self) -> Detector:
        """The first detector of the service."""
        return self.moderator.detector

    def _is_quick(self, items: Sequence[str | Subject]) -> bool:
        length = sum(len(item if isinstance(item, str) else item.example.text) for item in items)
        return length <= _FEW and self.texts.pace * len(items) <= _SHORT

    @property
    def batchers(self) -> tuple[Batcher[Any, Any], ...]:
        """All batch queues of the service."""
        return self.texts, self.images, self._others

    @property
    def ocr(self) -> RememberingOcr:
        """The OCR engine; threads may share it."""
        return self.moderator.ocr

    @cached_property
    def parts(self) -> LocalParts:
        """The local analysis components."""
        return LocalParts(self.detector, self.ocr)

    @cached_property
    def store(self) -> KnowledgeStore:
        """The knowledge graph store; by default that of the sample data."""
        if self._store is not None:
            return KnowledgeStore.open(self._store)
        made = KnowledgeStore.in_memory()
        made.import_path(SAMPLE)
        return made

    async def work(self, function: Callable[..., T], *args: object, **options: Any) -> T:
        """Run a function on a thread; raise a ``Refusal`` if too many requests wait."""
        (found,) = await self._others.ask([partial(function, *args, **options)])
        return cast("T", found)

    def warm_up(self) -> None:
        """Load all models for the first request; homophone data load later in the background."""
        _ = self.parts
        self.moderator.judge(["开始"])
        self.moderator.read([_blank()])

    async def close(self) -> None:
        """Finish accepted work and stop."""
        for batcher in self.batchers:
            await batcher.close()
        self.ocr.close()


def _call_first(calls: Sequence[Callable[[], object]]) -> list[object]:
    return [call() for call in calls]


def _blank() -> bytes:
    from PIL import Image

    from memantics.core.images import encode_png

    return encode_png(Image.new("RGB", (64, 64), "white"))
