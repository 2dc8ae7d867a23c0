"""Thresholds, ties and empty sets of the statistics, a case on each side."""

from __future__ import annotations

import numpy as np
import pytest

from memantics.metrics.agreement import RatingRow, fleiss_kappa
from memantics.metrics.interval import clustered_wilson, resample_sums, wilson


def test_fleiss_takes_the_commonest_number_of_ratings() -> None:
    three: list[RatingRow] = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]]
    two: list[RatingRow] = [["a", "b", None], ["b", "b", None]]
    assert fleiss_kappa(three + two) == fleiss_kappa(three)
    assert fleiss_kappa(three[:1] + two) == fleiss_kappa(two)
    # At a tie the larger number counts; units with one rating never do.
    assert fleiss_kappa(three[:2] + two) == fleiss_kappa(three[:2])
    assert fleiss_kappa([*three, ["b", None, None], [None, None, None]]) == fleiss_kappa(three)
    assert fleiss_kappa([["b", None, None]] * 5) is None


def test_a_design_effect_is_never_below_one() -> None:
    # Every cluster has one hit and one miss: clusters vary less than chance would make them.
    even = [True, False] * 20
    pairs = [place // 2 for place in range(40)]
    assert clustered_wilson(even, pairs) == wilson(20, 40)
    # Clusters that are all alike inside: the effect is 2 * 20 / 19.
    like = [True, True, False, False] * 10
    found = clustered_wilson(like, pairs)
    plain = wilson(20, 40)
    assert found is not None
    assert plain is not None
    assert found[0] < plain[0]
    assert found[1] > plain[1]
    assert found == pytest.approx(wilson(9.5, 19))


def test_where_all_items_agree_the_clusters_are_the_sample() -> None:
    pairs = [0, 0, 1, 1, 2, 2]
    assert clustered_wilson([True] * 6, pairs) == wilson(3, 3)
    assert clustered_wilson([False] * 6, pairs) == wilson(0, 3)
    assert clustered_wilson([True] * 5 + [False], pairs) != wilson(2.5, 3)
    # One cluster only: a sample of one, whatever it holds.
    assert clustered_wilson([True, False], ["a", "a"]) == wilson(0.5, 1)
    assert clustered_wilson([True, False], ["a", "b"]) == wilson(1, 2)
    assert clustered_wilson([], []) is None


@pytest.mark.parametrize("clusters", [2_000, 2_001])
def test_many_clusters_of_few_kinds_are_drawn_by_kind(clusters: int) -> None:
    sums = np.array([[float(place % 4 == 0), 1.0] for place in range(clusters)])
    drawn = np.concatenate(list(resample_sums(sums, 4_000)))
    rates = drawn[:, 0] / drawn[:, 1]
    expected = sums[:, 0].mean()
    assert set(drawn[:, 1]) == {float(clusters)}
    assert rates.mean() == pytest.approx(expected, abs=0.001)
    assert rates.std() == pytest.approx(np.sqrt(expected * (1 - expected) / clusters), rel=0.05)
    again = np.concatenate(list(resample_sums(sums, 4_000)))
    assert np.array_equal(drawn, again)
