"""How a long command shows where it is: a bar in a terminal, plain lines on a pipe."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars

from memantics.run.progress import Progress

_EVERY = 10.0


class Watcher:
    """Shows the progress of one run on standard error, so that output stays clean."""

    def __init__(self, title: str, total: int, prices: tuple[float, float] | None) -> None:
        self._title = title
        self._prices = prices
        self._console = Console(stderr=True, highlight=False)
        self._printed = time.monotonic()
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}", markup=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bar = self._bars.add_task(title, total=total, state="")

    def show(self, progress: Progress) -> None:
        """Show the counts now."""
        if self._console.is_terminal:
            state = describe(progress, self._prices)
            self._bars.update(self._bar, completed=progress.done, state=state)
        elif time.monotonic() - self._printed >= _EVERY:
            self._printed = time.monotonic()
            self._print(progress)

    def _print(self, progress: Progress) -> None:
        of = f"/{progress.total}" if progress.total is not None else ""
        line = f"{self._title}: {progress.done}{of} {describe(progress, self._prices)}"
        sys.stderr.write(line.rstrip() + "\n")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()


def describe(progress: Progress, prices: tuple[float, float] | None = None) -> str:
    """Rate, time left, tokens and trouble, in few words.

    >>> describe(Progress(done=50, total=100, answered=48, failed=2, seconds=10.0, tokens_in=900))
    '5.0/s, 0:10 left, 900 tokens, 2 failed'
    """
    words = [f"{progress.rate:.1f}/s"]
    if progress.left is not None and progress.done != progress.total:
        words.append(f"{_clock(progress.left)} left")
    tokens = progress.tokens_in + progress.tokens_out
    if tokens:
        words.append(f"{tokens:,} tokens")
        if prices is not None:
            words.append(f"cost {progress.cost(prices):.2f}")
    for count, name in (
        (progress.refused, "refused"),
        (progress.unparsed, "unparsed"),
        (progress.failed, "failed"),
        (progress.retries, "retries"),
    ):
        if count:
            words.append(f"{count} {name}")
    if progress.paused > 0:
        words.append(f"server asks to wait {progress.paused:.0f} s")
    return ", ".join(words)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
