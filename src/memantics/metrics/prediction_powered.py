"""Prediction-powered estimates: means of human ratings, from a judge's marks and a few ratings.

The estimate is that of PPI++ (Angelopoulos, Duchi and Zrnic 2023): the judge's mean on the items
without ratings, times a weight from 0 to 1, plus the mean of what this leaves unexplained on the
rated items. The weight is tuned on the data; it is 0 for a judge that says nothing about people's
ratings, and the estimate is then people's mean. The estimate is valid whatever the judge's errors.

The interval is Wilson's at the effective sample size, with Student's quantile. Its variance is
summed by meme, is corrected for leverage (HC2), and counts a quarter of an unseen disagreement in
each direction: thirty ratings without a disagreement do not prove that a judge never errs. For
graded ratings it also counts a tenth of an unseen rating at each end of the scale: the rare ratings
of a skewed distribution are often missing among thirty.
``research/judges.py`` measures the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memantics.metrics.comparison import student_bound
from memantics.metrics.interval import Span, include, unvaried_span, wilson, wilson_of_sums
from memantics.metrics.rounding import Floats, Ints, settle

Mask = NDArray[np.bool_]
UNSEEN = 0.25  # disagreements in each direction that are counted though none was seen
UNSEEN_END = 0.1  # graded ratings at each end of the scale that are counted though none was seen
SMALLEST = 3  # rated memes below which there is no interval
_MOST_FREEDOM = 10_000


@dataclass(frozen=True, slots=True)
class RatedItems:
    """A judge's mark of every item, and people's rating of some (NaN: not rated).

    ``marks`` may be NaN too: such an item gets the judge's mean mark. ``probabilities`` are the
    known probabilities with which items were selected for rating; None: all items equally.
    ``scale`` is the lowest and the highest rating; ``binary`` says that there is nothing between.
    ``paired`` says that marks and ratings are differences of two systems.
    """

    marks: Sequence[float] | Floats
    ratings: Sequence[float] | Floats
    memes: Sequence[Hashable]
    scale: Span
    binary: bool = False
    probabilities: Sequence[float] | Floats | None = None
    paired: bool = False


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean with its 95% confidence interval and standard error (None if undefined)."""

    value: float
    low: float | None
    high: float | None
    error: float | None


@dataclass(frozen=True, slots=True)
class PoweredEstimate:
    """The estimate from judge and people, beside that of each alone.

    ``weight`` is the weight of the judge, ``rated`` the number of rated items and ``rated_memes``
    that of their memes. ``correlation`` is that of marks and ratings on the rated items.
    ``plain_error`` is the standard error as published, without the corrections for few ratings.
    """

    powered: MeanEstimate
    judge: MeanEstimate
    people: MeanEstimate
    weight: float
    rated: int
    rated_memes: int
    items: int
    memes: int
    correlation: float | None
    plain_error: float

    @property
    def gain(self) -> float | None:
        """How many times more ratings people alone would need for the same standard error."""
        one, other = self.powered.error, self.people.error
        return (other / one) ** 2 if one and other else None


@dataclass(frozen=True)
class _Sums:
    """Items on the unit scale, and the influence of each meme on the parts of the estimate.

    ``label`` and ``rated`` are influences on the means of ratings and marks of the rated items,
    ``base`` that on the judge's mean. ``held`` says which memes have rated items.
    """

    label: Floats
    rated: Floats
    base: Floats
    held: Mask
    means: tuple[float, float, float]
    spread: float

    def influence(self, weight: float) -> Floats:
        """Return the influence of each meme on the estimate."""
        return np.asarray(self.label + weight * (self.base - self.rated), float)


def estimate_mean(items: RatedItems, weight: float | None = None) -> PoweredEstimate | None:
    """Estimate the mean rating of all items; None if no item is rated.

    Args:
        items: Marks and ratings.
        weight: The weight of the judge. Default: tuned on the data.

    Returns:
        The estimate, and those from the judge and from people alone.

    >>> marks = [1.0, 2.0, 3.0, 4.0, 5.0] * 20
    >>> ratings = [mark - 0.5 for mark in marks[:30]] + [math.nan] * 70
    >>> found = estimate_mean(RatedItems(marks, ratings, range(100), (0.0, 5.0)))
    >>> round(found.powered.value, 6), found.judge.value, found.rated
    (2.5, 3.0, 30)
    """
    low, high = items.scale
    ratings = (np.asarray(items.ratings, float) - low) / (high - low)
    marks = (np.asarray(items.marks, float) - low) / (high - low)
    held = ~np.isnan(ratings)
    if not held.any():
        return None
    known = ~np.isnan(marks)
    marks = np.where(known, marks, marks[known].mean() if known.any() else 0.5)
    codes, count = _number(items.memes)
    weights = np.zeros(len(marks))
    chances = items.probabilities
    weights[held] = 1.0 if chances is None else 1.0 / np.asarray(chances, float)[held]
    base = np.ones(len(marks), bool) if chances is not None else ~held
    sums = _add_up(marks, ratings, (codes, count), weights, base)
    tuned = (
        _tune(sums, marks, (codes, count), held if chances is None else None)
        if weight is None
        else weight
    )
    tuned = tuned if base.any() else 0.0
    hits: tuple[Floats, Floats] | None = None
    if items.binary and chances is None:
        hits = (
            np.asarray(np.bincount(codes[held], ratings[held], count), float),
            np.asarray(np.bincount(codes[held], minlength=count), float),
        )
    graded = not (items.binary or items.paired)
    powered = _span(sums, tuned, items.binary, hits if tuned == 0 else None, graded)
    people = _span(sums, 0.0, items.binary, hits, graded)
    judge = _judge_alone(marks, codes, count, items.binary)
    return PoweredEstimate(
        powered=_rescale(powered, low, high - low),
        judge=_rescale(judge, low, high - low),
        people=_rescale(people, low, high - low),
        weight=float(tuned),
        rated=int(held.sum()),
        rated_memes=int(sums.held.sum()),
        items=len(marks),
        memes=count,
        correlation=_correlate(marks[held & known], ratings[held & known]),
        plain_error=(high - low) * float(np.linalg.norm(sums.influence(tuned))),
    )


def _number(memes: Sequence[Hashable]) -> tuple[Ints, int]:
    order: dict[Hashable, int] = {}
    codes = np.array([order.setdefault(meme, len(order)) for meme in memes], np.int64)
    return codes, len(order)


def _add_up(
    marks: Floats, ratings: Floats, memes: tuple[Ints, int], weights: Floats, base: Mask
) -> _Sums:
    codes, count = memes
    held = weights > 0
    shares = weights / weights.sum()
    said = np.where(held, ratings, 0.0)
    rating, mark = float(shares @ said), float(shares @ marks)
    size = int(base.sum())
    over = float(marks[base].mean()) if size else 0.0

    def add(values: Floats) -> Floats:
        return np.asarray(np.bincount(codes, values, count), float)

    return _Sums(
        label=add(shares * (said - rating)),
        rated=add(shares * (marks - mark)),
        base=add(np.where(base, marks - over, 0.0) / max(size, 1)),
        held=add(held.astype(float)) > 0,
        means=(rating, mark, over),
        spread=math.sqrt(max(0.0, float(shares @ (said - rating) ** 2))),
    )


def _tune(sums: _Sums, marks: Floats, memes: tuple[Ints, int], held: Mask | None) -> float:
    """Return the weight with the smallest variance; that of ppi-python if items are independent.

    With equal probabilities (``held`` given), the judge's variance is pooled over all items.
    """
    if held is None:
        move = sums.base - sums.rated
        above, below = -float(sums.label @ move), float(move @ move)
    else:
        codes, count = memes
        every = np.bincount(codes, marks - marks.mean(), count) / len(marks)
        n = int(held.sum())
        rest = len(marks) - n
        if not rest or count < 2:
            return 0.0
        above = float(sums.label @ sums.rated)
        below = float(every @ every) * count / (count - 1) * len(marks) ** 2 / (n * rest)
    return min(1.0, max(0.0, above / below)) if below > 1e-15 else 0.0


def _span(
    sums: _Sums, weight: float, binary: bool, hits: tuple[Floats, Floats] | None, graded: bool
) -> MeanEstimate:
    """Estimate and interval on the unit scale for a weight of the judge."""
    rating, mark, over = sums.means
    value = weight * over + rating - weight * mark
    held, k = sums.held, int(sums.held.sum())
    if k < SMALLEST:
        return MeanEstimate(value, None, None, None)
    total = sums.influence(weight)
    reach = float((sums.rated[held] ** 2).sum())
    leverage = np.full(k, 1.0 / k)
    if weight and reach > 1e-15:
        leverage = np.minimum(leverage + sums.rated[held] ** 2 / reach, 0.9)
    rated = float((total[held] ** 2 / (1 - leverage)).sum())
    if weight:
        rated += 2 * UNSEEN * (weight * (1.0 if binary else sums.spread) / k) ** 2
    if graded and settle(rated, 15) > 0:
        inside = min(max(value, 0.0), 1.0)
        ends = inside**2 + (1 - inside) ** 2
        rated += UNSEEN_END * ends * ((1 - weight) / k) ** 2
    rest, others = total[~held], int((~held).sum())
    open_ = float((rest**2).sum()) * others / (others - 1) if others > 1 else 0.0
    variance = rated + open_
    error = math.sqrt(variance)
    if hits is not None:
        span = wilson_of_sums(*hits)
    else:
        freedom = _freedom((rated, k - 1 - (weight > 0)), (open_, others - 1))
        span = _effective_span(value, variance, k, freedom)
        if binary and span and settle(variance) > 0:
            # Zeros and ones vary at most as much as independent items do.
            span = _widen(span, value, len(sums.held), freedom)
    low, high = span or (None, None)
    return MeanEstimate(value, low, high, error)


def _widen(span: Span, value: float, items: int, freedom: int) -> Span:
    inside = min(max(value, 0.0), 1.0)
    least = wilson(inside * items, items, student_bound(freedom))
    return span if least is None else (min(span[0], least[0]), max(span[1], least[1]))


def _freedom(*parts: tuple[float, int]) -> int:
    """Satterthwaite's degrees of freedom of a sum of variances."""
    total = math.fsum(part for part, _ in parts)
    below = math.fsum(part**2 / max(1, freedom) for part, freedom in parts)
    return int(settle(min(total**2 / below, _MOST_FREEDOM), 6)) if below > 0 else 1


def _effective_span(value: float, variance: float, memes: int, freedom: int) -> Span | None:
    """Wilson's interval with the sample size at which a proportion has this variance."""
    inside = min(max(value, 0.0), 1.0)
    if settle(variance, 15) <= 0:
        return unvaried_span(inside, memes, (0.0, 1.0))
    at_end = settle(inside * (1 - inside)) <= 0
    size = memes if at_end else inside * (1 - inside) / variance
    span = wilson(inside * size, size, student_bound(max(1, freedom)))
    return include(span, inside) if span else None


def _judge_alone(marks: Floats, codes: Ints, count: int, binary: bool) -> MeanEstimate:
    value = float(marks.mean())
    if count < SMALLEST:
        return MeanEstimate(value, None, None, None)
    sums, sizes = np.bincount(codes, marks, count), np.bincount(codes, minlength=count)
    moves = (sums - sizes * value) / len(marks)
    variance = float((moves**2).sum()) * count / (count - 1)
    whole = binary and bool(np.isin(settle(marks), (0.0, 1.0)).all())
    span = (
        wilson_of_sums(np.asarray(sums, float), sizes.astype(float))
        if whole
        else _effective_span(value, variance, count, count - 1)
    )
    low, high = span or (None, None)
    return MeanEstimate(value, low, high, math.sqrt(variance))


def _rescale(found: MeanEstimate, low: float, width: float) -> MeanEstimate:
    """Return an estimate on the original scale; a value outside the scale is set to its end."""
    return replace(
        found,
        value=low + width * min(max(found.value, 0.0), 1.0),
        low=None if found.low is None else low + width * found.low,
        high=None if found.high is None else low + width * found.high,
        error=None if found.error is None else width * found.error,
    )


def _correlate(one: Floats, other: Floats) -> float | None:
    if len(one) < 3 or settle(float(one.std())) == 0 or settle(float(other.std())) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def pair_items(first: RatedItems, second: RatedItems) -> RatedItems:
    """Return the differences of two systems on the same items, the second minus the first.

    >>> one = RatedItems([1.0], [2.0], ["a"], (1.0, 5.0))
    >>> pair_items(one, replace(one, ratings=[4.0])).ratings
    [2.0]
    """
    reach = first.scale[1] - first.scale[0]

    def subtract(one: Sequence[float] | Floats, other: Sequence[float] | Floats) -> list[float]:
        return [float(b - a) for a, b in zip(one, other, strict=True)]

    return RatedItems(
        subtract(first.marks, second.marks),
        subtract(first.ratings, second.ratings),
        first.memes,
        (-reach, reach),
        paired=True,
        probabilities=first.probabilities,
    )


def expected_half_width(
    spread: float, correlation: float, rated: int, items: int, scale: Span
) -> float:
    """Half the width of the interval to expect, for equal probabilities.

    Args:
        spread: Standard deviation of people's ratings.
        correlation: Correlation of the judge's marks with people's ratings.
        rated: Number of items that people rate.
        items: Number of all items.
        scale: The lowest and the highest rating.

    Returns:
        Half the width, at most half of the scale.

    >>> round(expected_half_width(1.0, 0.0, 100, 1000, (1.0, 5.0)), 3)
    0.198
    """
    rest = max(items - rated, 0)
    saved = max(0.0, correlation) ** 2 * rest / items if items else 0.0
    error = spread * math.sqrt((1 - saved) / rated)
    bound = student_bound(max(1, min(rated - 2, _MOST_FREEDOM)))
    return min(bound * error, (scale[1] - scale[0]) / 2)


def selection_probabilities(
    doubt: Sequence[float] | Floats, budget: int, even: float = 0.3
) -> Floats:
    """Probabilities to select items for rating, in proportion to the doubt about the judge's mark.

    The sum is the budget. A proportion ``even`` of the budget is spread evenly, so that no item is
    left out and no weight is large. Without any doubt, all items have the same probability.

    >>> selection_probabilities([1.0, 3.0], 1, even=0.5).tolist()
    [0.375, 0.625]
    """
    given = np.asarray(doubt, float)
    count = len(given)
    if budget >= count:
        return np.ones(count)
    total = float(given.sum())
    shares = given / total if total > 0 else np.full(count, 1 / count)
    wanted = (1 - even) * shares + even / count
    found, fixed = np.zeros(count), np.zeros(count, bool)
    while True:
        left = budget - int(fixed.sum())
        found = np.where(fixed, 1.0, left * wanted / wanted[~fixed].sum())
        over = (settle(found) > 1) & ~fixed
        if not over.any():
            return settle(np.minimum(found, 1.0), 12)
        fixed |= over


def draw_items(probabilities: Floats, seed: int) -> list[int]:
    """Draw items with exactly these probabilities; the number drawn is their sum (systematic).

    >>> len(draw_items(np.full(10, 0.5), seed=0))
    5
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(probabilities))
    ends = settle(np.cumsum(probabilities[order]))
    start = float(rng.random())
    steps = np.floor(ends - start) - np.floor(np.concatenate([[0.0], ends[:-1]]) - start)
    return sorted(int(place) for place in order[steps > 0])
