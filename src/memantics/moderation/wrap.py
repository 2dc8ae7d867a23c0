"""Wrap a transformers classifier as a detector, and calibrate it on labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from memantics.moderation.examples import (
    Example,
    Loaded,
    need_labels,
    need_two_classes,
    split_random,
)
from memantics.moderation.heads import FEWEST, need_training
from memantics.moderation.identity import NEEDS_IMAGE, measure_identity_terms
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.pages import draw_thresholds
from memantics.moderation.rules import count_scores

_FOLDS = 5
_LIMITS = (
    "Its weights are from a third party; see their model card for the training data.",
    "The meaning of its labels is defined by the label map.",
    "It was trained on data of one time and place: new words and obfuscations reduce its accuracy.",
    "It is a filter for human reviewers: do not act on its verdicts without review.",
)


@dataclass(frozen=True, slots=True)
class WrappedDetector(Result):
    """A wrapped classifier: its file and, with calibration rows, its metrics."""

    file: Path
    card: Path
    kind: str
    architecture: str
    data: Loaded | None = None
    metrics: DetectorEvaluation | None = None


def wrap_classifier(
    folder: Annotated[Path, Argument("Folder of a classifier in transformers format.")],
    meanings: Annotated[
        Path, Flag("TOML file that maps labels to harmful, harmless or a harm type.", "--map")
    ],
    *,
    data: Annotated[
        str | None, Flag("Labelled rows for calibration, as in train. Default: not calibrated.")
    ] = None,
    split: Annotated[str, Flag("Split of a release: train, test or all.")] = "train",
    labels: LabelVersionFlag = "v1",
    out: Annotated[Path, Flag("File to write.")] = Path("wrapped.json"),
) -> WrappedDetector:
    """Wrap a text, image or image-text classifier as a detector, and write it with its card."""
    judge = wrapped.wrap_folder(folder, wrapped.read_map(meanings), str(meanings))
    loaded = None if data is None else load_examples(data, split, labels)
    found = None
    if loaded is not None:
        judge, found = calibrate(judge, loaded)
    languages = _find_languages(judge, loaded)
    card = _check_identity(_make_card(judge, loaded, found), judge, languages)
    facts = {**judge.card, **card.dump(), "languages": languages}
    wrapped.save_wrapped(out, judge.file.model_copy(update={"card": facts}))
    Detector.load(out)  # raises if the written file cannot be opened
    picture = draw_thresholds(found.thresholds) if found else ""
    page, _ = write_card(card, out, picture)
    classifier = judge.classifier
    return WrappedDetector(out, page, classifier.kind, classifier.architecture, loaded, found)


def calibrate(
    judge: wrapped.WrappedJudge, loaded: Loaded
) -> tuple[wrapped.WrappedJudge, DetectorEvaluation]:
    """Fit calibration and threshold; metrics are measured on rows held out from calibration.

    Raises InputError if there are too few rows.
    """
    need_training()
    need_labels(loaded.examples, loaded.name)
    truth = np.array([int(example.label or 0) for example in loaded.examples], np.int64)
    need_two_classes(truth.tolist(), loaded.name)
    if len(truth) < FEWEST or min(loaded.counts.values()) < 2:
        few = f"give at least {FEWEST}, two of each label"
        raise InputError(f"{len(truth)} rows are too few for calibration", hint=few)
    logits = judge.score(loaded.examples)
    odds, _ = judge.weigh(logits)
    chances = _hold_out(odds, truth)
    slope, shift = wrapped.fit_platt(odds, truth)
    threshold = choose_threshold(chances, truth)
    pairs = [(chance, label == 1) for chance, label in zip(chances.tolist(), truth, strict=True)]
    card = {
        "threshold": threshold,
        "sample": loaded.sample,
        "held_out_scores": count_scores(pairs).dump(),
    }
    update = {"slope": slope, "shift": shift, "card": card}
    made = wrapped.WrappedJudge(judge.classifier, judge.file.model_copy(update=update))
    said = made.name_predictions(loaded.examples, logits, chances)
    return made, evaluate(loaded.examples, said, threshold)


def _hold_out(odds: Floats, truth: Ints) -> Floats:
    """Compute the probability of each row with a calibration on the other folds."""
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
    """Return the languages of the label map, else of the labelled rows.

    Image classifiers need no language.
    """
    named = [read_language(name) for name in judge.file.meanings.languages]
    found = named or ([] if loaded is None else loaded.list_languages())
    if judge.reads_texts and not found:
        raise InputError(
            "the languages of the classifier are unknown",
            hint='add languages = ["en"] to the map, or give --data',
        )
    return found


def _check_identity(
    card: ModelCard, judge: wrapped.WrappedJudge, languages: Sequence[str]
) -> ModelCard:
    """Add false positive rates on identity terms, or a note if the classifier needs images."""
    if judge.sees_images:
        return replace(card, notes=(*card.notes, NEEDS_IMAGE))

    def score(texts: Sequence[str]) -> list[float]:
        said = judge.predict([Example(str(n), text) for n, text in enumerate(texts)])
        return [one.probability for one in said]

    point = OperatingPoint(0.5 if card.threshold is None else card.threshold)
    return replace(card, identity=measure_identity_terms(score, point, languages))


def _make_card(
    judge: wrapped.WrappedJudge, loaded: Loaded | None, found: DetectorEvaluation | None
) -> ModelCard:
    classifier, file = judge.classifier, judge.file
    data = loaded or Loaded("none (not calibrated)", (), licence="none")
    chosen = "the classifier's own probabilities, threshold 0.5"
    if found is not None:
        chosen = (
            f"Platt's scaling (slope {file.slope:.4g}, shift {file.shift:.4g}) on all rows,"
            f" threshold {found.threshold:.3f} on held-out rows; the weights are unchanged"
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
        metrics_note="" if found is None else "On rows held out from calibration.",
        limits=_LIMITS,
        notes=(
            *data.notes,
            f"licence of the weights according to the map: {file.meanings.licence}",
        ),
        targets=() if found is None else found.targets,
        thresholds=() if found is None else found.thresholds,
        threshold=0.5 if found is None else found.threshold,
    )
