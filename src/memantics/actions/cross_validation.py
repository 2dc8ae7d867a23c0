"""Cross-validation of a detector's preset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from memantics.actions.detect import Measured
from memantics.detector.evaluation import cross_validate, evaluate, make_trainer
from memantics.detector.examples import Loaded
from memantics.detector.heads import choose_preset
from memantics.detector.judges import open_embedder
from memantics.detector.robustness import Robustness, measure_leakage

__all__ = ["Validation", "validate_preset"]


@dataclass(frozen=True, slots=True)
class Validation:
    """How a preset is cross-validated: kind and number of folds, and where meanings come from."""

    preset: str = "fast"
    folds: Literal["blocks", "random"] = "blocks"
    count: int | None = None
    embedder: Path | None = None
    near_duplicates: bool = False


def validate_preset(
    data: Loaded,
    validation: Validation,
    on_fold: Callable[[int, int], None] = lambda _done, _all: None,
) -> Measured:
    """Cross-validate a preset; near-duplicates are counted between its folds."""
    chosen = choose_preset(validation.preset, [example.text for example in data.examples])
    settings = replace(chosen, inner=validation.folds)
    trainer = make_trainer(settings, open_embedder(settings, validation.embedder))
    study = cross_validate(data.examples, trainer, settings.inner, validation.count, on_fold)
    report = None
    if validation.near_duplicates:
        leakage = measure_leakage(study.examples, study.predictions, folds=study.folds)
        report = Robustness((), leakage, ("disguises are tried on a detector file",))
    title = f"Preset {settings.preset}, {study.count} {study.split} folds of {data.name}"
    found = evaluate(study.examples, study.predictions)
    return Measured(title, data, study.predictions, found, report)
