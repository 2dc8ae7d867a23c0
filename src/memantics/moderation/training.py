"""Training of detectors and classifiers, export, predictions, and the default detector."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import orjson

from memantics.core.errors import InputError
from memantics.core.files import replace_file
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result, Table
from memantics.core.text import cut_off
from memantics.moderation import operating_points
from memantics.moderation.card import ModelCard, make_card
from memantics.moderation.classifiers import (
    DETECTOR,
    find_in_use,
    forget_in_use,
    measure_sure,
    set_in_use,
)
from memantics.moderation.data import CAPTIONS_HELP, LabelVersionFlag, describe_texts
from memantics.moderation.evaluation import DetectorEvaluation, evaluate
from memantics.moderation.examples import Example, FoldScheme, Loaded
from memantics.moderation.fast import LabelPrediction, Prediction, Trained, fit, fit_labels
from memantics.moderation.features import Dense, Embedder, FeatureBlock
from memantics.moderation.heads import (
    AUTO,
    FastSettings,
    SeeingEmbedder,
    TypeHead,
    choose_preset,
    need_training,
)
from memantics.moderation.judges import (
    FastJudge,
    OpenDetector,
    open_embedders,
    open_fast,
    open_judge,
    read_images,
)
from memantics.moderation.labels import LabelEvaluation, evaluate_labels
from memantics.moderation.neural.saved import export_onnx, is_neural
from memantics.moderation.obfuscation import augment
from memantics.moderation.operating_points import list_operating_points
from memantics.moderation.storage import load, save
from memantics.moderation.wrapped import WrappedJudge, save_wrapped

_WIDTH = 34


def use_detector(path: str | Path) -> Path:
    """Use a detector wherever none is named: in ``analyze``, ``screen`` and ``serve``.

    It is opened first, so that a file that is no detector is refused here.
    """
    place = Path(path).absolute()
    open_judge(place)
    set_in_use(DETECTOR, place)
    return place


def forget_detector() -> None:
    """Go back to the sample detector of the sample data."""
    forget_in_use(DETECTOR)


def find_detector(path: str | Path | None = None) -> Path | None:
    """The detector that is named, else the one in use; None where there is neither."""
    return Path(path) if path is not None else find_in_use(DETECTOR)


def tabulate(examples: Sequence[Example], said: Sequence[Prediction], most: int = 40) -> Table:
    """The first predictions beside the texts they are about."""
    rows = []
    for example, found in list(zip(examples, said, strict=True))[:most]:
        named = found.label and not found.not_scored and found.type not in (None, "none")
        kind = f", {found.type}" if named else ""
        doubt = (
            ", unlike the training texts" if found.out_of_domain and not found.not_scored else ""
        )
        doubt = doubt or (", for a person" if found.review else "")
        chance = "" if found.not_scored else f"{found.probability:.2f}"
        short = cut_off(example.text, _WIDTH)
        rows.append((example.id, f"{found.name}{kind}{doubt}", chance, short))
    return Table(("id", "verdict", ">harm", "text"), tuple(rows))


def write_predictions(out: Path, said: Sequence[Prediction | LabelPrediction]) -> None:
    """Write predictions as JSON lines; an item that was not scored has no label."""
    lines = b"".join(orjson.dumps(dump_prediction(one)) + b"\n" for one in said)
    replace_file(out, lines, "predictions")


def dump_prediction(said: Prediction | LabelPrediction) -> dict[str, object]:
    """Return the fields of a prediction; label and probability are None if it was not scored."""
    row = asdict(said)
    if isinstance(said, Prediction) and said.not_scored:
        row |= {"label": None, "probability": None, "type": None, "types": {}}
    return row


@dataclass(frozen=True, slots=True)
class ExportedDetector(Result):
    """A detector's file, how large it is and its checksum."""

    file: str
    bytes: int
    sha256: str


def export(
    model: Annotated[Path, Argument("A detector file.")],
    out: Annotated[Path, Flag("The file to write.")],
) -> ExportedDetector:
    """Write the single file that is loaded without PyTorch, and read it back once."""
    if is_neural(model) and model.is_dir():
        export_onnx(model, out)
    else:
        judge = open_fast(model)
        save(judge.detector, out, judge.card)
        load(out)
    body = out.read_bytes()
    return ExportedDetector(str(out), len(body), hashlib.sha256(body).hexdigest())


@dataclass(frozen=True, slots=True)
class PointSet(Result):
    """The operating point of a detector's file, and what it keeps on held-out memes."""

    file: str
    point: operating_points.OperatingPoint
    lines: tuple[str, ...]


def set_point(
    model: Annotated[Path, Argument("A detector file.")],
    *,
    operating_point: operating_points.OperatingPointFlag = "",
    threshold: operating_points.ThresholdFlag = None,
    review_range: operating_points.ReviewRangeFlag = None,
    homophones: Annotated[
        bool, Flag("Judge Chinese texts as they sound, too (10 to 100 ms each).")
    ] = False,
    clear: Annotated[bool, Flag("Go back to the threshold of the training.")] = False,
) -> PointSet:
    """Store in a detector how it decides wherever nobody says otherwise."""
    given = bool(operating_point) or threshold is not None or review_range is not None or homophones
    if given == clear:
        raise InputError(
            "say how it decides, or --clear",
            hint="such as --operating-point precision=0.9 --review-range 0.3..0.7",
        )
    judge = open_judge(model)
    if not isinstance(judge, WrappedJudge):
        judge = open_fast(model)  # refuses networks
    opened = OpenDetector(judge, model.name, model)
    card = {key: value for key, value in judge.card.items() if key != "point"}
    point = (
        operating_points.OperatingPoint(opened.threshold)
        if clear
        else opened.choose_point(threshold, operating_point, review_range)
    )
    if not clear:
        point = replace(point, homophones=homophones)
        card["point"] = asdict(point)
    if isinstance(judge, FastJudge):
        save(judge.detector, model, card)
    else:
        save_wrapped(model, judge.file.model_copy(update={"card": card}))
    return PointSet(str(model), point, tuple(opened.describe_point(point)))


_PICTURE = 1.0  # how much a picture weighs beside the words of the text
PresetName = Annotated[
    str,
    Flag(
        "auto (by language), fast, words, linear, ridge, readings, static, full or words-full"
        " (with meanings)."
    ),
]
PartFlag = Annotated[
    str, Flag("train, test or all of a release, or FILE.json:PART of a split file.")
]
EncoderFlag = Annotated[Path | None, Flag("Folder of a text encoder, for meanings by another one.")]
ImageEncoder = Annotated[
    Path | None, Flag("Folder of a vision model (CLIP, SigLIP) for pictures.", "--image-encoder")
]


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Choices of a training beside its data.

    ``preset`` ``auto`` takes ``fast`` for Chinese texts and ``words`` for others; those that end in
    ``full`` also compare meanings. ``split`` is a part of a release (default: ``train`` of harm,
    ``all`` of other labels), ``data`` sample, release, or a file. ``embedder`` is the folder of a
    text encoder, ``pictures`` that of a vision model (CLIP, SigLIP, …) through which pictures are
    seen, ``captions`` a file with captions by any model. ``inner`` says how examples of harm are
    held out to calibrate and choose, ``types`` whether types stand beside the decision or after
    it. ``ocr`` reads the images, ``image_statistics`` adds light, colour and edges, ``obfuscated``
    is the share of examples of harm that is added in obfuscation.
    """

    preset: PresetName = AUTO
    split: PartFlag = ""
    data: str | None = None
    embedder: EncoderFlag = None
    pictures: ImageEncoder = None
    captions: Annotated[Path | None, Flag(CAPTIONS_HELP)] = None
    labels: LabelVersionFlag = "v1"
    inner: Annotated[
        FoldScheme, Flag("How examples are held out inside training, to calibrate and choose.")
    ] = "random"
    types: Annotated[
        TypeHead, Flag("Types beside the decision (flat) or after it (hierarchical).")
    ] = "flat"
    ocr: Annotated[bool, Flag("Read the images and use what they say.")] = False
    image_statistics: Annotated[bool, Flag("Add light, colour and edges.")] = False
    obfuscated: Annotated[float, Flag("Share of examples to add in obfuscation.", min=0, max=1)] = (
        0.0
    )


def train_judge(
    loaded: Loaded, options: TrainOptions
) -> tuple[FastJudge, Loaded, DetectorEvaluation | LabelEvaluation, ModelCard]:
    """Train on labels of any kind: what judges, the data as used, figures and the model card."""
    need_training()
    settings, encoder = choose_settings(loaded, options)
    if options.ocr:
        examples, missed = read_images(loaded.examples)
        more = (f"{missed} images could not be read",) if missed else ()
        loaded = replace(loaded, examples=examples, notes=(*loaded.notes, *more))
    grown = augment(loaded.examples, options.obfuscated) if not loaded.labels.name else None
    if grown is None:
        trained = fit_labels(loaded, settings, encoder)
    else:
        trained = fit(grown.examples, settings, encoder, grown.origins)
    found, card, facts = describe_trained(loaded, trained)
    return FastJudge(trained.detector, encoder, facts), loaded, found, card


def describe_trained(
    loaded: Loaded, trained: Trained
) -> tuple[DetectorEvaluation | LabelEvaluation, ModelCard, dict[str, object]]:
    """Figures on held-out memes, the model card, and all that is stored with a detector."""
    known: dict[str, object]
    found: DetectorEvaluation | LabelEvaluation
    if loaded.labels.name:
        found = evaluate_labels(loaded, trained.said)
        known = {"topic": loaded.topic, **measure_sure(loaded.gold, trained.said)}
    else:
        # Obfuscated copies of a meme are no further memes: figures are on those that are real.
        said = trained.held_out[: len(loaded.examples)]
        found = evaluate(loaded.examples, said, trained.detector.decision.threshold)
        pairs = [(p.probability, e.label == 1) for p, e in zip(said, loaded.examples, strict=True)]
        known = {"operating_points": list_operating_points(pairs)}
    card = make_card(trained.detector, loaded, found, _describe_held_out(loaded))
    facts = {"sample": loaded.sample, **card.dump(), **describe_texts(loaded.texts), **known}
    return found, card, facts


def _describe_held_out(loaded: Loaded) -> str:
    group, chosen, command = (
        ("whose group was", "thresholds were", "classifier")
        if loaded.labels.name
        else ("that were", "the threshold was", "detector")
    )
    return (
        f"On memes {group} held out inside training; {chosen} chosen on the same predictions,"
        f" so an outer test is a little lower (see {command} eval --folds)."
    )


def choose_settings(loaded: Loaded, options: TrainOptions) -> tuple[FastSettings, Embedder | None]:
    """Settings of a preset and encoders; images that are read or seen become blocks of theirs."""
    settings = choose_preset(options.preset, [example.text for example in loaded.examples])
    blocks, dense = settings.blocks, settings.dense
    if options.ocr:
        blocks = (*blocks, FeatureBlock("ocr", "chars", 0.7))
    if options.image_statistics:
        dense = (*dense, Dense("image", 0.3))
    encoder = open_embedders(settings, options.embedder, options.pictures)
    if isinstance(encoder, SeeingEmbedder):
        if not any(example.image is not None for example in loaded.examples):
            raise InputError(
                f"{loaded.name}: no meme has its picture", hint="add the images to the release"
            )
        dense = (*dense, Dense("picture", _PICTURE, encoder.width))
    settings = replace(
        settings, blocks=blocks, dense=dense, inner=options.inner, type_head=options.types
    )
    return settings, encoder
