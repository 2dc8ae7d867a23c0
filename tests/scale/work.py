"""Work for tests: the length of each text, with memes that raise and memes that kill."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memantics.moderation.scale.driver import ScaleSettings
from memantics.moderation.scale.records import Fetcher, Process, Ref, ShardRow

ROWS, SIZE = 800, 20


@dataclass(frozen=True)
class Measure:
    """``n`` is the length of a text or of an image's bytes."""

    def open(self) -> Process:
        fetcher = Fetcher()

        def measure(refs: Sequence[Ref]) -> list[ShardRow]:
            return [self._measure(ref, fetcher) for ref in refs]

        return measure

    def _measure(self, ref: Ref, fetcher: Fetcher) -> ShardRow:
        if ref.text == "raise":
            raise ValueError("as planned")
        if ref.text == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        data = fetcher.fetch(ref)
        n = len(data) if data is not None else len(ref.text or "")
        return {"id": ref.id, "status": "scored", "reason": "", "n": n}

    def fail(self, ref: Ref, reason: str) -> ShardRow:
        return {"id": ref.id, "status": "failed", "reason": reason, "n": None}

    @property
    def schema(self) -> Any:
        import pyarrow as pa

        names = [("id", pa.string()), ("status", pa.string()), ("reason", pa.string())]
        return pa.schema([*names, ("n", pa.int64())])


@dataclass(frozen=True)
class Slow(Measure):
    """Takes its time, so that it can be killed in the middle, and logs each row that it does."""

    log: str = ""

    def _measure(self, ref: Ref, fetcher: Fetcher) -> ShardRow:
        time.sleep(0.002)
        if self.log:
            with open(self.log, "ab", buffering=0) as file:  # noqa: PTH123 - appended in one write
                file.write(f"{os.getpid()} {ref.id}\n".encode())
        return super()._measure(ref, fetcher)


def list_refs() -> Iterator[Ref]:
    return (Ref(f"m{n}", text="x" * (n % 7)) for n in range(ROWS))


def settle(out: Path) -> ScaleSettings:
    return ScaleSettings(out, {"work": "slow"}, shard_size=SIZE)


@dataclass(frozen=True)
class Unready(Measure):
    """Ends its process while it starts."""

    def open(self) -> Process:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().open()
