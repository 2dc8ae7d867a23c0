"""A paper's rows as a leaderboard: what the printed figures allow to say about their certainty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from markupsafe import Markup

from memantics.benchmarks.published import PublishedRow
from memantics.core.records import Score
from memantics.metrics.feasibility import Claims, is_impossible
from memantics.metrics.interval import wilson
from memantics.metrics.rounding import settle
from memantics.web.plot import Mark, draw_axis, draw_strip, fit_scale

_RESAMPLES = 20_000
BaselineComparison = Literal["above", "level", "below"]


@dataclass(frozen=True, slots=True)
class Trivial:
    """What answers without looking at a meme score."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Standing:
    """One published system and where it stands beside the trivial baseline.

    ``setting`` tells systems of one name apart. ``fault`` is why its figures cannot be true
    together, ``impossible`` whether that holds whatever the numbers of items are.
    """

    system: str
    score: Score
    strip: Markup
    place: BaselineComparison
    setting: str = ""
    fault: str = ""
    impossible: bool = False


@dataclass(frozen=True, slots=True)
class Standings:
    """The systems of one published table, best first, beside a trivial baseline."""

    title: str
    metric: str
    source: str
    trivial: Trivial
    rows: tuple[Standing, ...]
    axis: Markup
    note: str = ""

    def count(self, place: BaselineComparison) -> int:
        """How many systems are above, level with or below the trivial baseline."""
        return sum(row.place == place for row in self.rows)

    @property
    def by_interval(self) -> bool:
        """Whether systems were placed by their intervals rather than by the printed figure."""
        return any(row.score.low is not None for row in self.rows)


def make_standings(
    title: str, metric: str, rows: Iterable[PublishedRow], trivial: Trivial, note: str = ""
) -> Standings:
    """Order rows by a figure; rows without it are left out."""
    found = [(row, measure(row, metric)) for row in rows if metric in row.metrics]
    found.sort(key=lambda pair: -settle(pair[1].value or 0.0))
    reference = Score(metric, trivial.value, 0)
    scale = fit_scale([reference, *(score for _, score in found)])
    names = Counter(row.system for row, _ in found)
    made = tuple(
        Standing(
            row.system,
            score,
            draw_strip([Mark(row.system, score, 0)], scale, trivial.value),
            compare(score, trivial.value),
            row.note.partition(";")[0] if names[row.system] > 1 else "",
            row.reason,
            is_impossible(row.metrics, Claims(row.digits, parts=row.parts)),
        )
        for row, score in found
    )
    source = found[0][0].source if found else ""
    return Standings(title, metric, source, trivial, made, draw_axis(scale), note)


def compare(score: Score, trivial: float) -> BaselineComparison:
    """Where a figure stands by its 95 % interval; by its value where it has none.

    >>> compare(Score("f1", 0.506, 9, 0.499, 0.512), 0.5), compare(Score("f1", 0.506, 0), 0.5)
    ('level', 'above')
    """
    value = score.value or 0.0
    low = value if score.low is None else score.low
    high = value if score.high is None else score.high
    return "above" if low > trivial else "below" if high < trivial else "level"


def measure(row: PublishedRow, metric: str) -> Score:
    """A printed figure with the interval that its sizes allow, as if items were independent.

    Shares of a known number of items have Wilson's interval; F1 of a known confusion table (both
    recalls and the sizes of both classes) one by simulation; others have none.
    """
    value, n = row.metrics[metric], row.sizes.get(metric, 0)
    bounds = wilson(value * n, n)
    if bounds is None and metric == "f1" and row.classes and {"tpr", "tnr"} <= row.metrics.keys():
        bounds = simulate_f1(row.metrics["tpr"], row.metrics["tnr"], row.classes)
        n = sum(row.classes)
    return Score(metric, value, n, *(bounds or (None, None)))


def simulate_f1(tpr: float, tnr: float, classes: tuple[int, int]) -> tuple[float, float]:
    """95 % interval of F1 when hits in both classes are binomial.

    >>> low, high = simulate_f1(0.9, 0.8, (500, 500))
    >>> round(low, 2), round(high, 2)
    (0.84, 0.88)
    """
    positives, negatives = classes
    draw = np.random.default_rng(0)
    hits = draw.binomial(positives, tpr, _RESAMPLES)
    alarms = negatives - draw.binomial(negatives, tnr, _RESAMPLES)
    f1 = 2 * hits / (positives + hits + alarms)
    low, high = np.quantile(f1, (0.025, 0.975))
    return float(low), float(high)
