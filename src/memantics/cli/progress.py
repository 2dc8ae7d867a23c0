"""How a long command shows where it is: a bar in a terminal, plain lines on a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column

from memantics.run.evaluate import Job
from memantics.run.progress import Progress
from memantics.run.suite import Result

_EVERY = 10.0


class Watcher:
    """Shows the progress of one run on standard error, so that output stays clean."""

    def __init__(self, title: str, total: int | None, prices: tuple[float, float] | None) -> None:
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
            self._bars.update(self._bar, total=progress.total, completed=progress.done, state=state)
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

    def __exit__(self, *_: object) -> None:
        self._bars.stop()


class SuiteView:
    """Shows a suite on standard error: one line for each run that goes on, and their total.

    On a pipe the same lines come every ten seconds.
    """

    def __init__(self, jobs: Sequence[Job], prices: tuple[float, float] | None) -> None:
        self._jobs = jobs
        self._prices = prices
        self._console = Console(stderr=True, highlight=False)
        self._begin = self._printed = time.monotonic()
        self._seen: dict[int, Progress] = {}
        self._lines: dict[int, TaskID] = {}
        self._bars = Bars(
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=5),
            ),
            BarColumn(bar_width=None, table_column=Column(ratio=2, min_width=6)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn(
                "{task.fields[state]}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=5),
            ),
            console=self._console,
            disable=not self._console.is_terminal,
            expand=True,
        )
        size = sum(job.total for job in jobs)
        self._total = self._bars.add_task(f"{len(jobs)} runs", total=size, state="")

    def begin(self, job: Job) -> None:
        """Add a line."""
        self._lines[id(job)] = self._bars.add_task(_title(job), total=job.total, state="")

    def show(self, job: Job, progress: Progress) -> None:
        """Show how far a run is."""
        self._seen[id(job)] = progress
        if self._console.is_terminal:
            line = self._lines[id(job)]
            self._bars.update(line, completed=progress.done, state=_describe_shortly(progress))
            self._update_total()
        elif time.monotonic() - self._printed >= _EVERY:
            self._printed = time.monotonic()
            for own in self._jobs:
                if id(own) in self._lines and id(own) in self._seen:
                    seen = self._seen[id(own)]
                    _print_line(_title(own), seen, _describe_shortly(seen))
            total = self._add_up()
            _print_line(f"{len(self._jobs)} runs", total, describe(total, self._prices))

    def end(self, result: Result) -> None:
        """Take the line away."""
        line = self._lines.pop(id(result.job), None)
        if line is not None:
            self._bars.remove_task(line)
        self._update_total()

    def _update_total(self) -> None:
        total = self._add_up()
        state = describe(total, self._prices)
        self._bars.update(self._total, completed=total.done, state=state)

    def _add_up(self) -> Progress:
        total = sum(job.total for job in self._jobs)
        seconds = time.monotonic() - self._begin
        return replace(add_progress(self._seen.values()), total=total, seconds=seconds)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()


def add_progress(parts: Iterable[Progress]) -> Progress:
    """The counts of several runs together; the longest pause is the pause of all.

    >>> add_progress([Progress(done=2, answered=2), Progress(done=3, failed=3)]).done
    5
    """
    total = Progress()
    for own in parts:
        total = replace(
            total,
            done=total.done + own.done,
            answered=total.answered + own.answered,
            refused=total.refused + own.refused,
            unparsed=total.unparsed + own.unparsed,
            failed=total.failed + own.failed,
            resumed=total.resumed + own.resumed,
            cached=total.cached + own.cached,
            calls=total.calls + own.calls,
            retries=total.retries + own.retries,
            tokens_in=total.tokens_in + own.tokens_in,
            tokens_out=total.tokens_out + own.tokens_out,
            in_flight=total.in_flight + own.in_flight,
            paused=max(total.paused, own.paused),
        )
    return total


def _title(job: Job) -> str:
    return f"{job.facts.task} {job.facts.model}"


def _print_line(title: str, progress: Progress, state: str) -> None:
    sys.stderr.write(f"{title}: {progress.done}/{progress.total} {state}".rstrip() + "\n")


def _describe_shortly(progress: Progress) -> str:
    """Rate and trouble; the rest stands in the line of the total."""
    words = [f"{progress.rate:.1f}/s"]
    words += [f"{progress.failed} failed"] if progress.failed else []
    words += [f"wait {progress.paused:.0f} s"] if progress.paused > 0 else []
    return ", ".join(words)


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
