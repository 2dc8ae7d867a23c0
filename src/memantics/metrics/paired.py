"""Tests of the difference between two systems on the same items, clustered by meme.

Each test gives the 95% confidence interval and the p-value of a difference by one procedure, so
that the interval excludes zero exactly if p < 0.05. P-values come from a distribution and not from
a number of resamples, so they have no smallest value and survive a correction for many tests.

Correct and wrong answers with one item per meme are compared by McNemar's test, with the interval
that inverts it (Tango 1998). Every other metric is compared by a jackknife over memes: leaving out
each meme once gives the standard error, and Student's t distribution has one degree of freedom less
than there are memes. AUROC is compared by DeLong's test, summed by meme (Obuchowski 1997). A
difference is always the value of the second system minus that of the first.

The levels of all tests were simulated (``docs/research/comparison-tests.md``). DeLong's test with
few memes rejects too seldom, as does a test from blocks: both need ``FEWEST_MEMES`` memes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memantics.metrics.comparison import (
    chi_square_tail,
    paired_t_test,
    student_bound,
    student_tails,
)
from memantics.metrics.interval import Z95, wilson
from memantics.metrics.rounding import Floats, Ints, settle

MCNEMAR = "McNemar's test"
BY_MEME = "jackknife over memes, Student's t"
DELONG = "DeLong's test over memes"
FEWEST_MEMES = 15  # With fewer, some tests reject less than 4 % of equal runs.
_STEPS = 60  # Each step halves the distance to a bound of Tango's interval.


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A difference with its 95% confidence interval, two-sided p-value and standard error."""

    difference: float
    low: float
    high: float
    p: float
    error: float
    clusters: int
    name: str


@dataclass(frozen=True)
class Clusters:
    """The cluster (meme) of each item, as numbers from 0."""

    codes: Ints
    count: int

    @classmethod
    def of(cls, names: Sequence[Hashable]) -> Clusters:
        """Number clusters in the order in which they first appear.

        >>> Clusters.of(["a", "b", "a"]).codes.tolist()
        [0, 1, 0]
        """
        order: dict[Hashable, int] = {}
        codes = np.array([order.setdefault(name, len(order)) for name in names], np.int64)
        return cls(codes, len(order))

    @cached_property
    def single(self) -> bool:
        """Whether every cluster has one item."""
        return self.count == len(self.codes)

    def add_up(self, rows: Floats) -> Floats:
        """Sum the rows of each cluster."""
        total = np.zeros((self.count, *rows.shape[1:]))
        np.add.at(total, self.codes, rows)
        return total


@dataclass(frozen=True, slots=True)
class RatioMetric:
    """A metric that is the mean of ratios of sums: one row per item, one column per ratio.

    A mean has one column (values above, ones below). F1 of a class is twice the correct predictions
    above, and the predictions plus the gold labels of the class below. Macro-F1 has one such column
    per class. A column whose sum below is 0 is left out of the mean.
    """

    above: Floats
    below: Floats

    @property
    def value(self) -> float | None:
        """The metric over all items; None if no column is defined, or an item's value is NaN.

        >>> RatioMetric(np.array([[1.0], [0.0]]), np.ones((2, 1))).value
        0.5
        """
        above, below = self.above.sum(axis=0), self.below.sum(axis=0)
        known = below > 0
        value = float((above[known] / below[known]).mean()) if known.any() else math.nan
        return None if math.isnan(value) else value

    def take(self, places: Ints) -> RatioMetric:
        """Return the metric over some of the items."""
        return RatioMetric(self.above[places], self.below[places])

    def leave_out(self, clusters: Clusters) -> Floats:
        """The metric without each cluster, in turn.

        A ratio that is undefined without a cluster keeps its value, so that a class with one member
        does not change the number of classes.
        """
        whole_above, whole_below = self.above.sum(axis=0), self.below.sum(axis=0)
        known = whole_below > 0
        above = whole_above[known] - clusters.add_up(self.above[:, known])
        below = whole_below[known] - clusters.add_up(self.below[:, known])
        left = below > 1e-12
        ratios = np.where(
            left, above / np.where(left, below, 1.0), whole_above[known] / whole_below[known]
        )
        return np.asarray(ratios.mean(axis=1), float)


def mean_metric(values: Sequence[float] | Floats) -> RatioMetric:
    """The mean of one value per item.

    >>> mean_metric([1.0, 0.0, 0.5]).value
    0.5
    """
    above = np.asarray(values, float)[:, None]
    return RatioMetric(above, np.ones_like(above))


def f1_metric(
    gold: Sequence[Hashable], said: Sequence[Hashable | None], positive: Hashable
) -> RatioMetric:
    """F1 of one class; a missing answer is a wrong answer, as in ``classification.count_binary``.

    >>> f1_metric(["p", "p", "n"], ["p", None, None], "p").value
    0.5
    """
    members = np.array([truth == positive for truth in gold], bool)
    right = np.array([guess == truth for guess, truth in zip(said, gold, strict=True)], bool)
    claims = np.where(members, right, ~right)
    hits = members & right
    return RatioMetric(2.0 * hits[:, None], (1.0 * members + claims)[:, None])


def macro_f1_metric(gold: Sequence[Hashable], said: Sequence[Hashable | None]) -> RatioMetric:
    """Macro-F1 over the classes that occur, as in ``classification.macro_f1``.

    >>> macro_f1_metric(["a", "b"], ["a", "a"]).value
    0.3333333333333333
    """
    names = dict.fromkeys([*gold, *(guess for guess in said if guess is not None)])
    places = {name: place for place, name in enumerate(names)}
    truth = np.array([places[name] for name in gold], np.int64)
    guess = np.array([-1 if name is None else places[name] for name in said], np.int64)
    classes = np.arange(len(places))
    members, claims = truth[:, None] == classes, guess[:, None] == classes
    return RatioMetric(2.0 * (members & claims), 1.0 * members + claims)


def compare_hits(
    first: Sequence[bool], second: Sequence[bool], clusters: Sequence[Hashable]
) -> PairedTest | None:
    """Compare correct and wrong answers; None for fewer than two clusters.

    >>> found = compare_hits([True] * 2 + [False] * 8, [False] * 2 + [True] * 8, range(10))
    >>> found.name, round(found.difference, 3), round(found.p, 4)
    ("McNemar's test", 0.6, 0.0578)
    """
    memes = Clusters.of(clusters)
    if memes.count < 2:
        return None
    one, two = np.asarray(first, bool), np.asarray(second, bool)
    won, lost = int((two & ~one).sum()), int((one & ~two).sum())
    if memes.single or not won + lost:
        # Without a changed item, the memes are the sample, since items of one meme are alike.
        return mcnemar_score(won, lost, memes.count)
    return compare_ratios(mean_metric(1.0 * one), mean_metric(1.0 * two), memes, bound=1.0)


def mcnemar_score(won: int, lost: int, n: int) -> PairedTest:
    """McNemar's test without continuity correction, and Tango's score interval that inverts it.

    Args:
        won: Items that only the second system answered correctly.
        lost: Items that only the first system answered correctly.
        n: All items.

    Returns:
        The test of the difference (won - lost) / n.

    >>> found = mcnemar_score(1, 7, 21)  # Fagerland, Lydersen and Laake 2014, table IV
    >>> round(found.low, 3), round(found.high, 3), round(found.p, 3)
    (-0.517, -0.026, 0.034)
    """
    changed, difference = won + lost, (won - lost) / n
    p = chi_square_tail((won - lost) ** 2 / changed, 1) if changed else 1.0
    error = math.sqrt(max(0.0, changed - (won - lost) ** 2 / n)) / n
    low = _invert(won, lost, n, -1.0, difference, Z95)
    high = _invert(won, lost, n, difference, 1.0, -Z95)
    return PairedTest(difference, low, high, p, error, n, MCNEMAR)


def _invert(won: int, lost: int, n: int, low: float, high: float, wanted: float) -> float:
    """The difference at which Tango's score statistic has the wanted value, by bisection."""
    ends = low, high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _tango(won, lost, n, middle) > wanted:
            low = middle
        else:
            high = middle
    middle = (low + high) / 2
    return next((end for end in ends if abs(middle - end) < 1e-12), middle)


def _tango(won: int, lost: int, n: int, delta: float) -> float:
    """Score statistic of the hypothesis that the difference is ``delta``; falls with ``delta``."""
    linear = -won - lost + (2 * n - won + lost) * delta
    constant = -lost * delta * (1 - delta)
    # The maximum-likelihood estimate of the proportion lost, given the difference.
    share = (math.sqrt(max(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
    spread = n * (2 * share + delta * (1 - delta))
    above = won - lost - n * delta
    if spread <= 1e-15:
        return math.copysign(math.inf, above) if abs(above) > 1e-12 else 0.0
    return above / math.sqrt(spread)


def compare_means(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable]
) -> PairedTest | None:
    """Compare the means of one value per item; None for fewer than two clusters.

    >>> found = compare_means([1.0, 2.0, 3.0], [2.0, 4.0, 3.0], ["a", "b", "c"])
    >>> round(found.difference, 3), round(found.p, 4)
    (1.0, 0.2254)
    """
    memes = Clusters.of(clusters)
    if memes.count < 2:
        return None
    return compare_ratios(mean_metric(first), mean_metric(second), memes)


@dataclass(frozen=True, slots=True)
class PairedContrast:
    """Second system minus first, paired by meme: jackknife over memes, and a paired t-test."""

    memes: int
    difference: float
    low: float | None
    high: float | None
    p: float | None
    t_paired: float | None


def contrast_pairs(
    first: Mapping[str, float], second: Mapping[str, float]
) -> PairedContrast | None:
    """Compare two systems on the memes that both have values for; None without such memes.

    >>> found = contrast_pairs({"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 4.0, "c": 9.0})
    >>> found.memes, found.difference
    (2, 1.5)
    """
    shared = [meme for meme in first if meme in second]
    if not shared:
        return None
    before, after = [first[meme] for meme in shared], [second[meme] for meme in shared]
    gains = [b - a for a, b in zip(before, after, strict=True)]
    found = compare_means(before, after, shared)
    paired = paired_t_test(before, after)
    return PairedContrast(
        memes=len(shared),
        difference=sum(gains) / len(gains),
        low=found.low if found else None,
        high=found.high if found else None,
        p=found.p if found else None,
        t_paired=paired.p if paired else None,
    )


def compare_ratios(
    first: RatioMetric, second: RatioMetric, clusters: Clusters, bound: float | None = None
) -> PairedTest | None:
    """Compare two values of a metric by a jackknife over clusters; None if one is undefined.

    ``bound`` is the largest possible difference, if there is one.
    """
    one, two = first.value, second.value
    if one is None or two is None or clusters.count < 2:
        return None
    left = second.leave_out(clusters) - first.leave_out(clusters)
    return compare_left_out(two - one, left, bound)


def compare_left_out(
    difference: float, left: Floats, bound: float | None = None, name: str = BY_MEME
) -> PairedTest:
    """Test a difference from its values without each cluster (or block of clusters) in turn.

    >>> found = compare_left_out(1.0, np.array([1.0, 0.5, 1.5]))
    >>> round(found.error, 4), round(found.p, 4)
    (0.5774, 0.2254)
    """
    count = len(left)
    return student_test(difference, (count - 1) * (difference - left), bound, name)


def compare_blocks(difference: float, left: Floats, name: str = BY_MEME) -> PairedTest | None:
    """Test any metric from its values without each block; None for too few memes.

    >>> compare_blocks(1.0, np.linspace(0.5, 1.5, 14)) is None
    True
    >>> compare_blocks(1.0, np.linspace(0.5, 1.5, 15)).clusters
    15
    """
    if len(left) < FEWEST_MEMES or not math.isfinite(difference + float(left.sum())):
        return None
    return compare_left_out(difference, left, name=name)


def student_test(
    difference: float, influences: Floats, bound: float | None = None, name: str = BY_MEME
) -> PairedTest:
    """Test a difference from the influence of each cluster, by Student's t distribution.

    If the influences do not vary, the sign of the difference is the evidence: under the null
    hypothesis, each cluster favours either system with the same probability.

    >>> student_test(0.0, np.zeros(12)).p, student_test(0.5, np.zeros(6)).p
    (1.0, 0.03125)
    """
    count = len(influences)
    error = float(influences.std(ddof=1)) / math.sqrt(count)
    if error > 1e-9:
        reach = student_bound(count - 1) * error
        p = student_tails(difference / error, count - 1)
    elif abs(difference) <= 1e-9:
        # No cluster differs: at most this proportion of all memes could (Wilson's upper bound).
        reach, p = (wilson(0, count) or (0.0, 1.0))[1] * (bound or 1.0), 1.0
    else:
        # All clusters favour one system: exact bound of the proportion that do (0.025 ** (1 / n)).
        reach, p = 2 * abs(difference) * (1 - 0.025 ** (1 / count)), min(1.0, 2.0 ** (1 - count))
    low, high = difference - reach, difference + reach
    if bound is not None:
        low, high = max(low, -bound), min(high, bound)
    return PairedTest(difference, low, high, p, error, count, name)


def auroc(scores: Sequence[float] | Floats, positive: Sequence[bool]) -> float | None:
    """Area under the ROC curve; ties count half. None if a class has no items.

    >>> auroc([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
    0.875
    """
    found = _place(np.asarray(scores, float), np.asarray(positive, bool))
    return None if found is None else found[0]


def _place(scores: Floats, positive: Ints | Floats) -> tuple[float, Floats] | None:
    """AUROC and the influence of each item on it (DeLong's placements, centred and scaled)."""
    truth = np.asarray(positive, bool)
    ours, others = int(truth.sum()), int((~truth).sum())
    if not ours or not others:
        return None
    _, ranks = np.unique(settle(scores), return_inverse=True)
    yes = np.bincount(ranks, truth, ranks.max() + 1)
    no = np.bincount(ranks, ~truth, ranks.max() + 1)
    below = (np.cumsum(no) - no / 2) / others  # proportion of negatives below each rank
    over = 1 - (np.cumsum(yes) - yes / 2) / ours  # proportion of positives above each rank
    placed = np.where(truth, below[ranks], over[ranks])
    value = float(below[ranks][truth].mean())
    return value, np.asarray((placed - value) / np.where(truth, ours, others), float)


def macro_auroc(chances: Floats, gold: Ints) -> tuple[float, Floats] | None:
    """Mean AUROC of each class against the rest, and the influence of each item on it.

    Args:
        chances: Probability of each class (columns) for each item (rows).
        gold: Column of the correct class of each item.

    Returns:
        Value and influences; None if no class has members and non-members. Two classes give the
        AUROC of one of them.
    """
    columns = range(chances.shape[1])
    parts = [_place(chances[:, place], gold == place) for place in columns]
    known = [part for part in parts if part is not None]
    if not known:
        return None
    influences = np.asarray(np.mean([part[1] for part in known], axis=0), float)
    return float(np.mean([part[0] for part in known])), influences


def compare_auroc(
    first: Floats, second: Floats, gold: Ints, clusters: Sequence[Hashable]
) -> PairedTest | None:
    """Compare the AUROC of two systems from the probabilities of each class.

    Args:
        first: Probabilities of the first system: one row per item, one column per class.
        second: Probabilities of the second system.
        gold: Column of the correct class of each item.
        clusters: The cluster (meme) of each item.

    Returns:
        The test; None if AUROC is undefined, or for fewer than ``FEWEST_MEMES`` clusters.

    >>> gold = np.array([1, 1, 0, 0] * 4)
    >>> one, two = (np.column_stack([1 - p, p]) for p in
    ...             (np.array([.9, .4, .6, .1] * 4), np.array([.9, .8, .6, .1] * 4)))
    >>> round(compare_auroc(one, two, gold, range(16)).difference, 2)
    0.25
    >>> compare_auroc(one, two, gold, [n // 2 for n in range(16)]) is None
    True
    """
    memes = Clusters.of(clusters)
    one, two = macro_auroc(first, gold), macro_auroc(second, gold)
    if one is None or two is None or memes.count < FEWEST_MEMES:
        return None
    influences = memes.count * memes.add_up(two[1] - one[1])
    return student_test(two[0] - one[0], influences, bound=1.0, name=DELONG)
