"""``memantics classifier``: the verbs of ``detector`` for labels other than harm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics import moderation
from memantics.cli.detector import show_evaluation, show_measured, watch_folds
from memantics.cli.expose import expose, spread
from memantics.cli.terminal import console, plain, print_lines, show_table
from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag
from memantics.moderation import LabelExplanation, LabelInfo, Measured, list_labels, tabulate_labels

app = typer.Typer(
    help="Classifiers for any label: emotion, sentiment, intent, your own.", no_args_is_help=True
)


@app.command("train")
@expose(
    moderation.train_classifier,
    dump=lambda done: {"classifier": done.file, "in_use": done.in_use, "figures": done.figures},
    defaults={"split": "all"},
    hide=("labels", "types", "obfuscated"),
    first=("preset", "data", "split", "out"),
)
def train(done: moderation.TrainedFile) -> None:
    """Train a classifier, and write it with its model card."""
    print_lines(done.data.describe())
    show_evaluation(done.figures, "Held out inside training")
    use = f", in use for {done.detector.topic}" if done.in_use else ""
    console().print(plain(f"{done.file} ({done.file.stat().st_size / 1e6:.1f} MB){use}"))
    if done.detector.note:
        console().print(plain(done.detector.note, "dim"))


@app.command("eval")
@expose(
    moderation.measure_classifier,
    watch=watch_folds,
    dump=lambda done: {
        "data": done.data.name,
        "note": "; ".join(done.notes),
        "figures": done.figures,
    },
)
def evaluate(done: Measured) -> None:
    """Measure a classifier on labelled memes, or a preset by cross-validation over groups."""
    show_measured(done)


@app.command("predict")
@expose(moderation.predict_labels, dump=lambda done: done.labels)
def predict(done: moderation.Predicted, out: Path | None) -> None:
    """Give texts, images, or memes from a file their labels."""
    if out is not None:
        console().print(plain(f"{len(done.labels):,} predictions: {out}"))
    else:
        show_table(moderation.tabulate_predictions(done.data.examples, done.labels))
    if done.detector.note:
        console().print(plain(done.detector.note, "dim"))


@app.command("explain")
@expose(moderation.explain_meme_label)
def explain(found: LabelExplanation) -> None:
    """Show which words moved a classifier towards a label."""
    print_lines(found.lines)
    show_table(found.table())
    rest = f"against {found.against}" if found.against else "against it"
    console().print(plain(f"+ speaks for {found.label}, - {rest}", "dim"))


@app.command("labels")
@expose(list_labels)
def labels(known: list[LabelInfo]) -> None:
    """List the labels that benchmarks offer to learn."""
    show_table(tabulate_labels(known))


@app.command("use")
@spread
def use(
    model: Annotated[
        str | None, Argument("A file or NAME/LABEL. None: list those in use.", metavar="CLASSIFIER")
    ] = None,
    forget: Annotated[str, Flag("Use none for a topic.", metavar="TOPIC")] = "",
) -> None:
    """Use a classifier in analyze, reappraise, screen and embedded/reader."""
    if model and forget:
        raise InputError("a classifier and --forget do not go together", hint="give one of them")
    if forget:
        moderation.forget_classifier(forget)
    elif model:
        topic, place = moderation.use_classifier(model)
        console().print(plain(f"in use for {topic}: {place}"))
        return
    show_table(moderation.tabulate_used())
