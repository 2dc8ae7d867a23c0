"""``memantics detector``: train, measure, use, compare, export and explain detectors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer

from memantics.actions.detector_data import (
    RELEASE,
    STARTER,
    load_examples,
    open_embedder,
    read_images,
)
from memantics.cli import detector_neural, detector_show
from memantics.cli.detector_judges import FastJudge, Judge, open_fast, open_judge
from memantics.cli.flags import AsJson
from memantics.cli.terminal import console, plain, print_json
from memantics.core.errors import InputError
from memantics.core.journal import replace_file
from memantics.detector.card import make_card, write_card
from memantics.detector.comparison import compare as compare_predictions
from memantics.detector.evaluation import Evaluation, evaluate
from memantics.detector.examples import Example, Loaded, need_labels
from memantics.detector.explanation import explain as explain_example
from memantics.detector.fast import Prediction, fit
from memantics.detector.features import Block, Dense, Embedder
from memantics.detector.neural import PRESETS
from memantics.detector.presets import FastSettings, find_preset
from memantics.detector.robustness import (
    Evasion,
    Robustness,
    augment,
    measure_evasion,
    measure_leakage,
)
from memantics.detector.storage import load, save
from memantics.detector.study import cross_validate, make_trainer
from memantics.report.pages import detector as pages

app = typer.Typer(help="Detectors of harmful memes.", no_args_is_help=True)
app.command("train-neural")(detector_neural.train)
app.command("tune")(detector_neural.tune)

Data = Annotated[
    str | None,
    typer.Option(
        help=f"{STARTER}, {RELEASE} (the registered release), a .csv, a .jsonl, or a folder of"
        " images with metadata. Default: the release if registered, else the starter pack."
    ),
]
Part = Annotated[str, typer.Option("--split", help="Part of a release: train, test or all.")]
Labels = Annotated[Literal["v1", "v2"], typer.Option(help="Label version of ToxiCN MM.")]
Preset = Annotated[
    str, typer.Option(help="fast, linear, ridge, readings or full (needs the sentence encoder).")
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
    if preset in PRESETS:
        raise InputError(
            f"the preset {preset} is a network",
            hint=f"use memantics detector train-neural --preset {preset}",
        )
    settings = replace(find_preset(preset), inner=inner, type_head=types)
    settings = _add_blocks(settings, ocr, image_statistics)
    encoder = _open_encoder(settings, embedder)
    loaded = load_examples(data, split, labels)
    need_labels(loaded.examples, loaded.name)
    if ocr:
        examples, missed = read_images(loaded.examples)
        notes = (*loaded.notes, f"{missed} images could not be read") if missed else loaded.notes
        loaded = replace(loaded, examples=examples, notes=notes)
    grown = augment(loaded.examples, disguised)
    trained = fit(grown.examples, settings, encoder, grown.origins)
    # Disguised copies of a meme are no further memes: figures are on those that are real.
    real = len(loaded.examples)
    found = evaluate(loaded.examples, trained.held_out[:real])
    note = (
        "On memes that were held out inside training; the threshold was chosen on the same"
        " predictions, so an outer test is a little lower (see detector eval --folds)."
    )
    card = make_card(trained.detector, loaded, found, note, sample=loaded.sample)
    save(trained.detector, out, {"sample": loaded.sample, **card.dump()})
    pages = write_card(card, out)
    if as_json:
        print_json({"model": str(out), "card": str(pages[0]), "figures": asdict(found)})
        return
    detector_show.show_loaded(loaded)
    detector_show.show_evaluation(found, "Held out inside training")
    size = out.stat().st_size / 1e6
    console().print(plain(f"{out} ({size:.1f} MB), card: {pages[0].name}, {pages[1].name}"))
    if loaded.sample:
        console().print(plain(card.limits[0], "dim"))


def _open_encoder(settings: FastSettings, folder: Path | None) -> Embedder | None:
    found = open_embedder(settings, folder)
    if folder is not None and found is None:
        raise InputError(
            f"the preset {settings.preset} has no blocks of meaning, so --embedder has no use",
            hint="use --preset full",
        )
    return found


def _add_blocks(settings: FastSettings, ocr: bool, pixels: bool) -> FastSettings:
    blocks = (*settings.blocks, Block("ocr", "chars", 0.7)) if ocr else settings.blocks
    dense = (*settings.dense, Dense("image", 0.3)) if pixels else settings.dense
    return replace(settings, blocks=blocks, dense=dense)


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
        settings = replace(find_preset(preset), inner=folds)
        encoder = _open_encoder(settings, embedder)
        loaded = load_examples(data, split or "train", labels)
        done = _measure_preset(loaded, settings, encoder, count, robustness)
    else:
        judge = open_judge(model, embedder)
        loaded = load_examples(data, split or "test", labels)
        done = _measure_file(judge, model.name, loaded)
        if robustness:
            known = load_examples(trained_on, "train", labels) if trained_on else None
            done = replace(done, report=_test_file(judge, loaded, done.said, known))
    if page is not None:
        pages.write_evaluation(page, done.title, loaded, done.said, done.found, done.report)
    if as_json:
        figures = {"figures": done.found, "robustness": done.report}
        print_json({"title": done.title, "notes": done.notes, **figures})
        return
    detector_show.show_loaded(loaded)
    for note in done.notes:
        console().print(plain(f"note: {note}", "yellow"))
    detector_show.show_evaluation(done.found, done.title)
    if done.report is not None:
        detector_show.show_robustness(done.report)
    if page is not None:
        console().print(plain(f"page: {page}"))


@dataclass(frozen=True, slots=True)
class _Measured:
    title: str
    said: Sequence[Prediction]
    found: Evaluation
    report: Robustness | None = None
    notes: tuple[str, ...] = ()


def _measure_preset(
    loaded: Loaded,
    settings: FastSettings,
    encoder: Embedder | None,
    count: int | None,
    robustness: bool,
) -> _Measured:
    """Cross-validation; near-duplicates are counted between its folds."""
    trainer = make_trainer(settings, encoder)
    study = cross_validate(loaded.examples, trainer, settings.inner, count, detector_show.show_fold)
    report = None
    if robustness:
        leakage = measure_leakage(study.examples, study.predictions, folds=study.folds)
        report = Robustness((), leakage, ("disguises are tried on a detector file",))
    title = f"Preset {settings.preset}, {study.count} {study.split} folds of {loaded.name}"
    found = evaluate(study.examples, study.predictions)
    return _Measured(title, study.predictions, found, report)


def _measure_file(judge: Judge, name: str, loaded: Loaded) -> _Measured:
    need_labels(loaded.examples, loaded.name)
    said = judge.predict(loaded.examples)
    seen = bool(loaded.checksum) and judge.checksum == loaded.checksum
    notes = (detector_show.SEEN,) if seen else ()
    title = f"{name} on {loaded.name}"
    return _Measured(title, said, evaluate(loaded.examples, said), notes=notes)


def _test_file(
    judge: Judge, loaded: Loaded, said: Sequence[Prediction], seen: Loaded | None
) -> Robustness:
    """Disguises, which need a fast detector, and near-duplicates in the training data."""
    evasions: tuple[Evasion, ...] = ()
    notes: list[str] = []
    if isinstance(judge, FastJudge):
        examples = judge.look(loaded.examples)
        evasions = measure_evasion(judge.detector, examples, judge.embedder)
    else:
        notes.append("disguises are tried on fast detectors only")
    leakage = None
    if seen is None:
        notes.append("near-duplicates are counted with --trained-on DATA, or without a file")
    else:
        texts = [example.text for example in seen.examples]
        leakage = measure_leakage(loaded.examples, said, seen=texts)
    return Robustness(evasions, leakage, tuple(notes))


@app.command("predict")
def predict(
    model: ModelFile,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts to judge.")] = None,
    data: Data = None,
    split: Part = "test",
    labels: Labels = "v1",
    out: Annotated[Path | None, typer.Option(help="Write JSON lines there.")] = None,
    embedder: Encoder = None,
    as_json: AsJson = False,
) -> None:
    """Judge texts, or memes from a file, with a trained detector."""
    judge = open_judge(model, embedder)
    if texts and data:
        raise InputError("texts and --data do not go together", hint="give one of them")
    loaded = (
        Loaded("texts", tuple(Example(str(n), text) for n, text in enumerate(texts, 1)))
        if texts
        else load_examples(data, split, labels)
    )
    said = judge.predict(loaded.examples)
    if out is not None:
        lines = b"".join(orjson.dumps(asdict(own)) + b"\n" for own in said)
        replace_file(out, lines, "predictions")
    if as_json:
        print_json(said)
        return
    detector_show.show_skips(loaded)
    blank = sum(example.empty for example in loaded.examples)
    if blank and isinstance(judge, FastJudge) and not judge.reads_images:
        console().print(plain(f"note: {blank:,} memes have no text: nothing speaks of them", "dim"))
    if out is not None:
        console().print(plain(f"{len(said):,} predictions: {out}"))
    else:
        detector_show.show_predictions(loaded.examples, said)
    if isinstance(judge, FastJudge) and judge.sample:
        console().print(plain(detector_show.SAMPLE, "dim"))


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
    judges = [open_judge(path, embedder) for path in (first, second)]
    loaded = load_examples(data, split, labels)
    need_labels(loaded.examples, loaded.name)
    one, two = (judge.predict(loaded.examples) for judge in judges)
    found = compare_predictions(loaded.examples, one, two)
    if as_json:
        print_json(found)
        return
    detector_show.show_loaded(loaded)
    if loaded.checksum and any(judge.checksum == loaded.checksum for judge in judges):
        console().print(plain(f"note: {detector_show.SEEN}", "yellow"))
    detector_show.show_comparison(found, first.name, second.name)


@app.command("export")
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write the single file that the other commands load without PyTorch."""
    from memantics.detector import neural

    if neural.is_neural(model) and model.is_dir():
        neural.export_onnx(model, out)
    else:
        judge = open_fast(model)
        save(judge.detector, out, judge.card)
        load(out)
    body = out.read_bytes()
    digest = hashlib.sha256(body).hexdigest()
    if as_json:
        print_json({"file": str(out), "bytes": len(body), "sha256": digest})
        return
    console().print(plain(f"{out}: {len(body) / 1e6:.1f} MB"))
    console().print(plain(f"sha256 {digest}"))


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
    judge = open_fast(model, embedder)
    if (text is None) == (name is None):
        raise InputError("give a text, or --id of a meme of the data", hint="one of them")
    if text is not None:
        example = Example("text", text, text_caption, image_caption)
    else:
        known = {own.id: own for own in load_examples(data, split, labels).examples}
        if name not in known:
            raise InputError(f"no meme {name!r} in the data", hint="check --data and --split")
        (example,) = judge.look([known[name]])
    found = explain_example(judge.detector, example, judge.embedder)
    if page is not None:
        pages.write_explanation(page, example, found, sample=judge.sample)
    if as_json:
        print_json(found)
        return
    detector_show.show_explanation(found)
    if judge.sample:
        console().print(plain(detector_show.SAMPLE, "dim"))
    if page is not None:
        console().print(plain(f"page: {page}"))
