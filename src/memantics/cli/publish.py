"""``memantics publish``: a reviewed queue becomes a benchmark that runs, and a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import publish as action
from memantics.cli import flags
from memantics.cli.terminal import print_json, print_lines

Queue = Annotated[
    Path,
    typer.Argument(help="A queue, a build folder that holds one, or a judged folder of memes."),
]
Name = Annotated[str, typer.Option(help="The name under which 'memantics run' finds it.")]
Licence = Annotated[str, typer.Option(help="Licence of the data, such as CC-BY-4.0.")]
Verdicts = Annotated[
    Path | None, typer.Option(help="The review's verdicts. Default: verdicts.jsonl in the queue.")
]
Title = Annotated[str | None, typer.Option(help="Title. Default: the queue's.")]
Summary = Annotated[str, typer.Option(help="One sentence on what it is.")]
Citation = Annotated[str, typer.Option(help="How to cite it.")]
Version = Annotated[str, typer.Option(help="Version of the data.")]
Out = Annotated[Path, typer.Option(help="The benchmark's folder is made in here.")]
Chats = Annotated[
    Path | None, typer.Option(help="Also the chats of this build, where puns are published.")
]
Unreviewed = Annotated[
    bool,
    typer.Option("--unreviewed", help="Let drafts through that nobody judged; the card says so."),
]
Shares = Annotated[
    str | None,
    typer.Option(help="Shares of a training and a test part, such as 8:2, by template family."),
]


Images = Annotated[
    bool,
    typer.Option(
        "--images/--no-images", help="Put the images in; without them, ids, names and checksums."
    ),
]


def publish(
    queue: Queue,
    name: Name,
    licence: Licence,
    verdicts: Verdicts = None,
    title: Title = None,
    summary: Summary = "",
    citation: Citation = "",
    version: Version = "1.0.0",
    out: Out = Path("published"),
    chats: Chats = None,
    unreviewed: Unreviewed = False,
    split: Shares = None,
    images: Images = True,
    as_json: flags.AsJson = False,
) -> None:
    """Publish a reviewed queue: a benchmark folder, Parquet, Croissant and a data card.

    The folder runs at once: memantics run NAME. What people dropped stays out; nothing of the
    queue is changed.
    """
    done = action.publish(
        queue,
        name=name,
        licence=licence,
        verdicts=verdicts,
        title=title,
        summary=summary,
        citation=citation,
        version=version,
        out=out,
        chats=chats,
        unreviewed=unreviewed,
        split=split,
        images=images,
    )
    if as_json:
        print_json(done)
        return
    print_lines([*done.lines(), f"next: memantics run {name} --model MODEL"])
