from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import f1_score

from memantics.core.errors import InputError
from memantics.metrics.classification import place_macro_f1
from memantics.moderation import calibration
from memantics.moderation.examples import split_random
from memantics.moderation.kernel import (
    MOST,
    Kernel,
    KernelScorer,
    Rows,
    SparseRows,
    hold_out,
    invert,
    make_gram,
    score,
    to_rows,
    unfold,
)


def make_rows(count: int = 60, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    sparse = np.abs(rng.normal(size=(count, 12))).astype(np.float32) * 0.2
    return Rows(SparseRows.from_dense(sparse), rng.normal(size=(count, 3)).astype(np.float32) * 0.2)


def make_targets(rows: Rows) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    table = rows.sparse.to_scipy().toarray()
    signs = np.sign(np.stack([table[:, 0] - table[:, 1], rows.dense[:, 0]], axis=1))
    return np.ascontiguousarray(signs.astype(np.float32))


def test_held_out_scores_are_those_of_fitting_again() -> None:
    rows, kernel = make_rows(), Kernel(2)
    targets = make_targets(rows)
    weights = np.linspace(0.5, 2, len(rows)).astype(np.float32)
    groups = np.arange(len(rows)) % 5
    inverse, duals = invert(make_gram(rows, kernel), targets, weights, 0.3)
    held_out = hold_out(inverse, duals, targets, groups)
    for group in range(5):
        kept, out = np.flatnonzero(groups != group), np.flatnonzero(groups == group)
        inside = rows.take(kept)
        _, again = invert(make_gram(inside, kernel), targets[kept], weights[kept], 0.3)
        expected = score(rows.take(out), inside, kernel, again)
        assert np.allclose(held_out[out], expected, atol=2e-4)


def test_the_solution_is_kernel_ridge() -> None:
    rows, kernel = make_rows(), Kernel(2)
    targets = make_targets(rows)
    gram = make_gram(rows, kernel)
    other = KernelRidge(alpha=0.3, kernel="precomputed").fit(gram, targets)
    expected = other.predict(gram)
    ones = np.ones(len(rows), np.float32)
    _, duals = invert(gram.copy(), targets, ones, 0.3)
    assert np.allclose(score(rows, rows, kernel, duals), expected, atol=1e-3)


def test_a_kernel_of_degree_one_unfolds_to_weights() -> None:
    rows, kernel = make_rows(), Kernel(1)
    ones = np.ones(len(rows), np.float32)
    _, duals = invert(make_gram(rows, kernel), make_targets(rows), ones, 1.0)
    folded = score(rows, rows, kernel, duals)
    assert np.allclose(unfold(rows, duals, 0.2).score(rows), folded, atol=1e-4)


@pytest.mark.parametrize("degree", [1, 2])
def test_contributions_add_up_to_the_score(degree: int) -> None:
    rows, kernel = make_rows(), Kernel(degree)
    ones = np.ones(len(rows), np.float32)
    _, duals = invert(make_gram(rows, kernel), make_targets(rows), ones, 1.0)
    scorer = KernelScorer(rows, kernel, duals)
    mix = np.array([0.7, -0.4], np.float32)
    one = rows.take(np.array([4]))
    nothing = Rows(replace(one.sparse, values=one.sparse.values * 0), one.dense * 0)
    sparse, dense = scorer.attribute(one, mix)
    moved = float((scorer.score(one) - scorer.score(nothing))[0] @ mix)
    assert float(sparse.sum() + dense.sum()) == pytest.approx(moved, abs=1e-4)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    rows, kernel = make_rows(300), Kernel(2)
    duals = np.random.default_rng(3).normal(size=(300, 2)).astype(np.float32)
    together = score(rows, rows, kernel, duals)
    alone = np.vstack([score(rows.take(np.array([i])), rows, kernel, duals) for i in range(300)])
    assert np.array_equal(together, alone)


def test_too_many_examples_are_refused_before_memory_is_taken() -> None:
    rows = to_rows(SparseRows.from_dense(np.zeros((MOST + 1, 2), np.float32)), None)
    with pytest.raises(InputError, match="preset linear"):
        make_gram(rows, Kernel(2))


def test_the_threshold_is_near_the_best_one() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(400) < 0.3).astype(np.int64)
    chances = np.clip(0.3 * truth + rng.random(400) * 0.7, 0, 1)
    best = calibration.choose_threshold(chances, truth)

    def metric(threshold: float) -> float:
        return float(f1_score(truth, chances >= threshold, average="macro"))

    assert metric(best) >= max(metric(t) for t in np.linspace(0, 1, 201)) - 0.02


def test_biases_raise_macro_f1_on_rare_classes() -> None:
    rng = np.random.default_rng(2)
    truth = np.where(rng.random(600) < 0.1, 1, 0)
    logits = np.stack([np.ones(600), truth * 1.0 + rng.normal(size=600) * 0.3 - 0.2], axis=1)
    biases = calibration.choose_biases(logits, truth)
    plain = place_macro_f1(truth, logits.argmax(axis=1), 2)
    assert biases[0] == 0
    assert place_macro_f1(truth, (logits + biases).argmax(axis=1), 2) > plain


def test_chances_are_calibrated() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(4000, 1))
    truth = (rng.random(4000) < 1 / (1 + np.exp(-2 * scores[:, 0]))).astype(np.int64)
    softmax = calibration.fit_softmax(scores, truth, 2)
    chances = softmax.probabilities(scores)[:, 1]
    points = calibration.reliability(chances.tolist(), truth.tolist())
    assert calibration.calibration_error(points) < 0.03


def test_evened_out_scores_stay_calibrated_and_keep_their_order() -> None:
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(4), 1000)
    truth = (rng.random(4000) < np.array([0.1, 0.2, 0.5, 0.8])[groups]).astype(np.int64)
    scores = np.stack([truth + rng.normal(size=4000), groups + rng.normal(size=4000)], axis=1)
    even = calibration.fit_even(scores, truth, groups)
    chances = even.probabilities(scores)[:, 1]
    points = calibration.reliability(chances.tolist(), truth.tolist())
    assert calibration.calibration_error(points) < 0.05
    plain = calibration.fit_softmax(scores, truth, 2)
    # What only tells groups apart counts for much less once groups are evened out.
    share = abs(even.weights[1, 1] / even.weights[0, 1])
    plain_share = abs(plain.weights[1, 1] / plain.weights[0, 1])
    assert share < plain_share / 2


def test_rare_types_keep_their_share() -> None:
    """They weigh more in the fit; the chances must not: their mean is each type's share."""
    rng = np.random.default_rng(5)
    truth = np.repeat([0, 1, 2], [600, 150, 50])
    scores = rng.normal(size=(800, 3)) + np.eye(3)[truth]
    fitted = calibration.fit_types(scores, truth, 3)
    mean = fitted.probabilities(scores).mean(axis=0)
    assert mean == pytest.approx([0.75, 0.1875, 0.0625], abs=0.012)
    plain = calibration.fit_softmax(scores, truth, 3).probabilities(scores)
    assert np.abs(fitted.probabilities(scores) - plain).mean() < 0.02


def test_a_type_that_does_not_occur_has_a_finite_chance() -> None:
    scores = np.random.default_rng(0).normal(size=(40, 2))
    fitted = calibration.fit_types(scores, np.repeat([0, 1], 20), 3)
    assert np.isfinite(fitted.intercepts).all()
    assert fitted.probabilities(scores)[:, 2].max() < 0.5


@pytest.mark.parametrize("sizes", [(3, 3), (1, 1, 1, 1), (5, 1, 1, 1), (7, 4, 2)])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_folds_are_equally_large_and_each_stratum_is_spread(
    sizes: tuple[int, ...], count: int
) -> None:
    strata = [name for name, size in zip("abcd", sizes, strict=False) for _ in range(size)]
    for seed in range(3):
        folds = split_random(strata, count, seed)
        whole = np.bincount(folds, minlength=count)
        assert whole.max() - whole.min() <= 1
        for name in set(strata):
            part = np.bincount(folds[np.array(strata) == name], minlength=count)
            assert part.max() - part.min() <= 1


@pytest.mark.parametrize(("size", "count", "fine"), [(4, 4, True), (3, 4, False), (9, 1, False)])
def test_how_many_folds_there_may_be(size: int, count: int, fine: bool) -> None:
    if fine:
        assert sorted(split_random(["a"] * size, count)) == [0, 1, 2, 3]
        return
    with pytest.raises(InputError, match="too few for"):
        split_random(["a"] * size, count)
