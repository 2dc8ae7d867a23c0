"""Tests, effect sizes and corrections against scipy and statsmodels."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from memantics.metrics.comparison import (
    benjamini_hochberg,
    chi_square_tail,
    clusters_needed,
    cohen_d_z,
    effect_seen,
    holm,
    mean_by_cluster,
    odds_ratio,
    paired_t_test,
    student_bound,
    student_tails,
)
from memantics.metrics.paired import contrast_pairs

contingency = pytest.importorskip(
    "statsmodels.stats.contingency_tables", reason="statsmodels is not installed"
)
multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is missing")
solver = pytest.importorskip("statsmodels.stats.power", reason="statsmodels is missing")


@given(st.floats(-60, 60), st.integers(1, 3000))
def test_tails_of_student_equal_scipy(statistic: float, freedom: int) -> None:
    expected = 2 * stats.t.sf(abs(statistic), freedom)
    assert student_tails(statistic, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-300)


@given(st.floats(0.01, 12), st.floats(1, 1e6))
@settings(deadline=None)
def test_tails_of_student_have_twelve_digits(statistic: float, freedom: float) -> None:
    expected = 2 * stats.t.sf(statistic, freedom)
    assert student_tails(statistic, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_tails_of_student_at_their_ends() -> None:
    # With one degree of freedom the distribution is Cauchy's: scipy says 1.0 to the first.
    assert student_tails(1e-9, 1) == pytest.approx(1 - 2 / np.pi * 1e-9, rel=1e-15)
    assert student_tails(0, 5) == student_tails(-0.0, 1e6) == 1.0
    assert 0 < student_tails(38, 10_000) < 1e-290
    assert student_tails(60, 100_000) == student_tails(1e6, 1_000_000) == 0.0
    assert student_tails(float("inf"), 3) == 0.0


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("freedom", [1, 2, 9, 49, 1000, 100_000])
def test_bound_of_student_equals_scipy(freedom: int, level: float) -> None:
    expected = stats.t.ppf((1 + level) / 2, freedom)
    assert student_bound(freedom, level) == pytest.approx(expected, rel=1e-12)


@given(st.floats(0, 400), st.integers(1, 200))
@settings(deadline=None)
def test_tail_of_chi_square_equals_scipy(statistic: float, freedom: int) -> None:
    expected = stats.chi2.sf(statistic, freedom)
    assert chi_square_tail(statistic, freedom) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 400))
@settings(deadline=None, max_examples=60)
def test_paired_t_test_equals_scipy(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.random(n)
    second = first + rng.normal(0.05, 0.2, n)
    found, expected = paired_t_test(list(first), list(second)), stats.ttest_rel(second, first)
    assert found is not None
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-8)
    assert cohen_d_z(list(second - first)) == pytest.approx(expected.statistic / n**0.5)


def test_a_constant_difference_has_no_t_test() -> None:
    assert paired_t_test([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]) is None
    assert paired_t_test([1.0], [2.0]) is None
    assert cohen_d_z([0.1, 0.1, 0.1]) is None


def test_a_contrast_of_memes_is_the_paired_t_test_of_scipy() -> None:
    rng = np.random.default_rng(3)
    first = {str(n): float(value) for n, value in enumerate(rng.normal(0.5, 0.2, 300))}
    second = {meme: value + float(rng.normal(0.04, 0.2)) for meme, value in first.items()}
    found = contrast_pairs(first, second)
    assert found is not None
    expected = stats.ttest_rel([*second.values()], [*first.values()])
    interval = expected.confidence_interval()
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.t_paired == pytest.approx(found.p)


def test_a_contrast_has_no_smallest_p_value() -> None:
    """A huge effect stays significant among 1,000 contrasts, corrected by Holm's method."""
    rng = np.random.default_rng(5)
    first = {str(n): float(value) for n, value in enumerate(rng.normal(0.2, 0.05, 150))}
    found = contrast_pairs(first, {meme: value + 0.5 for meme, value in first.items()})
    varied = contrast_pairs(
        first, {meme: value + float(rng.normal(0.5, 0.05)) for meme, value in first.items()}
    )
    assert found is not None
    assert varied is not None
    for p in (found.p, varied.p):
        assert p is not None
        assert holm([p, *[0.5] * 999])[0] < 0.001


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_holm_equals_statsmodels(p_values: list[float]) -> None:
    with mock.patch("gc.collect"):  # it does so each time, a second where all tests are loaded
        expected = multitest.multipletests(p_values, method="holm")[1]
        shares = multitest.multipletests(p_values, method="fdr_bh")[1]
    assert holm(p_values) == pytest.approx(list(expected))
    assert benjamini_hochberg(p_values) == pytest.approx(list(shares))


@pytest.mark.parametrize("effect", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("chance", [0.8, 0.95])
def test_the_number_of_memes_equals_statsmodels(effect: float, chance: float) -> None:
    # A standard error of 0.05 on 400 memes is a deviation of 1 between memes.
    expected = solver.NormalIndPower().solve_power(effect, alpha=0.05, power=chance, ratio=0)
    assert clusters_needed(0.05, 400, effect, power=chance) == pytest.approx(expected, abs=1)
    assert effect_seen(0.05, 400, round(expected), power=chance) == pytest.approx(effect, rel=0.02)


def test_nothing_compared_is_nothing_found() -> None:
    assert odds_ratio(0, 3) is None
    assert contrast_pairs({"a": 0.1}, {"b": 0.2}) is None
    assert mean_by_cluster([], []) == []
    assert holm([]) == []
