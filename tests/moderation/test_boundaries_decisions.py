"""Calibration, thresholds and folds: both sides of every boundary, and what must hold exactly."""

from __future__ import annotations

import numpy as np
import pytest

from memantics.core.errors import InputError
from memantics.moderation.calibration import (
    Softmax,
    calibration_error,
    choose_biases,
    choose_threshold,
    even_out,
    fit_even,
    fit_softmax,
    fit_types,
    normalise,
    reliability,
)
from memantics.moderation.examples import split_blocks, split_examples, split_random
from tests.moderation.samples import make_examples

CHANCE = np.random.default_rng(5)
LABELS = (CHANCE.random(400) < 0.3).astype(np.int64)
GROUPS = CHANCE.integers(0, 3, 400)
SCORES = np.column_stack([LABELS + CHANCE.normal(size=400), CHANCE.normal(size=400) + 7])
TYPES = np.where(LABELS == 1, CHANCE.integers(1, 4, 400), 0)


def test_calibrated_chances_have_the_mean_of_the_labels() -> None:
    """A logistic regression whose intercept is free; a wrong intercept shifts the mean."""
    for fitted in (fit_softmax(SCORES, LABELS, 2), fit_even(SCORES, LABELS, GROUPS)):
        chances = fitted.probabilities(SCORES)
        assert chances.sum(axis=1) == pytest.approx(np.ones(400))
        assert chances[:, 1].mean() == pytest.approx(LABELS.mean(), abs=2e-3)
        assert chances[LABELS == 1, 1].mean() > chances[LABELS == 0, 1].mean() + 0.1


def test_evening_out_changes_chances_and_no_order() -> None:
    even = fit_softmax(SCORES, LABELS, 2, even_out(LABELS, GROUPS)).logits(SCORES)
    last = fit_even(SCORES, LABELS, GROUPS).logits(SCORES)
    odds = [made[:, 1] - made[:, 0] for made in (even, last)]
    assert np.array_equal(np.argsort(odds[0]), np.argsort(odds[1]))
    assert np.array_equal(last[:, 0], np.zeros(400))


def test_weights_even_out_the_classes_of_each_group() -> None:
    labels, groups = np.array([0] * 150 + [1] * 50), np.array([0] * 100 + [1] * 100)
    weights = even_out(labels, groups)
    assert weights.mean() == pytest.approx(1)
    # Cells of 100, 50 and 50 items, each 50 larger for the weights.
    assert weights[0] / weights[100] == pytest.approx(100 / 150)
    assert weights[100] == weights[199]
    assert even_out(labels, groups, 0.0) == pytest.approx(np.ones(200))


def test_rare_types_weigh_more_and_get_their_share_back() -> None:
    heavy = np.maximum(1, np.bincount(TYPES, minlength=5)) ** -0.5
    assert heavy[4] == 1  # a type without any example
    plain = fit_softmax(SCORES, TYPES, 5, heavy[TYPES])
    found = fit_types(SCORES, TYPES, 5)
    assert found.intercepts == pytest.approx(plain.intercepts - np.log(heavy))
    assert np.array_equal(found.weights, plain.weights)
    shares = np.bincount(TYPES, minlength=5) / len(TYPES)
    assert found.probabilities(SCORES).mean(axis=0)[:4] == pytest.approx(shares[:4], abs=0.03)


def test_importance_counts_relative_to_its_mean() -> None:
    once = fit_softmax(SCORES, LABELS, 2, np.ones(400))
    twice = fit_softmax(SCORES, LABELS, 2, np.full(400, 2.0))
    assert np.array_equal(once.weights, twice.weights)
    assert np.array_equal(once.weights, fit_softmax(SCORES, LABELS, 2).weights)


def test_a_constant_score_changes_nothing() -> None:
    constant = np.column_stack([SCORES, np.full(400, 3.0)])
    found = fit_softmax(constant, LABELS, 2)
    assert found.deviation[2] == 1e-6
    assert np.abs(found.weights[2]).max() < 1e-6


def test_logits_are_weighted_scaled_scores() -> None:
    made = Softmax(np.array([1.0]), np.array([2.0]), np.array([[3.0, -1.0]]), np.array([0.5, 0]))
    assert made.logits(np.array([[5.0]])).tolist() == [[6.5, -2.0]]
    assert normalise(np.array([[1e4, 0.0]])).tolist() == [[1.0, 0.0]]


def test_a_threshold_lies_between_the_classes() -> None:
    chances = np.array([0.1] * 10 + [0.3] * 10 + [0.35] * 10)
    truth = np.array([0] * 20 + [1] * 10)
    found = choose_threshold(chances, truth)
    assert 0.3 < found <= 0.35
    assert choose_threshold(1 - chances, 1 - truth) == pytest.approx(1 - found, abs=0.011)
    assert 0.02 <= choose_threshold(np.array([0.5, 0.5]), np.array([1, 1])) <= 0.98


def test_biases_move_a_class_that_is_said_too_seldom() -> None:
    logits = np.array([[1.0, 0.45], [1.0, 0.2], [1.0, -0.05], [1.0, -2.0]])
    truth = np.array([1, 1, 1, 0])
    found = choose_biases(logits, truth)
    assert found[0] == 0
    assert (logits + found).argmax(axis=1).tolist() == truth.tolist()
    # 0.6 brings the first one in, 0.7 on top of it the other two; nothing later is better.
    assert found[1] == pytest.approx(1.3)
    assert choose_biases(logits, truth, 0).tolist() == [0, 0]
    # Out of reach of one turn (3.0), within that of two (at most 1.5 + 0.75).
    far = np.array([[2.0, 0.0], [2.0, -0.5]])
    assert choose_biases(far, np.array([1, 0]), 1).tolist() == [0, 0]


def test_later_turns_take_smaller_steps() -> None:
    """Steps are divided by the number of the turn: 0.1, then 0.05."""
    logits = np.array([[0.0, -0.12], [0.0, -0.17]])
    truth = np.array([1, 0])
    assert choose_biases(logits, truth, 1).tolist() == [0, 0]
    found = choose_biases(logits, truth, 2)
    assert found[1] == pytest.approx(0.15)


def test_reliability_has_ten_bins_of_equal_size() -> None:
    chances = list(np.linspace(0, 1, 40))
    points = reliability(chances, [0] * 20 + [1] * 20)
    assert [count for _, _, count in points] == [4] * 10
    assert points[0][0] == pytest.approx(np.mean(chances[:4]))
    assert points[0][1:] == (0.0, 4)
    assert points[-1][1] == 1.0
    assert len(reliability([0.3, 0.1, 0.2], [0, 1, 0])) == 3
    assert reliability([0.3, 0.1], [0, 1], 2) == [(0.1, 1.0, 1), (0.3, 0.0, 1)]
    assert calibration_error([(0.5, 0.5, 3), (0.25, 0.75, 1)]) == 0.125
    assert calibration_error([]) == 0.0


def test_folds_of_examples_go_by_id_or_by_type() -> None:
    examples = make_examples(40)
    blocks = split_examples(examples, "blocks", 4)
    assert blocks.tolist() == [place // 10 for place in range(40)]
    found = split_examples(examples, "random", 4, 3)
    strata = [f"{one.label}/{one.type}" for one in examples]
    assert np.array_equal(found, split_random(strata, 4, 3))
    assert not np.array_equal(found, split_examples(examples, "random", 4))
    assert np.bincount(found).tolist() == [10] * 4


def test_strata_go_on_where_the_last_one_stopped() -> None:
    folds = split_random(["a"] * 3 + ["b"] * 3 + ["c"] * 2, 4)
    assert np.bincount(folds).tolist() == [2, 2, 2, 2]
    # a: folds 0 to 2; b: 3, 0, 1; c: 2, 3.
    assert sorted(folds[:3].tolist()) == [0, 1, 2]
    assert sorted(folds[3:6].tolist()) == [0, 1, 3]
    assert sorted(folds[6:].tolist()) == [2, 3]


@pytest.mark.parametrize(("count", "fine"), [(1, False), (2, True), (5, True), (6, False)])
def test_folds_need_an_example_each(count: int, fine: bool) -> None:
    ids = ["1", "2", "3", "4", "5"]
    if fine:
        assert set(split_blocks(ids, count).tolist()) == set(range(count))
        assert set(split_random(["a"] * 5, count).tolist()) == set(range(count))
        return
    with pytest.raises(InputError, match="folds"):
        split_blocks(ids, count)
    with pytest.raises(InputError, match="folds"):
        split_random(["a"] * 5, count)
