"""Figures of multiple-choice answers: accuracy over items, over groups, over kinds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from memantics.metrics.interval import Floats, bootstrap, sum_by_cluster


def accuracy(hits: Sequence[bool]) -> float | None:
    """Share of right answers.

    >>> accuracy([True, True, False, False])
    0.5
    """
    return sum(map(bool, hits)) / len(hits) if hits else None


def group_hits(
    hits: Iterable[bool], groups: Iterable[Hashable], kinds: Iterable[str], needed: frozenset[str]
) -> dict[Hashable, bool]:
    """Groups that have every needed kind, with whether **all** their items are right.

    >>> group_hits([True, True, True, False], ["a", "a", "b", "a"], ["T", "R", "T", "R"],
    ...            frozenset("TR"))
    {'a': False}
    """
    all_right: dict[Hashable, bool] = {}
    seen: dict[Hashable, set[str]] = {}
    for hit, group, kind in zip(hits, groups, kinds, strict=True):
        all_right[group] = all_right.get(group, True) and bool(hit)
        seen.setdefault(group, set()).add(kind)
    return {group: right for group, right in all_right.items() if needed <= seen[group]}


def accuracy_by(hits: Sequence[bool], kinds: Sequence[str]) -> dict[str, float]:
    """Accuracy of each kind.

    >>> accuracy_by([True, False, True], ["x", "x", "y"])
    {'x': 0.5, 'y': 1.0}
    """
    split: dict[str, list[bool]] = {}
    for hit, kind in zip(hits, kinds, strict=True):
        split.setdefault(kind, []).append(bool(hit))
    return {kind: sum(part) / len(part) for kind, part in split.items()}


def macro(values: Mapping[str, float]) -> float | None:
    """Unweighted mean over kinds.

    >>> macro({"x": 0.5, "y": 1.0})
    0.75
    """
    return sum(values.values()) / len(values) if values else None


def macro_interval(
    hits: Sequence[bool], kinds: Sequence[str], clusters: Sequence[Hashable]
) -> tuple[float, float] | None:
    """Bootstrap interval of the macro average, clusters kept together.

    >>> macro_interval([True] * 8, ["x", "y"] * 4, [0, 0, 1, 1, 2, 2, 3, 3])
    (1.0, 1.0)
    """
    names = sorted(set(kinds))
    rows = np.zeros((len(hits), 2 * len(names)))
    for row, hit, kind in zip(rows, hits, kinds, strict=True):
        place = names.index(kind)
        row[place] = bool(hit)
        row[len(names) + place] = 1
    if not names:
        return None

    def statistic(sums: Floats) -> Floats:
        # A rare kind may be absent from a draw: that draw averages over the others.
        rates: Floats = sums[:, : len(names)] / sums[:, len(names) :]
        means: Floats = np.nanmean(rates, axis=1)
        return means

    return bootstrap(sum_by_cluster(rows, clusters), statistic)
