"""``memantics screen``: images or texts in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from memantics.actions import screen as action
from memantics.actions.progress import show_duration
from memantics.cli import flags
from memantics.cli.progress import resumable
from memantics.cli.terminal import console, plain, print_json, tell

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE…",
        help="Images, folders, .jsonl/.csv/.parquet tables, .tar shards; - reads JSON lines.",
    ),
]
DetectorFile = Annotated[
    Path | None,
    typer.Option(help="A detector file. Default: a tiny one of the starter pack, to try things."),
]
Out = Annotated[Path, typer.Option(help="Folder of the verdicts.")]
Threshold = Annotated[float | None, typer.Option(help="Probability from which a meme is harmful.")]
Decide = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="Choose the threshold on the detector's held-out memes: precision=0.9, recall=0.8.",
    ),
]
Review = Annotated[
    str, typer.Option(metavar="LOW..HIGH", help="Probabilities that people are to look at.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Say what moved each flagged meme.")]
Readings = Annotated[
    action.Readings,
    typer.Option(help="Which Chinese texts to listen to for hidden words (10 to 100 ms each)."),
]
Ocr = Annotated[action.Profile, typer.Option(help="How images are read where no text is given.")]
Templates = Annotated[
    Path | None, typer.Option(help="A folder that 'collect' listed: its families are known.")
]
IdColumn = Annotated[str, typer.Option(help="Column of the ids in tables.")]
ImageColumn = Annotated[str, typer.Option(help="Column of image paths or bytes.")]
TextColumn = Annotated[str, typer.Option(help="Column of texts.")]
Workers = Annotated[int, typer.Option(min=0, help="Processes. Default: one for each core.")]
EngineName = Annotated[
    Literal["pool", "ray"], typer.Option("--engine", help="Processes here, or a Ray cluster.")
]
Address = Annotated[str | None, typer.Option(help="Address of a Ray cluster.")]
ShardSize = Annotated[
    int,
    typer.Option(
        min=0, max=100_000, help="Memes in one part. 0: 1,000, or 100 where images are read."
    ),
]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Also try failed memes again.")]
Save = Annotated[
    action.Format | None,
    typer.Option(help="Also copy flagged memes: tar shards, or a folder that datasets reads."),
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Also write verdicts.csv.")]


def screen(
    sources: Sources,
    detector: DetectorFile = None,
    out: Out = Path("screened"),
    threshold: Threshold = None,
    decide: Decide = "",
    review: Review = "",
    explain: Explain = False,
    readings: Readings = "flagged",
    ocr: Ocr = "fast",
    templates: Templates = None,
    id_column: IdColumn = "",
    image_column: ImageColumn = "",
    text_column: TextColumn = "",
    workers: Workers = 0,
    engine: EngineName = "pool",
    address: Address = None,
    shard_size: ShardSize = 0,
    retry_failed: Retry = False,
    csv: AsCsv = False,
    save: Save = None,
    as_json: flags.AsJson = False,
) -> None:
    """Judge memes by the million: one row each, with probability, type and reasons.

    Running the same command again does only what is not finished. What cannot be judged says why.
    """
    settings = action.ScreenSettings(
        detector, threshold, decide, action.read_range(review), explain, readings, ocr, templates
    )
    with resumable():
        done = action.screen(
            sources,
            settings,
            out=out,
            columns=action.TableColumns(id_column, image_column, text_column),
            engine=action.open_engine(engine, workers, address),
            shard_size=shard_size,
            retry_failed=retry_failed,
            csv=csv,
            save=save,
            progress=watch_shards(),
        )
    if as_json:
        print_json(done)
    else:
        _show(done, asked=bool(review))
    if done.statuses["failed"]:
        tell(f"failed: {done.statuses['failed']:,}; add --retry-failed to try again")
        raise typer.Exit(1)


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


def _show(done: action.Screened, *, asked: bool) -> None:
    out = console()
    counts = ", ".join(f"{count:,} {name}" for name, count in done.statuses.items())
    out.print(plain(f"{done.rows:,} memes: {counts}"))
    out.print(plain(", ".join(f"{count:,} {name}" for name, count in done.labels.items() if count)))
    if done.repeated:
        out.print(plain(f"{done.repeated:,} memes came twice and were judged once"))
    out.print(plain(f"verdicts: {done.folder / 'parts'}; summary: {done.summary}"))
    if done.saved:
        out.print(plain(f"{done.saved:,} flagged memes: {done.folder / 'flagged'}"))
    if done.review_queue is not None:
        out.print(plain(f"for people: memantics annotate {done.review_queue}"))
    elif asked:
        out.print("for people: nothing")
    if done.note:
        out.print(plain(done.note, "yellow"))
