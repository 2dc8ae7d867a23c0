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
        self._pace = 0.05  # seconds for one item, as it was lately
        self.batches: Callable[[int], None] = lambda _size: None

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
        self._start()
        try:
            return [await one for one in asked]
        finally:
            # Whoever no longer waits (deadline, closed connection) is not worked for.
            for one in asked:
                one.cancel()

    def _start(self) -> None:
        while self._queue and self._free:
            batch: list[tuple[Item, asyncio.Future[Found]]] = []
            while self._queue and len(batch) < self._most:
                item, asked = self._queue.popleft()
                if not asked.done():
                    batch.append((item, asked))
            if batch:
                self._free -= 1
                task = asyncio.create_task(self._run(batch))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    async def _run(self, batch: list[tuple[Item, asyncio.Future[Found]]]) -> None:
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        try:
            items = [item for item, _ in batch]
            found = await loop.run_in_executor(self._threads, self._work, items)
            for (_, asked), one in zip(batch, found, strict=True):
                if not asked.done():
                    asked.set_result(one)
        except Exception as error:  # noqa: BLE001 - each request says what happened
            for _, asked in batch:
                if not asked.done():
                    asked.set_exception(error)
        finally:
            self._free += 1
            self._pace += ((time.perf_counter() - began) / len(batch) - self._pace) / 8
            self.batches(len(batch))
            self._start()

    async def close(self) -> None:
        """Finish what was accepted, then let the threads go."""
        while self._running:
            await asyncio.wait(self._running)
        self._threads.shutdown(wait=True)
