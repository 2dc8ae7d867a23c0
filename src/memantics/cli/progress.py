"""Progress display of long commands: a bar in a terminal, plain lines on a pipe."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column

from memantics import evaluation
from memantics.cli.terminal import console, tell
from memantics.core.parameters import TokenPrices
from memantics.evaluation import Job, RunEnd
from memantics.models import progress as action
from memantics.models.engine import Progress

_EVERY = 10.0
T = TypeVar("T")


@contextmanager
def resumable() -> Iterator[dict[str, Any]]:
    """Print how to resume after an interruption."""
    try:
        yield {}
    except (KeyboardInterrupt, typer.Abort):
        tell("interrupted: finished answers are kept; run the same command again to resume")
        raise typer.Exit(130) from None


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that calls models; after an interruption, print how to resume."""
    with resumable():
        return asyncio.run(work)


def watch(
    title: str, *, tokens: bool = False
) -> Callable[[TokenPrices], AbstractContextManager[Mapping[str, Any]]]:
    """Show the progress of a command under a title; at the end, print its tokens."""

    @contextmanager
    def begin(prices: TokenPrices) -> Iterator[Mapping[str, Any]]:
        with resumable(), Watcher(title, None, prices) as view:
            yield {"progress": view.show}
        if tokens and (view.last.tokens_in or view.last.tokens_out):
            tell(f"{view.last.tokens_in:,} tokens sent; {view.last.tokens_out:,} received")

    return begin


def tell_tokens(tokens: tuple[int, int], memes: int, adapted: Sequence[str] = ()) -> None:
    """Print the tokens used since this start, in total and per meme; nothing if none were used.

    ``adapted`` are notes about request changes that the server required.
    """
    for line in adapted:
        tell(f"note: {line}")
    if any(tokens):
        each = round(tokens[0] / max(1, memes))
        console().print(f"{tokens[0]:,} tokens sent ({each:,} per meme); {tokens[1]:,} received")


def stop_at_failures(counts: Mapping[str, int]) -> None:
    """Exit with code 1 if model calls failed."""
    if counts.get("failed"):
        raise typer.Exit(1)


class _View:
    """Progress bars on standard error, so that standard output stays clean."""

    _bars: Bars

    def __init__(self) -> None:
        self._console = console(error=True)
        self._printed = time.monotonic()

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()


class Watcher(_View):
    """Shows the progress of one run."""

    def __init__(self, title: str, total: int | None, prices: TokenPrices) -> None:
        self._title = title
        self._prices = prices
        super().__init__()
        self._foretold = False
        self.last = Progress()
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
        """Show the current counts, and once the cost estimate."""
        self.last = progress
        if progress.expected_in and not self._foretold:
            self._foretold = True
            tell(action.foretell(progress, self._prices))
        if self._console.is_terminal:
            state = action.describe(progress, self._prices)
            # If answers lead to further steps, the number of steps is an estimate.
            total = progress.total and max(progress.total, progress.done)
            self._bars.update(self._bar, total=total, completed=progress.done, state=state)
        elif time.monotonic() - self._printed >= _EVERY:
            self._printed = time.monotonic()
            _print_line(self._title, progress, action.describe(progress, self._prices))


class CountView(_View):
    """Shows how many steps of a computation are finished."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._bar = self._bars.add_task(title, total=None)

    def show(self, done: int, total: int) -> None:
        """Show the number of finished steps; without a terminal, print it now and then."""
        self._bars.update(self._bar, total=total, completed=done)
        if not self._console.is_terminal and time.monotonic() - self._printed >= _EVERY:
            self._printed = time.monotonic()
            tell(f"{self._title}: {done:,} of {total:,}")


class SuiteView(_View):
    """Shows the progress of several runs on standard error: one line per active run, and a total.

    If standard error is a pipe, the same lines are printed every ten seconds.
    """

    def __init__(self, jobs: Sequence[Job], prices: TokenPrices) -> None:
        self._jobs = jobs
        self._prices = prices
        super().__init__()
        self._sum = evaluation.SuiteTotal(jobs, lambda _: None)
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
        self._total = self._bars.add_task(f"{len(jobs)} runs", total=self._sum.size, state="")

    def conclude(self, ends: Sequence[RunEnd]) -> str:
        """Return the total time and cost for the last line."""
        return evaluation.conclude(self._sum.add_up(), ends, self._prices)

    def begin(self, job: Job) -> None:
        """Add the line of a run."""
        self._lines[id(job)] = self._bars.add_task(_title(job), total=job.total, state="")

    def show(self, job: Job, progress: Progress) -> None:
        """Update the line of a run."""
        self._sum.show(job, progress)
        if self._console.is_terminal:
            line = self._lines[id(job)]
            self._bars.update(
                line, completed=progress.done, state=action.describe_shortly(progress)
            )
            self._update_total()
        elif time.monotonic() - self._printed >= _EVERY:
            self._printed = time.monotonic()
            for shown_job in self._jobs:
                seen = self._sum.seen.get(id(shown_job))
                if id(shown_job) in self._lines and seen is not None:
                    _print_line(_title(shown_job), seen, action.describe_shortly(seen))
            total = self._sum.add_up()
            _print_line(f"{len(self._jobs)} runs", total, action.describe(total, self._prices))

    def end(self, result: RunEnd) -> None:
        """Remove the line of a run."""
        line = self._lines.pop(id(result.job), None)
        if line is not None:
            self._bars.remove_task(line)
        self._update_total()

    def _update_total(self) -> None:
        total = self._sum.add_up()
        state = action.describe(total, self._prices)
        self._bars.update(self._total, completed=total.done, state=state)


def _title(job: Job) -> str:
    return f"{job.facts.task} {job.facts.model}"


def _print_line(title: str, progress: Progress, state: str) -> None:
    tell(f"{title}: {action.show_count(progress)} {state}".rstrip())
