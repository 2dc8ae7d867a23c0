"""``memantics screen``: images or texts in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from memantics.actions import screen as action
from memantics.actions.build_shards import ShardsBuilt
from memantics.actions.progress import show_duration
from memantics.cli.expose import expose
from memantics.cli.progress import resumable
from memantics.cli.terminal import console, plain, tell


def watch_shards() -> Callable[[action.ScaleProgress], None]:
    """Say how far it is, at once and then at most once a second: finished shards fly by."""
    said = -1.0

    def watch(now: action.ScaleProgress) -> None:
        nonlocal said
        if now.seconds - said >= 1 or now.rows == now.total:
            said = now.seconds
            _show_progress(now)

    return watch


def _show_progress(now: action.ScaleProgress) -> None:
    """Say how far it is, how fast, and how long it will take."""
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(now.statuses.items()))
    total = "" if now.total is None else f" of {now.total:,}"
    left = "" if now.left is None else f", {show_duration(now.left)} left"
    tell(f"{now.rows:,}{total} memes ({counts}), {now.rate:,.1f} a second{left}")


@contextmanager
def watch() -> Iterator[Mapping[str, Any]]:
    """Say how far the shards are."""
    with resumable():
        yield {"progress": watch_shards()}


def stop_at_failures(done: action.Screened | ShardsBuilt) -> None:
    """Exit code 1 where memes failed, and how to try them again."""
    if done.statuses.get("failed"):
        tell(f"failed: {done.statuses['failed']:,}; add --retry-failed to try again")
        raise typer.Exit(1)


@expose(action.screen, watch=watch, end=stop_at_failures, first=("detector", "out"))
def screen(done: action.Screened, review: tuple[float, float] | None) -> None:
    """Judge memes by the million: one row each, with probability, type and reasons.

    Running the same command again does only what is not finished. What cannot be judged says why.
    """
    out = console()
    counts = ", ".join(f"{count:,} {name}" for name, count in done.statuses.items())
    out.print(plain(f"{done.rows:,} memes: {counts}"))
    out.print(plain(", ".join(f"{count:,} {name}" for name, count in done.labels.items() if count)))
    if done.repeated:
        out.print(plain(f"{done.repeated:,} memes came twice and were judged once"))
    out.print(plain(f"verdicts: {done.folder / 'parts'}; summary: {done.summary}"))
    if done.saved:
        out.print(plain(f"{done.saved:,} flagged memes: {done.folder / 'flagged'}"))
    for line in done.decided:
        out.print(plain(line, "yellow" if line.startswith("warning") else ""))
    if done.review_queue is not None:
        command = f"memantics annotate open {done.review_queue}"
        out.print(plain(f"for people: {done.queued:,} memes, {command}"))
    elif review:
        out.print("for people: nothing")
    if done.note:
        out.print(plain(done.note, "yellow"))
