"""The verbs of ``detector`` and ``classifier``: train, eval, predict and explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag, TextTaken
from memantics.core.result import Result
from memantics.moderation import training as detector_training
from memantics.moderation.card import place_card
from memantics.moderation.classifier import (
    Classifier,
    find_labelled,
    load_labelled,
    read_memes,
    use_classifier,
)
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
from memantics.moderation.labels import LabelEvaluation, evaluate_labels
from memantics.moderation.robustness import Robustness, measure_leakage
from memantics.moderation.training import write_predictions

LabelArgument = Annotated[
    str,
    Argument("Such as mer_bench/emotion, or memes.csv/COLUMN of your own.", metavar="NAME/LABEL"),
]
ClassifierFile = Annotated[
    str, Argument("A file, or NAME/LABEL that was trained here.", metavar="CLASSIFIER")
]
DetectorFileArgument = Annotated[Path, Argument("A detector file.")]
_LabelData = Annotated[
    str | None,
    Flag(
        "sample, release, or a table whose column LABEL is read. Default: the registered release,"
        " else the sample."
    ),
]
_Watch = Callable[[int, int], None]
_FOLDS = "Without a file: blocks (10 contiguous blocks of ids), random (5), or how many."


def _ignore(_done: int, _all: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class TrainedFile(Result):
    """A detector that was trained, its file and card; ``in_use`` says whether it is used now."""

    detector: Detector | Classifier
    file: Path
    card: Path
    in_use: bool = False

    @property
    def metrics(self) -> DetectorEvaluation | LabelEvaluation:
        """On memes that were held out inside training."""
        assert self.detector.held_out is not None
        return self.detector.held_out

    @property
    def data(self) -> Loaded:
        """What it learnt from."""
        assert self.detector.trained_on is not None
        return self.detector.trained_on


def train_detector(
    options: detector_training.TrainOptions,
    data: DetectorData = None,
    out: Annotated[Path, Flag("The file to write.")] = Path("detector.zip"),
) -> TrainedFile:
    """Train a detector of harm, and write it with its model card."""
    loaded = load_examples(data, options.split or "train", options.labels)
    made = Detector.train(loaded, "", options)
    made.save(out)
    return TrainedFile(made, out, place_card(out)[0])


def train_classifier(
    label: LabelArgument,
    options: detector_training.TrainOptions,
    data: _LabelData = None,
    out: Annotated[
        Path | None,
        Flag("The file to write. Default: where NAME/LABEL finds it, and in use."),
    ] = None,
) -> TrainedFile:
    """Train a detector of other labels, and write it with its model card."""
    made = Classifier.train(label, replace(options, data=data))
    place = made.save(out)
    # Other commands have no way to name the folder of a model.
    used = out is None and not made.sample and options.embedder is options.pictures is None
    if used:
        use_classifier(place)
    return TrainedFile(made, place, place_card(place)[0], used)


def measure_detector(
    model: Annotated[
        Path | None, Argument("A detector file. None: cross-validate a preset.")
    ] = None,
    *,
    data: DetectorData = None,
    split: Annotated[
        str | None,
        Flag("Part of a release: train, test or all. Default: test; without a file, train."),
    ] = None,
    labels: LabelVersionFlag = "v1",
    captions: Annotated[Path | None, Flag(CAPTIONS_HELP)] = None,
    folds: Annotated[str, Flag(_FOLDS)] = "blocks",
    count: Annotated[int | None, Flag("Other folds.", "--fold-count", min=2)] = None,
    preset: detector_training.PresetName = AUTO,
    robustness: Annotated[bool, Flag("Add obfuscations and near-duplicates.")] = False,
    trained_on: Annotated[
        str | None,
        Flag("With --robustness and a file: its training data, for near-duplicates."),
    ] = None,
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
    watch: _Watch = _ignore,
) -> Measured:
    """Figures of a detector of harm on labelled memes, or of a preset by cross-validation."""
    if model is None:
        loaded = load_examples(data, split or "train", labels, captions)
        options = detector_training.TrainOptions(preset, embedder=embedder, pictures=pictures)
        return validate_harm(loaded, options, folds, count, robustness, watch)
    judge = Detector.load(model, embedder, pictures=pictures)
    loaded = load_examples(data, split or "test", labels, captions)
    known = load_examples(trained_on, "train", labels) if robustness and trained_on else None
    return judge.measure(loaded, robustness, known)


def measure_classifier(
    label: LabelArgument,
    model: Annotated[
        str | None, Flag("A file or NAME/LABEL. None: cross-validate a preset.", "--classifier")
    ] = None,
    *,
    preset: detector_training.PresetName = AUTO,
    data: _LabelData = None,
    split: detector_training.PartFlag = "all",
    folds: Annotated[int, Flag("Without a classifier: folds of groups.", min=2)] = 5,
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
    captions: Annotated[Path | None, Flag(CAPTIONS_HELP)] = None,
    watch: _Watch = _ignore,
) -> Measured:
    """Figures of a classifier on labelled memes, or of a preset by cross-validation over groups."""
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
    """Cross-validate a preset for harm; near-duplicates are counted between its folds."""
    if folds.isdecimal() and int(folds) >= 2:
        folds, count = "random", int(folds)
    if folds not in ("blocks", "random"):
        raise InputError(
            f"{folds!r} is not a valid value for folds",
            hint="use blocks, random, or a number from 2 up",
        )
    split: FoldScheme = "blocks" if folds == "blocks" else "random"
    settings, encoder = detector_training.choose_settings(data, replace(options, inner=split))
    trainer = make_trainer(settings, encoder)
    study = cross_validate(data.examples, trainer, settings.inner, count, watch)
    report = None
    if near_duplicates:
        leakage = measure_leakage(study.examples, study.predictions, folds=study.folds)
        report = Robustness((), leakage, ("obfuscations are tried on a detector file",))
    title = f"Preset {settings.preset}, {study.count} {study.split} folds of {data.name}"
    found = evaluate(study.examples, study.predictions)
    return Measured(title, data, study.predictions, found, report)


def validate_labels(
    data: Loaded, options: detector_training.TrainOptions, folds: int = 5, watch: _Watch = _ignore
) -> Measured:
    """Cross-validate a preset for other labels, everything learnt inside the folds of groups."""
    settings, encoder = detector_training.choose_settings(data, options)
    said = cross_validate_labels(data, settings, encoder, folds, watch)
    return Measured(f"{folds} folds of groups", data, (), evaluate_labels(data, said))


@dataclass(frozen=True, slots=True)
class Predicted(Result):
    """What a detector said of memes."""

    detector: Detector | Classifier
    data: Loaded
    harms: tuple[Prediction, ...] = ()
    labels: tuple[LabelPrediction, ...] = ()

    @property
    def blank(self) -> int:
        """How many memes hold nothing that the detector looks at."""
        return sum(not self.detector.reads(example) for example in self.data.examples)


_Texts = Annotated[
    Sequence[str], Argument("Texts to judge, or image files to read and judge.", kind=list[str])
]
_Lines = Annotated[Path | None, Flag("Write JSON lines there.")]


def predict_harm(
    model: DetectorFileArgument,
    texts: _Texts = (),
    *,
    data: DetectorData = None,
    split: detector_training.PartFlag = "test",
    labels: LabelVersionFlag = "v1",
    out: _Lines = None,
    language: Annotated[str, Flag("Language of the texts. Default: told.")] = "",
    text: TextTaken = "caption",
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
) -> Predicted:
    """Whether texts, images, or memes from a file are harmful."""
    judge = Detector.load(model, embedder, pictures=pictures)
    _need_one(texts, data)
    known = judge.prepare(texts, text) if texts else ()
    loaded = Loaded("texts", known) if texts else load_examples(data, split, labels)
    said = judge.predict(loaded, language)
    if out is not None:
        write_predictions(out, said)
    return Predicted(judge, loaded, tuple(said))


def predict_labels(
    model: ClassifierFile,
    texts: _Texts = (),
    *,
    data: Annotated[
        str | None, Flag("A table or folder of memes, or NAME/LABEL, in place of texts.")
    ] = None,
    split: detector_training.PartFlag = "all",
    out: _Lines = None,
    text: TextTaken = "caption",
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
) -> Predicted:
    """The labels of texts, images, or memes from a file."""
    judge = Classifier.load(model, embedder, pictures)
    _need_one(texts, data)
    if data is None and not texts:
        raise InputError("nothing to judge", hint="give texts, images or --data")
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
        raise InputError("texts and --data do not go together", hint="give one of them")


@dataclass(frozen=True, slots=True)
class Explained(Result):
    """Why a detector of harm said what it said of a meme."""

    detector: Detector
    found: Explanation


_TextCaption = Annotated[str, Flag("What the text means.")]
_ImageCaption = Annotated[str, Flag("What the image shows.")]
_MemeId = Annotated[str | None, Flag("A meme of the data.", "--id")]


def explain_meme(
    model: DetectorFileArgument,
    text: Annotated[str | None, Argument("The text on a meme.")] = None,
    *,
    text_caption: _TextCaption = "",
    image_caption: _ImageCaption = "",
    data: DetectorData = None,
    name: _MemeId = None,
    split: detector_training.PartFlag = "all",
    labels: LabelVersionFlag = "v1",
    page: Annotated[Path | None, Flag("Write a page, too.")] = None,
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
) -> Explained:
    """Which characters, words and captions moved a decision on harm."""
    judge = Detector.load(model, embedder, pictures=pictures)
    if (text is None) == (name is None):
        raise InputError("give a text, or --id of a meme of the data", hint="one of them")
    if text is not None:
        example = Example("text", text, text_caption, image_caption)
    else:
        example = find_example(str(name), load_examples(data, split, labels))
    found = judge.explain(example)
    if page is not None:
        judge.save_explanation(page, example, found)
    return Explained(judge, found)


def explain_meme_label(
    model: ClassifierFile,
    text: Annotated[str | None, Argument("The text on a meme, or an image file.")] = None,
    *,
    label: Annotated[str, Flag("Towards which label. Default: the likeliest.")] = "",
    data: Annotated[str | None, Flag("A table or folder of memes, for --id.")] = None,
    name: _MemeId = None,
    embedder: detector_training.EncoderFlag = None,
    pictures: detector_training.ImageEncoder = None,
) -> LabelExplanation:
    """Which words moved a classifier towards a label."""
    judge = Classifier.load(model, embedder, pictures)
    if (text is None) == (name is None) or (name is None) != (data is None):
        raise InputError("give a text, or --data and --id of a meme there", hint="one of them")
    if text is not None:
        return judge.explain(text, label)
    return judge.explain(find_example(str(name), read_memes(str(data))), label)


@dataclass(frozen=True, slots=True)
class Compared(Result):
    """Two detectors on the same memes; ``seen``: one of them was trained on these files."""

    data: Loaded
    found: DetectorComparison
    notes: tuple[str, ...] = ()


def compare_detectors(
    first: Annotated[Path, Argument("A detector file.")],
    second: Annotated[Path, Argument("Another one.")],
    data: DetectorData = None,
    split: detector_training.PartFlag = "test",
    labels: LabelVersionFlag = "v1",
    embedder: detector_training.EncoderFlag = None,
) -> Compared:
    """Compare two detectors on the same labelled memes, pair by pair."""
    one, two = (Detector.load(path, embedder) for path in (first, second))
    loaded = load_examples(data, split, labels)
    found = one.compare(two, loaded)
    return Compared(loaded, found, one.list_notes(loaded) or two.list_notes(loaded))
