"""``memantics detector study``: variants × seeds × tasks in one command (extra ``detector``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from memantics.actions import study as action
from memantics.actions.train_networks import HoldOut, Precision, read_seeds
from memantics.cli.detector_neural import (
    Captions,
    ClipBackbone,
    Data,
    FromScratch,
    ImageBackbone,
    Seeds,
    TextBackbone,
)
from memantics.cli.flags import AsJson
from memantics.cli.terminal import console, plain, print_json, print_lines, show_table, tell

Variants = Annotated[
    list[str] | None,
    typer.Argument(
        help="FAMILY[+CAPTIONS][@WAY], such as fusion+both or clip+text@sum; paper, checks, or a"
        " preset of the fast detectors. Default: the paper's that the encoders allow, and fast."
    ),
]
ResnetBackbone = Annotated[Path | None, typer.Option(help="Folder of a ResNet.")]
Tasks = Annotated[
    Literal["both", "harmful", "type"], typer.Option(help="Two classes, five types, or both.")
]
Pooled = Annotated[
    Literal["mean", "first", "auto"],
    typer.Option(help="How tokens become a vector, in every network; auto mixes two ways."),
]


def study(
    variants: Variants = None,
    data: Data = None,
    test: Annotated[str | None, typer.Option(help="Test data, where they are apart.")] = None,
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("study"),
    text_backbone: TextBackbone = None,
    image_backbone: ImageBackbone = None,
    resnet_backbone: ResnetBackbone = None,
    clip_backbone: ClipBackbone = None,
    from_scratch: FromScratch = False,
    captions: Captions = None,
    tasks: Tasks = "both",
    against: Annotated[str, typer.Option(help="Compare all variants with this one.")] = "",
    seeds: Seeds = "0,1,2,3,4",
    epochs: Annotated[int | None, typer.Option(min=1, help="Default: the paper's.")] = None,
    rate: Annotated[float | None, typer.Option(help="Default: the paper's.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Memes in a step.")] = 32,
    patience: Annotated[int, typer.Option(min=1, help="Idle epochs that end a training.")] = 3,
    hold_out: Annotated[HoldOut, typer.Option(help="How validation memes are chosen.")] = "blocks",
    share: Annotated[float, typer.Option(help="Share of memes held out.")] = 0.1,
    pooling: Pooled = "mean",
    precision: Annotated[Precision, typer.Option(help="auto: half on a GPU.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    labels: Annotated[Literal["v1", "v2"], typer.Option(help="Label version.")] = "v1",
    as_json: AsJson = False,
) -> None:
    """Train many detectors alike, test each once, and compare them: the paper's Table 5.

    A validation part of the training memes ends each training; the test part decides nothing.
    Run again, it goes on where it stopped.
    """
    settings = action.StudySettings(
        test=test,
        labels=labels,
        captions=captions,
        text_backbone=text_backbone,
        image_backbone=image_backbone,
        resnet_backbone=resnet_backbone,
        clip_backbone=clip_backbone,
        from_scratch=from_scratch,
        tasks=tasks,
        against=against,
        seeds=read_seeds(seeds),
        epochs=epochs,
        rate=rate,
        batch=batch,
        patience=patience,
        hold_out=hold_out,
        share=share,
        pooling=pooling,
        precision=precision,
        device=device,
    )
    say = None if as_json else tell
    done = action.study(variants or (), data=data, out=out, settings=settings, say=say)
    if as_json:
        print_json(done)
    else:
        _show(done, out)


def _show(done: action.Study, out: Path) -> None:
    show_table(done.table())
    if done.contrasts:
        show_table(done.contrast_table())
    print_lines(f"note: {note}" for note in done.notes)
    where = f"{out / action.STUDY}; its tables: memantics paper NAME --detectors {out}"
    console().print(plain(where), soft_wrap=True)
