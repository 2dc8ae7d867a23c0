"""The commands ``screen``, ``drift`` and ``build shards``, which process many memes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from memantics import moderation, workbench
from memantics.cli.expose import expose, save_page
from memantics.cli.progress import resumable
from memantics.cli.terminal import console, plain, print_lines, show_table, tell
from memantics.models.progress import show_duration
from memantics.workbench import ShardsBuilt


def watch_shards() -> Callable[[moderation.ScaleProgress], None]:
    """Return a callback that prints progress immediately, then at most once per second."""
    said = -1.0

    def watch(now: moderation.ScaleProgress) -> None:
        nonlocal said
        if now.seconds - said >= 1 or now.rows == now.total:
            said = now.seconds
            _show_progress(now)

    return watch


def _show_progress(now: moderation.ScaleProgress) -> None:
    """Print the progress, the rate and the remaining time."""
    counts = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(now.statuses.items())
    )
    total = "" if now.total is None else f" of {now.total:,}"
    left = "" if now.left is None else f", {show_duration(now.left)} left"
    tell(f"{now.rows:,}{total} memes ({counts}), {now.rate:,.1f} per second{left}")


@contextmanager
def watch() -> Iterator[Mapping[str, Any]]:
    """Print the progress of the shards (parts of the input)."""
    with resumable():
        yield {"progress": watch_shards()}


def stop_at_failures(done: moderation.Screened | ShardsBuilt) -> None:
    """Exit with code 1 if memes failed, and print how to retry them."""
    if done.statuses.get("failed"):
        tell(f"failed: {done.statuses['failed']:,}; add --retry-failed to process them again")
        raise typer.Exit(1)


@expose(moderation.screen, watch=watch, end=stop_at_failures, first=("detector", "out"))
def screen(done: moderation.Screened, review_range: tuple[float, float] | None) -> None:
    """Classify millions of memes: one row per meme, with probability, type and attributions.

    Running the same command again processes only unfinished memes. Items that cannot be scored
    include a reason.
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
        out.print(plain(f"{done.repeated:,} duplicate memes were scored once"))
    out.print(plain(f"verdicts: {done.folder / 'parts'}; summary: {done.summary}"))
    if done.saved:
        out.print(plain(f"{done.saved:,} flagged memes: {done.folder / 'flagged'}"))
    for line in done.decided:
        out.print(plain(line, "yellow" if line.startswith("warning") else ""))
    print_lines(f"note: {note}" for note in done.notes)
    if done.review_queue is not None:
        reasons = (f"{count:,} {reason}" for reason, count in done.review_reasons.items())
        print_lines([f"reasons for review: {'; '.join(reasons)}"])
        command = f"memantics annotate open {done.review_queue}"
        out.print(plain(f"needs human review: {done.queued:,} memes, {command}"))
    elif review_range:
        out.print("needs human review: none")
    if done.note:
        out.print(plain(done.note, "yellow"))


def _end(found: moderation.Drift) -> None:
    """Exit with code 1 if a limit is exceeded."""
    if found.beyond:
        tell(f"limits exceeded: {', '.join(found.beyond)}")
        raise typer.Exit(1)


@expose(moderation.drift, save=save_page, end=_end)
def drift(found: moderation.Drift) -> None:
    """Test whether the screened memes differ from earlier ones; exit code 1 if they do.

    It compares scores, verdicts, types, languages, unseen-n-gram rates and templates, with p-values
    corrected for all tests (Holm). A shift counts if it is significant (--alpha) and at least
    --min-shift.
    """
    show_table(found.table)
    if found.grown:
        tell(found.grown)
    if found.note:
        tell(f"note: {found.note}")


@expose(
    workbench.build_shards,
    watch=watch,
    end=stop_at_failures,
    first=("product", "model", "out", "language", "detector", "workers"),
)
def build_shards(done: workbench.ShardsBuilt) -> None:
    """Analyse or caption memes, or extract knowledge, in parallel shards (processes or Ray).

    Running the same command again processes only unfinished shards; no call is repeated.
    """
    counts = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(done.statuses.items())
    )
    console().print(plain(f"{done.rows:,} memes: {counts}; results: {done.file}"))
