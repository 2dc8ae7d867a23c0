"""Figures about repeats, against an enumeration of all draws and against scipy."""

from __future__ import annotations

import itertools
import random
from statistics import fmean, stdev

import pytest
from scipy.stats import f_oneway

from memantics.metrics.interval import majority, pass_at_k, repeat_deviation, split_variance


def draw(items: int, repeats: int, seed: int) -> list[list[float]]:
    chance = random.Random(seed)
    return [
        [float(chance.random() < p) for _ in range(repeats)]
        for p in (chance.random() for _ in range(items))
    ]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_is_the_mean_over_all_draws(k: int) -> None:
    marks = draw(12, 5, seed=k)
    every = [any(combination) for row in marks for combination in itertools.combinations(row, k)]
    assert pass_at_k(marks, k) == pytest.approx(fmean(every))


def test_pass_at_k_beyond_the_repeats_is_undefined() -> None:
    assert pass_at_k([[1, 0]], 3) is None
    assert pass_at_k([[1, 0]], 0) is None
    assert pass_at_k([], 1) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_split_gives_back_the_f_statistic(seed: int) -> None:
    marks = draw(40, 4, seed)
    split = split_variance(marks)
    assert split is not None
    f = f_oneway(*marks).statistic
    # F = (k * items + repeats) / repeats in a one-way analysis of variance
    assert (4 * split.items + split.repeats) / split.repeats == pytest.approx(f)


def test_a_split_needs_two_of_each() -> None:
    assert split_variance([[1, 0]]) is None
    assert split_variance([[1], [0]]) is None
    split = split_variance([[1, 1], [1, 1]])
    assert split is not None
    assert split.share is None


def test_deviation_is_that_of_the_means() -> None:
    marks = draw(30, 3, seed=9)
    means = [fmean(column) for column in zip(*marks, strict=True)]
    assert repeat_deviation(marks) == pytest.approx(stdev(means))
    assert repeat_deviation([[1.0]]) is None
    assert repeat_deviation([]) is None


def test_votes() -> None:
    assert majority(["B", "A", "A", None]) == "A"
    assert majority(["B", "A"]) == "B"
    assert majority([]) is None
