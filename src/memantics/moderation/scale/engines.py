"""Engines that run shards: a process pool on this machine, or Ray on any number (extra ``ray``)."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import multiprocessing
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from memantics.core.errors import InputError, MemanticsError, MissingExtra, StoreError, Unavailable
from memantics.moderation.scale.records import (
    Process,
    Ref,
    Shard,
    ShardPart,
    ShardRow,
    Work,
    escape_all,
    part_path,
)

if TYPE_CHECKING:
    import pyarrow as pa

_STARTS = 3  # attempts to start a worker
_worker: tuple[Work, Process, Path] | None = None


# Running one shard: every reference to a meme becomes exactly one row of one Parquet file (part).


def run_shard(
    shard: Shard, work: Work, process: Process, folder: Path, *, only_failed: bool = False
) -> ShardPart:
    """Process a shard and write its part atomically.

    With ``only_failed`` only the failed rows of the existing part are processed again.
    """
    started = time.process_time()
    kept = _read_settled(part_path(folder, shard), len(shard.refs)) if only_failed else {}
    todo = [place for place in range(len(shard.refs)) if place not in kept]
    done = process_refs([shard.refs[place] for place in todo], work, process)
    rows = kept | dict(zip(todo, done, strict=True))
    ordered = [rows[place] for place in range(len(shard.refs))]
    return write_part(shard, work, ordered, folder, time.process_time() - started)


def process_refs(refs: Sequence[Ref], work: Work, process: Process) -> list[ShardRow]:
    """Process references to memes in one batch; if the batch fails, process them one by one."""
    sound = [ref for ref in refs if not ref.fault]
    try:
        made = process(sound) if sound else []
        if len(made) != len(sound):
            raise MemanticsError(f"the worker returned {len(made)} rows for {len(sound)} memes")
    except Exception:  # noqa: BLE001 - one bad meme must not fail its shard
        made = [_process_alone(ref, work, process) for ref in sound]
    rows = iter(made)
    return [work.fail(ref, ref.fault) if ref.fault else next(rows) for ref in refs]


def _process_alone(ref: Ref, work: Work, process: Process) -> ShardRow:
    try:
        (row,) = process([ref])
    except Exception as error:  # noqa: BLE001 - the error is stored in the row
        return work.fail(ref, f"{type(error).__name__}: {error}"[:500])
    return row


def write_part(
    shard: Shard, work: Work, rows: Sequence[ShardRow], folder: Path, cpu: float
) -> ShardPart:
    """Write a part under a temporary name, flush it to disk, then rename it."""
    import pyarrow.parquet as pq

    path = part_path(folder, shard)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        pq.write_table(_make_table(rows, work.schema), partial)
        body = partial.read_bytes()
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    statuses = dict(sorted(Counter(str(row["status"]) for row in rows).items()))
    digest = hashlib.sha256(body).hexdigest()
    return ShardPart(
        shard.number, shard.key, path.name, len(rows), len(body), digest, statuses, cpu
    )


def _make_table(rows: Sequence[ShardRow], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.Table.from_pylist(list(rows), schema=schema)
    except UnicodeEncodeError:  # ids and reasons may contain file names that are not UTF-8
        return pa.Table.from_pylist([escape_all(row) for row in rows], schema=schema)


def _read_settled(path: Path, count: int) -> dict[int, ShardRow]:
    """Read the rows of an earlier Parquet part that did not fail, by position."""
    import pyarrow.parquet as pq

    rows: list[ShardRow] = pq.read_table(path).to_pylist() if path.is_file() else []
    if len(rows) != count:
        return {}
    return {place: row for place, row in enumerate(rows) if row["status"] != "failed"}


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """A shard to run; with ``only_failed`` only its failed rows."""

    shard: Shard
    only_failed: bool = False


class ShardEngine(Protocol):
    """Runs shards in any order, and yields each part when it is written."""

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        """Yield the parts; if a worker dies, its shard is run again, then row by row."""
        ...


def _open_worker(work: Work, folder: Path) -> None:
    """Load models once per process; the worker exits when the driver exits."""
    global _worker  # noqa: PLW0603 - state of the worker process
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


def _run_rows(order: ShardOrder, place: int) -> ShardRow:
    assert _worker is not None
    work, process, _ = _worker
    (row,) = process_refs([order.shard.refs[place]], work, process)
    return row


def _answer() -> None:
    """Do nothing; used to check that a worker has started."""


@contextmanager
def _hide_main() -> Iterator[None]:
    """Hide the caller's script, so that spawned workers do not run it again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class PoolEngine:
    """Runs shards in local processes; if a worker dies, only the meme that killed it fails."""

    def __init__(self, workers: int = 0) -> None:
        self.workers = workers or os.cpu_count() or 1

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        """Run shards in parallel; only a limited number is submitted at a time."""
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
        """Run the unfinished shards one at a time, to find the one that killed a worker."""
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

    def _run_row_by_row(self, order: ShardOrder, work: Work, folder: Path) -> Iterator[ShardRow]:
        """Run a shard row by row; a meme that kills the worker becomes a failed row."""
        place = 0
        refs = order.shard.refs
        while place < len(refs):
            try:
                with self._open_alone(work, folder) as pool:
                    while place < len(refs):
                        yield pool.submit(_run_rows, order, place).result()
                        place += 1
            except BrokenProcessPool:
                yield work.fail(refs[place], "the worker process died while processing it")
                place += 1

    def _open_alone(self, work: Work, folder: Path) -> ProcessPoolExecutor:
        """Start one worker, and check that it runs."""
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
            f"worker processes exited at start, {_STARTS} times in a row",
            hint="see their output above, and check the free memory",
        )

    @staticmethod
    def _open(workers: int, work: Work, folder: Path) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_open_worker,
            initargs=(work, folder),
        )


_TRIES = 3


class _Worker:
    """A Ray actor that loads models once, then runs shards."""

    def __init__(self, work: Work, folder: str) -> None:
        self._work, self._process, self._folder = work, work.open(), Path(folder)

    def run(self, order: ShardOrder) -> ShardPart:
        return run_shard(
            order.shard, self._work, self._process, self._folder, only_failed=order.only_failed
        )


class RayEngine:
    """Runs shards on a Ray cluster, local or at ``address``; all machines need the output folder.

    Ray restarts lost workers and nodes. A shard that kills three workers is run locally, row by
    row.
    """

    def __init__(self, workers: int = 0, address: str | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise MissingExtra("screening on a Ray cluster", "ray")
        self._workers, self._address = workers, address

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        """Run shards on idle workers."""
        ray: Any = importlib.import_module("ray")
        self._connect(ray)
        try:
            count = self._workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
            actor: Any = ray.remote(max_restarts=-1, num_cpus=1)(_Worker)
            place = str(folder.resolve())
            idle = [actor.remote(work, place) for _ in range(count)]
            yield from self._drive(ray, idle, iter(orders), work, folder)
        finally:
            ray.shutdown()

    def _connect(self, ray: Any) -> None:
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self._address is None:
            settings |= {"num_cpus": self._workers or os.cpu_count(), "include_dashboard": False}
        # Workers of a local cluster inherit the environment; passing it to Ray would restart them.
        else:
            paths = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
            settings["runtime_env"] = {"env_vars": paths}
        try:
            # Without "local" Ray would join any cluster running on this machine.
            ray.init(address=self._address or "local", **settings)
        except ConnectionError as error:
            raise Unavailable(
                f"no Ray cluster at {self._address}: {error}", hint="check --address"
            ) from error
        except ValueError as error:
            raise InputError(f"Ray: {error}", hint="check --address and --workers") from error

    def _drive(
        self, ray: Any, idle: list[Any], stream: Iterator[ShardOrder], work: Work, folder: Path
    ) -> Iterator[ShardPart]:
        running: dict[Any, tuple[Any, ShardOrder, int]] = {}
        again: list[tuple[ShardOrder, int]] = []
        while True:
            while idle:
                order, tries = again.pop() if again else (next(stream, None), 0)
                if order is None:
                    break
                worker = idle.pop()
                running[worker.run.remote(order)] = (worker, order, tries + 1)
            if not running:
                return
            (done,), _ = ray.wait(list(running), num_returns=1)
            worker, order, tries = running.pop(done)
            idle.append(worker)
            try:
                yield ray.get(done)
            except ray.exceptions.RayActorError:
                if tries < _TRIES:
                    again.append((order, tries))
                else:
                    yield from PoolEngine(1).run([order], work, folder)
