"""Ray as an engine (extra ``ray``): the same shards on any number of machines."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memantics.core.errors import InputError, MissingExtra, Unavailable
from memantics.scale.engines import PoolEngine, ShardOrder, run_shard
from memantics.scale.records import ShardPart, Work

_TRIES = 3


class _Worker:
    """Loads models once, then runs one shard after the other."""

    def __init__(self, work: Work, folder: str) -> None:
        self._work, self._process, self._folder = work, work.open(), Path(folder)

    def run(self, order: ShardOrder) -> ShardPart:
        return run_shard(
            order.shard, self._work, self._process, self._folder, only_failed=order.only_failed
        )


class RayEngine:
    """Actors of a Ray cluster, local or at ``address``; the folder must be seen by all machines.

    Ray restarts workers and nodes that are lost. An order that ends three workers is run here, row
    by row, as the pool does it.
    """

    def __init__(self, workers: int = 0, address: str | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise MissingExtra("screening on a Ray cluster", "ray")
        self._workers, self._address = workers, address

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        """Give each idle worker the next order."""
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
        else:  # Workers of a cluster of our own inherit it; saying it costs them a second start.
            paths = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
            settings["runtime_env"] = {"env_vars": paths}
        try:
            # Without "local" Ray would join whatever cluster runs on this machine.
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
