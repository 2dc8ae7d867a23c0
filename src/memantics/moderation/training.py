"""Training of detectors and classifiers, export, predictions, and the default detector."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson

from memantics.core.errors import InputError
from memantics.core.files import read_regular, replace_file
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result, Table
from memantics.core.text import cut_off
from memantics.moderation import operating_points, rules
from memantics.moderation.card import ModelCard, make_card
from memantics.moderation.classifiers import (
    DETECTOR,
    find_in_use,
    forget_in_use,
    measure_sure,
    set_in_use,
)
from memantics.moderation.counterfactual import add_counterfactuals
from memantics.moderation.data import CAPTIONS_HELP, LabelVersionFlag, describe_texts
from memantics.moderation.evaluation import DetectorEvaluation, evaluate
from memantics.moderation.examples import Example, FoldScheme, Loaded
from memantics.moderation.fast import (
    FastDetector,
    LabelPrediction,
    Prediction,
    Trained,
    fit,
    fit_labels,
)
from memantics.moderation.features import Dense, Embedder, FeatureBlock
from memantics.moderation.heads import (
    AUTO,
    FastSettings,
    SeeingEmbedder,
    TypeHead,
    choose_preset,
    need_training,
    use_one_thread,
)
from memantics.moderation.identity import measure_identity_terms
from memantics.moderation.judges import (
    FastJudge,
    OpenDetector,
    open_embedders,
    open_fast,
    open_judge,
    read_images,
)
from memantics.moderation.label_errors import describe_label_issues
from memantics.moderation.labels import LabelEvaluation, evaluate_labels
from memantics.moderation.neural.saved import export_onnx, is_neural
from memantics.moderation.obfuscation import Augmented, augment
from memantics.moderation.storage import load, save
from memantics.moderation.wrapped import WrappedJudge, save_wrapped

_WIDTH = 34
COUNTERFACTUAL = "counterfactual"  # metadata of a detector that was trained with such copies


def use_detector(path: str | Path) -> Path:
    """Make a detector the default in ``analyze``, ``screen`` and ``serve``; return its path.

    Raises InputError if the file is not a detector.
    """
    place = Path(path).absolute()
    open_judge(place)
    set_in_use(DETECTOR, place)
    return place


def forget_detector() -> None:
    """Make the sample detector the default again."""
    forget_in_use(DETECTOR)


def find_detector(path: str | Path | None = None) -> Path | None:
    """Return the given detector, else the default one; None if there is neither."""
    return Path(path) if path is not None else find_in_use(DETECTOR)


def tabulate(examples: Sequence[Example], said: Sequence[Prediction], most: int = 40) -> Table:
    """Show the first predictions as a table, with the texts they are about."""
    rows = []
    for example, found in list(zip(examples, said, strict=True))[:most]:
        named = found.label and not found.not_scored and found.type not in (None, "none")
        kind = f", {found.type}" if named else ""
        doubt = (
            ", unlike the training texts" if found.out_of_domain and not found.not_scored else ""
        )
        doubt = doubt or (", needs human review" if found.review else "")
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
    """An exported detector file with its size and checksum."""

    file: str
    bytes: int
    sha256: str


def export(
    model: Annotated[Path, Argument("Detector file.")],
    out: Annotated[Path, Flag("File to write.")],
) -> ExportedDetector:
    """Export a detector as one file that loads without PyTorch, and check that it loads."""
    if is_neural(model) and model.is_dir():
        export_onnx(model, out)
    else:
        judge = open_fast(model)
        save(judge.detector, out, judge.card)
        load(out)
    body = read_regular(out)
    return ExportedDetector(str(out), len(body), hashlib.sha256(body).hexdigest())


@dataclass(frozen=True, slots=True)
class PointSet(Result):
    """The stored operating point of a detector, with its precision and recall."""

    file: str
    point: operating_points.OperatingPoint
    lines: tuple[str, ...]


def set_point(
    model: Annotated[Path, Argument("Detector file.")],
    *,
    operating_point: rules.RuleFlag = "",
    volume: rules.VolumeFlag = "",
    threshold: operating_points.ThresholdFlag = None,
    review_range: operating_points.ReviewRangeFlag = None,
    homophones: Annotated[
        bool, Flag("Also score homophone readings of Chinese texts (10 to 100 ms per text).")
    ] = False,
    clear: Annotated[bool, Flag("Remove the stored operating point.")] = False,
) -> PointSet:
    """Set the default threshold and review range of a detector.

    Args:
        model: Detector file.
        operating_point: Rule that chooses the operating point on held-out memes, such as
            ``precision=0.9``, ``reviews=50/day`` or ``cost=miss:10,false_positive:1,review:0.2``.
        volume: Memes per time for ``reviews=``, such as ``20000/day``.
        threshold: Probability from which a meme is harmful.
        review_range: Probabilities that need human review.
        homophones: Also score homophone readings of Chinese texts.
        clear: Remove the stored operating point.

    Raises:
        InputError: If no setting is given, or settings are combined with ``clear``.
    """
    given = bool(operating_point) or threshold is not None or review_range is not None or homophones
    if given == clear:
        raise InputError(
            "give either an operating point or --clear",
            hint="for example --operating-point precision=0.9 --review-range 0.3..0.7",
        )
    judge = open_judge(model)
    if not isinstance(judge, WrappedJudge):
        judge = open_fast(model)  # raises InputError for neural networks
    opened = OpenDetector(judge, model.name, model)
    card = {key: judge.card[key] for key in judge.card if key not in ("point", "point_date")}
    point = (
        operating_points.OperatingPoint(opened.threshold)
        if clear
        else opened.choose_point(threshold, operating_point, review_range, volume)
    )
    if not clear:
        point = replace(point, homophones=homophones)
        card |= {"point": asdict(point), "point_date": date.today().isoformat()}
    if isinstance(judge, FastJudge):
        save(judge.detector, model, card)
    else:
        save_wrapped(model, judge.file.model_copy(update={"card": card}))
    lines = opened.describe_point(point)
    if opened.point.homophones and not homophones:
        lines.append("note: homophone readings are no longer scored; add --homophones to keep them")
    return PointSet(str(model), point, tuple(lines))


_PICTURE = 1.0  # weight of image features relative to text features
PresetName = Annotated[
    str,
    Flag(
        "Feature set: auto (by language), fast, words, linear, ridge, readings, static, full or"
        " words-full (with sentence embeddings)."
    ),
]
PartFlag = Annotated[
    str, Flag("Split of a release (train, test or all), or FILE.json:PART of a split file.")
]
EncoderFlag = Annotated[Path | None, Flag("Folder of a text encoder. Default: the bundled one.")]
ImageEncoder = Annotated[
    Path | None,
    Flag("Folder of an image encoder (CLIP, SigLIP). Default: none.", "--image-encoder"),
]


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Training settings of detectors and classifiers.

    Args:
        preset: Feature set; ``auto`` is ``fast`` for Chinese and ``words`` for other languages.
            Presets ending in ``full`` also use sentence embeddings.
        split: Split of a release. Default: ``train`` for harm, ``all`` for other labels.
        embedder: Folder of a text encoder.
        pictures: Folder of an image encoder (CLIP, SigLIP).
        captions: File with captions by any model.
        inner: How examples are held out to calibrate and to choose hyperparameters.
        types: Whether types are predicted independently (``flat``) or given harm
            (``hierarchical``).
        ocr: Read the images by OCR and use their text.
        image_statistics: Add features for brightness, colour and edges.
        obfuscated: Proportion of harm examples that are added as obfuscated copies.
        counterfactual: Add copies of harmless examples that name a group, with other groups.
    """

    preset: PresetName = AUTO
    split: PartFlag = ""
    data: str | None = None
    embedder: EncoderFlag = None
    pictures: ImageEncoder = None
    captions: Annotated[Path | None, Flag(CAPTIONS_HELP)] = None
    labels: LabelVersionFlag = "v1"
    inner: Annotated[
        FoldScheme,
        Flag(
            "Folds of the cross-validation that selects hyperparameters and calibrates "
            "probabilities."
        ),
    ] = "random"
    types: Annotated[
        TypeHead,
        Flag(
            "Predict the type of harm for all memes (flat), or only for harmful ones "
            "(hierarchical)."
        ),
    ] = "flat"
    ocr: Annotated[bool, Flag("Read the images by OCR, and use their text.")] = False
    image_statistics: Annotated[bool, Flag("Add features for brightness, colour and edges.")] = (
        False
    )
    obfuscated: Annotated[
        float, Flag("Proportion of examples to add as obfuscated copies.", min=0, max=1)
    ] = 0.0
    counterfactual: Annotated[
        bool,
        Flag("Add copies of harmless texts that name a group, with the names of other groups."),
    ] = False


def train_judge(
    loaded: Loaded, options: TrainOptions
) -> tuple[FastJudge, Loaded, DetectorEvaluation | LabelEvaluation, ModelCard]:
    """Train a detector or classifier; return it with its data, metrics and model card."""
    need_training()
    with use_one_thread():
        return _train_judge(loaded, options)


def _train_judge(
    loaded: Loaded, options: TrainOptions
) -> tuple[FastJudge, Loaded, DetectorEvaluation | LabelEvaluation, ModelCard]:
    settings, encoder = choose_settings(loaded, options)
    if options.ocr:
        examples, missed = read_images(loaded.examples)
        more = (f"{missed} images could not be read",) if missed else ()
        loaded = replace(loaded, examples=examples, notes=(*loaded.notes, *more))
    loaded = loaded.put_in_order()
    grown = augment(loaded.examples, options.obfuscated) if not loaded.labels.name else None
    if grown is None:
        trained = fit_labels(loaded, settings, encoder)
    else:
        trained, note = fit_augmented(grown, settings, encoder, options.counterfactual)
        loaded = replace(loaded, notes=(*loaded.notes, *note))
        issues = describe_label_issues(loaded, trained.held_out[: len(loaded.examples)])
        loaded = replace(loaded, notes=(*loaded.notes, *issues))
    found, card, facts = describe_trained(loaded, trained, encoder)
    facts |= {COUNTERFACTUAL: True} if options.counterfactual and grown is not None else {}
    return FastJudge(trained.detector, encoder, facts), loaded, found, card


def fit_augmented(
    grown: Augmented,
    settings: FastSettings,
    encoder: Embedder | None,
    counterfactual: bool,
    weights: Sequence[float] = (),
) -> tuple[Trained, tuple[str, ...]]:
    """Train on examples and their copies, with counterfactual copies if requested.

    Args:
        grown: The examples, then their obfuscated copies, if any.
        settings: Features and learner.
        encoder: Encoder of texts or images, if the settings use one.
        counterfactual: Add copies that name other groups.
        weights: Weight of each example without copies. Default: 1.

    Returns:
        The trained detector, and notes on the copies for the model card.
    """
    count = len(set(grown.origins))
    heavy = weights or (1.0,) * count
    if not counterfactual:
        return fit(grown.examples, settings, encoder, grown.origins, heavy), ()
    more = add_counterfactuals(grown.examples[:count])
    examples = (*grown.examples, *more.examples[count:])
    origins = (*grown.origins, *more.origins[count:])
    return fit(examples, settings, encoder, origins, heavy), (more.note,)


def describe_trained(
    loaded: Loaded, trained: Trained, encoder: Embedder | None
) -> tuple[DetectorEvaluation | LabelEvaluation, ModelCard, dict[str, object]]:
    """Return held-out metrics, the model card, and the metadata stored in the file."""
    known: dict[str, object]
    found: DetectorEvaluation | LabelEvaluation
    if loaded.labels.name:
        found = evaluate_labels(loaded, trained.said)
        known = {"topic": loaded.topic, **measure_sure(loaded.gold, trained.said)}
    else:
        # Metrics exclude obfuscated copies.
        said = trained.held_out[: len(loaded.examples)]
        found = evaluate(loaded.examples, said, trained.detector.decision.threshold)
        pairs = [(p.probability, e.label == 1) for p, e in zip(said, loaded.examples, strict=True)]
        known = {"held_out_scores": rules.count_scores(pairs).dump()}
    card = make_card(trained.detector, loaded, found, _describe_held_out(loaded), trained.repeats)
    texts = describe_texts(loaded.texts)
    if not loaded.labels.name:
        point = operating_points.OperatingPoint(trained.detector.decision.threshold or 0.5)
        score = partial(_score, trained.detector, encoder)
        card = replace(card, identity=measure_identity_terms(score, point, texts["languages"]))
    origin = {"source": loaded.source, "columns": dict(loaded.columns)}
    facts = {"sample": loaded.sample, **card.dump(), **texts, **known, **origin}
    return found, card, facts


def _score(detector: FastDetector, encoder: Embedder | None, texts: Sequence[str]) -> list[float]:
    said = detector.predict([Example(str(n), text) for n, text in enumerate(texts)], encoder)
    return [one.probability for one in said]


def _describe_held_out(loaded: Loaded) -> str:
    group, chosen, command = (
        ("whose group was", "thresholds were", "classifier")
        if loaded.labels.name
        else ("that were", "the threshold was", "detector")
    )
    return (
        f"On memes {group} held out in training; {chosen} chosen on the same predictions, so"
        f" these metrics are slightly too high (see {command} eval --folds)."
    )


def choose_settings(loaded: Loaded, options: TrainOptions) -> tuple[FastSettings, Embedder | None]:
    """Make the settings and encoders of a training; OCR and image encoders add feature blocks."""
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
                f"{loaded.name}: no meme has an image", hint="add the images to the release"
            )
        dense = (*dense, Dense("picture", _PICTURE, encoder.width))
    settings = replace(
        settings, blocks=blocks, dense=dense, inner=options.inner, type_head=options.types
    )
    return settings, encoder
