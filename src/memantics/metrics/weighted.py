"""Metrics of scored cases under weights, for bootstrap intervals and re-weighting.

Resampling groups of cases gives each case a weight, and so does re-weighting the cases to another
composition of memes. Each metric is therefore a function of the weights alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from memantics.metrics.classification import macro_f1
from memantics.metrics.interval import settle_span
from memantics.metrics.rounding import Floats, settle

MetricName = Literal[
    "accuracy",
    "mean",
    "macro_f1",
    "f1",
    "recall",
    "precision",
    "false_positive_rate",
    "auroc",
    "calibration_error",
]
_BINS = 10


@dataclass(frozen=True, slots=True)
class Case:
    """One scored prediction. Cases of one ``group`` are not independent; ``tags`` describe one.

    ``probability`` is that of the positive class if the metric has one, else that of the
    prediction. For the metric ``mean``, ``probability`` contains the value to average.
    """

    id: str
    group: str
    gold: str
    said: str | None
    probability: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric of scored cases, with its positive class if it has one."""

    metric: MetricName
    positive: str = ""

    @property
    def name(self) -> str:
        """The name of the metric in tables.

        >>> MetricSpec("f1", "pun").name
        'f1 of pun'
        """
        spoken = self.metric.replace("_", " ").replace("macro f1", "macro-F1")
        return f"{spoken} of {self.positive}" if self.positive else spoken


@dataclass(frozen=True, slots=True)
class Measure:
    """The value of a metric with its interval over groups; None if undefined."""

    value: float | None
    low: float | None
    high: float | None
    cases: int
    groups: int


def measure(
    cases: Sequence[Case], spec: MetricSpec, weights: Floats | None = None, resamples: int = 1000
) -> Measure:
    """Compute a metric and its 95% confidence interval, resampling whole groups.

    >>> cases = [Case(str(n), str(n // 2), "a", "a" if n % 4 else "b") for n in range(40)]
    >>> found = measure(cases, MetricSpec("accuracy"))
    >>> found.value, found.cases, found.groups, found.low < 0.75 < found.high
    (0.75, 40, 20, True)
    """
    case_weights = np.ones(len(cases)) if weights is None else weights
    rate = prepare(cases, spec)
    order: dict[str, int] = {}
    places = np.array([order.setdefault(case.group, len(order)) for case in cases], np.int64)
    value = rate(case_weights) if len(cases) else None
    low, high = None, None
    if value is not None and len(order) > 1:
        rng = np.random.default_rng(0)
        drawn = rng.multinomial(len(order), np.full(len(order), 1 / len(order)), size=resamples)
        if spec.metric == "calibration_error":
            resampled = (case_weights * row[places] for row in drawn)
            span = _calibration_span(cases, spec.positive, case_weights, resampled)
            return Measure(value, *span, len(cases), len(order))
        found = [
            own_value
            for row in drawn
            if (own_value := rate(case_weights * row[places])) is not None
        ]
        if len(found) > resamples // 2:
            bounds = None if spec.metric == "mean" else (0.0, 1.0)
            low, high = settle_span(np.array(found), value, len(order), bounds) or (None, None)
    return Measure(value, low, high, len(cases), len(order))


def prepare(cases: Sequence[Case], spec: MetricSpec) -> Callable[[Floats], float | None]:
    """Return a metric as a function of the case weights; its value is None if undefined."""
    if spec.metric in ("auroc", "calibration_error"):
        make = _prepare_auroc if spec.metric == "auroc" else _prepare_calibration
        return make(cases, spec.positive)
    if spec.metric == "macro_f1":
        return _prepare_macro_f1(cases)
    if spec.metric == "mean":
        values = np.array([_probability(case) for case in cases])
        return lambda weights: _share(float(weights @ values), float(weights.sum()))
    gold = np.array([case.gold == spec.positive for case in cases], bool)
    said = np.array([case.said == spec.positive for case in cases], bool)
    right = np.array([case.said == case.gold for case in cases], bool)
    parts: Mapping[str, tuple[Floats, Floats]] = {
        "accuracy": (1.0 * right, np.ones(len(cases))),
        "recall": (1.0 * (gold & said), 1.0 * gold),
        "precision": (1.0 * (gold & said), 1.0 * said),
        "false_positive_rate": (1.0 * (~gold & said), 1.0 * ~gold),
        "f1": (2.0 * (gold & said), 1.0 * gold + said),
    }
    part, whole = parts[spec.metric]
    return lambda weights: _share(float(weights @ part), float(weights @ whole))


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _prepare_macro_f1(cases: Sequence[Case]) -> Callable[[Floats], float | None]:
    names = {case.gold for case in cases} | {case.said for case in cases if case.said is not None}
    classes = {name: place for place, name in enumerate(sorted(names))}
    count = len(classes)
    gold = np.array([classes[case.gold] for case in cases], np.int64)
    said = np.array([classes.get(case.said or "", count) for case in cases], np.int64)

    def rate(weights: Floats) -> float | None:
        hits = np.bincount(gold[gold == said], weights[gold == said], count)
        claims = np.bincount(said, weights, count + 1)[:count]
        members = np.bincount(gold, weights, count)
        value = float(
            macro_f1(np.asarray(hits, float), np.asarray(claims, float), np.asarray(members, float))
        )
        return None if math.isnan(value) else value

    return rate


def _prepare_auroc(cases: Sequence[Case], positive: str) -> Callable[[Floats], float | None]:
    chances = np.array([_probability(case) for case in cases], float)
    known, places = np.unique(settle(chances), return_inverse=True)
    gold = np.array([case.gold == positive for case in cases], bool)

    def rate(weights: Floats) -> float | None:
        yes = np.bincount(places, weights * gold, len(known))
        no = np.bincount(places, weights * ~gold, len(known))
        below = np.cumsum(no) - no
        pairs = yes.sum() * no.sum()
        return _share(float(yes @ (below + no / 2)), float(pairs))

    return rate


def _prepare_calibration(cases: Sequence[Case], positive: str) -> Callable[[Floats], float | None]:
    """Calibration error: mean gap of probability and observed proportion, in equal-sized bins."""
    gaps = _prepare_gaps(cases, positive)

    def rate(weights: Floats) -> float | None:
        found = gaps(weights)
        return None if found is None else float(np.abs(found).sum())

    return rate


def _prepare_gaps(cases: Sequence[Case], positive: str) -> Callable[[Floats], Floats | None]:
    """Probability minus observed proportion of each bin, times the bin's part of all weights."""
    chances = np.array([_probability(case) for case in cases], float)
    held = np.array([case.gold == (positive or case.said) for case in cases], float)
    ranks = np.argsort(np.argsort(settle(chances), kind="stable"), kind="stable")
    bins = ranks * min(_BINS, max(1, len(cases))) // max(1, len(cases))

    def compute(weights: Floats) -> Floats | None:
        total = float(weights.sum())
        if total <= 0:
            return None
        return np.asarray(np.bincount(bins, weights * (chances - held), _BINS) / total, float)

    return compute


def _calibration_span(
    cases: Sequence[Case], positive: str, weights: Floats, resampled: Iterable[Floats]
) -> tuple[float | None, float | None]:
    """95% confidence interval of the calibration error, from ``resampled`` case weights.

    Noise in a bin adds to its absolute gap: the error of a perfectly calibrated model is positive,
    and that of a resample is larger still. Percentiles of resamples therefore start above the
    value. The true error is at least the value minus the summed absolute noise of all bins, by the
    triangle inequality; the lower bound uses the 97.5% quantile of this noise over resamples. The
    upper bound is that of the resamples, less their mean excess over the value.
    """
    compute = _prepare_gaps(cases, positive)
    whole = compute(weights)
    found = [gaps for row in resampled if (gaps := compute(row)) is not None]
    if whole is None or not found:
        return None, None
    table, value = np.array(found), float(np.abs(whole).sum())
    errors = np.abs(table).sum(axis=1)
    noise = np.percentile(np.abs(table - whole).sum(axis=1), 97.5)
    excess = max(0.0, float(errors.mean()) - value)
    high = max(value, float(np.percentile(errors, 97.5)) - excess)
    return max(0.0, value - float(noise)), min(1.0, high)


def _probability(case: Case) -> float:
    if case.probability is None:
        raise ValueError(f"case {case.id} has no probability")
    return case.probability
