"""Training a detector of harm or of any other labels: its options, what judges, figures, card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from memantics.actions.detector_data import CAPTIONS_HELP, Version, describe_texts
from memantics.core.errors import InputError
from memantics.core.parameters import Flag
from memantics.detector.card import ModelCard, make_card
from memantics.detector.disguises import augment
from memantics.detector.evaluation import Evaluation, evaluate
from memantics.detector.examples import Loaded
from memantics.detector.fast import FastSettings, Trained, TypeHead, fit, fit_labels
from memantics.detector.features import Dense, Embedder, FeatureBlock
from memantics.detector.folds import Split
from memantics.detector.heads import AUTO, choose_preset, need_training
from memantics.detector.judges import FastJudge, open_embedders, read_images
from memantics.detector.label_evaluation import LabelEvaluation, evaluate_labels
from memantics.detector.operating_points import list_operating_points
from memantics.detector.opinions import measure_sure
from memantics.detector.pictures import SeeingEmbedder

_PICTURE = 1.0  # how much a picture weighs beside the words of the text
PresetName = Annotated[
    str,
    Flag(
        "auto (by language), fast, words, linear, ridge, readings, static, full or words-full"
        " (with meanings)."
    ),
]
Part = Annotated[str, Flag("train, test or all of a release, or FILE.json:PART of a split file.")]
Encoder = Annotated[Path | None, Flag("Folder of a text encoder, for meanings by another one.")]
ImageEncoder = Annotated[
    Path | None, Flag("Folder of a vision model (CLIP, SigLIP) for pictures.", "--image-encoder")
]


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Choices of a training beside its data.

    ``preset`` ``auto`` takes ``fast`` for Chinese texts and ``words`` for others; those that end in
    ``full`` also compare meanings. ``split`` is a part of a release (default: ``train`` of harm,
    ``all`` of other labels), ``data`` starter, release, or a file. ``embedder`` is the folder of a
    text encoder, ``pictures`` that of a vision model (CLIP, SigLIP, …) through which pictures are
    seen, ``captions`` a file with captions by any model. ``inner`` says how examples of harm are
    held out to calibrate and choose, ``types`` whether types stand beside the decision or after
    it. ``ocr`` reads the images, ``image_statistics`` adds light, colour and edges, ``disguised``
    is the share of examples of harm that is added in disguise.
    """

    preset: PresetName = AUTO
    split: Part = ""
    data: str | None = None
    embedder: Encoder = None
    pictures: ImageEncoder = None
    captions: Annotated[Path | None, Flag(CAPTIONS_HELP)] = None
    labels: Version = "v1"
    inner: Annotated[
        Split, Flag("How examples are held out inside training, to calibrate and choose.")
    ] = "random"
    types: Annotated[
        TypeHead, Flag("Types beside the decision (flat) or after it (hierarchical).")
    ] = "flat"
    ocr: Annotated[bool, Flag("Read the images and use what they say.")] = False
    image_statistics: Annotated[bool, Flag("Add light, colour and edges.")] = False
    disguised: Annotated[float, Flag("Share of examples to add in disguise.", min=0, max=1)] = 0.0


def train_judge(
    loaded: Loaded, options: TrainOptions
) -> tuple[FastJudge, Loaded, Evaluation | LabelEvaluation, ModelCard]:
    """Train on labels of any kind: what judges, the data as used, figures and the model card."""
    need_training()
    settings, encoder = choose_settings(loaded, options)
    if options.ocr:
        examples, missed = read_images(loaded.examples)
        more = (f"{missed} images could not be read",) if missed else ()
        loaded = replace(loaded, examples=examples, notes=(*loaded.notes, *more))
    grown = augment(loaded.examples, options.disguised) if not loaded.labels.name else None
    if grown is None:
        trained = fit_labels(loaded, settings, encoder)
    else:
        trained = fit(grown.examples, settings, encoder, grown.origins)
    found, card, facts = describe_trained(loaded, trained)
    return FastJudge(trained.detector, encoder, facts), loaded, found, card


def describe_trained(
    loaded: Loaded, trained: Trained
) -> tuple[Evaluation | LabelEvaluation, ModelCard, dict[str, object]]:
    """Figures on held-out memes, the model card, and all that is stored with a detector."""
    known: dict[str, object]
    found: Evaluation | LabelEvaluation
    if loaded.labels.name:
        found = evaluate_labels(loaded, trained.said)
        known = {"topic": loaded.topic, **measure_sure(loaded.gold, trained.said)}
    else:
        # Disguised copies of a meme are no further memes: figures are on those that are real.
        said = trained.held_out[: len(loaded.examples)]
        found = evaluate(loaded.examples, said, trained.detector.decision.threshold)
        pairs = [(p.probability, e.label == 1) for p, e in zip(said, loaded.examples, strict=True)]
        known = {"operating_points": list_operating_points(pairs)}
    card = make_card(trained.detector, loaded, found, _describe_held_out(loaded))
    facts = {"sample": loaded.sample, **card.dump(), **describe_texts(loaded.texts), **known}
    return found, card, facts


def _describe_held_out(loaded: Loaded) -> str:
    expert = bool(loaded.labels.name)
    return (
        f"On memes {'whose group was' if expert else 'that were'} held out inside training;"
        f" {'thresholds were' if expert else 'the threshold was'} chosen on the same predictions,"
        f" so an outer test is a little lower (see {'expert' if expert else 'detector'} eval"
        " --folds)."
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
