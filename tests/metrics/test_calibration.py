"""Figures about probabilities, against scikit-learn and against sums written out."""

from __future__ import annotations

import random

import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from memantics.metrics.calibration import (
    area_under_risk,
    brier_score,
    calibration_error,
    fill_bins,
    normalise,
    risk_coverage,
)


def draw(n: int, seed: int) -> tuple[list[float], list[bool]]:
    chance = random.Random(seed)
    sure = [chance.random() for _ in range(n)]
    return sure, [chance.random() < one for one in sure]


@pytest.mark.parametrize("seed", range(3))
def test_brier_of_two_options_is_twice_sklearns(seed: int) -> None:
    chances, hits = draw(200, seed)
    stated = [{"A": chance, "B": 1 - chance} for chance in chances]
    golds = ["A" if hit else "B" for hit in hits]
    assert brier_score(stated, golds) == pytest.approx(2 * brier_score_loss(hits, chances))


@pytest.mark.parametrize("seed", range(3))
def test_bins_are_sklearns(seed: int) -> None:
    sure, right = draw(300, seed)
    shares, means = calibration_curve(right, sure, n_bins=10)
    bins = fill_bins(sure, right)
    assert [one.right for one in bins] == pytest.approx(list(shares))
    assert [each.confidence for each in bins] == pytest.approx(list(means))
    gaps = sum(own.n * abs(s - m) for own, s, m in zip(bins, shares, means, strict=True))
    assert calibration_error(sure, right) == pytest.approx(gaps / 300)


@pytest.mark.parametrize("seed", range(3))
def test_risk_is_counted_from_the_surest(seed: int) -> None:
    sure, right = draw(60, seed)
    for point in risk_coverage(sure, right):
        kept = [hit for one, hit in zip(sure, right, strict=True) if one >= point.threshold]
        assert point.n == len(kept)
        assert point.risk == pytest.approx(kept.count(False) / len(kept))
        assert point.coverage == pytest.approx(len(kept) / 60)


def test_area_without_ties_is_the_mean_of_running_risks() -> None:
    sure, right = [0.9, 0.8, 0.7, 0.1], [True, False, True, False]
    assert area_under_risk(sure, right) == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
    assert area_under_risk([0.5, 0.5], [True, False]) == 0.5


def test_nothing_has_no_metrics() -> None:
    assert calibration_error([], []) is None
    assert brier_score([], []) is None
    assert area_under_risk([], []) is None
    assert risk_coverage([], []) == []
    assert normalise({}, ["A", "B"]) == {"A": 0.5, "B": 0.5}


def test_ends_of_bins() -> None:
    assert [one.low for one in fill_bins([0.0, 0.0999, 0.1, 0.3, 0.9999, 1.0], [True] * 6)] == [
        *(0.0, 0.1, 0.3, 0.9)
    ]
