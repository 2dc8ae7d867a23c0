"""``memantics expert``: train, measure, ask, explain and use experts for any label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from memantics.actions import expert as experts
from memantics.actions.expert_data import find_labelled, list_labels, tabulate_labels
from memantics.cli.flags import AsJson
from memantics.cli.terminal import console, plain, print_json, print_lines, show_table, tell
from memantics.core.errors import InputError

app = typer.Typer(
    help="Experts for any label: emotion, sentiment, intent, your own.", no_args_is_help=True
)

Label = Annotated[
    str,
    typer.Argument(
        metavar="NAME/LABEL", help="Such as mer_bench/emotion, or memes.csv/COLUMN of your own."
    ),
]
Model = Annotated[
    str, typer.Argument(metavar="EXPERT", help="A file, or NAME/LABEL that was trained here.")
]
Preset = Annotated[
    str, typer.Option(help="auto, fast, words, linear, ridge, full or words-full (with meanings).")
]
Kind = Annotated[
    Literal["starter", "release"] | None,
    typer.Option("--data", help="Default: the registered release, else the starter sample."),
]
Part = Annotated[str, typer.Option("--split", help="Part of a release, or all.")]
Encoder = Annotated[Path | None, typer.Option("--embedder", help="Folder of a text encoder.")]
Pictures = Annotated[
    Path | None,
    typer.Option("--image-encoder", help="Folder of a vision model (CLIP, SigLIP) for pictures."),
]
Captions = Annotated[
    Path | None,
    typer.Option(help="JSON lines with id, text_caption and image_caption, by any model."),
]


@app.command("train")
def train(
    label: Label,
    preset: Preset = experts.AUTO,
    data: Kind = None,
    split: Part = "all",
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write. Default: where NAME/LABEL finds it, and in use."),
    ] = None,
    embedder: Encoder = None,
    pictures: Pictures = None,
    captions: Captions = None,
    as_json: AsJson = False,
) -> None:
    """Train an expert, and write it with its model card."""
    options = experts.ExpertOptions(preset, split, data, embedder, pictures, captions)
    made = experts.Expert.train(label, options)
    place = made.save(out)
    # Other commands have no way to name the folder of a model.
    used = out is None and not made.sample and embedder is pictures is None
    if used:
        experts.use_expert(place)
    if as_json:
        print_json({"expert": str(place), "in_use": used, "figures": made.held_out})
        return
    assert made.trained_on is not None
    assert made.held_out is not None
    print_lines(made.trained_on.describe())
    show_table(made.held_out.table("Held out inside training"))
    use = f", in use for {made.topic}" if used else ""
    console().print(plain(f"{place} ({place.stat().st_size / 1e6:.1f} MB){use}"))
    if made.note:
        console().print(plain(made.note, "dim"))


@app.command("eval")
def evaluate(
    label: Label,
    model: Annotated[
        str | None,
        typer.Option("--expert", help="A file or NAME/LABEL. None: cross-validate a preset."),
    ] = None,
    preset: Preset = experts.AUTO,
    data: Kind = None,
    split: Part = "all",
    folds: Annotated[int, typer.Option(min=2, help="Without an expert: folds of groups.")] = 5,
    embedder: Encoder = None,
    pictures: Pictures = None,
    captions: Captions = None,
    as_json: AsJson = False,
) -> None:
    """Measure an expert on labelled memes, or a preset by cross-validation over groups."""
    note = ""
    if model is None:
        loaded = find_labelled(label, data=data, split=split, captions=captions)
        options = experts.ExpertOptions(preset, split, data, embedder, pictures)
        found = experts.cross_validate(
            loaded, options, folds, lambda done, total: tell(f"fold {done} of {total}")
        )
    else:
        judge = experts.Expert.load(model, embedder, pictures)
        loaded = find_labelled(
            label, data=data, split=split, classes=judge.classes, captions=captions
        )
        found = judge.evaluate(loaded)
        note = experts.SEEN if judge.has_seen(loaded) else ""
    if as_json:
        print_json({"data": loaded.name, "note": note, "figures": found})
        return
    print_lines(loaded.describe())
    if note:
        console().print(plain(f"note: {note}", "yellow"))
    show_table(found.table(model or f"{folds} folds of groups"))


@app.command("predict")
def predict(
    model: Model,
    texts: Annotated[list[str], typer.Argument(help="Texts, or image files to read.")],
    embedder: Encoder = None,
    pictures: Pictures = None,
    as_json: AsJson = False,
) -> None:
    """Give texts or images their labels."""
    judge = experts.Expert.load(model, embedder, pictures)
    said = judge.predict(texts)
    if as_json:
        print_json(said)
        return
    show_table(experts.tabulate_predictions(texts, said))
    if judge.note:
        console().print(plain(judge.note, "dim"))


@app.command("explain")
def explain(
    model: Model,
    text: Annotated[str, typer.Argument(help="The text on a meme, or an image file.")],
    label: Annotated[str, typer.Option(help="Towards which label. Default: the likeliest.")] = "",
    embedder: Encoder = None,
    pictures: Pictures = None,
    as_json: AsJson = False,
) -> None:
    """Show which words moved an expert towards a label."""
    found = experts.Expert.load(model, embedder, pictures).explain(text, label)
    if as_json:
        print_json(found)
        return
    print_lines(found.lines)
    show_table(found.table())
    rest = f"against {found.against}" if found.against else "against it"
    console().print(plain(f"+ speaks for {found.label}, - {rest}", "dim"))


@app.command("labels")
def labels(as_json: AsJson = False) -> None:
    """List the labels that benchmarks offer to learn."""
    known = list_labels()
    if as_json:
        print_json(known)
        return
    show_table(tabulate_labels(known))


@app.command("use")
def use(
    model: Annotated[
        str | None,
        typer.Argument(metavar="EXPERT", help="A file or NAME/LABEL. None: list those in use."),
    ] = None,
    forget: Annotated[str, typer.Option(metavar="TOPIC", help="Use none for a topic.")] = "",
) -> None:
    """Use an expert in analyze, reappraise, screen and embedded/reader."""
    if model and forget:
        raise InputError("an expert and --forget do not go together", hint="give one of them")
    if forget:
        experts.forget_expert(forget)
    elif model:
        topic, place = experts.use_expert(model)
        console().print(plain(f"in use for {topic}: {place}"))
        return
    show_table(experts.tabulate_used())
