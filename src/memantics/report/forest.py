"""A picture of differences with their intervals, one line each, as a file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from memantics.core.text import mask_unseen

_LINE, _NAMES, _WIDTH, _HEAD = 20, 420, 360, 34
_STYLE = Markup(
    "<style>text{font:12px sans-serif;fill:#222}.task{font-weight:600}.axis{fill:#666}"
    ".guide{stroke:#ddd}.zero{stroke:#666}.span{stroke:#888;stroke-width:2}.dot{fill:#888}"
    ".sure .span{stroke:#0b6}.sure .dot{fill:#0b6}</style>"
)


@dataclass(frozen=True, slots=True)
class ForestLine:
    """A difference with its bounds, under the name of its task; ``sure``: significant."""

    task: str
    name: str
    values: tuple[float, float | None, float | None]
    sure: bool = False


def draw_forest(lines: Sequence[ForestLine]) -> str:
    """Differences around zero; those that are significant are filled in another colour.

    >>> draw_forest([ForestLine("mquest/qa", "a → b", (0.1, 0.0, 0.2))]).count("<circle")
    1
    """
    reach = max((abs(v) for line in lines for v in line.values if v is not None), default=0.0)
    reach = reach or 1.0
    tasks = sum(one.task != other.task for one, other in pairwise(lines)) + bool(lines)
    height = _HEAD + _LINE * (len(lines) + tasks) + 10
    body = Markup("").join([*_draw_axis(reach, height), *_draw_lines(lines, reach)])
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" role="img">'
            "<title>Differences with 95 % intervals</title>"
            '{}<rect width="100%" height="100%" fill="#fff"/>{}</svg>\n'
        ).format(_NAMES + _WIDTH + 20, height, _STYLE, body)
    )


def _place(value: float, reach: float) -> str:
    return f"{_NAMES + _WIDTH / 2 * (1 + value / (1.1 * reach)):.1f}"


def _draw_axis(reach: float, height: int) -> Iterator[Markup]:
    for tick in (-reach, -reach / 2, 0.0, reach / 2, reach):
        x = _place(tick, reach)
        kind = "zero" if tick == 0 else "guide"
        yield Markup('<text class="axis" x="{}" y="16" text-anchor="middle">{}</text>').format(
            x, f"{tick:+.3f}"
        )
        yield Markup('<line class="{}" x1="{}" x2="{}" y1="22" y2="{}"/>').format(
            kind, x, x, height
        )


def _draw_lines(lines: Sequence[ForestLine], reach: float) -> Iterator[Markup]:
    y, task = _HEAD, ""
    for line in lines:
        if line.task != task:
            task = line.task
            yield Markup('<text class="task" x="8" y="{}">{}</text>').format(
                y + 8, mask_unseen(task)
            )
            y += _LINE
        middle, low, high = line.values
        ends = [] if low is None or high is None else [(low, high)]
        spans = Markup("").join(
            Markup('<line class="span" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                _place(a, reach), _place(b, reach), y + 4, y + 4
            )
            for a, b in ends
        )
        yield Markup(
            '<g class="{}"><text x="20" y="{}">{}</text>{}'
            '<circle class="dot" cx="{}" cy="{}" r="4"/></g>'
        ).format(
            "sure" if line.sure else "open",
            y + 8,
            mask_unseen(line.name),
            spans,
            _place(middle, reach),
            y + 4,
        )
        y += _LINE
