"""How far a suite of runs is, and what it cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from memantics.actions.progress import add_progress, show_duration
from memantics.run.engine import Progress
from memantics.run.evaluate import Job
from memantics.run.suite import RunEnd


class SuiteTotal:
    """Adds up the runs of a suite and hands the sum to a callback."""

    def __init__(self, jobs: Sequence[Job], show: Callable[[Progress], None]) -> None:
        self.size = sum(job.total for job in jobs)
        self.seen: dict[int, Progress] = {}
        self._show = show
        self._begin = time.monotonic()

    def begin(self, job: Job) -> None:
        """Nothing is to be said yet."""

    def show(self, job: Job, progress: Progress) -> None:
        """Take in how far a run is."""
        self.seen[id(job)] = progress
        self._show(self.add_up())

    def end(self, result: RunEnd) -> None:  # noqa: ARG002 - a watch's seam
        """Say how far all of them are."""
        self._show(self.add_up())

    def add_up(self) -> Progress:
        """All runs as one."""
        total = add_progress(self.seen.values())
        seconds = time.monotonic() - self._begin
        return replace(total, total=max(self.size, total.done), seconds=seconds)


def conclude(
    progress: Progress, ends: Iterable[RunEnd], prices: tuple[float, float] | None = None
) -> str:
    """What this start took by the clock, in tokens and in money; empty where no tokens went.

    Calls overlap: their seconds, summed over the whole of the runs, are told apart.

    >>> conclude(Progress(tokens_in=9000, tokens_out=100, seconds=61.0), [], (10.0, 100.0))
    '1:01 by the clock, 0:00 summed over calls; 9,000 tokens in, 100 out; cost 0.1000'
    """
    if not progress.tokens_in + progress.tokens_out:
        return ""
    scored = [end.ended.scores for end in ends if end.ended and end.ended.scores]
    summed = sum(scores.usage.seconds for scores in scored)
    took = f"{show_duration(progress.seconds)} by the clock, {show_duration(summed)} summed"
    words = [f"{took} over calls", f"{progress.tokens_in:,} tokens in, {progress.tokens_out:,} out"]
    words += [f"cost {progress.cost(prices):.4f}"] if prices is not None else []
    return "; ".join(words)
