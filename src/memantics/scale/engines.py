"""Engines run shards: a pool of processes on this machine, or Ray on any number of them."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from types import ModuleType
from typing import Protocol

from memantics.core.errors import StoreError
from memantics.scale.records import Process, Row, Shard, ShardPart, Work
from memantics.scale.shard import process_refs, run_shard, write_part


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """A shard to run; ``only_failed`` keeps the rows of its part that did not fail."""

    shard: Shard
    only_failed: bool = False


class ShardEngine(Protocol):
    """Runs orders in any order and gives back each part as soon as it is in place."""

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        """Parts of all orders; an order whose worker dies is tried again, then row by row."""
        ...


_STARTS = 3  # a worker may be killed while it starts, not each time

_worker: tuple[Work, Process, Path] | None = None


def _open_worker(work: Work, folder: Path) -> None:
    """Load models once per process, and end with the driver, however that ends."""
    global _worker  # noqa: PLW0603 - what a worker process is for
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _worker = work, work.open(), folder


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def _run_order(order: ShardOrder) -> ShardPart:
    assert _worker is not None
    work, process, folder = _worker
    return run_shard(order.shard, work, process, folder, only_failed=order.only_failed)


def _run_rows(order: ShardOrder, place: int) -> Row:
    assert _worker is not None
    work, process, _ = _worker
    (row,) = process_refs([order.shard.refs[place]], work, process)
    return row


def _answer() -> None:
    """Nothing: a worker that gives it back has started."""


@contextmanager
def _hide_main() -> Iterator[None]:
    """A worker must not run the caller's script again, which need not have a guard against it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class PoolEngine:
    """Processes of this machine. A worker that dies takes no shard with it, and no row but one."""

    def __init__(self, workers: int = 0) -> None:
        self.workers = workers or os.cpu_count() or 1

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        """Keep every worker busy, hold no more orders than that takes."""
        stream = iter(orders)
        again: deque[ShardOrder] = deque()
        while True:
            broken: list[ShardOrder] = []
            yield from self._run_pool(stream, again, broken, work, folder)
            if not broken:
                return
            yield from self._run_apart(broken, work, folder)

    def _run_pool(
        self,
        stream: Iterator[ShardOrder],
        again: deque[ShardOrder],
        broken: list[ShardOrder],
        work: Work,
        folder: Path,
    ) -> Iterator[ShardPart]:
        running: dict[Future[ShardPart], ShardOrder] = {}
        with self._open(self.workers, work, folder) as pool:
            while not broken:
                while len(running) < 2 * self.workers:
                    order = again.popleft() if again else next(stream, None)
                    if order is None:
                        break
                    try:
                        with _hide_main():
                            running[pool.submit(_run_order, order)] = order
                    except BrokenProcessPool:
                        broken.append(order)
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    order = running.pop(future)
                    try:
                        yield future.result()
                    except BrokenProcessPool:
                        broken.append(order)
            for future, order in running.items():
                try:
                    yield future.result()
                except BrokenProcessPool:
                    broken.append(order)

    def _run_apart(self, orders: list[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        """Whose shard it was cannot be told from outside: one worker runs them in turn."""
        left = deque(orders)
        while left:
            try:
                with self._open_alone(work, folder) as pool:
                    while left:
                        yield pool.submit(_run_order, left[0]).result()
                        left.popleft()
            except BrokenProcessPool:
                order = left.popleft()
                rows = list(self._run_row_by_row(order, work, folder))
                yield write_part(order.shard, work, rows, folder, 0.0)

    def _run_row_by_row(self, order: ShardOrder, work: Work, folder: Path) -> Iterator[Row]:
        """One of these memes ends whoever looks at it: it alone becomes a failed row."""
        place = 0
        refs = order.shard.refs
        while place < len(refs):
            try:
                with self._open_alone(work, folder) as pool:
                    while place < len(refs):
                        yield pool.submit(_run_rows, order, place).result()
                        place += 1
            except BrokenProcessPool:
                yield work.fail(refs[place], "the process that looked at it died")
                place += 1

    def _open_alone(self, work: Work, folder: Path) -> ProcessPoolExecutor:
        """One worker that has started: what ends it from now on is a meme."""
        for _ in range(_STARTS):
            pool = self._open(1, work, folder)
            try:
                with _hide_main():
                    started = pool.submit(_answer)
                started.result()
            except BrokenProcessPool:
                pool.shutdown()
            else:
                return pool
        raise StoreError(
            f"worker processes end while they start, {_STARTS} times in a row",
            hint="what they printed above says why; is there memory left?",
        )

    @staticmethod
    def _open(workers: int, work: Work, folder: Path) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_open_worker,
            initargs=(work, folder),
        )
