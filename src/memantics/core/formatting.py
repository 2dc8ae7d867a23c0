"""Show values and confidence intervals as text."""

from __future__ import annotations

from memantics.core.records import Score

_ABSENT = "–"


def show_figure(value: float | None) -> str:
    """Three decimals; a dash for what is undefined.

    >>> show_figure(0.6), show_figure(-0.0001), show_figure(None)
    ('0.600', '0.000', '–')
    """
    return _ABSENT if value is None else f"{value:z.3f}"


def show_span(score: Score | None) -> str:
    """The 95 % interval.

    >>> show_span(Score("accuracy", 0.5, 10, 0.2, 0.8)), show_span(Score("r", 0, 9, -0.2, 0.3))
    ('0.200–0.800', '-0.200 to 0.300')
    """
    if score is None or score.low is None or score.high is None:
        return ""
    low, high = show_figure(score.low), show_figure(score.high)
    return f"{low} to {high}" if low.startswith("-") else f"{low}–{high}"
