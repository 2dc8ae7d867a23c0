"""``memantics detector train-neural`` and ``memantics detector tune`` (extra ``detector``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from memantics.actions.detector_data import RELEASE, STARTER, load_examples
from memantics.benchmarks.punmemecn import load as punmemecn
from memantics.cli.flags import AsJson
from memantics.cli.terminal import console, plain, print_json, table
from memantics.core.data import Skip
from memantics.core.errors import InputError
from memantics.core.memes import read_memes
from memantics.core.registry import read_registry
from memantics.detector import lora, neural
from memantics.detector.examples import Loaded, keep_typed
from memantics.detector.lora.card import write_card as write_tuned_card
from memantics.detector.neural.card import write_card
from memantics.detector.neural.parts import fold_text
from memantics.detector.neural.seeds import summarise
from memantics.detector.neural.settings import HoldOut, Precision, Target, Weighting
from memantics.registry import find_benchmark, find_source

Data = Annotated[
    str | None,
    typer.Option(
        help=f"{STARTER}, {RELEASE} (the registered release), a .csv, a .jsonl, or a folder of"
        " images with metadata. Default: the release if registered, else the starter pack."
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
    backbones = neural.Backbones(text_backbone, image_backbone, clip_backbone, from_scratch)
    neural.check_backbones(preset, backbones)
    shape = neural.choose_shape(preset, integration, target, length)
    training = neural.Training(
        seeds=_read_seeds(seeds),
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
    loaded = _load(data, split, labels, target)
    plan = neural.Plan(backbones, shape, training)
    trained = neural.train_neural(loaded, plan, out, _listen(as_json))
    if not trained.first:
        return
    card = write_card(trained, loaded)
    if as_json:
        found = summarise(trained.seeds)
        print_json({"detector": str(out), "chosen": trained.chosen, "figures": found})
        return
    _show_figures(summarise(trained.seeds))
    _show_skips((*loaded.skips, *trained.skips))
    console().print(plain(f"detector: {out} (seed {trained.chosen}), card: {card.name}"))


def _load(data: str | None, split: str, labels: str, target: Target) -> Loaded:
    loaded = load_examples(data, split, labels)
    return keep_typed(loaded) if target == "type" else loaded


def _read_seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--seeds {text} is not possible", hint="such as 0,1,2") from None


def _listen(as_json: bool) -> Any:
    return (lambda _: None) if as_json else (lambda line: console().print(plain(line)))


def _show_figures(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    made = table([("part", "left"), ("figure", "left"), ("mean", "right"), ("sd", "right")])
    for part, figures in found.items():
        for name, spread in figures.items():
            shown = f"{100 * spread['mean']:.2f}", f"{100 * spread['sd']:.2f}"
            made.add_row(part, name, *shown)
    console().print(made)


def _show_skips(skips: Iterable[Skip]) -> None:
    left = list(skips)
    if left:
        console().print(
            plain(f"left out: {len(left)} memes, first {left[0].row}: {left[0].reason}")
        )


Model = Annotated[Path, typer.Argument(help="Folder of a local model that sees.")]
Question = Annotated[lora.Question, typer.Option(help="Whether a meme puns, or whether it harms.")]
Style = Annotated[
    lora.Style,
    typer.Option(help="The image alone, with its caption, or also reasons before a verdict."),
]
Cases = Annotated[
    str | None,
    typer.Option("--data", help="For harm: as in train-neural. For pun: starter or release."),
]
External = Annotated[Path | None, typer.Option(help="Folder of memes of which none puns or harms.")]
Groups = Annotated[int | None, typer.Option(min=1, help="Groups to train on. Default: 500 of 653.")]
Merge = Annotated[bool, typer.Option("--merge", help="Also write a whole model, for local/PATH.")]


def tune(
    model: Model,
    question: Question = "pun",
    style: Style = "caption",
    language: Annotated[lora.Language, typer.Option(help="Of the questions.")] = "zh",
    data: Cases = None,
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
    """Tune a local model by LoRA to tell puns or harm; held-out groups judge it."""
    cases, origin = _pun_cases(data) if question == "pun" else _harm_cases(data)
    usable = tuple(case for case in cases if case.image is not None)
    if not usable:
        raise InputError("no meme of the data has an image", hint="add the images to the data")
    tuning = lora.Tuning(
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
    outside = () if external is None else _external_cases(external)
    wording = lora.Wording(question, style, language)
    tuned = lora.tune(model, usable, wording, tuning, out, lora.Tools(outside, _listen(as_json)))
    write_tuned_card(tuned, model, (wording, tuning), origin)
    if as_json:
        print_json(asdict(tuned))
        return
    _show_rates(tuned, len(cases) - len(usable))


def _show_rates(tuned: lora.Tuned, left: int) -> None:
    made = table([("memes", "left"), ("n", "right"), *_RATES, ("unparsed", "right")])
    parts = {"held out, before": tuned.before, "held out, after": tuned.after}
    if tuned.external is not None:
        parts["external, after"] = tuned.external
    for name, rates in parts.items():
        shown = (rates.tpr, rates.tnr, rates.f1, rates.macro_f1)
        cells = ("–" if value is None else f"{value:.3f}" for value in shown)
        made.add_row(name, f"{rates.memes:,}", *cells, str(rates.unparsed))
    console().print(made)
    if left:
        console().print(plain(f"left out: {left} memes without an image"))
    console().print(
        plain(
            f"adapter: {tuned.folder / 'adapter'}, trained on {tuned.trained_on:,} memes;"
            " card: CARD.md"
        )
    )


_RATES: tuple[tuple[str, Literal["left", "right"]], ...] = (
    ("TPR", "right"),
    ("TNR", "right"),
    ("F1", "right"),
    ("macro-F1", "right"),
)


Origin = tuple[str, str]


def _pun_cases(data: str | None) -> tuple[tuple[lora.Case, ...], Origin]:
    """PunMemeCN's groups, a pun and the two memes that were made from it; and whose they are."""
    if data not in (None, STARTER, "release", "punmemecn"):
        raise InputError(f"puns cannot be read from {data}", hint="use starter or release")
    benchmark = find_benchmark("punmemecn")
    known = "punmemecn" in read_registry()
    kind: Literal["starter", "release"] = (
        "starter" if data == STARTER or (data is None and not known) else "release"
    )
    memes = punmemecn.open_release(find_source(benchmark, kind)).memes
    card = benchmark.card.release
    licence = card.licence if card is not None and kind == "release" else ""
    cases = tuple(
        lora.Case(meme.id, meme.group, meme.is_pun, meme.caption, meme.explanation, meme.image)
        for meme in memes
    )
    named = ("PunMemeCN", licence or "not said") if kind == "release" else (STARTER, "CC0-1.0")
    return cases, named


def _harm_cases(data: str | None) -> tuple[tuple[lora.Case, ...], Origin]:
    """Memes with a label, each a group of its own, equal texts together; and whose they are."""
    loaded = load_examples(data)
    cases = tuple(
        lora.Case(
            example.id,
            fold_text(example.text) or example.id,
            bool(example.label),
            example.text,
            " ".join((example.image_caption, example.text_caption)).strip(),
            example.image,
        )
        for example in loaded.examples
        if example.label is not None
    )
    return cases, (loaded.name, loaded.licence)


def _external_cases(folder: Path) -> tuple[lora.Case, ...]:
    return tuple(
        lora.Case(meme.id, meme.id, False, meme.text, "", meme.image) for meme in read_memes(folder)
    )
