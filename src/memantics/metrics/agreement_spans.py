"""95 % intervals of agreement: items are drawn again, with all that people said about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from memantics.metrics.agreement import Label, Level, Row
from memantics.metrics.interval import Floats, bootstrap, sum_by_cluster

Span = tuple[float, float]
_DRAWS = 1000


def agreement_spans(
    rows: Sequence[Row],
    level: Level = "nominal",
    *,
    clusters: Sequence[Hashable] | None = None,
    labels: int = 0,
) -> dict[str, Span]:
    """Intervals of ``fleiss``, ``alpha``, ``ac1`` and, for numbers, ``icc``, where they have one.

    ``clusters`` names the item of each row, where an item has several. All four are functions of
    sums over items, so that a thousand draws are one product of matrices.

    >>> rows = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]] * 20
    >>> low, high = agreement_spans(rows)["alpha"]
    >>> round(low, 2), round(high, 2)
    (0.38, 0.71)
    """
    kept = [place for place, row in enumerate(rows) if sum(one is not None for one in row) > 1]
    units = [[one for one in rows[place] if one is not None] for place in kept]
    if len(units) < 2:
        return {}
    names: list[Any] = sorted({label for unit in units for label in unit}, key=_rank)
    counts = np.array([[Counter(unit)[name] for name in names] for unit in units], float)
    by = [clusters[place] if clusters is not None else place for place in kept]
    found = {
        "fleiss": _fleiss(counts, by),
        "alpha": _alpha(counts, by, names, level),
        "ac1": _ac1(counts, by, max(labels, len(names))),
    }
    if level != "nominal":
        found["icc"] = _icc(units, by)
    return {name: span for name, span in found.items() if span is not None}


def _rank(label: Label) -> tuple[float, str]:
    return (float(label), "") if isinstance(label, int | float) else (0.0, str(label))


def _pairs(counts: Floats) -> tuple[Floats, Floats]:
    sizes = counts.sum(axis=1)
    return sizes, (counts * (counts - 1)).sum(axis=1) / (sizes * (sizes - 1))


def _fleiss(counts: Floats, by: Sequence[Hashable]) -> Span | None:
    sizes, agreeing = _pairs(counts)
    common = Counter(sizes.tolist())
    size = max(common, key=lambda one: (common[one], one))
    mine = sizes == size
    columns = np.column_stack([mine, agreeing * mine, counts * mine[:, None] / size])

    def kappa(sums: Floats) -> Floats:
        expected = ((sums[:, 2:] / sums[:, :1]) ** 2).sum(axis=1)
        return np.asarray((sums[:, 1] / sums[:, 0] - expected) / (1 - expected))

    return bootstrap(sum_by_cluster(columns, by), kappa, draws=_DRAWS)


def _ac1(counts: Floats, by: Sequence[Hashable], labels: int) -> Span | None:
    if labels < 2:
        return None
    sizes, agreeing = _pairs(counts)
    columns = np.column_stack([np.ones(len(counts)), agreeing, counts / sizes[:, None]])

    def beyond(sums: Floats) -> Floats:
        shares = sums[:, 2:] / sums[:, :1]
        expected = (shares * (1 - shares)).sum(axis=1) / (labels - 1)
        return np.asarray((sums[:, 1] / sums[:, 0] - expected) / (1 - expected))

    return bootstrap(sum_by_cluster(columns, by), beyond, draws=_DRAWS)


def _alpha(
    counts: Floats, by: Sequence[Hashable], names: Sequence[Any], level: Level
) -> Span | None:
    sizes = counts.sum(axis=1)
    first, second = np.triu_indices(len(names), 1)
    met = 2 * counts[:, first] * counts[:, second] / (sizes - 1)[:, None]
    if level == "nominal":  # one distance for all pairs: their sum is enough
        met = met.sum(axis=1, keepdims=True)
    values = np.array(names, float) if level == "interval" else np.zeros(len(names))

    def alpha(sums: Floats) -> Floats:
        totals = sums[:, met.shape[1] :]
        n = totals.sum(axis=1)
        if level == "nominal":
            expected = n**2 - (totals**2).sum(axis=1)
            return np.asarray(1 - (n - 1) * sums[:, 0] / expected)
        places = np.broadcast_to(values, totals.shape)
        if level == "ordinal":
            places = np.cumsum(totals, axis=1) - totals / 2
        apart = (places[:, first] - places[:, second]) ** 2
        expected = 2 * (totals[:, first] * totals[:, second] * apart).sum(axis=1)
        return np.asarray(1 - (n - 1) * (sums[:, : met.shape[1]] * apart).sum(axis=1) / expected)

    return bootstrap(sum_by_cluster(np.hstack([met, counts]), by), alpha, draws=_DRAWS)


def _icc(units: Sequence[Sequence[Any]], by: Sequence[Hashable]) -> Span | None:
    centre = float(np.mean([value for unit in units for value in unit]))
    columns = np.array(
        [
            (1, len(v), len(v) ** 2, v.sum(), v.sum() ** 2 / len(v), (v**2).sum())
            for v in (np.array(unit, float) - centre for unit in units)
        ]
    )

    def icc(sums: Floats) -> Floats:
        k, n, squares, total, parts, raw = sums.T
        between = (parts - total**2 / n) / (k - 1)
        within = (raw - parts) / (n - k)
        size = (n - squares / n) / (k - 1)
        return np.asarray((between - within) / (between + (size - 1) * within))

    return bootstrap(sum_by_cluster(columns, by), icc, draws=_DRAWS)
