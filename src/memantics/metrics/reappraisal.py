"""Metrics of rated meme reappraisals: target emotion reached, content kept, emotion shifted.

A judgement of a reappraised meme is eight numbers in the order of :data:`METRICS`, six of them on a
scale from 1 to 5. Four components are computed from them: TAS (target alignment), CFS (content
fidelity), SSS (shift strength) and RFS (all three together). The components are not linear. The
mean of the samples' components therefore differs from the components of a run's mean ratings; both
are computed, under different names.

The maximum of SSS is 1 - exp(-3) = 0.9502, and that of RFS is 0.9841. If the target emotion is
missed but all other ratings are perfect, RFS is 0.0975 and not 0, since it is a soft conjunction by
design.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from memantics.metrics.agreement import cohen_kappa
from memantics.metrics.interval import Span, include, resample_sums, sum_by_cluster
from memantics.metrics.rounding import Floats

METRICS = ("vgq", "vea", "tgq", "tea", "lc", "hgq", "ppe", "pes")
COMPONENTS = ("tas", "cfs", "sss", "rfs")
KEYS = (*METRICS, *COMPONENTS, *(f"{name}_run" for name in COMPONENTS))
Combine = Literal["soft", "product"]
ALPHA = 3.0
FLOOR = 1e-3
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Formula:
    """The formulas that combine ratings: the curve of SSS, and the combination of scores to RFS."""

    combine: Combine = "soft"
    alpha: float = ALPHA
    floor: float = FLOOR


PAPER = Formula()


def unit(rating: ArrayLike) -> Floats:
    """Map a rating from 1 to 5 to the range 0 to 1.

    >>> unit([1, 2, 3, 4, 5, 0]).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0, 0.0]
    """
    return _clamp((np.asarray(rating, dtype=np.float64) - 1) / 4)


def align_target(hit: ArrayLike, visual: ArrayLike, text: ArrayLike) -> Floats:
    """TAS (target alignment): hit times the harmonic mean of both emotion accuracies.

    >>> float(align_target(1, 0.5, 1).round(6)), float(align_target(0, 1, 1))
    (0.666667, 0.0)
    """
    a, b = np.asarray(visual, dtype=np.float64), np.asarray(text, dtype=np.float64)
    mean = np.where(a + b <= _TINY, 0.0, 2 * a * b / (a + b + _TINY))
    return _clamp(np.asarray(hit, dtype=np.float64) * mean)


def keep_content(layout: ArrayLike, visual: ArrayLike, text: ArrayLike, whole: ArrayLike) -> Floats:
    """CFS (content fidelity): layout rating times the geometric mean of three quality ratings.

    >>> float(keep_content(1, 0.5, 0.5, 0.5).round(6)), float(keep_content(0, 1, 1, 1))
    (0.5, 0.0)
    """
    parts = [np.maximum(np.asarray(v, dtype=np.float64), _TINY) for v in (visual, text, whole)]
    mean = np.cbrt(parts[0] * parts[1] * parts[2])
    return _clamp(np.asarray(layout, dtype=np.float64) * mean)


def shift_strength(shift: ArrayLike, alpha: float = ALPHA) -> Floats:
    """SSS (shift strength): the emotional shift on a saturating curve.

    >>> float(shift_strength(1).round(4)), float(shift_strength(0))
    (0.9502, 0.0)
    """
    return _clamp(1 - np.exp(-alpha * _clamp(np.asarray(shift, dtype=np.float64))))


def combine_fidelity(
    tas: ArrayLike,
    cfs: ArrayLike,
    sss: ArrayLike,
    combine: Combine = "soft",
    floor: float = FLOOR,
) -> Floats:
    """Combine the parts of the reappraisal fidelity score (RFS) of MER-Bench.

    ``combine`` selects the paper's shifted geometric mean (``soft``) or the product of its authors'
    script.

    >>> float(combine_fidelity(1, 1, shift_strength(1)).round(4))
    0.9841
    >>> float(combine_fidelity(0, 1, shift_strength(1)).round(4))
    0.0975
    >>> float(combine_fidelity(0.5, 0.5, 0.5, "product"))
    0.125
    """
    parts = [_clamp(np.asarray(value, dtype=np.float64)) for value in (tas, cfs, sss)]
    if combine == "product":
        return _clamp(parts[0] * parts[1] * parts[2])
    logs = sum(np.log(floor + part) for part in parts)
    return _clamp((np.exp(logs / 3) - floor) / (1 - floor))


def components(units: Floats, formula: Formula = PAPER) -> Floats:
    """Compute TAS, CFS, SSS and RFS; the last axis of the input holds the eight metrics in [0, 1].

    >>> components(np.ones((1, 8))).round(4).tolist()
    [[1.0, 1.0, 0.9502, 0.9841]]
    """
    vgq, vea, tgq, tea, lc, hgq, ppe, pes = (units[..., i] for i in range(len(METRICS)))
    tas = align_target(ppe, vea, tea)
    cfs = keep_content(lc, vgq, tgq, hgq)
    sss = shift_strength(pes, formula.alpha)
    rfs = combine_fidelity(tas, cfs, sss, formula.combine, formula.floor)
    return np.stack([tas, cfs, sss, rfs], axis=-1)


@dataclass(frozen=True, slots=True)
class RunMetric:
    """Mean over runs with a 95% confidence interval; ``sd`` is the SD over runs (None: one run)."""

    value: float
    sd: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ReappraisalSummary:
    """All reappraisal metrics of :data:`KEYS`; ``judged`` counts distinct judgements."""

    metrics: dict[str, RunMetric]
    judged: int
    runs: int


def summarise(
    units: Floats,
    runs: Sequence[Sequence[int]],
    clusters: Sequence[Hashable],
    formula: Formula = PAPER,
    *,
    resamples: int = 1000,
) -> ReappraisalSummary | None:
    """Summarise the judgements of each run (an index may occur twice); None without judgements.

    Means are computed within each run, then over runs. Plain names are means of the samples'
    components; names ending in ``_run`` are components of a run's mean ratings. Confidence
    intervals resample clusters, so they show the uncertainty over memes. ``sd`` does not show it,
    since runs are overlapping samples of one set of judgements.

    >>> found = summarise(np.ones((2, 8)), [[0], [0, 1]], ["a", "b"])
    >>> round(found.metrics["rfs"].value, 4), found.metrics["rfs"].sd, found.runs
    (0.9841, 0.0, 2)
    """
    names = sorted({run for drawn_in in runs for run in drawn_in})
    if not names:
        return None
    place = {run: index for index, run in enumerate(names)}
    each = np.concatenate([units, components(units, formula), np.ones((len(units), 1))], axis=1)
    rows = np.zeros((len(units), len(names), each.shape[1]))
    for row, drawn_in, values in zip(rows, runs, each, strict=True):
        for run in drawn_in:
            row[place[run]] += values
    flat = rows.reshape(len(units), -1)
    drawn = [index for index, drawn_in in enumerate(runs) if drawn_in]
    sums = sum_by_cluster(flat[drawn], [clusters[index] for index in drawn])

    def per_run(totals: Floats) -> Floats:
        parts = totals.reshape(len(totals), len(names), each.shape[1])
        means = parts[..., :-1] / parts[..., -1:]
        columns: Floats = np.concatenate([means, components(means[..., :8], formula)], axis=-1)
        return columns

    points = per_run(sums.sum(axis=0, keepdims=True))[0]
    sds = points.std(axis=0, ddof=1) if len(names) > 1 else None
    spans = _spans(sums, per_run, resamples)
    return ReappraisalSummary(
        {
            key: RunMetric(
                float(points[:, i].mean()),
                None if sds is None else float(sds[i]),
                *((None, None) if spans is None else _hold(spans[:, i], points[:, i].mean())),
            )
            for i, key in enumerate(KEYS)
        },
        len(drawn),
        len(names),
    )


def _spans(sums: Floats, per_run: Callable[[Floats], Floats], resamples: int) -> Floats | None:
    """Percentile intervals of all reappraisal metrics from one set of resamples."""
    if len(sums) < 2:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.concatenate([per_run(part) for part in resample_sums(sums, resamples)])
    # A run may have no judgement in a resample, which then averages over the other runs.
    there = ~np.isnan(values[..., 0])
    counted = there.sum(axis=1)
    kept = counted > 0
    total = np.where(there[..., None], values, 0.0).sum(axis=1)[kept]
    spans: Floats = np.percentile(total / counted[kept, None], [2.5, 97.5], axis=0)
    return spans


def _hold(span: Floats, value: float) -> Span:
    """Return an interval that contains the value."""
    return include((float(span[0]), float(span[1])), float(value))


def _clamp(value: Floats) -> Floats:
    clamped: Floats = np.clip(value, 0.0, 1.0)
    return clamped


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Agreement of two raters, and their Cohen's kappa (None if a rater never varies)."""

    share: float
    kappa: float | None


def agree(one: Sequence[bool], other: Sequence[bool]) -> RaterAgreement | None:
    """Agreement of two binary raters, with Cohen's kappa.

    >>> agree([True, True, False, False], [True, False, False, False])
    RaterAgreement(share=0.75, kappa=0.5)
    >>> agree([True, True], [True, True])
    RaterAgreement(share=1.0, kappa=None)
    """
    n = len(one)
    if n == 0:
        return None
    share = sum(a == b for a, b in zip(one, other, strict=True)) / n
    return RaterAgreement(share, cohen_kappa(one, other))
