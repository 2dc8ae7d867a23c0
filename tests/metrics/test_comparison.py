"""Tests, effect sizes and corrections against scipy and statsmodels."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from memantics.metrics.comparison import (
    benjamini_hochberg,
    chi_square_tail,
    clustered_mcnemar,
    clusters_needed,
    cohen_d_z,
    effect_seen,
    holm,
    mcnemar,
    mean_by_cluster,
    odds_ratio,
    paired_bootstrap,
    paired_t_test,
    student_bound,
    student_tails,
)

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


def test_bootstrap_interval_equals_scipy() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0.04, 0.2, 300)
    found = paired_bootstrap(list(values), list(range(300)))
    assert found is not None
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=10_000, random_state=rng
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.002)
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.01)


def test_bootstrap_keeps_its_level_where_memes_have_several_items() -> None:
    """No difference at all, five like items a meme: about one test in twenty finds one."""
    rng = np.random.default_rng(11)
    found = naive = 0
    for _ in range(300):
        memes = rng.normal(0, 1, 40)
        values, groups = np.repeat(memes, 5).tolist(), np.repeat(np.arange(40), 5).tolist()
        ours = paired_bootstrap(values, groups, resamples=400)
        plain = paired_t_test([0.0] * 200, values)
        assert ours is not None
        assert plain is not None
        found += ours.p < 0.05
        naive += plain.p < 0.05
    assert naive > 90
    assert found <= 27


@given(st.integers(0, 600), st.integers(0, 600))
@settings(deadline=None)
def test_mcnemar_equals_statsmodels(only_first: int, only_second: int) -> None:
    expected = contingency.mcnemar([[5, only_first], [only_second, 7]], exact=True).pvalue
    found = mcnemar(only_first, only_second).p
    if only_first == only_second:
        assert found == 1.0
    else:
        assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("few", "many"), [(0, 1), (0, 1100), (1, 2), (40, 300), (4_900, 5_100)])
def test_mcnemar_equals_a_sum_of_whole_numbers(few: int, many: int) -> None:
    n, ways, total = few + many, 1, 0
    for k in range(few + 1):
        total += ways
        ways = ways * (n - k) // (k + 1)
    assert ways == math.comb(n, few + 1)
    exact = min(1.0, 2 * total / 2**n)
    assert mcnemar(few, many).p == mcnemar(many, few).p == pytest.approx(exact, rel=1e-12, abs=0)


def test_mcnemar_survives_many_items() -> None:
    expected = stats.norm.sf(1000 / 999_000**0.5) * 2
    assert mcnemar(499_000, 500_000).p == pytest.approx(expected, rel=1e-2)
    assert mcnemar(0, 5_000).p == 0.0


@given(st.integers(0, 200), st.integers(1, 200))
@settings(deadline=None)
def test_clustered_mcnemar_is_the_plain_one_with_one_item_a_meme(b: int, c: int) -> None:
    first, second = [True] * b + [False] * c, [False] * b + [True] * c
    found = clustered_mcnemar(first, second, list(range(b + c)))
    expected = contingency.mcnemar([[0, b], [c, 0]], exact=False, correction=False)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)


def test_clustered_mcnemar_counts_like_items_once() -> None:
    once = clustered_mcnemar([True, False, False], [False, True, True], [0, 1, 2])
    many = clustered_mcnemar(
        [True] * 4 + [False] * 8, [False] * 4 + [True] * 8, [0] * 4 + [1] * 4 + [2] * 4
    )
    assert many == once
    assert clustered_mcnemar([True, False], [True, False], [0, 1]).p == 1.0


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
    assert mcnemar(0, 0).p == 1.0
    assert odds_ratio(0, 3) is None
    assert paired_bootstrap([0.1, 0.2], ["a", "a"]) is None
    assert paired_bootstrap([], []) is None
    assert mean_by_cluster([], []) == []
    assert holm([]) == []
