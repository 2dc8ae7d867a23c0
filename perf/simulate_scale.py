"""``python -m perf.simulate_scale``: a thousand workers on a virtual clock, the real driver.

Shards are cut, skipped, written and entered into the manifest by the code that screens memes; only
the work itself is drawn from a distribution. Workers straggle, nodes are lost with all they were
doing, and the driver is killed and started again. The same seed gives the same run.
"""

from __future__ import annotations

import argparse
import heapq
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memantics.moderation.scale.driver import ScaleSettings, read_manifest, run_shards
from memantics.moderation.scale.engines import ShardOrder, write_part
from memantics.moderation.scale.records import Process, Ref, ShardPart, ShardRow, Work


@dataclass(frozen=True, slots=True)
class Cluster:
    """``shard_s`` is the usual time of a shard; a straggler takes ``slower`` times as long."""

    workers: int = 1000
    node: int = 20
    shard_s: float = 100.0
    straggling: float = 0.01
    slower: float = 10.0
    node_hours: float = 10.0
    repair_s: float = 300.0
    driver_kills: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Nothing:
    """Work without work: a row for each reference."""

    @property
    def schema(self) -> Any:
        import pyarrow as pa

        return pa.schema([(name, pa.string()) for name in ("id", "status", "reason")])

    def open(self) -> Process:
        return lambda refs: [self.row(ref) for ref in refs]

    def row(self, ref: Ref) -> ShardRow:
        return {"id": ref.id, "status": "scored", "reason": ""}

    def fail(self, ref: Ref, reason: str) -> ShardRow:
        return self.row(ref) | {"status": "failed", "reason": reason}


class DriverKilledError(Exception):
    """The driver ends in the middle."""


@dataclass
class SimulatedEngine:
    """Runs orders on a virtual clock. ``kill_at`` are finished shards after which it is killed."""

    cluster: Cluster
    kill_at: deque[int] = field(default_factory=deque)
    clock: float = 0.0
    busy: float = 0.0
    wasted: float = 0.0
    finished: int = 0
    started: int = 0
    nodes_lost: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.cluster.seed)

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        """Parts in the order in which simulated workers finish them."""
        own, stream, again = self.cluster, iter(orders), deque[ShardOrder]()
        idle = list(range(own.workers))
        running: dict[int, tuple[float, float, ShardOrder]] = {}
        events: list[tuple[float, int, int, str]] = [(self._draw_loss(), -1, 0, "loss")]
        while True:
            while idle:
                order = again.popleft() if again else next(stream, None)
                if order is None:
                    break
                worker, end = idle.pop(), self.clock + self._draw_time()
                self.started += 1
                running[worker] = (self.clock, end, order)
                heapq.heappush(events, (end, worker, self.started, "end"))
            if not running and not again:
                return
            at, worker, _, kind = heapq.heappop(events)
            self.clock = max(self.clock, at)
            if kind == "loss":
                self._lose_node(running, again, idle, events)
            elif kind == "back":
                idle.append(worker)
            elif worker in running and running[worker][1] == at:
                began, _, order = running.pop(worker)
                idle.append(worker)
                self.busy += at - began
                self.finished += 1
                rows = work.open()(order.shard.refs)
                yield write_part(order.shard, work, rows, folder, 0.0)
                if self.kill_at and self.finished >= self.kill_at[0]:
                    self.kill_at.popleft()
                    self._waste(running.values())
                    raise DriverKilledError

    def _lose_node(
        self,
        running: dict[int, tuple[float, float, ShardOrder]],
        again: deque[ShardOrder],
        idle: list[int],
        events: list[tuple[float, int, int, str]],
    ) -> None:
        own = self.cluster
        first = self._chance.randrange(own.workers // own.node) * own.node
        self.nodes_lost += 1
        for worker in range(first, first + own.node):
            if worker in running:
                held = running.pop(worker)
                self._waste([held])
                again.append(held[2])
            elif worker in idle:
                idle.remove(worker)
            else:
                continue  # still being repaired
            heapq.heappush(events, (self.clock + own.repair_s, worker, 0, "back"))
        heapq.heappush(events, (self._draw_loss(), -1, self.nodes_lost, "loss"))

    def _waste(self, held: Iterable[tuple[float, float, ShardOrder]]) -> None:
        for began, _, _ in held:
            self.wasted += self.clock - began

    def _draw_time(self) -> float:
        usual = self._chance.lognormvariate(0.0, 0.2) * self.cluster.shard_s
        return usual * (
            self.cluster.slower if self._chance.random() < self.cluster.straggling else 1
        )

    def _draw_loss(self) -> float:
        nodes = self.cluster.workers / self.cluster.node
        return self.clock + self._chance.expovariate(nodes / (self.cluster.node_hours * 3600))


@dataclass(frozen=True, slots=True)
class Outcome:
    shards: int
    rows: int
    makespan: float
    ideal: float
    wasted_share: float
    repeated: int
    nodes_lost: int
    drivers: int
    driver_ms: float
    manifest_bytes: int


def simulate(folder: Path, cluster: Cluster, shards: int, shard_size: int = 2) -> Outcome:
    """Run to the end, however often the driver is killed."""
    kills = sorted(random.Random(cluster.seed).sample(range(1, shards), cluster.driver_kills))
    engine = SimulatedEngine(cluster, deque(kills))
    rows = shards * shard_size
    settings = ScaleSettings(folder, {"work": "simulated"}, shard_size)
    begun, drivers = time.process_time(), 0
    while True:
        drivers += 1
        refs: Iterator[Ref] = (Ref(str(n), text="x") for n in range(rows))
        try:
            done = run_shards(refs, Nothing(), settings, engine)
            break
        except DriverKilledError:
            continue
    spent = time.process_time() - begun
    _, parts = read_manifest(folder)
    assert (done.rows, len(parts)) == (rows, shards)
    return Outcome(
        shards=shards,
        rows=done.rows,
        makespan=engine.clock,
        ideal=engine.busy / cluster.workers,
        wasted_share=engine.wasted / (engine.busy + engine.wasted),
        repeated=engine.finished - shards,
        nodes_lost=engine.nodes_lost,
        drivers=drivers,
        driver_ms=1000 * spent / shards,
        manifest_bytes=(folder / "manifest.jsonl").stat().st_size,
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.simulate_scale", description=__doc__)
    parser.add_argument("--shards", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    for what, cluster in (
        ("no trouble", Cluster(straggling=0, node_hours=1e9, driver_kills=0, seed=given.seed)),
        ("stragglers", Cluster(node_hours=1e9, driver_kills=0, seed=given.seed)),
        ("stragglers, nodes lost, driver killed", Cluster(seed=given.seed)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            made = simulate(Path(folder), cluster, given.shards)
        print(
            f"{what:<40}{made.makespan / 3600:6.2f} h, {made.makespan / made.ideal:5.2f} × ideal;"
            f" {made.wasted_share:6.2%} wasted, {made.nodes_lost} nodes lost,"
            f" {made.drivers} drivers, {made.driver_ms:.1f} ms of driver a shard,"
            f" {made.manifest_bytes / made.shards:.0f} bytes of manifest a shard"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
