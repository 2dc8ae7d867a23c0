"""Outcomes of the three tasks to figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from memantics.benchmarks.toxicn_mm.rows import MODALITIES, TARGETS
from memantics.benchmarks.toxicn_mm.rows import TYPES as TYPE_NAMES
from memantics.benchmarks.toxicn_mm.wording import HARMFUL, HARMLESS, NOBODY
from memantics.core.records import Outcome, Score
from memantics.metrics.classification import (
    ClassCounts,
    MulticlassIntervals,
    count_classes,
    f1,
    macro_figures,
    multiclass_intervals,
)
from memantics.tasks.factories import share_by_tag, share_right, spanned

MACRO_NOTE = "unweighted mean over the classes that occur"
HARMFUL_NOTE = "F1 of the harmful class; no answer is a miss, not a claim of harm"


def score_detection(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Macro figures, F1 of the harmful class; accuracy by modality, type and target."""
    counts, spans = _count(outcomes, (HARMLESS, HARMFUL))
    span = spans.f1_by_class[HARMFUL]
    members = sum(o.item.gold == HARMFUL for o in outcomes)
    return (
        *_macro(counts, spans, len(outcomes)),
        spanned(Score("f1_harmful", f1(counts[HARMFUL]), members, note=HARMFUL_NOTE), span),
        share_right("accuracy", outcomes),
        *share_by_tag(outcomes, "modality", (*MODALITIES, HARMLESS)),
        *share_by_tag(outcomes, "type", [name for name in TYPE_NAMES if name != "none"]),
        *share_by_tag(outcomes, "target", TARGETS),
    )


def score_type(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Macro figures over five classes, F1 of each; accuracy by modality and target."""
    return (
        *_score_classes(outcomes, TYPE_NAMES, "type"),
        *share_by_tag(outcomes, "modality", (*MODALITIES, HARMLESS)),
        *share_by_tag(outcomes, "target", TARGETS),
    )


def score_target(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Macro figures over the targets, F1 of each; accuracy by modality."""
    return (
        *_score_classes(outcomes, (*TARGETS, NOBODY), "target"),
        *share_by_tag(outcomes, "modality", (*MODALITIES, HARMLESS)),
    )


def _score_classes(outcomes: Sequence[Outcome], classes: Sequence[str], by: str) -> list[Score]:
    counts, spans = _count(outcomes, classes)
    rows = [*_macro(counts, spans, len(outcomes)), share_right("accuracy", outcomes)]
    for name in classes:
        class_counts = counts[name]
        if class_counts.occurs:
            span = spans.f1_by_class[name]
            rows.append(
                spanned(
                    Score(
                        "f1", f1(class_counts), class_counts.tp + class_counts.fn, by=by, label=name
                    ),
                    span,
                )
            )
    return rows


def _count(
    outcomes: Sequence[Outcome], classes: Sequence[str]
) -> tuple[dict[str, ClassCounts], MulticlassIntervals]:
    gold = [str(o.item.gold) for o in outcomes]
    said = [cast("str | None", o.value) if o.status == "answered" else None for o in outcomes]
    memes = [o.item.group for o in outcomes]
    return count_classes(gold, said, classes), multiclass_intervals(gold, said, classes, memes)


def _macro(
    counts: dict[str, ClassCounts], spans: MulticlassIntervals, n: int
) -> tuple[Score, Score, Score]:
    found = macro_figures(counts)
    return (
        spanned(Score("macro_f1", found.f1, n, note=MACRO_NOTE), spans.f1),
        spanned(Score("macro_precision", found.precision, n, note=MACRO_NOTE), spans.precision),
        spanned(Score("macro_recall", found.recall, n, note=MACRO_NOTE), spans.recall),
    )
