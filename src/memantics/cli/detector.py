"""``memantics detector``: train, measure, use, compare, export and explain detectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from memantics.actions import detect
from memantics.actions import detector_files as files
from memantics.actions.cross_validation import Validation, validate_preset
from memantics.actions.detect import Evaluation, Example, Explanation, Loaded, Robustness
from memantics.actions.detector_data import (
    describe_loaded,
    describe_skips,
    find_example,
    load_examples,
)
from memantics.cli import detector_neural, detector_study
from memantics.cli.detector_neural import Captions, Data
from memantics.cli.flags import AsJson
from memantics.cli.terminal import console, plain, print_json, print_lines, show_table, tell
from memantics.core.errors import InputError

app = typer.Typer(help="Detectors of harmful memes.", no_args_is_help=True)
app.command("train-neural")(detector_neural.train)
app.command("tune")(detector_neural.tune)
app.command("study")(detector_study.study)

Part = Annotated[str, typer.Option("--split", help="Part of a release: train, test or all.")]
Labels = Annotated[Literal["v1", "v2"], typer.Option(help="Label version of ToxiCN MM.")]
Preset = Annotated[
    str,
    typer.Option(
        help="auto (by language), fast, words, linear, ridge, readings, static, full or words-full"
        " (with meanings)."
    ),
]
Inner = Annotated[
    Literal["random", "blocks"],
    typer.Option(help="How examples are held out inside training, to calibrate and choose."),
]
Heads = Annotated[
    Literal["flat", "hierarchical"],
    typer.Option("--types", help="Types beside the decision (flat) or after it (hierarchical)."),
]
Ocr = Annotated[bool, typer.Option("--ocr", help="Read the images and use what they say.")]
Pixels = Annotated[bool, typer.Option("--image-statistics", help="Add light, colour and edges.")]
Augment = Annotated[float, typer.Option(min=0, max=1, help="Share of examples to add in disguise.")]
Encoder = Annotated[
    Path | None,
    typer.Option("--embedder", help="Folder of a text encoder, for meanings by another one."),
]
ModelFile = Annotated[Path, typer.Argument(help="A detector file.")]
Page = Annotated[Path | None, typer.Option(help="Write a page with curve and error browser.")]


@app.command("train")
def train(
    data: Data = None,
    preset: Preset = "fast",
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("detector.zip"),
    captions: Captions = None,
    split: Part = "train",
    labels: Labels = "v1",
    inner: Inner = "random",
    types: Heads = "flat",
    ocr: Ocr = False,
    image_statistics: Pixels = False,
    disguised: Augment = 0.0,
    embedder: Encoder = None,
    as_json: AsJson = False,
) -> None:
    """Train a detector, and write it with its model card."""
    chosen = detect.TrainOptions(
        split, labels, inner, types, ocr, image_statistics, disguised, embedder
    )
    made = detect.Detector.train(load_examples(data, split, labels, captions), preset, chosen)
    made.save(out)
    cards = files.place_card(out)
    if as_json:
        print_json({"model": str(out), "card": str(cards[0]), "figures": made.held_out})
        return
    assert made.trained_on is not None
    assert made.held_out is not None
    print_lines(describe_loaded(made.trained_on))
    _show_evaluation(made.held_out, "Held out inside training")
    size = out.stat().st_size / 1e6
    console().print(plain(f"{out} ({size:.1f} MB), card: {cards[0].name}, {cards[1].name}"))
    if made.sample:
        console().print(plain(detect.SAMPLE_LIMIT, "dim"))


@app.command("info")
def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Show a detector's model card: data, figures, errors by target, limits."""
    judge = detect.Detector.load(model)
    if as_json:
        print_json(dict(judge.card))
        return
    print_lines(judge.show_card().splitlines())


@app.command("use")
def use(
    model: Annotated[Path, typer.Argument(help="A detector file or folder; 'sample' goes back.")],
) -> None:
    """Use a detector in analyze, screen and serve wherever none is named."""
    if str(model) == "sample" and not model.exists():
        files.forget_detector()
        console().print(plain("the sample detector of the starter pack is in use"))
        return
    console().print(plain(f"in use: {files.use_detector(model)}"))


@app.command("eval")
def evaluate_detector(
    model: Annotated[
        Path | None, typer.Argument(help="A detector file. None: cross-validate a preset.")
    ] = None,
    data: Data = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Part of a release: train, test or all. Default: test; without a file, train."
        ),
    ] = None,
    labels: Labels = "v1",
    captions: Captions = None,
    folds: Annotated[
        Literal["blocks", "random"],
        typer.Option(help="Without a file: 10 contiguous id blocks, or 5 random folds."),
    ] = "blocks",
    count: Annotated[int | None, typer.Option("--fold-count", min=2, help="Other folds.")] = None,
    preset: Preset = "fast",
    robustness: Annotated[
        bool, typer.Option("--robustness", help="Add disguises and near-duplicates.")
    ] = False,
    trained_on: Annotated[
        str | None,
        typer.Option(help="With --robustness and a file: its training data, for near-duplicates."),
    ] = None,
    embedder: Encoder = None,
    page: Page = None,
    as_json: AsJson = False,
) -> None:
    """Measure a detector file on labelled memes, or a preset by cross-validation."""
    if model is None:
        done = validate_preset(
            load_examples(data, split or "train", labels, captions),
            Validation(preset, folds, count, embedder, robustness),
            lambda fold, total: tell(f"fold {fold} of {total}"),
        )
    else:
        judge = detect.Detector.load(model, embedder)
        loaded = load_examples(data, split or "test", labels, captions)
        known = load_examples(trained_on, "train", labels) if robustness and trained_on else None
        done = judge.measure(loaded, robustness, known)
    if page is not None:
        done.save(page)
    if as_json:
        figures = {"figures": done.figures, "robustness": done.robustness}
        print_json({"title": done.title, "notes": done.notes, **figures})
        return
    print_lines(describe_loaded(done.data))
    for note in done.notes:
        console().print(plain(f"note: {note}", "yellow"))
    _show_evaluation(done.figures, done.title)
    if done.robustness is not None:
        _show_robustness(done.robustness)
    if page is not None:
        console().print(plain(f"page: {page}"))


@app.command("predict")
def predict(
    model: ModelFile,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts to judge, or image files to read and judge.")
    ] = None,
    data: Data = None,
    split: Part = "test",
    labels: Labels = "v1",
    out: Annotated[Path | None, typer.Option(help="Write JSON lines there.")] = None,
    language: Annotated[str, typer.Option(help="Language of the texts. Default: told.")] = "",
    embedder: Encoder = None,
    as_json: AsJson = False,
) -> None:
    """Judge texts, images, or memes from a file, with a trained detector."""
    judge = detect.Detector.load(model, embedder)
    if texts and data:
        raise InputError("texts and --data do not go together", hint="give one of them")
    loaded = Loaded("texts", judge.prepare(texts)) if texts else load_examples(data, split, labels)
    said = judge.predict(loaded, language)
    if out is not None:
        files.write_predictions(out, said)
    if as_json:
        print_json(said)
        return
    print_lines(describe_skips(loaded))
    blank = judge.count_blank(loaded.examples)
    if blank:
        console().print(plain(f"note: {blank:,} memes have no text: nothing speaks of them", "dim"))
    for reason in sorted({prediction.unjudged for prediction in said} - {""}):
        console().print(plain(f"unjudged: {reason}", "yellow"))
    if out is not None:
        console().print(plain(f"{len(said):,} predictions: {out}"))
    else:
        show_table(files.tabulate(loaded.examples, said))
        if len(said) > 40:
            console().print(plain(f"{len(said):,} in all; --json or --out gives every one"))
    if judge.sample:
        console().print(plain(judge.note, "dim"))


@app.command("compare")
def compare(
    first: Annotated[Path, typer.Argument(help="A detector file.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
    data: Data = None,
    split: Part = "test",
    labels: Labels = "v1",
    embedder: Encoder = None,
    as_json: AsJson = False,
) -> None:
    """Compare two detectors on the same labelled memes, pair by pair."""
    one, two = (detect.Detector.load(path, embedder) for path in (first, second))
    loaded = load_examples(data, split, labels)
    found = one.compare(two, loaded)
    if as_json:
        print_json(found)
        return
    print_lines(describe_loaded(loaded))
    if one.has_seen(loaded) or two.has_seen(loaded):
        console().print(plain(f"note: {detect.SEEN}", "yellow"))
    show_table(found.table(first.name, second.name))
    console().print(plain(found.summary))


@app.command("export")
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write the single file that the other commands load without PyTorch."""
    done = files.export(model, out)
    if as_json:
        print_json(done)
        return
    console().print(plain(f"{out}: {done.bytes / 1e6:.1f} MB\nsha256 {done.sha256}"))


@app.command("explain")
def explain(
    model: ModelFile,
    text: Annotated[str | None, typer.Argument(help="The text on a meme.")] = None,
    text_caption: Annotated[str, typer.Option(help="What the text means.")] = "",
    image_caption: Annotated[str, typer.Option(help="What the image shows.")] = "",
    data: Data = None,
    name: Annotated[str | None, typer.Option("--id", help="A meme of the data.")] = None,
    split: Part = "all",
    labels: Labels = "v1",
    page: Annotated[Path | None, typer.Option(help="Write a page, too.")] = None,
    embedder: Encoder = None,
    as_json: AsJson = False,
) -> None:
    """Show which characters, words and captions moved a decision."""
    judge = detect.Detector.load(model, embedder)
    if (text is None) == (name is None):
        raise InputError("give a text, or --id of a meme of the data", hint="one of them")
    if text is not None:
        example = Example("text", text, text_caption, image_caption)
    else:
        example = find_example(str(name), data, split, labels)
    found = judge.explain(example)
    if page is not None:
        judge.save_explanation(page, example, found)
    if as_json:
        print_json(found)
        return
    _show_explanation(found)
    if judge.sample:
        console().print(plain(judge.note, "dim"))
    if page is not None:
        console().print(plain(f"page: {page}"))


def _show_evaluation(found: Evaluation, title: str) -> None:
    show_table(found.table(title))
    if found.target_table is not None:
        show_table(found.target_table)
    error = f"calibration error {100 * found.calibration_error:.1f} points"
    console().print(plain(f"{found.count:,} memes; {error}"))


def _show_robustness(found: Robustness) -> None:
    if found.evasions:
        show_table(found.table())
    print_lines(found.lines)
    for note in found.notes:
        console().print(plain(f"note: {note}", "dim"))


def _show_explanation(found: Explanation) -> None:
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
    out.print(plain("+ speaks for harm, - against; all pieces add up to the score", "dim"))


def _colour(share: float) -> str:
    if abs(share) < 0.2:
        return ""
    strong = "bold " if abs(share) > 0.6 else ""
    return f"{strong}{'red' if share > 0 else 'green'}"
