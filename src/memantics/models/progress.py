"""Progress of runs and clients: added up and formatted as text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any, Literal

from memantics.models.engine import Progress

ProgressWish = Callable[[Progress], None] | Literal["bar"] | None


def add_progress(parts: Iterable[Progress]) -> Progress:
    """Add the counters of runs or clients that work in parallel.

    Counts are added; durations and pauses are the longest of all clients.

    >>> add_progress([Progress(done=2, total=4, seconds=3.0), Progress(done=1)]).done
    3
    """
    listed = list(parts)
    numbers: dict[str, Any] = {
        field.name: sum(getattr(part, field.name) or 0 for part in listed)
        for field in fields(Progress)
        if field.name != "adapted"
    }
    return replace(
        Progress(**numbers),
        total=numbers["total"] or None,
        seconds=max((part.seconds for part in listed), default=0.0),
        paused=max((part.paused for part in listed), default=0.0),
        adapted=tuple(dict.fromkeys(line for part in listed for line in part.adapted)),
    )


def describe(progress: Progress, prices: tuple[float, float] | None = None) -> str:
    """Describe rate, remaining time, tokens and failures of a run in a few words.

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


def describe_shortly(progress: Progress) -> str:
    """Describe rate and failures of one run; the line of the total shows the rest."""
    words = [f"{progress.rate:.1f}/s"]
    words += [f"{progress.failed} failed"] if progress.failed else []
    words += [f"wait {progress.paused:.0f} s"] if progress.paused > 0 else []
    return ", ".join(words)


def foretell(progress: Progress, prices: tuple[float, float] | None = None) -> str:
    """Describe the expected tokens and cost of a dataset build before it starts.

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
    """Format a duration in hours, minutes and seconds.

    >>> show_duration(59.9), show_duration(3661)
    ('0:59', '1:01:01')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def show_count(progress: Progress) -> str:
    """Format the number of finished items and the total; an estimate that is too small is raised.

    >>> show_count(Progress(done=3, total=40)), show_count(Progress(done=71, total=40))
    ('3/40', '71/71')
    """
    if progress.total is None:
        return str(progress.done)
    return f"{progress.done}/{max(progress.total, progress.done)}"


def read_wish(wish: ProgressWish) -> Callable[[Progress], None]:
    """Return the progress callback for a setting; ``"bar"`` updates one line on standard error."""
    if callable(wish):
        return wish
    return _draw_bar if wish == "bar" else lambda _: None


def _draw_bar(progress: Progress, width: int = 24) -> None:
    share = progress.done / progress.total if progress.total else 0.0
    filled = int(width * min(share, 1.0))
    line = f"{'█' * filled}{'·' * (width - filled)} {show_count(progress)} {describe(progress)}"
    sys.stderr.write(f"\r{line[:110]:<110}" + ("\n" if share >= 1 else ""))
    sys.stderr.flush()
