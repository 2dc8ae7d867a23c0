"""``memantics build shards``: analyses, knowledge or captions of any number of memes."""

from __future__ import annotations

from memantics.actions import build_shards as action
from memantics.cli.expose import expose
from memantics.cli.screen import stop_at_failures, watch
from memantics.cli.terminal import console, plain


@expose(
    action.build_shards,
    watch=watch,
    end=stop_at_failures,
    hide=("columns",),
    first=("product", "model", "out", "language", "detector", "workers"),
)
def build_shards(done: action.ShardsBuilt) -> None:
    """Analyses, knowledge or captions of memes, in shards over processes or a Ray cluster.

    Running the same command again does only what is not finished, and asks nothing twice.
    """
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(done.statuses.items()))
    console().print(plain(f"{done.rows:,} memes: {counts}; results: {done.file}"))
