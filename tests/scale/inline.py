"""An engine for tests: shards run in this process, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from memantics.moderation.scale.engines import ShardOrder, run_shard
from memantics.moderation.scale.records import ShardPart, Work


class InlineEngine:
    """What a worker does, without a process of its own."""

    def run(self, orders: Iterable[ShardOrder], work: Work, folder: Path) -> Iterator[ShardPart]:
        process = work.open()
        for order in orders:
            yield run_shard(order.shard, work, process, folder, only_failed=order.only_failed)
