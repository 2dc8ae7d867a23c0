"""Every figure against an independent library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from memantics.metrics.classification import (
    accuracy,
    balanced_accuracy,
    binary_intervals,
    binary_macro_f1,
    count_binary,
    f1,
    macro_interval,
    precision,
    tnr,
    tpr,
)
from memantics.metrics.interval import bootstrap, clustered_wilson, wilson

both_classes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60).filter(
    lambda rows: {gold for gold, _ in rows} == {True, False}
)


@given(both_classes)
def test_binary_metrics_equal_scikit_learn(rows: list[tuple[bool, bool]]) -> None:
    gold, guess = [g for g, _ in rows], [p for _, p in rows]
    counts = count_binary(gold, guess, positive=True)
    assert tpr(counts) == pytest.approx(sk.recall_score(gold, guess))
    assert tnr(counts) == pytest.approx(sk.recall_score(gold, guess, pos_label=False))
    assert balanced_accuracy(counts) == pytest.approx(sk.balanced_accuracy_score(gold, guess))
    assert f1(counts) == pytest.approx(sk.f1_score(gold, guess))
    assert binary_macro_f1(counts) == pytest.approx(sk.f1_score(gold, guess, average="macro"))
    if any(guess):
        assert precision(counts) == pytest.approx(sk.precision_score(gold, guess))
    assert accuracy([g == p for g, p in rows]) == pytest.approx(sk.accuracy_score(gold, guess))


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_equals_scipy(hits: int, n: int) -> None:
    hits = min(hits, n)
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize(("k", "rate"), [(45, 14.65), (154, 50.16), (221, 71.98), (266, 86.64)])
def test_published_toxicity_accuracies_are_shares_of_307(k: int, rate: float) -> None:
    value = accuracy([True] * k + [False] * (307 - k))
    assert value is not None
    assert abs(100 * value - rate) <= 0.01


@pytest.mark.parametrize(("k", "m"), [(651, 0), (400, 800), (10, 1300)])
def test_f1_follows_from_both_rates_at_one_to_two(k: int, m: int) -> None:
    gold = ["pun"] * 652 + ["no"] * 1304
    guess = ["pun"] * k + ["no"] * (652 - k) + ["no"] * m + ["pun"] * (1304 - m)
    counts = count_binary(gold, guess, "pun")
    a, b = k / 652, m / 1304
    assert f1(counts) == pytest.approx(2 * a / (a + 1 + 2 * (1 - b)))


def test_clustered_interval_has_its_coverage() -> None:
    """Memes with five perfectly alike items: plain Wilson covers far too rarely, ours does not."""
    rng = np.random.default_rng(7)
    covered = plain = 0
    for _ in range(400):
        memes = rng.random(40) < 0.7
        hits, groups = np.repeat(memes, 5).tolist(), np.repeat(np.arange(40), 5).tolist()
        ours, naive = clustered_wilson(hits, groups), wilson(sum(hits), len(hits))
        assert ours is not None
        assert naive is not None
        covered += ours[0] <= 0.7 <= ours[1]
        plain += naive[0] <= 0.7 <= naive[1]
    assert plain < 300
    assert covered >= 368


def test_bootstrap_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    values = rng.random(200)
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=4000, random_state=rng
    ).confidence_interval
    rows = np.column_stack([values, np.ones(200)])
    found = bootstrap(rows, lambda s: s[:, 0] / s[:, 1], resamples=4000)
    assert found == pytest.approx((expected.low, expected.high), abs=0.005)


def test_no_items_give_no_interval() -> None:
    assert wilson(0, 0) is None
    assert clustered_wilson([], []) is None
    assert macro_interval([], [], []) is None
    assert binary_intervals([], [], True, []).f1 is None


def test_macro_interval_holds_its_value_when_kinds_are_rare() -> None:
    hits = [True, False, True, True, False, True, False, True]
    kinds = ["a", "a", "b", "c", "d", "e", "f", "f"]
    span = macro_interval(hits, kinds, [0, 0, 1, 1, 2, 2, 3, 3])
    assert span is not None
    assert span[0] < (0.5 + 1 + 1 + 0 + 1 + 0.5) / 6 < span[1]
