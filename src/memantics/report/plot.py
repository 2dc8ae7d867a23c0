"""Small SVG drawings: figures with their intervals on one shared scale.

Positions are percentages, so a drawing fills its table cell and stays crisp; colours
are classes of the page's style sheet, which forbids inline styles. Names come from data, so
they are escaped here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memantics.core.records import Score
from memantics.report.leaderboard import show_figure, show_span

TONES = 8
SHAPES = (
    Markup('<circle r="4.5"/>'),
    Markup('<path d="M-4-4H4V4H-4z"/>'),
    Markup('<path d="M0-5.2 5 4H-5z"/>'),
    Markup('<path d="M0-5.6 5.6 0 0 5.6-5.6 0z"/>'),
)
_LINE = 15
_EDGE = 3.0
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """The range that a set of drawings shares."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> str:
        """The place of a value, in per cent of the width; values beyond stay at the edge.

        >>> Scale(0, 1, 0.25).at(0.5)
        '50.00%'
        """
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{_EDGE + share * (100 - 2 * _EDGE):.2f}%"

    @property
    def ticks(self) -> tuple[float, ...]:
        """The values at which a guide line stands."""
        count = round((self.high - self.low) / self.step)
        return tuple(self.low + place * self.step for place in range(count + 1))


@dataclass(frozen=True, slots=True)
class Mark:
    """One figure to draw: ``tone`` picks colour and shape, None means no model run here."""

    name: str
    score: Score
    tone: int | None


def fit_scale(scores: Iterable[Score | None]) -> Scale:
    """0 to 1 where everything fits, else -1 to 1, else round bounds around the figures.

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
    # Bounds of shares may miss 0 and 1 by a rounding error.
    if low >= -_TINY and high <= 1 + _TINY:
        return Scale(0.0, 1.0, 0.25)
    if low >= -1 - _TINY and high <= 1 + _TINY:
        return Scale(-1.0, 1.0, 0.5)
    low, high = min(low, 0.0), max(high, 0.0)
    size = 10 ** math.floor(math.log10((high - low) / 2))
    step = float(next(n * size for n in (1, 2, 5, 10) if (high - low) / (n * size) <= 5))
    return Scale(math.floor(low / step) * step, math.ceil(high / step) * step, step)


def draw_axis(scale: Scale) -> Markup:
    """The numbers above a column of strips."""
    numbers = Markup("").join(
        Markup('<text x="{}" y="12">{}</text>').format(scale.at(tick), f"{tick:g}")
        for tick in scale.ticks
    )
    return Markup('<svg class="axis" width="100%" height="16" aria-hidden="true">{}</svg>').format(
        numbers
    )


def draw_strip(marks: Sequence[Mark], scale: Scale, reference: float | None = None) -> Markup:
    """Marks below one another on guide lines; ``reference`` is drawn through all of them."""
    height = _LINE * max(len(marks), 1) + 8
    guides = [_rule("guide", scale.at(tick)) for tick in scale.ticks]
    if reference is not None:
        guides.append(_rule("reference", scale.at(reference)))
    drawn = [
        _draw_mark(mark, scale, f"{100 * (place + 0.5) / len(marks):.2f}%")
        for place, mark in enumerate(marks)
    ]
    title = "; ".join(describe(mark) for mark in marks) or "no figure"
    return Markup(
        '<svg class="strip" width="100%" height="{}" role="img"><title>{}</title>{}{}</svg>'
    ).format(height, title, Markup("").join(guides), Markup("").join(drawn))


def draw_key(tone: int | None) -> Markup:
    """A mark alone, for legends."""
    return Markup(
        '<svg class="key" width="14" height="14" aria-hidden="true">'
        '<svg class="mark {}" x="7" y="7" overflow="visible">{}</svg></svg>'
    ).format(_tone(tone), _shape(tone))


def draw_radar(names: Sequence[str], values: Sequence[float | None], top: float) -> Markup:
    """A polygon over spokes, one for each name; a value that is missing is the middle."""
    middle, radius = (150.0, 92.0), 66.0
    top = top or 1.0

    def at(place: int, share: float) -> tuple[float, float]:
        turn = 2 * math.pi * place / len(names) - math.pi / 2
        return (
            middle[0] + radius * share * math.cos(turn),
            middle[1] + radius * share * math.sin(turn),
        )

    def ring(shares: Sequence[float], kind: str) -> Markup:
        points = " ".join(
            f"{x:.1f},{y:.1f}" for x, y in (at(*numbers) for numbers in enumerate(shares))
        )
        return Markup('<polygon class="{}" points="{}"/>').format(kind, points)

    parts = [ring([share] * len(names), "ring") for share in (0.25, 0.5, 0.75, 1.0)]
    for place, name in enumerate(names):
        x, y = at(place, 1.0)
        parts.append(
            Markup('<line class="spoke" x1="{}" y1="{}" x2="{:.1f}" y2="{:.1f}"/>').format(
                *middle, x, y
            )
        )
        side = "middle" if abs(x - middle[0]) < 9 else "start" if x > middle[0] else "end"
        x, y = at(place, 1.1)
        parts.append(
            Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
                x, y + 2.5, side, name
            )
        )
    parts.append(ring([(value or 0.0) / top for value in values], "area"))
    said = zip(names, values, strict=True)
    title = "; ".join(f"{name}: {'–' if entry is None else f'{entry:.2f}'}" for name, entry in said)
    return Markup(
        '<svg class="radar" viewBox="-70 -6 440 200" role="img"><title>{}</title>{}</svg>'
    ).format(f"outer ring {top:.2f}; {title}", Markup("").join(parts))


def draw_curve(points: Sequence[Score], across: str) -> Markup:
    """Shares from left to right with their intervals; ``across`` says what grows to the right."""
    width, height, left = 90, 120.0, 40

    def up(value: float) -> float:
        return 10 + height * (1 - min(max(value, 0.0), 1.0))

    parts = [
        Markup(
            '<line class="guide" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>'
            '<text x="{3}" y="{4}" text-anchor="end">{5:g}</text>'
        ).format(left, left + width * len(points), up(tick), left - 6, up(tick) + 4, tick)
        for tick in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    for place, score in enumerate(points):
        x, value = left + width * (place + 0.5), score.value or 0.0
        low, high = (value if bound is None else bound for bound in (score.low, score.high))
        parts.append(
            Markup(
                '<g class="tone0"><title>{}</title><line class="whisker" x1="{}" x2="{}" '
                'y1="{:.1f}" y2="{:.1f}"/>'
                '<svg class="mark" x="{}" y="{:.1f}" overflow="visible">{}</svg></g>'
                '<text x="{}" y="146" text-anchor="middle">{}</text>'
            ).format(
                describe(Mark(score.label, score, 0)),
                *(
                    x,
                    x,
                    up(low),
                    up(high),
                    x,
                    up(value),
                    SHAPES[0],
                    x,
                    score.label.rsplit("meme ")[-1],
                ),
            )
        )
    middle = left + width * len(points) / 2
    parts.append(
        Markup('<text x="{}" y="164" text-anchor="middle">{}</text>').format(middle, across)
    )
    return Markup(
        '<svg class="curve" viewBox="0 0 {} 170" width="{}" role="img"><title>{}</title>{}</svg>'
    ).format(left + width * len(points), left + width * len(points), across, Markup("").join(parts))


def describe(mark: Mark) -> str:
    """A figure in words.

    >>> describe(Mark("m", Score("accuracy", 0.5, 10, 0.2, 0.8), 0))
    'm: 0.500 (0.200–0.800), n = 10'
    """
    span = show_span(mark.score)
    inside = f" ({span})" if span else ""
    count = f", n = {mark.score.n}" if mark.score.n else ""
    return f"{mark.name}: {show_figure(mark.score.value)}{inside}{count}"


def _draw_mark(mark: Mark, scale: Scale, y: str) -> Markup:
    score, parts = mark.score, []
    if score.low is not None and score.high is not None:
        parts.append(
            Markup('<line class="whisker" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                scale.at(score.low), scale.at(score.high), y, y
            )
        )
    if score.value is not None:
        parts.append(
            Markup('<svg class="mark" x="{}" y="{}" overflow="visible">{}</svg>').format(
                scale.at(score.value), y, _shape(mark.tone)
            )
        )
    return Markup('<g class="{}"><title>{}</title>{}</g>').format(
        _tone(mark.tone), describe(mark), Markup("").join(parts)
    )


def _rule(kind: str, x: str) -> Markup:
    return Markup('<line class="{}" x1="{}" x2="{}" y1="0" y2="100%"/>').format(kind, x, x)


def _tone(tone: int | None) -> str:
    return "trivial" if tone is None else f"tone{tone % TONES}"


def _shape(tone: int | None) -> Markup:
    return SHAPES[3] if tone is None else SHAPES[tone % 3]
