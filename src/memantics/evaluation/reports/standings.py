"""Rank the systems of a published table, with confidence intervals from the printed values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from markupsafe import Markup

from memantics.benchmarks.published import PublishedRow
from memantics.core.records import Score
from memantics.metrics.classification import f1_by_class
from memantics.metrics.feasibility import Claims, is_impossible
from memantics.metrics.interval import wilson
from memantics.metrics.rounding import settle
from memantics.web.plot import Mark, draw_axis, draw_strip, fit_scale

_RESAMPLES = 20_000
BaselineComparison = Literal["above", "level", "below"]


@dataclass(frozen=True, slots=True)
class Trivial:
    """A trivial baseline and its score."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Standing:
    """One published system, compared with a trivial baseline.

    ``setting`` distinguishes systems of the same name. ``fault`` explains why the printed values
    cannot all be true; ``impossible`` is set if that holds for any number of items.
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
    """The systems of one published table, best first, with a trivial baseline."""

    title: str
    metric: str
    source: str
    trivial: Trivial
    rows: tuple[Standing, ...]
    axis: Markup
    note: str = ""

    def count(self, place: BaselineComparison) -> int:
        """Count the published systems above, level with or below the trivial baseline."""
        return sum(row.place == place for row in self.rows)

    @property
    def by_interval(self) -> bool:
        """Whether systems were compared by confidence intervals rather than by printed values."""
        return any(row.score.low is not None for row in self.rows)


def make_standings(
    title: str, metric: str, rows: Iterable[PublishedRow], trivial: Trivial, note: str = ""
) -> Standings:
    """Rank published rows by a metric; rows without this metric are skipped."""
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
    """Compare a score with a value, by the score's 95% confidence interval or else by its value.

    >>> compare(Score("f1", 0.506, 9, 0.499, 0.512), 0.5), compare(Score("f1", 0.506, 0), 0.5)
    ('level', 'above')
    """
    value = score.value or 0.0
    low = value if score.low is None else score.low
    high = value if score.high is None else score.high
    return "above" if low > trivial else "below" if high < trivial else "level"


def measure(row: PublishedRow, metric: str) -> Score:
    """Return a printed value with a confidence interval, assuming independent items.

    Proportions of a known number of items use Wilson's interval. F1 with known recalls and class
    sizes uses a simulated interval; other metrics have none.
    """
    value, n = row.metrics[metric], row.sizes.get(metric, 0)
    bounds = wilson(value * n, n)
    if bounds is None and metric == "f1" and row.classes and {"tpr", "tnr"} <= row.metrics.keys():
        bounds = simulate_f1(row.metrics["tpr"], row.metrics["tnr"], row.classes)
        n = sum(row.classes)
    return Score(metric, value, n, *(bounds or (None, None)))


def simulate_f1(tpr: float, tnr: float, classes: tuple[int, int]) -> tuple[float, float]:
    """Simulate the 95% confidence interval of F1 with binomial hits in both classes.

    >>> low, high = simulate_f1(0.9, 0.8, (500, 500))
    >>> round(low, 2), round(high, 2)
    (0.84, 0.88)
    """
    positives, negatives = classes
    draw = np.random.default_rng(0)
    hits = draw.binomial(positives, tpr, _RESAMPLES)
    alarms = negatives - draw.binomial(negatives, tnr, _RESAMPLES)
    table = (np.asarray(n, float) for n in (hits, hits + alarms, np.full_like(hits, positives)))
    low, high = np.quantile(f1_by_class(*table), (0.025, 0.975))
    return float(low), float(high)
