"""The commands of ``detector`` and ``classifier``: train, eval, predict, explain and compare."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag, TextTaken
from memantics.core.result import Result
from memantics.moderation import training as detector_training
from memantics.moderation.card import place_card, read_stored
from memantics.moderation.classifier import (
    Classifier,
    find_labelled,
    load_labelled,
    read_memes,
    use_classifier,
)
from memantics.moderation.columns import ExampleColumns
from memantics.moderation.data import (
    CAPTIONS_HELP,
    DetectorData,
    LabelVersionFlag,
    find_example,
    load_examples,
)
from memantics.moderation.detect import Detector, Measured
from memantics.moderation.evaluation import DetectorComparison, DetectorEvaluation, evaluate
from memantics.moderation.examples import Example, FoldScheme, Loaded
from memantics.moderation.explanation import Explanation, LabelExplanation
from memantics.moderation.fast import LabelPrediction, Prediction
from memantics.moderation.heads import AUTO
from memantics.moderation.held_out import cross_validate, cross_validate_labels, make_trainer
from memantics.moderation.identity import describe_identity, warn_identity
from memantics.moderation.labels import LabelEvaluation, evaluate_labels
from memantics.moderation.robustness import Robustness, measure_leakage
from memantics.moderation.training import write_predictions
from memantics.web.phrases import PageLanguage

LabelArgument = Annotated[
    str,
    Argument("Label, such as mer_bench/emotion or memes.csv/COLUMN.", metavar="NAME/LABEL"),
]
ClassifierFile = Annotated[
    str, Argument("Classifier file, or the NAME/LABEL it was trained on.", metavar="CLASSIFIER")
]
DetectorFileArgument = Annotated[Path, Argument("Detector file or folder.")]
_LabelData = Annotated[
    str | None,
    Flag(
        "Labelled memes: sample, release (the official data), or a table with a column named like"
        " the label. Default: the registered release, else the sample."
    ),
]
_Watch = Callable[[int, int], None]
_FOLDS = (
    "Cross-validation without a detector file: blocks (10 contiguous blocks of ids), random"
    " (5 folds), or a number of blocks."
)


def _ignore(_done: int, _all: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class TrainedFile(Result):
    """A trained detector with its file and card; ``in_use`` is True if it became the default.

    ``given`` names the training data, as given.
    """

    detector: Detector | Classifier
    file: Path
    card: Path
    in_use: bool = False
    given: str = ""

    @property
    def metrics(self) -> DetectorEvaluation | LabelEvaluation:
        """Metrics on memes held out during training."""
        assert self.detector.held_out is not None
        return self.detector.held_out

    @property
    def data(self) -> Loaded:
        """The training data."""
        assert self.detector.trained_on is not None
        return self.detector.trained_on

    def describe_identity(self) -> list[str]:
        """Describe false positives on the names of groups; empty if they were not measured."""
        card = read_stored(self.detector.card, self.file.name)
        cut = bool(self.detector.card.get(detector_training.COUNTERFACTUAL))
        known = describe_identity(card.identity, counterfactual=cut)
        return [*known, *warn_identity(card.identity, self._show_command(), counterfactual=cut)]

    def _show_command(self) -> str:
        """Return the training command with its data and file; other options are not known."""
        data = f" --data {shlex.quote(self.given)}" if self.given else ""
        return f"memantics detector train{data} --out {shlex.quote(str(self.file))}"


def train_detector(
    options: detector_training.TrainOptions,
    data: DetectorData = None,
    columns: ExampleColumns | None = None,
    out: Annotated[Path, Flag("File to write.")] = Path("detector.zip"),
) -> TrainedFile:
    """Train a detector of harmful memes, and write it with its model card."""
    loaded = load_examples(data, options.split or "train", options.labels, columns=columns)
    made = Detector.train(loaded, "", options)
    made.save(out)
    return TrainedFile(made, out, place_card(out)[0], given=str(data or ""))


def train_classifier(
    label: LabelArgument,
    options: detector_training.TrainOptions,
    data: _LabelData = None,
    out: Annotated[
        Path | None,
        Flag(
            "File to write. Default: the classifier becomes the default for its topic, under "
            "NAME/LABEL."
        ),
    ] = None,
) -> TrainedFile:
    """Train a classifier for any label, and write it with its model card."""
    made = Classifier.train(label, replace(options, data=data))
    place = made.save(out)
    # A classifier with an encoder folder cannot be a default: other commands cannot open it.
    used = out is None and not made.sample and options.embedder is options.pictures is None
    if used:
        use_classifier(place)
    return TrainedFile(made, place, place_card(place)[0], used)


def measure_detector(
    model: Annotated[
        Path | None, Argument("Detector file. Default: cross-validate a preset.")
    ] = None,
    *,
    data: DetectorData = None,
    split: Annotated[
        str | None,
        Flag("Split of a release: train, test or all. Default: test; without a file, train."),
    ] = None,
    labels: LabelVersionFlag = "v1",
    captions: Annotated[Path | None, Flag(CAPTIONS_HELP)] = None,
    columns: ExampleColumns | None = None,
    folds: Annotated[str, Flag(_FOLDS)] = "blocks",
    count: Annotated[
        int | None,
        Flag("Number of folds. Default: 10 blocks, or 5 random folds.", "--fold-count", min=2),
    ] = None,
    preset: detector_training.PresetName = AUTO,
    robustness: Annotated[
        bool, Flag("Also test obfuscated texts, and count near-duplicates.")
    ] = False,
    trained_on: Annotated[
        str | None,
        Flag("Training data of the detector, to count near-duplicates; for --robustness."),
    ] = None,
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
    watch: _Watch = _ignore,
) -> Measured:
    """Evaluate a harm detector on labelled memes, or cross-validate a preset."""
    if model is None:
        loaded = load_examples(data, split or "train", labels, captions, columns)
        options = detector_training.TrainOptions(preset, embedder=embedder, pictures=pictures)
        return validate_harm(loaded, options, folds, count, robustness, watch)
    judge = Detector.load(model, embedder, pictures=pictures)
    loaded = load_examples(data, split or "test", labels, captions, judge.read_columns(columns))
    known = load_examples(trained_on, "train", labels) if robustness and trained_on else None
    return judge.measure(loaded, robustness, known)


def measure_classifier(
    label: LabelArgument,
    model: Annotated[
        str | None,
        Flag("Classifier file or NAME/LABEL. Default: cross-validate a preset.", "--classifier"),
    ] = None,
    *,
    preset: detector_training.PresetName = AUTO,
    data: _LabelData = None,
    split: detector_training.PartFlag = "all",
    folds: Annotated[
        int, Flag("Number of cross-validation folds without a classifier.", min=2)
    ] = 5,
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
    captions: Annotated[Path | None, Flag(CAPTIONS_HELP)] = None,
    watch: _Watch = _ignore,
) -> Measured:
    """Evaluate a classifier on labelled memes, or cross-validate a preset over groups."""
    options = detector_training.TrainOptions(preset, split, data, embedder, pictures, captions)
    if model is None:
        return validate_labels(load_labelled(label, options), options, folds, watch)
    judge = Classifier.load(model, embedder, pictures)
    loaded = load_labelled(label, options, judge.classes)
    return Measured(model, loaded, (), judge.evaluate(loaded), notes=judge.list_notes(loaded))


def validate_harm(
    data: Loaded,
    options: detector_training.TrainOptions,
    folds: str = "blocks",
    count: int | None = None,
    near_duplicates: bool = False,
    watch: _Watch = _ignore,
) -> Measured:
    """Cross-validate a harm preset, and count near-duplicates between its folds."""
    if folds.isdecimal() and int(folds) >= 2:
        folds, count = "random", int(folds)
    if folds not in ("blocks", "random"):
        raise InputError(
            f"{folds!r} is not a valid value for folds",
            hint="use blocks, random, or a whole number of at least 2",
        )
    split: FoldScheme = "blocks" if folds == "blocks" else "random"
    settings, encoder = detector_training.choose_settings(data, replace(options, inner=split))
    trainer = make_trainer(settings, encoder)
    study = cross_validate(data.examples, trainer, settings.inner, count, watch)
    report = None
    if near_duplicates:
        leakage = measure_leakage(study.examples, study.predictions, folds=study.folds)
        report = Robustness((), leakage, ("obfuscation tests need a detector file",))
    title = f"Preset {settings.preset}, {study.count} {study.split} folds of {data.name}"
    found = evaluate(study.examples, study.predictions)
    return Measured(title, data, study.predictions, found, report)


def validate_labels(
    data: Loaded, options: detector_training.TrainOptions, folds: int = 5, watch: _Watch = _ignore
) -> Measured:
    """Cross-validate a preset for any label over group-disjoint folds."""
    settings, encoder = detector_training.choose_settings(data, options)
    said = cross_validate_labels(data, settings, encoder, folds, watch)
    return Measured(f"{folds} group-disjoint folds", data, (), evaluate_labels(data, said))


@dataclass(frozen=True, slots=True)
class Predicted(Result):
    """Predictions of a detector or classifier for memes."""

    detector: Detector | Classifier
    data: Loaded
    harms: tuple[Prediction, ...] = ()
    labels: tuple[LabelPrediction, ...] = ()

    @property
    def blank(self) -> int:
        """Number of memes without any input that the detector uses."""
        return sum(not self.detector.reads(example) for example in self.data.examples)

    @property
    def rows(self) -> list[dict[str, object]]:
        """Predictions of harm as JSON objects; an item that was not scored has no label."""
        return [detector_training.dump_prediction(one) for one in self.harms]


_Texts = Annotated[Sequence[str], Argument("Texts, or image files to read by OCR.", kind=list[str])]
_Lines = Annotated[Path | None, Flag("JSON Lines file to write. Default: print a table.")]


def predict_harm(
    model: DetectorFileArgument,
    texts: _Texts = (),
    *,
    data: DetectorData = None,
    split: detector_training.PartFlag = "test",
    labels: LabelVersionFlag = "v1",
    out: _Lines = None,
    language: Annotated[str, Flag("Language code of the texts. Default: detected.")] = "",
    text: TextTaken = "caption",
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
) -> Predicted:
    """Predict whether texts, images, or memes from a file are harmful."""
    judge = Detector.load(model, embedder, pictures=pictures)
    _need_one(texts, data)
    known = judge.prepare(texts, text) if texts else ()
    columns = judge.read_columns()
    loaded = (
        Loaded("texts", known) if texts else load_examples(data, split, labels, columns=columns)
    )
    said = judge.predict(loaded, language)
    if out is not None:
        write_predictions(out, said)
    return Predicted(judge, loaded, tuple(said))


def predict_labels(
    model: ClassifierFile,
    texts: _Texts = (),
    *,
    data: Annotated[
        str | None, Flag("Table or folder of memes, or NAME/LABEL, instead of texts.")
    ] = None,
    split: detector_training.PartFlag = "all",
    out: _Lines = None,
    text: TextTaken = "caption",
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
) -> Predicted:
    """Predict the labels of texts, images, or memes from a file."""
    judge = Classifier.load(model, embedder, pictures)
    _need_one(texts, data)
    if data is None and not texts:
        raise InputError("no text, image or data given", hint="give texts, images or --data")
    if data is None:
        loaded = Loaded("texts", judge.prepare(texts, text))
    else:
        loaded = read_memes(data) if Path(data).exists() else find_labelled(data, split=split)
    said = judge.predict(loaded)
    if out is not None:
        write_predictions(out, said)
    return Predicted(judge, loaded, labels=tuple(said))


def _need_one(texts: Sequence[str], data: str | None) -> None:
    if texts and data:
        raise InputError("texts and --data cannot be combined", hint="give one of them")


@dataclass(frozen=True, slots=True)
class Explained(Result):
    """Attributions of a harm prediction for one meme."""

    detector: Detector
    found: Explanation


_TextCaption = Annotated[str, Flag("Description of the text's meaning. Default: none.")]
_ImageCaption = Annotated[str, Flag("Description of the image. Default: none.")]
_MemeId = Annotated[str | None, Flag("Id of a meme in the data.", "--id")]


def explain_meme(
    model: DetectorFileArgument,
    text: Annotated[str | None, Argument("Text on the meme.")] = None,
    *,
    text_caption: _TextCaption = "",
    image_caption: _ImageCaption = "",
    data: DetectorData = None,
    name: _MemeId = None,
    split: detector_training.PartFlag = "all",
    labels: LabelVersionFlag = "v1",
    page: Annotated[Path | None, Flag("Also write an HTML page to this file.")] = None,
    language: Annotated[PageLanguage, Flag("Language of the page: en or zh.")] = "en",
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
) -> Explained:
    """Show which characters, words and captions contribute to a harm score."""
    judge = Detector.load(model, embedder, pictures=pictures)
    if (text is None) == (name is None):
        raise InputError("give either a text or --id of a meme", hint="give exactly one of them")
    if text is not None:
        example = Example("text", text, text_caption, image_caption)
    else:
        columns = judge.read_columns()
        example = find_example(str(name), load_examples(data, split, labels, columns=columns))
    found = judge.explain(example)
    if page is not None:
        judge.save_explanation(page, example, found, language)
    return Explained(judge, found)


def explain_meme_label(
    model: ClassifierFile,
    text: Annotated[str | None, Argument("Text on the meme, or an image file.")] = None,
    *,
    label: Annotated[str, Flag("Label to explain. Default: the most probable one.")] = "",
    data: Annotated[str | None, Flag("Table or folder of memes that contains --id.")] = None,
    name: _MemeId = None,
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
) -> LabelExplanation:
    """Show which words contribute to a classifier's score of a label."""
    judge = Classifier.load(model, embedder, pictures)
    if (text is None) == (name is None) or (name is None) != (data is None):
        raise InputError("give either a text, or --data with --id", hint="give exactly one of them")
    if text is not None:
        return judge.explain(text, label)
    return judge.explain(find_example(str(name), read_memes(str(data))), label)


@dataclass(frozen=True, slots=True)
class Compared(Result):
    """A comparison of two detectors; ``seen`` is True if one was trained on these memes."""

    data: Loaded
    found: DetectorComparison
    notes: tuple[str, ...] = ()


def compare_detectors(
    first: Annotated[Path, Argument("Detector file or folder.")],
    second: Annotated[Path, Argument("Second detector file.")],
    data: DetectorData = None,
    split: detector_training.PartFlag = "test",
    labels: LabelVersionFlag = "v1",
    embedder: detector_training.EncoderFlag = None,
) -> Compared:
    """Compare two detectors on the same labelled memes by a paired test."""
    one, two = (Detector.load(path, embedder) for path in (first, second))
    loaded = load_examples(data, split, labels, columns=one.read_columns())
    found = one.compare(two, loaded)
    return Compared(loaded, found, one.list_notes(loaded) or two.list_notes(loaded))
