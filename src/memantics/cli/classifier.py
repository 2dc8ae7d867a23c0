"""``memantics classifier …``: train, evaluate and use classifiers for labels other than harm."""

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
    help="Train and use classifiers for any label: emotion, sentiment, intent, or your own.",
    no_args_is_help=True,
)


@app.command("train")
@expose(
    moderation.train_classifier,
    dump=lambda done: {"classifier": done.file, "in_use": done.in_use, "metrics": done.metrics},
    defaults={"split": "all"},
    hide=("labels", "types", "obfuscated", "counterfactual"),
    first=("preset", "data", "split", "out"),
)
def train(done: moderation.TrainedFile) -> None:
    """Train a classifier, and write it with its model card."""
    print_lines(done.data.describe())
    show_evaluation(done.metrics, "On memes held out in training")
    use = f", default for {done.detector.topic}" if done.in_use else ""
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
        "metrics": done.metrics,
    },
)
def evaluate(done: Measured) -> None:
    """Evaluate a classifier on labelled memes, or cross-validate a preset (a set of features)."""
    show_measured(done)


@app.command("eval-negative")
@expose(moderation.measure_negative)
def evaluate_gate(found: moderation.NegativeGate) -> None:
    """Measure how well the word lists and the built-in classifier recognise negative memes."""
    show_table(found.table())
    print_lines(found.notes)


@app.command("predict")
@expose(moderation.predict_labels, dump=lambda done: done.labels)
def predict(done: moderation.Predicted, out: Path | None) -> None:
    """Predict labels of texts, images, or memes from a file."""
    if out is not None:
        console().print(plain(f"{len(done.labels):,} predictions: {out}"))
    else:
        show_table(moderation.tabulate_predictions(done.data.examples, done.labels))
    if done.detector.note:
        console().print(plain(done.detector.note, "dim"))


@app.command("explain")
@expose(moderation.explain_meme_label)
def explain(found: LabelExplanation) -> None:
    """Show the words that contributed most to a predicted label."""
    print_lines(found.lines)
    show_table(found.table())
    rest = f"against {found.against}" if found.against else "against it"
    console().print(plain(f"+ supports {found.label}, - {rest}", "dim"))


@app.command("labels")
@expose(list_labels)
def labels(known: list[LabelInfo]) -> None:
    """List the labels of benchmarks that a classifier can be trained on."""
    show_table(tabulate_labels(known))


@app.command("use")
@spread
def use(
    model: Annotated[
        str | None,
        Argument(
            "Classifier file or NAME/LABEL. Default: list the active classifiers.",
            metavar="CLASSIFIER",
        ),
    ] = None,
    forget: Annotated[
        str, Flag("Topic for which to deactivate the classifier.", metavar="TOPIC")
    ] = "",
) -> None:
    """Set the classifier that 'analyze', 'screen' and the model embedded/reader use."""
    if model and forget:
        raise InputError("a classifier and --forget cannot be combined", hint="give one of them")
    if forget:
        moderation.forget_classifier(forget)
    elif model:
        topic, place = moderation.use_classifier(model)
        console().print(plain(f"default for {topic}: {place}"))
        return
    show_table(moderation.tabulate_used())
