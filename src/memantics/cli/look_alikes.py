"""``memantics build look-alikes``: PunMemeCN's groups of three."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import look_alikes as action
from memantics.cli import flags
from memantics.cli.build_drafts import ImageFolder, TextFolder
from memantics.cli.terminal import console, plain, print_json

Queue = Annotated[Path, typer.Argument(help="A queue judged by the workflow pun-form.")]
Verdicts = Annotated[
    Path | None, typer.Option(help="Verdicts. Default: verdicts.jsonl in the queue.")
]


def group_memes(
    queue: Queue,
    verdicts: Verdicts = None,
    text_encoder: TextFolder = None,
    image_encoder: ImageFolder = None,
    as_json: flags.AsJson = False,
) -> None:
    """Give each pun two look-alikes: the non-puns nearest in picture and in words."""
    done = action.group_look_alikes(
        queue, verdicts=verdicts, text_encoder=text_encoder, image_encoder=image_encoder
    )
    if as_json:
        print_json(done)
        return
    console().print(plain(f"{len(done.groups)} groups of three: {done.file}"), soft_wrap=True)
