"""Rows of findings: shares and means with intervals that keep a meme's items together."""

from __future__ import annotations

from collections.abc import Sequence

from memantics.core.records import Score
from memantics.metrics.comparison import paired_bootstrap
from memantics.metrics.rounding import settle

_SURE = 3.291 / 1.96  # half of a 99.9 % interval, of half of a 95 % one


def mean(
    values: Sequence[float], groups: Sequence[str], by: str = "", label: str = "", key: str = "mean"
) -> Score:
    """A mean over items.

    >>> mean([1.0, 3.0], ["a", "a"]).value
    2.0
    """
    found = paired_bootstrap(values, groups)
    low, high = (found.low, found.high) if found else (None, None)
    value = sum(values) / len(values) if values else None
    return Score(key, value, len(values), low, high, by, label)


def place(score: Score, by: str = "", label: str = "") -> Score:
    """A figure as a row of a breakdown, or on its own.

    >>> place(Score("f1", 0.5, 9, note="x"), "run", "blind").label
    'blind'
    """
    return Score(score.key, score.value, score.n, score.low, score.high, by, label)


def is_above(score: Score, bound: float) -> bool:
    """Whether a figure lies above a bound at 99.9 %, since a page holds several such tests.

    >>> is_above(Score("share", 0.5, 99, 0.4, 0.6), 0.33)
    True
    >>> is_above(Score("share", 0.5, 99, 0.4, 0.6), 0.34)
    False
    """
    if score.value is None:
        return False
    low = score.value if score.low is None else score.low
    return bool(settle(score.value - _SURE * (score.value - low)) > settle(bound))
