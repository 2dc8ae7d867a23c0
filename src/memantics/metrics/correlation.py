"""Whether two figures put the same things in the same order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from memantics.metrics.interval import Floats, percentile_span
from memantics.metrics.rounding import settle


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; None where a side does not vary.

    >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 4), spearman([1, 1, 1], [1, 2, 3])
    (0.8, None)
    """
    if len(first) < 3:
        return None
    ours, theirs = (_rank(group) - (len(group) + 1) / 2 for group in (first, second))
    size = float(np.sqrt((ours**2).sum() * (theirs**2).sum()))
    return float((ours * theirs).sum()) / size if size > 0 else None


def _rank(values: Sequence[float] | Floats) -> Floats:
    """Ranks from 1; values that are alike share the mean of theirs.

    >>> _rank([10, 30, 10, 20]).tolist()
    [1.5, 4.0, 1.5, 3.0]
    """
    _, places, counts = np.unique(
        settle(np.asarray(values)), return_inverse=True, return_counts=True
    )
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks


def spearman_span(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    draws: int = 500,
    seed: int = 0,
) -> tuple[float, float] | None:
    """95 % interval of Spearman's correlation, resampling whole clusters (memes).

    >>> values = [float(n % 7) for n in range(40)]
    >>> spearman_span(values, values, list(range(40)))
    (1.0, 1.0)
    """
    ours, theirs = np.asarray(first, float), np.asarray(second, float)
    places: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        places.setdefault(cluster, []).append(place)
    groups = [np.array(numbers) for numbers in places.values()]
    if len(groups) < 3:
        return None
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        drawn = np.concatenate(
            [groups[integer] for integer in rng.integers(0, len(groups), len(groups))]
        )
        value = spearman(ours[drawn], theirs[drawn])
        if value is not None:
            found.append(value)
    return percentile_span(np.array(found)) if found else None
