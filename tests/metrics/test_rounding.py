"""What is equal in theory is taken as equal: no processor's last bit decides."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memantics.metrics.agreement import spearman
from memantics.metrics.interval import resample_sums
from memantics.metrics.rounding import SUMS, VECTORS, settle
from memantics.metrics.weighted import Case, MetricName, MetricSpec, prepare
from memantics.moderation.calibration import DecisionRule, Softmax, choose_threshold, reliability


def nudge(value: float) -> float:
    """The next float: what another processor may have computed."""
    return math.nextafter(value, math.inf)


def test_both_sides_of_the_last_decimal() -> None:
    for digits in (SUMS, VECTORS):
        step = 10.0**-digits
        assert settle(0.3 + 0.4 * step, digits) == settle(0.3, digits)
        assert settle(0.3 + 0.6 * step, digits) > settle(0.3, digits)
        rows = np.array([0.3 + 0.4 * step, 0.3 + 0.6 * step])
        assert settle(rows, digits).tolist() == [0.3, round(0.3 + step, digits)]


def test_single_precision_is_settled_in_double() -> None:
    found = settle(np.array([0.1], np.float32), VECTORS)
    assert found.dtype == np.float64
    assert found.tolist() == [0.1]


def test_kinds_of_clusters_are_drawn_alike() -> None:
    """One more kind would be another draw altogether."""
    sums = np.array([[0.5, 1.0], [0.25, 1.0], [0.5, 1.0], [0.75, 1.0]])
    other = sums.copy()
    other[2, 0] = nudge(0.5)
    [plain], [nudged] = (list(resample_sums(rows, 50, by_kind=True)) for rows in (sums, other))
    assert np.allclose(plain, nudged, rtol=1e-9, atol=0)


def test_ranks_of_what_is_alike() -> None:
    first, second = [0.3, 0.1, 0.3, 0.9], [1.0, 2.0, 3.0, 4.0]
    assert spearman([nudge(0.3), 0.1, 0.3, 0.9], second) == spearman(first, second)


@pytest.mark.parametrize("metric", ["auroc", "calibration_error"])
def test_chances_that_are_alike(metric: MetricName) -> None:
    golds = ["harmful", "harmless", "harmful", "harmless"] * 5
    chances = [0.3, 0.3, 0.7, 0.1] * 5

    def rate(values: list[float]) -> float | None:
        cases = [
            Case(str(place), str(place), gold, "harmful", value)
            for place, (gold, value) in enumerate(zip(golds, values, strict=True))
        ]
        return prepare(cases, MetricSpec(metric, "harmful"))(np.ones(len(cases)))

    nudged = [nudge(chance) if place % 8 == 0 else chance for place, chance in enumerate(chances)]
    assert rate(nudged) == pytest.approx(rate(chances), rel=1e-9)


def test_a_threshold_holds_at_its_last_bit() -> None:
    """A chance that is the threshold in theory is harmful, one that is below it is not."""
    harm = Softmax(np.zeros(1), np.ones(1), np.array([[0.0, 1.0]]), np.array([0.0, 0.3]))
    scores = np.array([[0.0]])
    [chance] = harm.probabilities(scores)[:, 1]
    for threshold, expected in ((nudge(chance), 1), (chance, 1), (chance + 2e-9, 0)):
        decision = DecisionRule((harm,), np.zeros(0), threshold)
        assert decision.decide_harm(scores)[1].tolist() == [expected]


def test_bins_and_thresholds_of_chances_that_are_alike() -> None:
    chances, truth = [0.4, 0.4, 0.4, 0.8], [1, 0, 0, 1]
    nudged = [nudge(0.4), 0.4, 0.4, 0.8]
    assert [each[1:] for each in reliability(nudged, truth, 2)] == [
        own[1:] for own in reliability(chances, truth, 2)
    ]
    found = [choose_threshold(np.array(one), np.array(truth)) for one in (chances, nudged)]
    assert found[0] == found[1]
