"""Evaluation of detectors: metrics of Table 5 of ToxiCN MM, breakdowns, calibration, baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memantics.core.errors import InputError
from memantics.core.records import Score
from memantics.core.result import Result, Table
from memantics.metrics import classification
from memantics.metrics.interval import wilson
from memantics.metrics.paired import BY_MEME, Clusters, compare_ratios, macro_f1_metric
from memantics.metrics.weighted import Case, MetricSpec, measure
from memantics.moderation.calibration import calibration_error, reliability
from memantics.moderation.examples import LABELS, MODALITIES, TYPES, Example, need_labels
from memantics.moderation.fast import Prediction
from memantics.moderation.operating_points import (
    TargetErrors,
    ThresholdMetrics,
    find_target_errors,
    measure_thresholds,
    rate,
    tabulate_targets,
    tabulate_thresholds,
)


@dataclass(frozen=True, slots=True)
class DetectorEvaluation(Result):
    """All metrics of a detector.

    ``harmful`` and ``types`` have precision, recall, macro-F1 and F1 per class. ``recalls`` is the
    recall by modality of the harm. ``curve`` has mean probability, proportion of harmful memes and
    count per bin. ``targets`` are errors by attacked group. ``thresholds`` are metrics at other
    thresholds; ``threshold`` is the current one.
    """

    count: int
    harmful: tuple[Score, ...]
    types: tuple[Score, ...]
    recalls: tuple[Score, ...]
    baselines: Mapping[str, tuple[float, float | None]]
    curve: tuple[tuple[float, float, int], ...]
    calibration_error: float
    targets: tuple[TargetErrors, ...] = ()
    thresholds: tuple[ThresholdMetrics, ...] = ()
    threshold: float | None = None

    def find(self, key: str, section: str = "harmful") -> float | None:
        """Return one metric by its key (``macro_f1``) from ``harmful`` or ``types``."""
        scores = self.harmful if section == "harmful" else self.types
        return next((score.value for score in scores if score.key == key), None)

    def table(self, title: str = "") -> Table:
        """Show all metrics in per cent with confidence intervals."""
        rows = [
            (task, name_metric(score.key), percent(score.value), show_span(score))
            for task, scores in (("harmful", self.harmful), ("types", self.types))
            for score in scores
        ]
        rows += [
            (f"by {score.by}", f"recall/{score.label}", percent(score.value), show_span(score))
            for score in self.recalls
        ]
        for name, (first, second) in self.baselines.items():
            beside = "" if second is None else f"types {percent(second)}"
            rows.append(("baseline", f"macro-f1 {name}", percent(first), beside))
        return Table(("task", "metric", ">value", ">95 % CI"), tuple(rows), title)

    @property
    def threshold_table(self) -> Table:
        """Precision, recall and flagged rate at other thresholds, as a table."""
        return tabulate_thresholds(self.thresholds, self.threshold)

    @property
    def target_table(self) -> Table | None:
        """Error rates by attacked group, as a table; None if no targets are known."""
        return tabulate_targets(self.targets) if self.targets else None

    def _repr_html_(self) -> str:
        off = f"{self.count:,} memes, calibration error {100 * self.calibration_error:.1f} points"
        shown = [self.table(off), self.threshold_table]
        shown += [self.target_table] if self.target_table else []
        return "".join(table._repr_html_() for table in shown)


def percent(value: float | None) -> str:
    """Format a proportion in per cent.

    >>> percent(0.7512), percent(None)
    ('75.1', '–')
    """
    return "–" if value is None else f"{100 * value:.1f}"


def name_metric(key: str) -> str:
    """Return the display name of a metric; means over classes get the prefix macro.

    >>> [name_metric(key) for key in ("precision", "precision/harmful", "f1/none", "auroc")]
    ['macro-precision', 'precision/harmful', 'f1/none', 'AUROC']
    """
    names = {"precision": "macro-precision", "recall": "macro-recall", "auroc": "AUROC"}
    return names.get(key, key.replace("_", "-"))


def show_span(score: Score) -> str:
    """Format the confidence interval of a score."""
    return "–" if score.low is None else f"{percent(score.low)}–{percent(score.high)}"


def evaluate(
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    threshold: float | None = None,
) -> DetectorEvaluation:
    """Evaluate predictions, with 95 % confidence intervals.

    ``threshold`` is the threshold of the predictions. Raises InputError if an example has no label.
    """
    need_labels(examples, "the data")
    gold = [LABELS[int(e.label or 0)] for e in examples]
    said = [p.name for p in predictions]
    chances = [p.probability for p in predictions]
    truth = [int(e.label or 0) for e in examples]
    curve = tuple(reliability(chances, truth))
    return DetectorEvaluation(
        count=len(examples),
        harmful=(*_score(gold, said, LABELS), *_score_harm(gold, said, chances)),
        types=_score_types(examples, predictions),
        recalls=_score_recalls(examples, predictions),
        baselines=_score_baselines(examples),
        curve=curve,
        calibration_error=calibration_error(curve),
        targets=find_target_errors(examples, [p.label for p in predictions]),
        thresholds=measure_thresholds(
            [(chance, label == 1) for chance, label in zip(chances, truth, strict=True)], threshold
        ),
        threshold=threshold,
    )


def _score(gold: Sequence[str], said: Sequence[str], classes: Sequence[str]) -> tuple[Score, ...]:
    counts = classification.count_classes(gold, said, classes)
    macro = classification.macro_metrics(counts)
    spans = classification.multiclass_intervals(gold, said, classes, list(range(len(gold))))
    n = len(gold)

    def make(key: str, value: float | None, span: tuple[float, float] | None) -> Score:
        low, high = span or (None, None)
        return Score(key, value, n, low, high)

    rows = [
        make("precision", macro.precision, spans.precision),
        make("recall", macro.recall, spans.recall),
        make("macro_f1", macro.f1, spans.f1),
    ]
    rows += [
        make(f"f1/{name}", classification.f1(counts[name]), spans.f1_by_class[name])
        for name in classes
    ]
    return tuple(rows)


def _score_harm(
    gold: Sequence[str], said: Sequence[str], chances: Sequence[float]
) -> Iterator[Score]:
    """Compute precision and recall of the class harmful, and its AUROC."""
    harmful = LABELS[1]
    both = sum(one == two == harmful for one, two in zip(gold, said, strict=True))
    for key, places in (("precision", said), ("recall", gold)):
        found = rate(both, places.count(harmful))
        yield Score(f"{key}/{harmful}", found.value, found.count, found.low, found.high)
    cases = [
        Case(str(place), str(place), label, label, chance)
        for place, (label, chance) in enumerate(zip(gold, chances, strict=True))
    ]
    area = measure(cases, MetricSpec("auroc", harmful))
    yield Score("auroc", area.value, area.cases, area.low, area.high)


def _score_types(
    examples: Sequence[Example], predictions: Sequence[Prediction]
) -> tuple[Score, ...]:
    pairs = [
        (e.type, p.type)
        for e, p in zip(examples, predictions, strict=True)
        if e.type is not None and p.type is not None
    ]
    # Harmless memes always have the type none, so a set of only harmless memes is not scored.
    if all(gold == "none" for gold, _ in pairs):
        return ()
    return _score([str(gold) for gold, _ in pairs], [str(said) for _, said in pairs], TYPES)


def _score_recalls(
    examples: Sequence[Example], predictions: Sequence[Prediction]
) -> tuple[Score, ...]:
    parts: list[tuple[str, str, Callable[[Example], bool]]] = [
        *(("modality", m, lambda e, m=m: e.modality == m) for m in MODALITIES),
        *(("type", t, lambda e, t=t: e.type == t) for t in TYPES[1:]),
    ]
    found = []
    for by, label, keep in parts:
        said = [
            p.label for e, p in zip(examples, predictions, strict=True) if e.label == 1 and keep(e)
        ]
        if said:
            low, high = wilson(sum(said), len(said)) or (None, None)
            rate = sum(said) / len(said)
            found.append(Score("recall", rate, len(said), low, high, by, label))
    return tuple(found)


def _score_baselines(examples: Sequence[Example]) -> dict[str, tuple[float, float | None]]:
    """Compute macro-F1 of trivial baselines, for harm and, if all types are known, for types.

    The random baseline is given by its expected value.
    """
    rate = sum(int(e.label or 0) for e in examples) / len(examples)
    kinds = [str(e.type) for e in examples if e.type is not None]
    shares = [kinds.count(kind) / len(kinds) for kind in TYPES if kind in kinds]
    whole = bool(kinds) and len(kinds) >= 0.99 * len(examples)
    none = kinds.count("none") / len(kinds) if kinds else 0.0
    # Predicting a class at random with its frequency p gives precision, recall and F1 of p.
    members = np.array([1 - rate, rate])
    claims = np.array([[1.0, 0.0], [0.0, 1.0], members])
    firsts = classification.macro_f1(claims * members, claims, members).tolist()
    seconds = (2 * none / (1 + none), None, sum(shares))
    names = ("always harmless", "always harmful", "random by class frequency")
    return {
        name: (first, second / len(shares) if whole and second is not None else None)
        for name, first, second in zip(names, firsts, seconds, strict=True)
    }


@dataclass(frozen=True, slots=True)
class DetectorComparison(Result):
    """Macro-F1 of two detectors; second minus first with confidence interval and p-value.

    ``low``, ``high`` and ``p`` come from one test, a jackknife over memes.
    """

    count: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    only_first: int
    only_second: int
    both: int
    neither: int
    p: float

    def table(self, first: str = "first", second: str = "second") -> Table:
        """Show macro-F1 of both detectors, and memes that only one of them classifies correctly."""
        rows = (
            (first, percent(self.first), f"{self.only_first:,}"),
            (second, percent(self.second), f"{self.only_second:,}"),
        )
        return Table(("", ">macro-F1", ">only this one correct"), rows)

    @property
    def summary(self) -> str:
        """The difference in macro-F1 with its 95 % confidence interval and p-value."""
        span = ""
        if self.low is not None and self.high is not None:
            span = f" (95 %: {100 * self.low:+.1f} to {100 * self.high:+.1f})"
        return (
            f"difference {100 * self.difference:+.1f} points{span}, {self.count:,} memes\n"
            f"{BY_MEME}: p = {self.p:.3g}"
        )

    def _repr_html_(self) -> str:
        return f"{self.table()._repr_html_()}<p>{self.summary}</p>"


def compare(
    examples: Sequence[Example], first: Sequence[Prediction], second: Sequence[Prediction]
) -> DetectorComparison:
    """Compare the harm decisions of two detectors by a jackknife over memes."""
    need_labels(examples, "the data")
    if not len(examples) == len(first) == len(second):
        raise InputError("the predictions are for different memes", hint="give the same --data")
    truth = np.array([int(e.label or 0) for e in examples], np.int64)
    one = np.array([p.label for p in first], np.int64)
    two = np.array([p.label for p in second], np.int64)
    first_f1, second_f1 = (macro_f1_metric(truth.tolist(), said.tolist()) for said in (one, two))
    found = compare_ratios(first_f1, second_f1, Clusters.of(range(len(examples))), bound=1.0)
    right_one, right_two = one == truth, two == truth
    only_first = int((right_one & ~right_two).sum())
    only_second = int((right_two & ~right_one).sum())
    before, after = (classification.place_macro_f1(truth, said, 2) for said in (one, two))
    return DetectorComparison(
        count=len(examples),
        first=before,
        second=after,
        difference=after - before,
        low=found.low if found else None,
        high=found.high if found else None,
        only_first=only_first,
        only_second=only_second,
        both=int((right_one & right_two).sum()),
        neither=int((~right_one & ~right_two).sum()),
        p=found.p if found else 1.0,
    )
