"""Weighted figures, against scikit-learn and at their edges."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, recall_score, roc_auc_score

from memantics.metrics.weighted import Case, MetricName, MetricSpec, measure, prepare
from research.protocol import reweigh

PICK = random.Random(3)
CASES = [
    Case(
        str(n),
        str(n // 3),
        PICK.choice("abc"),
        PICK.choice("abc"),
        round(PICK.random(), 1),  # rounded: ties
        {"kind": PICK.choice("xy")},
    )
    for n in range(300)
]
GOLD, SAID = [case.gold for case in CASES], [case.said for case in CASES]
WEIGHTS = np.array([PICK.randrange(1, 5) for _ in CASES], float)


@pytest.mark.parametrize("weights", [np.ones(len(CASES)), WEIGHTS])
def test_metrics_agree_with_scikit_learn(weights: np.ndarray) -> None:
    def rate(metric: MetricName, positive: str = "") -> float | None:
        return prepare(CASES, MetricSpec(metric, positive))(weights)

    yes = [gold == "a" for gold in GOLD]
    said = [one == "a" for one in SAID]
    chances = [case.probability for case in CASES]
    assert rate("accuracy") == pytest.approx(accuracy_score(GOLD, SAID, sample_weight=weights))
    assert rate("macro_f1") == pytest.approx(
        f1_score(GOLD, SAID, average="macro", sample_weight=weights)
    )
    assert rate("f1", "a") == pytest.approx(f1_score(yes, said, sample_weight=weights))
    assert rate("recall", "a") == pytest.approx(recall_score(yes, said, sample_weight=weights))
    assert rate("auroc", "a") == pytest.approx(roc_auc_score(yes, chances, sample_weight=weights))
    no = [not each for each in yes]
    spared = recall_score(no, [not own for own in said], sample_weight=weights)
    assert rate("false_positive_rate", "a") == pytest.approx(1 - spared)


def test_calibration_error_is_zero_where_chances_hold_and_their_gap_where_not() -> None:
    def make(chance: float) -> list[Case]:
        return [Case(str(n), str(n), "a" if n % 2 else "b", "a", chance) for n in range(100)]

    assert measure(make(0.5), MetricSpec("calibration_error", "a")).value == pytest.approx(0)
    assert measure(make(0.7), MetricSpec("calibration_error", "a")).value == pytest.approx(0.2)
    # Without a positive class the chance is that of what was said.
    assert measure(make(0.9), MetricSpec("calibration_error")).value == pytest.approx(0.4)


def test_no_answer_is_a_miss_and_no_claim() -> None:
    cases = [Case("1", "1", "a", None), Case("2", "2", "a", "a"), Case("3", "3", "b", "b")]
    assert measure(cases, MetricSpec("macro_f1")).value == pytest.approx((2 / 3 + 1) / 2)
    assert measure(cases, MetricSpec("false_positive_rate", "a")).value == 0


def test_undefined_metrics_are_none() -> None:
    assert measure([], MetricSpec("accuracy")).value is None
    alike = [Case(str(n), str(n), "a", "a", 0.5) for n in range(3)]
    assert measure(alike, MetricSpec("auroc", "a")).value is None
    assert measure(alike, MetricSpec("recall", "b")).value is None
    assert measure(alike[:1], MetricSpec("accuracy")).low is None  # one group has no spread
    with pytest.raises(ValueError, match="no probability"):
        prepare([Case("1", "1", "a", "a")], MetricSpec("auroc", "a"))


def test_intervals_widen_where_cases_hang_together() -> None:
    apart = [Case(str(n), str(n), "a", "a" if n % 2 else "b") for n in range(100)]
    joined = [Case(str(n), str(n % 10), "a", "a" if n % 2 else "b") for n in range(100)]
    one, other = (measure(cases, MetricSpec("accuracy")) for cases in (apart, joined))
    assert None not in (one.low, one.high, other.low, other.high)
    assert other.high - other.low > 2 * (one.high - one.low)  # type: ignore[operator]


def test_reweighting_gives_the_metric_of_another_mixture() -> None:
    cases = [
        Case(str(n), str(n), "a", "a" if n < 90 else "b", tags={"kind": "x" if n < 90 else "y"})
        for n in range(100)
    ]
    even = reweigh(cases, "kind", {"x": 1, "y": 1})
    assert even is not None
    assert measure(cases, MetricSpec("accuracy"), even, resamples=0).value == pytest.approx(0.5)
    only = reweigh(cases, "kind", {"y": 2.0})
    assert only is not None
    assert measure(cases, MetricSpec("accuracy"), only, resamples=0).value == pytest.approx(0)
