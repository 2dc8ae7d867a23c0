"""``memantics detector train-neural`` and ``memantics detector tune`` (extra ``detector``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from memantics.actions.asking import read_pairs
from memantics.actions.detector_data import RELEASE, STARTER, load_examples
from memantics.actions.train_networks import (
    Backbones,
    HoldOut,
    Language,
    Precision,
    Style,
    Target,
    TrainedNetwork,
    Training,
    TunedModel,
    TuneOptions,
    Tuning,
    Weighting,
    WriterOptions,
    plan_network,
    read_seeds,
    train_network,
    tune_intents,
    tune_model,
)
from memantics.cli.flags import AsJson, Options
from memantics.cli.terminal import console, plain, print_json, show_table
from memantics.core.errors import InputError

Data = Annotated[
    str | None,
    typer.Option(
        help=f"{STARTER}, {RELEASE} (the registered release), a benchmark that was published from"
        " votes on harm, a .csv, a .jsonl, or a folder of images with metadata. Default: the"
        " release if registered, else the starter pack."
    ),
]
Captions = Annotated[
    Path | None,
    typer.Option(
        help="JSON lines with id, text_caption and image_caption, such as 'build captions' writes:"
        " they take the place of the data's own."
    ),
]
Preset = Annotated[
    Literal["mke", "clip-mke", "fusion", "clip", "text", "image"],
    typer.Option(help="mke and clip-mke read captions, too; the others are their baselines."),
]
Integration = Annotated[
    Literal["attention", "pooled", "sum", "none"] | None,
    typer.Option(help="How captions join the text. Default: the preset's own."),
]
TextBackbone = Annotated[
    str | None,
    typer.Option(help="Folder of a text encoder, or scratch: small, random, made here."),
]
ImageBackbone = Annotated[Path | None, typer.Option(help="Folder of an image encoder.")]
ClipBackbone = Annotated[Path | None, typer.Option(help="Folder of a CLIP model.")]
FromScratch = Annotated[
    bool, typer.Option("--from-scratch", help="Take the folders' architectures, not their weights.")
]
Seeds = Annotated[str, typer.Option(help="Seeds, separated by commas; one detector each.")]


def train(
    data: Data = None,
    preset: Preset = "mke",
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("detector"),
    text_backbone: TextBackbone = None,
    image_backbone: ImageBackbone = None,
    clip_backbone: ClipBackbone = None,
    from_scratch: FromScratch = False,
    captions: Captions = None,
    integration: Integration = None,
    target: Annotated[Target, typer.Option(help="Two classes, or five types.")] = "harmful",
    seeds: Seeds = "0,1,2,3,4",
    epochs: Annotated[int, typer.Option(min=1)] = 10,
    batch: Annotated[int, typer.Option(min=1, help="Memes in a step, over all GPUs.")] = 32,
    accumulate: Annotated[int, typer.Option(min=1, help="Parts a step is computed in.")] = 1,
    rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-5,
    warmup: Annotated[float, typer.Option(help="Share of steps in which it rises.")] = 0.1,
    patience: Annotated[int, typer.Option(min=1, help="Idle epochs that end a training.")] = 3,
    weights: Annotated[Weighting, typer.Option(help="How rare classes are weighed.")] = "balanced",
    hold_out: Annotated[HoldOut, typer.Option(help="How validation memes are chosen.")] = "blocks",
    share: Annotated[float, typer.Option(help="Share of memes held out.")] = 0.1,
    length: Annotated[int, typer.Option(min=8, help="Most tokens of a text.")] = 80,
    precision: Annotated[Precision, typer.Option(help="auto: half on a GPU.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    save_every: Annotated[int, typer.Option(min=0, help="Steps between checkpoints.")] = 0,
    split: Annotated[str, typer.Option(help="Part of a release.")] = "train",
    labels: Annotated[Literal["v1", "v2"], typer.Option(help="Label version.")] = "v1",
    as_json: AsJson = False,
) -> None:
    """Train a network, every seed in one command; run again, it goes on where it stopped."""
    backbones = Backbones(text_backbone, image_backbone, clip_backbone, from_scratch)
    training = Training(
        seeds=read_seeds(seeds),
        epochs=epochs,
        batch=batch,
        accumulate=accumulate,
        rate=rate,
        warmup=warmup,
        patience=patience,
        weighting=weights,
        precision=precision,
        device=device,
        hold_out=hold_out,
        share=share,
        save_every=save_every,
    )
    plan = plan_network(preset, backbones, training, integration, target, length)
    read = load_examples(data, split, labels, captions)
    _show_trained(train_network(read, plan, out, _listen(as_json)), as_json)


def _show_trained(made: TrainedNetwork, as_json: bool) -> None:
    trained, left = made.trained, made.skips
    if not trained.first:
        return
    if as_json:
        print_json(made)
        return
    show_table(made.table())
    if left:
        first = f"first {left[0].row}: {left[0].reason}"
        console().print(plain(f"left out: {len(left)} memes, {first}"))
    folder = f"{trained.folder} (seed {trained.chosen})"
    console().print(plain(f"detector: {folder}, card: {made.card.name}"))


def _listen(as_json: bool) -> Callable[[str], None]:
    return (lambda _: None) if as_json else (lambda line: console().print(plain(line)))


Model = Annotated[Path, typer.Argument(help="Folder of a local model that sees.")]
AskedFor = Annotated[
    Literal["pun", "harm", "intent"],
    typer.Option(help="Whether a meme puns, whether it harms, or what its author does with it."),
]
Given = Annotated[
    Style | None,
    typer.Option(
        help="For pun and harm: the image alone, with its caption (default), or also reasons before"
        " a verdict."
    ),
]
Whose = Annotated[
    Literal["ours", "official"],
    typer.Option(
        "--wording", help="Ask about puns in our words, or in those of a PunMemeCN clone."
    ),
]
Cases = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="For harm: as in train-neural. For pun and intent: starter or release; for intent also"
        " a benchmark that was published from intents.",
    ),
]
External = Annotated[Path | None, typer.Option(help="Folder of memes of which none puns or harms.")]
Groups = Annotated[int | None, typer.Option(min=1, help="Groups to train on. Default: 500 of 653.")]
Merge = Annotated[bool, typer.Option("--merge", help="Also write a whole model, for local/PATH.")]
Asked = Annotated[
    Language | None, typer.Option(help="Of the questions. Default: that of most captions.")
]
Part = Annotated[str | None, typer.Option(help="For intent: the part of the data to learn from.")]


def tune(
    model: Model,
    question: AskedFor = "pun",
    style: Given = None,
    language: Asked = None,
    words: Whose = "ours",
    data: Cases = None,
    split: Part = None,
    option: Options = None,
    external: External = None,
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("tuned"),
    epochs: Annotated[int, typer.Option(min=1)] = 3,
    rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-6,
    batch: Annotated[int, typer.Option(min=1, help="Memes in a step.")] = 8,
    portion: Annotated[int, typer.Option(min=1, help="Memes that pass at once.")] = 1,
    rank: Annotated[int, typer.Option(min=1, help="Rank of the added matrices.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Of the split, the order and the start.")] = 0,
    train_groups: Groups = None,
    max_pixels: Annotated[int, typer.Option(min=0, help="Shrink larger images.")] = 0,
    merge: Merge = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Tune a local model by LoRA to tell puns or harm, or to write intents.

    Held-out memes judge it, before and after.
    """
    tuning = Tuning(
        seed=seed,
        epochs=epochs,
        batch=batch,
        portion=portion,
        rate=rate,
        rank=rank,
        alpha=2 * rank,
        device=device,
        max_pixels=max_pixels,
        train_groups=train_groups,
        merge=merge,
    )
    listen = _listen(as_json)
    if question == "intent":
        words_given = "official" if words == "official" else None
        others = {"--style": style, "--language": language, "--external": external}
        _refuse("intent", {**others, "--wording": words_given})
        given = read_pairs("--set", option)
        done = tune_intents(WriterOptions(model, tuning, out, data, split, given), listen)
    else:
        _refuse(question, {"--split": split, "--set": option})
        chosen = TuneOptions(
            model, tuning, out, question, style or "caption", language, data, external,
            words == "official",
        )  # fmt: skip
        done = tune_model(chosen, listen)
    _show_tuned(done, as_json)


def _show_tuned(done: TunedModel, as_json: bool) -> None:
    tuned = done.tuned
    if as_json:
        print_json(tuned)
        return
    show_table(tuned.table())
    if done.left_out:
        console().print(plain(f"left out: {done.left_out} memes without an image"))
    adapter = f"adapter: {tuned.folder / 'adapter'}, trained on {tuned.trained_on:,} memes"
    console().print(plain(f"{adapter}; card: CARD.md"))


def _refuse(question: str, given: Mapping[str, object]) -> None:
    """Say that a flag does not belong to what is learnt."""
    for flag, value in given.items():
        if value is not None:
            hint = "memes are put as memeintent/intent puts them: use --set"
            raise InputError(
                f"{flag} has no meaning with --question {question}",
                hint=hint if question == "intent" else "leave it out",
            )
