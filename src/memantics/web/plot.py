"""Small SVG charts: values with their confidence intervals on a shared scale.

Positions are percentages, so that a chart fills its table cell. Colours are classes of the page's
style sheet, since the content security policy forbids inline styles. Names come from data, so
``templates/drawings.svg`` escapes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from markupsafe import Markup

from memantics.core.prompt import draw as draw_macro
from memantics.core.records import Score, format_value, show_span

TONES = 8
draw = partial(draw_macro, Path(__file__).with_name("page_templates") / "drawings.svg")
_EDGE = 3.0
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of values that several charts share."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> str:
        """Return the position of a value in per cent of the chart width, limited to 0 to 100.

        >>> Scale(0, 1, 0.25).at(0.5)
        '50.00%'
        """
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{_EDGE + share * (100 - 2 * _EDGE):.2f}%"

    @property
    def ticks(self) -> tuple[float, ...]:
        """The values at which guide lines are drawn."""
        count = round((self.high - self.low) / self.step)
        return tuple(self.low + place * self.step for place in range(count + 1))


@dataclass(frozen=True, slots=True)
class Mark:
    """One value to draw; ``tone`` sets colour and shape (None: not from a model run)."""

    name: str
    score: Score
    tone: int | None

    @property
    def words(self) -> str:
        """The value with its confidence interval, in words.

        >>> Mark("m", Score("accuracy", 0.5, 10, 0.2, 0.8), 0).words
        'm: 0.500 (0.200–0.800), n = 10'
        """
        span = show_span(self.score)
        inside = f" ({span})" if span else ""
        count = f", n = {self.score.n}" if self.score.n else ""
        return f"{self.name}: {format_value(self.score.value)}{inside}{count}"

    @property
    def kind(self) -> str:
        """The CSS class of the mark."""
        return "trivial" if self.tone is None else f"tone{self.tone % TONES}"

    @property
    def shape(self) -> int:
        """The index of the shape (0 to 3); the last is for values not from a model run."""
        return 3 if self.tone is None else self.tone % 3


@dataclass(frozen=True, slots=True)
class ForestLine:
    """A difference between two systems with its bounds and task; ``sure``: significant."""

    task: str
    name: str
    values: tuple[float, float | None, float | None]
    sure: bool = False


def fit_scale(scores: Iterable[Score | None]) -> Scale:
    """Return the axis range: 0 to 1 if all values fit, else -1 to 1, else rounded bounds.

    >>> fit_scale([Score("accuracy", 0.4, 10, 0.2, 0.6)])
    Scale(low=0.0, high=1.0, step=0.25)
    >>> fit_scale([Score("error", 3.1, 10)])
    Scale(low=0.0, high=4.0, step=1.0)
    """
    values = [
        value
        for score in scores
        if score is not None
        for value in (score.value, score.low, score.high)
        if value is not None and math.isfinite(value)
    ]
    low, high = min(values, default=0.0), max(values, default=1.0)
    # Confidence bounds of proportions may miss 0 and 1 by a rounding error.
    if low >= -_TINY and high <= 1 + _TINY:
        return Scale(0.0, 1.0, 0.25)
    if low >= -1 - _TINY and high <= 1 + _TINY:
        return Scale(-1.0, 1.0, 0.5)
    low, high = min(low, 0.0), max(high, 0.0)
    size = 10 ** math.floor(math.log10((high - low) / 2))
    step = float(next(n * size for n in (1, 2, 5, 10) if (high - low) / (n * size) <= 5))
    return Scale(math.floor(low / step) * step, math.ceil(high / step) * step, step)


def draw_axis(scale: Scale) -> Markup:
    """Draw the numbers of the axis above a column of charts."""
    return draw("axis", scale)


def draw_strip(marks: Sequence[Mark], scale: Scale, reference: float | None = None) -> Markup:
    """Draw marks below each other on guide lines; ``reference`` adds a vertical line."""
    title = "; ".join(mark.words for mark in marks) or "no figure"
    return draw("strip", marks, scale, reference, title)


def draw_key(tone: int | None) -> Markup:
    """Draw a single mark for a legend."""
    return draw("key", Mark("", Score("", None, 0), tone))


def draw_radar(names: Sequence[str], values: Sequence[float | None], top: float) -> Markup:
    """Draw a radar chart with one spoke per name; a missing value is at the centre."""
    top, spokes = top or 1.0, []

    def at(place: int, share: float) -> tuple[float, float]:
        turn = 2 * math.pi * place / len(names) - math.pi / 2
        return 150.0 + 66.0 * share * math.cos(turn), 92.0 + 66.0 * share * math.sin(turn)

    levels = [[share] * len(names) for share in (0.25, 0.5, 0.75, 1.0)]
    levels.append([(value or 0.0) / top for value in values])
    rings = [
        " ".join("{:.1f},{:.1f}".format(*at(*spoke)) for spoke in enumerate(level))
        for level in levels
    ]
    for place, name in enumerate(names):
        x, _ = end = at(place, 1.0)
        side = "middle" if abs(x - 150.0) < 9 else "start" if x > 150.0 else "end"
        spokes.append((name, side, end, at(place, 1.1)))
    said = zip(names, values, strict=True)
    title = "; ".join(f"{name}: {'–' if value is None else f'{value:.2f}'}" for name, value in said)
    return draw("radar", rings, spokes, f"outer ring {top:.2f}; {title}")


def draw_curve(points: Sequence[Score], across: str) -> Markup:
    """Draw a curve of proportions with intervals; ``across`` labels the x-axis."""

    def up(value: float) -> float:
        return 10 + 120.0 * (1 - min(max(value, 0.0), 1.0))

    return draw("curve", [Mark(score.label, score, 0) for score in points], across, up)


def draw_forest(lines: Sequence[ForestLine]) -> str:
    """Draw a forest plot as a separate file; significant differences have another colour.

    >>> draw_forest([ForestLine("mquest/qa", "a → b", (0.1, 0.0, 0.2))]).count("<circle")
    1
    """
    reach = max((abs(v) for line in lines for v in line.values if v is not None), default=0.0)
    reach = reach or 1.0
    tasks = sum(one.task != other.task for one, other in pairwise(lines)) + bool(lines)
    height = 34 + 20 * (len(lines) + tasks) + 10

    def place(value: float) -> str:
        return f"{420 + 360 / 2 * (1 + value / (1.1 * reach)):.1f}"

    ticks = (-reach, -reach / 2, 0.0, reach / 2, reach)
    return str(draw("forest", lines, ticks, place, height)) + "\n"
