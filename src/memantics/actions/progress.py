"""How far an action is: counts of several runs as one, in words, for whoever wants to know."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Literal

from memantics.run.engine import Progress
from memantics.run.evaluate import Job
from memantics.run.suite import RunEnd

__all__ = ["Job", "Progress", "ProgressWish", "RunEnd", "SuiteTotal", "describe", "foretell"]

ProgressWish = Callable[[Progress], None] | Literal["bar"] | None


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


def add_progress(parts: Iterable[Progress]) -> Progress:
    """The counts of several runs together; the longest pause is the pause of all.

    >>> add_progress([Progress(done=2, answered=2), Progress(done=3, failed=3)]).done
    5
    """
    listed = list(parts)
    names = {field.name for field in fields(Progress)} - {
        "total",
        "seconds",
        "limit",
        "paused",
        "adapted",
    }
    sums = {name: sum(getattr(progress, name) for progress in listed) for name in names}
    return replace(
        Progress(**sums), paused=max((progress.paused for progress in listed), default=0.0)
    )


def describe(progress: Progress, prices: tuple[float, float] | None = None) -> str:
    """Rate, time left, tokens and trouble, in few words.

    >>> describe(Progress(done=50, total=100, answered=48, failed=2, seconds=10.0, tokens_in=900))
    '5.0/s, 0:10 left, 900 tokens, 2 failed'
    """
    words = [f"{progress.rate:.1f}/s"]
    if progress.left is not None and progress.done != progress.total:
        words.append(f"{show_duration(progress.left)} left")
    tokens = progress.tokens_in + progress.tokens_out
    if tokens:
        words.append(f"{tokens:,} tokens")
        if prices is not None:
            words.append(f"cost {progress.cost(prices):.2f}")
    names = ("refused", "unparsed", "failed", "retries")
    words += [f"{count} {name}" for name in names if (count := getattr(progress, name))]
    if progress.paused > 0:
        words.append(f"server asks to wait {progress.paused:.0f} s")
    return ", ".join(words)


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


def describe_shortly(progress: Progress) -> str:
    """Rate and trouble; the rest stands in the line of the total."""
    words = [f"{progress.rate:.1f}/s"]
    words += [f"{progress.failed} failed"] if progress.failed else []
    words += [f"wait {progress.paused:.0f} s"] if progress.paused > 0 else []
    return ", ".join(words)


def foretell(progress: Progress, prices: tuple[float, float] | None = None) -> str:
    """What a build will take, before it asks.

    >>> foretell(Progress(memes=4, expected_in=40_000, expected_out=1_000), (2.0, 8.0))
    'about 40,000 tokens to send, 10,000 a meme, and 1,000 or more to receive; cost about 0.09'
    """
    each = round(progress.expected_in / max(1, progress.memes))
    told = f"about {progress.expected_in:,} tokens to send, {each:,} a meme, and "
    told += f"{progress.expected_out:,} or more to receive"
    if prices is not None:
        expected = Progress(tokens_in=progress.expected_in, tokens_out=progress.expected_out)
        told += f"; cost about {expected.cost(prices):.2f}"
    return told


def show_duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> show_duration(59.9), show_duration(3661)
    ('0:59', '1:01:01')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def show_count(progress: Progress) -> str:
    """Items done of all; an estimate of all that was too small grows.

    >>> show_count(Progress(done=3, total=40)), show_count(Progress(done=71, total=40))
    ('3/40', '71/71')
    """
    if progress.total is None:
        return str(progress.done)
    return f"{progress.done}/{max(progress.total, progress.done)}"


def read_wish(wish: ProgressWish) -> Callable[[Progress], None]:
    """The callback for a user's wish; ``"bar"`` keeps one line of standard error up to date."""
    if callable(wish):
        return wish
    return _draw_bar if wish == "bar" else lambda _: None


def _draw_bar(progress: Progress, width: int = 24) -> None:
    share = progress.done / progress.total if progress.total else 0.0
    filled = int(width * min(share, 1.0))
    line = f"{'█' * filled}{'·' * (width - filled)} {show_count(progress)} {describe(progress)}"
    sys.stderr.write(f"\r{line[:110]:<110}" + ("\n" if share >= 1 else ""))
    sys.stderr.flush()
