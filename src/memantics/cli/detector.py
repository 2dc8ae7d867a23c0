"""``memantics detector``: train, measure, use, compare, export and explain detectors."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from memantics.actions import detect
from memantics.actions import detector_files as files
from memantics.actions import detector_verbs as verbs
from memantics.actions import study as action
from memantics.actions.learn import Learnt, learn
from memantics.actions.wrap import WrappedDetector, wrap_classifier
from memantics.cli import detector_neural, pairs, precedents
from memantics.cli.expose import AsJson, expose, spread
from memantics.cli.terminal import console, plain, print_json, print_lines, show_table, tell
from memantics.core.parameters import Argument, Flag

# ``memantics detector study``: variants × seeds × tasks in one command (extra ``detector``).


@expose(action.study, watch=lambda as_json: nullcontext({} if as_json else {"say": tell}))
def study(done: action.Study, out: Path) -> None:
    """Train many detectors alike, test each once, and compare them: the paper's Table 5.

    A validation part of the training memes ends each training; the test part decides nothing.
    Run again, it goes on where it stopped.
    """
    show_table(done.table())
    if done.contrasts:
        show_table(done.contrast_table())
    print_lines(f"note: {note}" for note in done.notes)
    where = f"{out / action.STUDY}; its tables: memantics paper NAME --detectors {out}"
    console().print(plain(where), soft_wrap=True)


app = typer.Typer(help="Detectors of harmful memes.", no_args_is_help=True)
app.command("train-neural")(detector_neural.train)
app.command("tune")(detector_neural.tune)
app.command("study")(study)
app.command("check")(pairs.check_pairs)
app.command("teach")(precedents.teach)
app.command("forget")(precedents.forget)
app.command("precedents")(precedents.precedents)
Page = Annotated[Path | None, Flag("Write a page with curve and error browser.")]


def watch_folds() -> nullcontext[dict[str, object]]:
    """Say which fold is done."""
    return nullcontext({"watch": lambda fold, total: tell(f"fold {fold} of {total}")})


@app.command("train")
@expose(
    verbs.train_detector,
    dump=lambda done: {"model": done.file, "card": done.card, "figures": done.figures},
    defaults={"split": "train"},
    first=("data", "preset", "out", "captions"),
)
def train(done: verbs.TrainedFile) -> None:
    """Train a detector, and write it with its model card."""
    print_lines(done.data.describe())
    show_evaluation(done.figures, "Held out inside training")
    size, card = done.file.stat().st_size / 1e6, done.card.name.removesuffix(".md")
    console().print(plain(f"{done.file} ({size:.1f} MB), card: {card}.md, {card}.json"))
    if done.detector.sample:
        console().print(plain(detect.SAMPLE_LIMIT, "dim"))


@app.command("wrap")
@expose(wrap_classifier)
def wrap(done: WrappedDetector) -> None:
    """Make a detector of a classifier from elsewhere (texts, images, or both), and write it."""
    if done.data is not None and done.figures is not None:
        print_lines(done.data.describe())
        show_evaluation(done.figures, "Held out of calibration")
    else:
        console().print(plain("not calibrated: add --data with labelled rows", "yellow"))
    shown = f"{done.file}: {done.architecture}, judges by {done.kind.replace('-', ' and ')}"
    console().print(plain(f"{shown}; card: {done.card.name}"))


@app.command("info")
@spread
def info(model: Annotated[Path, Argument("A detector file.")], as_json: AsJson = False) -> None:
    """Show a detector's model card: data, figures, errors by target, limits."""
    judge = detect.Detector.load(model)
    if as_json:
        print_json(dict(judge.card))
    else:
        print_lines(judge.show_card().splitlines())


@app.command("set")
@expose(files.set_point)
def set_point(done: files.PointSet) -> None:
    """Store how a detector decides wherever nobody says otherwise: threshold, range for people."""
    print_lines(done.lines)
    span = (
        "" if done.point.review is None else "; for people: {:g} to {:g}".format(*done.point.review)
    )
    console().print(plain(f"{done.file}: harmful from {done.point.threshold:.4g}{span}"))


def _end_learning(done: Learnt) -> None:
    if done.refused:
        tell(f"{done.file} was not written: {done.refused}; --force writes it all the same")
        raise typer.Exit(1)


@app.command("learn")
@expose(learn, watch=lambda: nullcontext({"watch": tell}), end=_end_learning)
def learn_from_people(done: Learnt) -> None:
    """Learn from people's verdicts beside the old labels, and replace a detector by a better one.

    Old and new are compared on a fixed part that is held out, and on the reviewed memes.
    """
    show_table(done.table())
    for name, lines in (("now right", done.better), ("now wrong", done.worse)):
        print_lines(f"{name}: {line}" for line in lines)
    print_lines(f"note: {note}" for note in done.notes)
    if not done.refused:
        console().print(plain(f"{done.file}: learnt from {done.learnt_from:,} memes"))


@app.command("use")
@spread
def use(
    model: Annotated[Path, Argument("A detector file or folder; 'sample' goes back.")],
) -> None:
    """Use a detector in analyze, screen and serve wherever none is named."""
    if str(model) == "sample" and not model.exists():
        files.forget_detector()
        console().print(plain("the sample detector of the starter pack is in use"))
    else:
        console().print(plain(f"in use: {files.use_detector(model)}"))


def _save_page(done: detect.Measured, page: Page = None) -> None:
    if page is not None:
        done.save(page)


@app.command("eval")
@expose(
    verbs.measure_detector,
    watch=watch_folds,
    save=_save_page,
    dump=lambda done: {
        "title": done.title,
        "notes": done.notes,
        "figures": done.figures,
        "robustness": done.robustness,
    },
)
def evaluate_detector(done: detect.Measured, page: Path | None) -> None:
    """Measure a detector file on labelled memes, or a preset by cross-validation."""
    show_measured(done)
    if done.robustness is not None:
        if done.robustness.evasions:
            show_table(done.robustness.table())
        print_lines(done.robustness.lines)
        for note in done.robustness.notes:
            console().print(plain(f"note: {note}", "dim"))
    if page is not None:
        console().print(plain(f"page: {page}"))


@app.command("predict")
@expose(verbs.predict_harm, dump=lambda done: done.harms)
def predict(done: verbs.Predicted, out: Path | None) -> None:
    """Judge texts, images, or memes from a file, with a trained detector."""
    print_lines(done.data.describe_skips())
    if done.blank:
        note = f"note: {done.blank:,} memes have no text: nothing speaks of them"
        console().print(plain(note, "dim"))
    for reason in sorted({prediction.unjudged for prediction in done.harms} - {""}):
        console().print(plain(f"unjudged: {reason}", "yellow"))
    if out is not None:
        console().print(plain(f"{len(done.harms):,} predictions: {out}"))
    else:
        show_table(files.tabulate(done.data.examples, done.harms))
        if len(done.harms) > 40:
            console().print(plain(f"{len(done.harms):,} in all; --json or --out gives every one"))
    if done.detector.sample:
        console().print(plain(done.detector.note, "dim"))


@app.command("compare")
@expose(verbs.compare_detectors, dump=lambda done: done.found)
def compare(done: verbs.Compared, first: Path, second: Path) -> None:
    """Compare two detectors on the same labelled memes, pair by pair."""
    print_lines(done.data.describe())
    for note in done.notes:
        console().print(plain(f"note: {note}", "yellow"))
    show_table(done.found.table(first.name, second.name))
    console().print(plain(done.found.summary))


@app.command("export")
@expose(files.export)
def export(done: files.ExportedDetector) -> None:
    """Write the single file that the other commands load without PyTorch."""
    console().print(plain(f"{done.file}: {done.bytes / 1e6:.1f} MB\nsha256 {done.sha256}"))


@app.command("explain")
@expose(verbs.explain_meme, dump=lambda done: done.found)
def explain(done: verbs.Explained, page: Path | None) -> None:
    """Show which characters, words and captions moved a decision."""
    _show_explanation(done.found)
    if done.detector.sample:
        console().print(plain(done.detector.note, "dim"))
    if page is not None:
        console().print(plain(f"page: {page}"))


def show_measured(done: detect.Measured) -> None:
    """The figures of a detector, with what belongs beside them."""
    print_lines(done.data.describe())
    for note in done.notes:
        console().print(plain(f"note: {note}", "yellow"))
    show_evaluation(done.figures, done.title)


def show_evaluation(found: detect.Evaluation | detect.LabelEvaluation, title: str) -> None:
    """All tables of an evaluation."""
    show_table(found.table(title))
    if isinstance(found, detect.Evaluation):
        show_table(found.threshold_table)
        if found.target_table is not None:
            show_table(found.target_table)
        error = f"calibration error {100 * found.calibration_error:.1f} points"
        console().print(plain(f"{found.count:,} memes; {error}"))


def _show_explanation(found: detect.Explanation) -> None:
    out = console()
    verdict, score = found.lines
    out.print(Text(verdict, "bold"))
    out.print(plain(score))
    for share in found.fields:
        line = Text(f"{share.field.replace('_', ' ')} {share.total:+.2f}  ", "dim")
        top = max(map(abs, share.characters), default=0.0) or 1.0
        for letter, value in zip(plain(share.text).plain, share.characters, strict=False):
            line.append(letter, _colour(value / top))
        out.print(line)
    show_table(found.table())
    out.print(plain(f"+ speaks for harm, - against; {found.sense}", "dim"))


def _colour(share: float) -> str:
    if abs(share) < 0.2:
        return ""
    strong = "bold " if abs(share) > 0.6 else ""
    return f"{strong}{'red' if share > 0 else 'green'}"
