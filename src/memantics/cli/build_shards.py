"""``memantics build shards``: analyses, knowledge or captions of any number of memes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import build_shards as action
from memantics.actions.asking import Asking
from memantics.actions.screen import open_engine
from memantics.cli import flags
from memantics.cli.progress import resumable
from memantics.cli.screen import Address, EngineName, Retry, Sources, Workers, watch_shards
from memantics.cli.terminal import console, plain, print_json, tell

What = Annotated[action.Product, typer.Option(help="What is made of each meme.")]
ModelName = Annotated[
    str | None, typer.Option("--model", "-m", help="KIND/NAME of the model that is asked.")
]
Language = Annotated[str, typer.Option(help="Language of what the model writes.")]
DetectorFile = Annotated[Path | None, typer.Option(help="A detector file, for analyses.")]
Out = Annotated[Path, typer.Option(help="Folder of the parts and of the file of results.")]
ShardSize = Annotated[int, typer.Option(min=1, max=10_000, help="Memes in one part.")]


@flags.asks_models()
def build_shards(
    sources: Sources,
    what: What = "analysis",
    model: ModelName = None,
    out: Out = Path("shards"),
    language: Language = "",
    detector: DetectorFile = None,
    workers: Workers = 0,
    engine: EngineName = "pool",
    address: Address = None,
    shard_size: ShardSize = 50,
    retry_failed: Retry = False,
    as_json: flags.AsJson = False,
    *,
    asking: Asking,
) -> None:
    """Analyses, knowledge or captions of memes, in shards over processes or a Ray cluster.

    Running the same command again does only what is not finished, and asks nothing twice.
    """
    with resumable():
        done = action.build_shards(
            sources,
            action.ShardSettings(what, model, language, detector, asking),
            out=out,
            engine=open_engine(engine, workers, address),
            shard_size=shard_size,
            retry_failed=retry_failed,
            progress=watch_shards(),
        )
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(done.statuses.items()))
    if as_json:
        print_json(done)
    else:
        console().print(plain(f"{done.rows:,} memes: {counts}; results: {done.file}"))
    if done.statuses.get("failed"):
        tell(f"failed: {done.statuses['failed']:,}; add --retry-failed to try again")
        raise typer.Exit(1)
