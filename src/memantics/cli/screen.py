"""``memantics screen``, ``memantics drift`` and ``memantics build shards``: work on many memes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from memantics import moderation, workbench
from memantics.cli.expose import expose, save_page
from memantics.cli.progress import resumable
from memantics.cli.terminal import console, plain, show_table, tell
from memantics.models.progress import show_duration
from memantics.workbench import ShardsBuilt


def watch_shards() -> Callable[[moderation.ScaleProgress], None]:
    """Say how far it is, at once and then at most once a second: finished shards fly by."""
    said = -1.0

    def watch(now: moderation.ScaleProgress) -> None:
        nonlocal said
        if now.seconds - said >= 1 or now.rows == now.total:
            said = now.seconds
            _show_progress(now)

    return watch


def _show_progress(now: moderation.ScaleProgress) -> None:
    """Say how far it is, how fast, and how long it will take."""
    counts = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(now.statuses.items())
    )
    total = "" if now.total is None else f" of {now.total:,}"
    left = "" if now.left is None else f", {show_duration(now.left)} left"
    tell(f"{now.rows:,}{total} memes ({counts}), {now.rate:,.1f} a second{left}")


@contextmanager
def watch() -> Iterator[Mapping[str, Any]]:
    """Say how far the shards are."""
    with resumable():
        yield {"progress": watch_shards()}


def stop_at_failures(done: moderation.Screened | ShardsBuilt) -> None:
    """Exit code 1 where memes failed, and how to try them again."""
    if done.statuses.get("failed"):
        tell(f"failed: {done.statuses['failed']:,}; add --retry-failed to try again")
        raise typer.Exit(1)


@expose(moderation.screen, watch=watch, end=stop_at_failures, first=("detector", "out"))
def screen(done: moderation.Screened, review_range: tuple[float, float] | None) -> None:
    """Judge memes by the million: one row each, with probability, type and reasons.

    Running the same command again does only what is not finished. What cannot be judged says why.
    """
    out = console()
    counts = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in done.statuses.items()
    )
    out.print(plain(f"{done.rows:,} memes: {counts}"))
    out.print(
        plain(
            ", ".join(
                f"{count:,} {name.replace('_', ' ')}"
                for name, count in done.labels.items()
                if count
            )
        )
    )
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
    elif review_range:
        out.print("for people: nothing")
    if done.note:
        out.print(plain(done.note, "yellow"))


def _end(found: moderation.Drift) -> None:
    """Exit code 1 beyond the limits, for whatever watches."""
    if found.beyond:
        tell(f"beyond the limits: {', '.join(found.beyond)}")
        raise typer.Exit(1)


@expose(moderation.drift, save=save_page, end=_end)
def drift(found: moderation.Drift) -> None:
    """Say whether memes screened now differ from those screened then; exit code 1 if they do.

    Scores, verdicts, types, languages, rate of unseen n-grams and templates are compared, and
    p-values corrected for all of them (Holm). A shift counts where it is sure (--alpha) and large
    (--min-shift).
    """
    show_table(found.table)
    if found.note:
        tell(f"note: {found.note}")


@expose(
    workbench.build_shards,
    watch=watch,
    end=stop_at_failures,
    hide=("columns",),
    first=("product", "model", "out", "language", "detector", "workers"),
)
def build_shards(done: workbench.ShardsBuilt) -> None:
    """Analyses, knowledge or captions of memes, in shards over processes or a Ray cluster.

    Running the same command again does only what is not finished, and asks nothing twice.
    """
    counts = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(done.statuses.items())
    )
    console().print(plain(f"{done.rows:,} memes: {counts}; results: {done.file}"))
