"""``detector wrap``: a classifier of others becomes a detector, calibrated on rows of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from memantics.core.errors import InputError
from memantics.core.language import read_language
from memantics.core.parameters import Argument, Flag
from memantics.core.result import Result
from memantics.metrics.rounding import Floats, Ints
from memantics.moderation import wrapped
from memantics.moderation.calibration import choose_threshold
from memantics.moderation.card import ModelCard, write_card
from memantics.moderation.data import LabelVersionFlag, load_examples
from memantics.moderation.detect import Detector
from memantics.moderation.evaluation import DetectorEvaluation, evaluate
from memantics.moderation.examples import Loaded, need_labels, need_two_classes, split_random
from memantics.moderation.heads import FEWEST, need_training
from memantics.moderation.operating_points import list_operating_points
from memantics.moderation.pages import draw_thresholds

_FOLDS = 5
_LIMITS = (
    "Its weights were trained by others; what they learnt from is in their card, if anywhere.",
    "Its labels mean here what the map says they do.",
    "It was fitted to one time and place; words change, and so do obfuscations.",
    "It is a filter for people who decide, not a judge: look at what it finds.",
)


@dataclass(frozen=True, slots=True)
class WrappedDetector(Result):
    """The file of a wrapped classifier, and its figures where rows were given to calibrate on."""

    file: Path
    card: Path
    kind: str
    architecture: str
    data: Loaded | None = None
    metrics: DetectorEvaluation | None = None


def wrap_classifier(
    folder: Annotated[Path, Argument("Folder of a classifier, as transformers saves it.")],
    meanings: Annotated[
        Path, Flag("TOML: which of its labels are harmful, harmless, or a type of harm.", "--map")
    ],
    *,
    data: Annotated[
        str | None, Flag("Labelled rows to calibrate on, named as in train. Default: none.")
    ] = None,
    split: Annotated[str, Flag("Part of a release: train, test or all.")] = "train",
    labels: LabelVersionFlag = "v1",
    out: Annotated[Path, Flag("The file to write.")] = Path("wrapped.json"),
) -> WrappedDetector:
    """Make a detector of a text, image or image-text classifier, and write it with its card."""
    judge = wrapped.wrap_folder(folder, wrapped.read_map(meanings), str(meanings))
    loaded = None if data is None else load_examples(data, split, labels)
    found = None
    if loaded is not None:
        judge, found = calibrate(judge, loaded)
    card = _make_card(judge, loaded, found)
    facts = {**judge.card, **card.dump(), "languages": _find_languages(judge, loaded)}
    wrapped.save_wrapped(out, judge.file.model_copy(update={"card": facts}))
    Detector.load(out)  # what was written is what is opened
    picture = draw_thresholds(found.thresholds) if found else ""
    page, _ = write_card(card, out, picture)
    classifier = judge.classifier
    return WrappedDetector(out, page, classifier.kind, classifier.architecture, loaded, found)


def calibrate(
    judge: wrapped.WrappedJudge, loaded: Loaded
) -> tuple[wrapped.WrappedJudge, DetectorEvaluation]:
    """Fit probabilities and the threshold; figures are on rows that their calibration left out."""
    need_training()
    need_labels(loaded.examples, loaded.name)
    truth = np.array([int(example.label or 0) for example in loaded.examples], np.int64)
    need_two_classes(truth.tolist(), loaded.name)
    if len(truth) < FEWEST or min(loaded.counts.values()) < 2:
        few = f"give at least {FEWEST}, two of each label"
        raise InputError(f"{len(truth)} rows are too few to calibrate on", hint=few)
    logits = judge.score(loaded.examples)
    odds, _ = judge.weigh(logits)
    chances = _hold_out(odds, truth)
    slope, shift = wrapped.fit_platt(odds, truth)
    threshold = choose_threshold(chances, truth)
    pairs = [(chance, label == 1) for chance, label in zip(chances.tolist(), truth, strict=True)]
    card = {
        "threshold": threshold,
        "sample": loaded.sample,
        "operating_points": list_operating_points(pairs),
    }
    update = {"slope": slope, "shift": shift, "card": card}
    made = wrapped.WrappedJudge(judge.classifier, judge.file.model_copy(update=update))
    said = made.name_predictions(loaded.examples, logits, chances)
    return made, evaluate(loaded.examples, said, threshold)


def _hold_out(odds: Floats, truth: Ints) -> Floats:
    """Probabilities of each row by a calibration on the other folds."""
    folds = split_random(
        [str(label) for label in truth], min(_FOLDS, int(np.bincount(truth).min()))
    )
    chances = np.zeros(len(truth))
    for fold in np.unique(folds):
        held = folds == fold
        slope, shift = wrapped.fit_platt(odds[~held], truth[~held])
        chances[held] = wrapped.make_probabilities(slope * odds[held] + shift)
    return chances


def _find_languages(judge: wrapped.WrappedJudge, loaded: Loaded | None) -> list[str]:
    """Those that the map names, else those of the rows; a classifier of pictures needs none."""
    named = [read_language(name) for name in judge.file.meanings.languages]
    found = named or ([] if loaded is None else loaded.list_languages())
    if judge.reads_texts and not found:
        raise InputError(
            "which languages it reads is not known",
            hint='write languages = ["en"] into the map, or give --data',
        )
    return found


def _make_card(
    judge: wrapped.WrappedJudge, loaded: Loaded | None, found: DetectorEvaluation | None
) -> ModelCard:
    classifier, file = judge.classifier, judge.file
    data = loaded or Loaded("none: its probabilities are the classifier's", (), licence="none")
    chosen = "the classifier's own probabilities, harmful from 0.5"
    if found is not None:
        chosen = (
            f"Platt's scaling (slope {file.slope:.4g}, shift {file.shift:.4g}) on all rows,"
            f" threshold {found.threshold:.3f} on rows held out of it; the weights are untouched"
        )
    return ModelCard(
        name=f"{classifier.architecture} from {Path(file.folder).name}, wrapped",
        data=data.name,
        licence=data.licence,
        checksum=data.checksum,
        examples=len(data.examples),
        harmful=data.counts["harmful"],
        skipped=len(data.skips),
        settings={
            "kind": classifier.kind,
            "digest": file.digest,
            "map": file.meanings.model_dump(),
        },
        selection=chosen,
        metrics={} if found is None else {"harmful": found.harmful, "types": found.types},
        metrics_note="" if found is None else "On rows that their calibration left out.",
        limits=_LIMITS,
        notes=(*data.notes, f"licence of the weights, as the map says: {file.meanings.licence}"),
        targets=() if found is None else found.targets,
        thresholds=() if found is None else found.thresholds,
        threshold=0.5 if found is None else found.threshold,
    )
