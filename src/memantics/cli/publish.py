"""``memantics publish``: a reviewed queue becomes a benchmark that runs, and a data set."""

from __future__ import annotations

from memantics.actions import publish as action
from memantics.cli.expose import expose
from memantics.cli.terminal import print_lines


@expose(action.publish)
def publish(done: action.Published, name: str) -> None:
    """Publish a reviewed queue: a benchmark folder, Parquet, Croissant and a data card.

    The folder runs at once: memantics run NAME. What people dropped stays out; nothing of the
    queue is changed.
    """
    print_lines([*done.lines(), f"next: memantics run {name} --model MODEL"])
