"""Tests of paired differences against other libraries, published values and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn import metrics as sk
from statsmodels.stats.contingency_tables import (  # type: ignore[import-untyped]
    mcnemar as plain_mcnemar,
)

from memantics.metrics.classification import count_binary, count_classes, f1, macro_metrics
from memantics.metrics.comparison import holm
from memantics.metrics.paired import (
    BY_MEME,
    MCNEMAR,
    Clusters,
    RatioMetric,
    auroc,
    compare_auroc,
    compare_blocks,
    compare_hits,
    compare_means,
    compare_ratios,
    f1_metric,
    macro_auroc,
    macro_f1_metric,
    mcnemar_score,
    student_test,
)

LABELS = ["a", "b", "c", None]
pairs = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(LABELS)), min_size=1, max_size=40
)


@given(pairs)
def test_f1_and_macro_f1_are_those_of_the_metrics_package(rows: list[tuple[str, str]]) -> None:
    gold, said = [g for g, _ in rows], [s for _, s in rows]
    assert macro_f1_metric(gold, said).value == pytest.approx(
        macro_metrics(count_classes(gold, said, "abc")).f1
    )
    expected = f1(count_binary(gold, said, "a"))
    assert f1_metric(gold, said, "a").value == (
        None if expected is None else pytest.approx(expected)
    )


@pytest.mark.parametrize(("won", "lost"), [(8, 2), (15, 4), (3, 3), (40, 12), (1, 0)])
def test_mcnemars_test_equals_statsmodels(won: int, lost: int) -> None:
    table = [[5, lost], [won, 9]]
    expected = plain_mcnemar(table, exact=False, correction=False).pvalue
    assert mcnemar_score(won, lost, 60).p == pytest.approx(expected)


def score_statistic(won: int, lost: int, n: int, delta: float) -> float:
    """The score statistic with the likelihood maximised by a numerical search."""

    def against(share: float) -> float:
        parts = (share + delta, share, 1 - 2 * share - delta)
        counts = (won, lost, n - won - lost)
        return -sum(c * math.log(max(p, 1e-300)) for c, p in zip(counts, parts, strict=True) if c)

    low, high = max(0.0, -delta), (1 - delta) / 2
    share = optimize.minimize_scalar(
        against, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    ).x
    return (won - lost - n * delta) / math.sqrt(n * (2 * share + delta * (1 - delta)))


@pytest.mark.parametrize(("won", "lost", "n"), [(1, 7, 21), (8, 2, 20), (12, 5, 60), (3, 1, 9)])
def test_tangos_interval_inverts_the_score_test(won: int, lost: int, n: int) -> None:
    found = mcnemar_score(won, lost, n)
    for end, wanted in ((found.low, 1.959964), (found.high, -1.959964)):
        assert score_statistic(won, lost, n, end) == pytest.approx(wanted, abs=1e-3)


def test_tangos_interval_at_its_ends() -> None:
    same = mcnemar_score(0, 0, 12)
    reach = 1.959964**2 / (12 + 1.959964**2)
    assert (same.low, same.high, same.p) == pytest.approx((-reach, reach, 1.0), abs=1e-6)
    every = mcnemar_score(12, 0, 12)
    assert every.high == 1.0
    assert 0.4 < every.low < 0.9
    assert every.p == pytest.approx(stats.chi2.sf(12, 1))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 60))
def test_mcnemars_interval_excludes_zero_exactly_if_it_is_significant(
    won: int, lost: int, same: int
) -> None:
    if won + lost + same < 2:
        return
    found = mcnemar_score(won, lost, won + lost + same)
    assert found.low <= found.difference <= found.high
    assert (found.low > 1e-9 or found.high < -1e-9) == (found.p < 0.05)


def test_a_mean_with_one_item_per_meme_is_the_paired_t_test_of_scipy() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.random(25), rng.random(25) + 0.1
    found = compare_means(first.tolist(), second.tolist(), list(range(25)))
    expected = stats.ttest_rel(second, first)
    span = expected.confidence_interval()
    assert found is not None
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((span.low, span.high))


def test_equal_numbers_of_items_are_the_t_test_of_meme_means() -> None:
    rng = np.random.default_rng(5)
    gains = rng.normal(0.2, 1, (12, 4))
    memes = np.repeat(np.arange(12), 4).tolist()
    found = compare_means([0.0] * 48, gains.ravel().tolist(), memes)
    assert found is not None
    assert found.p == pytest.approx(stats.ttest_1samp(gains.mean(axis=1), 0).pvalue)


def test_f1_is_a_jackknife_over_memes() -> None:
    """The standard error equals that of leaving out each meme by hand."""
    rng = np.random.default_rng(6)
    gold = rng.integers(0, 3, 60)
    runs = [np.where(rng.random(60) < p, gold, rng.integers(0, 3, 60)) for p in (0.5, 0.7)]
    memes = rng.integers(0, 15, 60)
    first, second = (macro_f1_metric(gold.tolist(), run.tolist()) for run in runs)
    found = compare_ratios(first, second, Clusters.of(memes.tolist()))

    def differ(kept: np.ndarray) -> float:
        one, two = (
            sk.f1_score(gold[kept], run[kept], average="macro", zero_division=0.0) for run in runs
        )
        return float(two - one)

    left = [differ(memes != meme) for meme in dict.fromkeys(memes.tolist())]
    count = len(left)
    error = math.sqrt((count - 1) * np.var(left))
    assert found is not None
    assert found.difference == pytest.approx(differ(memes >= 0))
    assert found.error == pytest.approx(error)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.difference) / error, count - 1))
    bound = stats.t.ppf(0.975, count - 1) * error
    assert found.high - found.difference == pytest.approx(bound)


def test_a_class_with_one_member_stays_in_the_mean() -> None:
    metric = macro_f1_metric(list("aaab"), list("aabb"))
    left = metric.leave_out(Clusters.of(range(4)))
    # Without the only b, its F1 is 0 of 1 claims, not an absent class.
    assert left[3] == pytest.approx((0.8 + 0.0) / 2)
    alone = macro_f1_metric(list("aab"), list("aab"))
    assert alone.leave_out(Clusters.of(range(3))).tolist() == [1.0, 1.0, 1.0]


def test_auroc_equals_scikit_learn() -> None:
    rng = np.random.default_rng(7)
    truth = rng.random(80) < 0.4
    scores = np.asarray(np.round(rng.random(80) + 0.3 * truth, 1), np.float64)
    assert auroc(scores, truth.tolist()) == pytest.approx(sk.roc_auc_score(truth, scores))
    assert auroc([0.1, 0.2], [True, True]) is None
    gold = rng.integers(0, 3, 80)
    chances = rng.dirichlet([1, 1, 1], 80)
    found = macro_auroc(chances, gold)
    assert found is not None
    expected = sk.roc_auc_score(gold, chances, multi_class="ovr", average="macro")
    assert found[0] == pytest.approx(expected)
    assert macro_auroc(chances, np.zeros(80, np.int64)) is None


def test_auroc_is_compared_by_delongs_test() -> None:
    """Variances and covariances of placements by a double loop, as DeLong et al. (1988) write."""
    rng = np.random.default_rng(8)
    truth = np.array([True] * 200 + [False] * 300)
    runs = [rng.normal(size=500) + shift * truth for shift in (0.8, 1.1)]
    ours, others = [run[truth] for run in runs], [run[~truth] for run in runs]
    ten, one = [], []
    for mine, theirs in zip(ours, others, strict=True):
        beats = (mine[:, None] > theirs) + 0.5 * (mine[:, None] == theirs)
        ten.append(beats.mean(axis=1))
        one.append(beats.mean(axis=0))
    matrix = np.cov(ten) / 200 + np.cov(one) / 300
    error = math.sqrt(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])
    chances = [1 / (1 + np.exp(-run)) for run in runs]
    tables = [np.column_stack([1 - chance, chance]) for chance in chances]
    found = compare_auroc(tables[0], tables[1], truth.astype(np.int64), list(range(500)))
    assert found is not None
    assert found.difference == pytest.approx(
        sk.roc_auc_score(truth, runs[1]) - sk.roc_auc_score(truth, runs[0])
    )
    assert found.error == pytest.approx(error, rel=0.005)


@pytest.mark.parametrize(("memes", "tested"), [(14, False), (15, True)])
def test_delongs_test_needs_fifteen_memes(memes: int, tested: bool) -> None:
    rng = np.random.default_rng(1)
    gold = np.array([0, 1] * 30)
    one, two = (rng.dirichlet([1, 1], size=60) for _ in range(2))
    found = compare_auroc(one, two, gold, [place % memes for place in range(60)])
    assert (found is not None) is tested


def test_p_values_have_no_floor() -> None:
    """.847 against .421 of 150 items: significant among any number of comparisons."""
    first, second = [n < 63 for n in range(150)], [n < 127 for n in range(150)]
    found = compare_hits(first, second, list(range(150)))
    assert found is not None
    assert found.name == MCNEMAR
    assert found.p < 1e-14
    assert holm([found.p] + [0.5] * 99)[0] < 1e-12
    clustered = compare_hits(first, second, [n // 3 for n in range(150)])
    assert clustered is not None
    assert clustered.name == BY_MEME
    assert clustered.p < 1e-6


def test_nothing_to_compare_and_nothing_that_varies() -> None:
    assert compare_hits([True], [False], ["a"]) is None
    assert compare_means([1.0, 0.0], [0.0, 1.0], ["a", "a"]) is None
    empty = RatioMetric(np.zeros((3, 1)), np.zeros((3, 1)))
    assert empty.value is None
    assert compare_ratios(empty, empty, Clusters.of("abc")) is None
    for count in (5, 6, 30):
        same = student_test(0.0, np.zeros(count))
        assert (same.p, same.low) == (1.0, -same.high)
        assert same.high == pytest.approx(3.8415 / (count + 3.8415), abs=1e-4)
        one_sided = student_test(0.3, np.zeros(count), bound=1.0)
        assert one_sided.p == 2.0 ** (1 - count)
        assert (one_sided.low > 0) == (one_sided.p < 0.05)


def test_a_score_that_is_no_number_gives_no_test() -> None:
    """A NaN had the p-value of the sign test, which is 1e-45 for 150 memes."""
    first, second = [0.5] * 150, [0.5] * 149 + [math.nan]
    assert compare_means(first, second, range(150)) is None
    assert compare_means(second, first, range(150)) is None
    assert compare_blocks(math.nan, np.zeros(20)) is None
    assert compare_blocks(0.1, np.array([*[0.1] * 19, math.nan])) is None
