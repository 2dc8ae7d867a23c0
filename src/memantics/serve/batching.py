"""Work of many requests, done together: bounded, in batches, each with one thread.

While a batch is being worked on, what comes in waits and makes the next one: nothing is delayed to
fill a batch, and batches grow with the load.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from memantics.serve.refusals import make_busy

Item = TypeVar("Item")
Found = TypeVar("Found")


class Batcher(Generic[Item, Found]):
    """Collects items of all requests and has them worked on, ``most`` at once, in order.

    ``waiting`` is the number of items that may wait; what comes on top of it is refused.
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
        # Which batches are so small that another thread would take longer to start than to work.
        self.is_quick: Callable[[Sequence[Item]], bool] = lambda _items: False
        self._pace = 0.05  # seconds for one item, as it was lately
        self.batches: Callable[[int], None] = lambda _size: None

    @property
    def pace(self) -> float:
        """Seconds for one item, as it was lately."""
        return self._pace

    @property
    def waiting(self) -> int:
        """How many items wait."""
        return len(self._queue)

    async def ask(self, items: Sequence[Item]) -> list[Found]:
        """Have items worked on; all of them are taken, or none."""
        if len(self._queue) + len(items) > self._room:
            raise make_busy(
                len(self._queue) * self._pace, f"too many requests wait for {self.name}"
            )
        loop = asyncio.get_running_loop()
        asked: list[asyncio.Future[Found]] = [loop.create_future() for _ in items]
        self._queue.extend(zip(items, asked, strict=True))
        if not self._called:
            # What other requests bring in the same turn of the loop comes along.
            self._called = True
            loop.call_soon(self._start)
        try:
            return [await one for one in asked]
        finally:
            # Whoever no longer waits (deadline, closed connection) is not worked for.
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
        """Hand out what the work gives, or its error, to each request."""
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
        """Finish what was accepted, then let the threads go."""
        while self._running:
            await asyncio.wait(self._running)
        self._threads.shutdown(wait=True)
