"""Heads, weights and linear machines at their edges, against values worked out apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack
from sklearn.svm import LinearSVC

from memantics.moderation import calibration
from memantics.moderation.examples import Example, Type
from memantics.moderation.kernel import (
    LinearScorer,
    Rows,
    SparseRows,
    add_margin,
    fit_svm,
    make_targets,
    margin_places,
    to_rows,
)
from tests.moderation.test_kernel import make_rows
from tests.moderation.test_kernel import make_targets as make_signs


def memes(*counts: tuple[int, Type | None, int]) -> list[Example]:
    """So many memes of a label and a type."""
    return [
        Example(f"{place}-{n}", "x", label=label, type=kind)
        for place, (label, kind, count) in enumerate(counts)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("harmful", "heads"),
    [
        (4, ("harmful",)),
        (5, ("harmful", "type/none", "type/offence")),
    ],
)
def test_a_head_needs_five_memes_of_its_type(harmful: int, heads: tuple[str, ...]) -> None:
    made = make_targets(memes((1, "offence", harmful), (0, "none", 8)))
    assert made.heads == heads
    assert made.signs[:, 0].tolist() == [1.0] * harmful + [-1.0] * 8
    if len(heads) > 1:
        assert made.signs[:, 1].tolist() == [-1.0] * harmful + [1.0] * 8
        assert np.array_equal(made.signs[:, 2], -made.signs[:, 1])
    assert made.signs.dtype == np.dtype(np.float32)
    assert made.signs.flags.c_contiguous


@pytest.mark.parametrize(("others", "kept"), [(4, False), (5, True)])
def test_a_head_needs_five_memes_of_other_types(others: int, kept: bool) -> None:
    made = make_targets(memes((0, "none", 9), (1, None, others)))
    assert ("type/none" in made.heads) == kept


def test_a_stratum_weighs_by_the_root_of_its_size() -> None:
    made = make_targets(memes((1, "offence", 1), (0, "none", 4), (1, "sexual", 4)))
    assert made.weights[0] == pytest.approx(2 * made.weights[1])
    assert made.weights[1] == made.weights[8]
    assert float(made.weights.mean()) == pytest.approx(1.0)
    assert made.weights.dtype == np.float32


def test_rows_without_a_dense_part_have_no_dense_columns() -> None:
    matrix = SparseRows.from_dense(np.eye(3, dtype=np.float32))
    bare = to_rows(matrix, None)
    assert (bare.dense.shape, len(bare)) == ((3, 0), 3)
    assert bare.dense.dtype == np.dtype(np.float32)
    dense = np.ones((3, 2), np.float32)
    assert to_rows(matrix, dense).dense is dense


def test_the_margin_is_the_best_harmful_type_above_none() -> None:
    heads = ("harmful", "type/none", "type/offence", "type/sexual")
    scores = np.array([[9, 0.5, -1, 2], [9, 0.5, 0.25, -3]], np.float32)
    assert margin_places(heads) == (1, [2, 3])
    found = add_margin(heads, scores)
    assert found.shape == (2, 5)
    assert found.dtype == np.dtype(np.float64)
    assert found[:, :4].tolist() == scores.tolist()
    assert found[:, 4].tolist() == [1.5, -0.25]
    # One harmful type is no choice between types: there is no margin.
    assert margin_places(heads[:3]) is None
    assert add_margin(heads[:3], scores[:, :3]).tolist() == scores[:, :3].tolist()


@pytest.mark.parametrize("dense", [True, False])
def test_machines_are_those_of_scikit_learn_with_balanced_weights(dense: bool) -> None:
    rows, weights = make_rows(40), np.linspace(0.5, 2, 40).astype(np.float32)
    signs = make_signs(rows)
    matrix = rows.sparse.to_scipy()
    if dense:
        matrix = hstack([matrix, csr_matrix(rows.dense)]).tocsr()
    else:
        rows = to_rows(rows.sparse, None)
    groups = np.arange(40) % 4
    fitted, held_out = fit_svm(rows, signs, weights, 0.7, groups)
    assert fitted.sparse.shape == (12, 2)
    assert fitted.dense.shape == (3 if dense else 0, 2)
    for head in range(2):
        sides = {sign: weights[signs[:, head] == sign].sum() for sign in (1, -1)}
        balance = np.array(
            [20 * w / sides[s] for w, s in zip(weights, signs[:, head], strict=True)]
        )
        machine = LinearSVC(C=0.7, random_state=0).fit(matrix, signs[:, head], balance)
        expected = machine.decision_function(matrix)
        assert fitted.score(rows)[:, head] == pytest.approx(expected, abs=1e-4)
    kept, out = np.flatnonzero(groups != 1), np.flatnonzero(groups == 1)
    again, _ = fit_svm(rows.take(kept), signs[kept], weights[kept], 0.7, groups[kept])
    assert held_out[out] == pytest.approx(again.score(rows.take(out)), abs=1e-5)


def test_a_class_that_is_absent_is_said_to_be_absent() -> None:
    rows = make_rows(8)
    signs = np.array([[-1.0]] * 4 + [[1.0]] * 4, np.float32)
    groups = np.repeat([0, 1], 4)
    fitted, held_out = fit_svm(rows, signs, np.ones(8, np.float32), 1.0, groups)
    # Without the second group every meme is harmless, and the other way round.
    assert held_out[:, 0].tolist() == [1.0] * 4 + [-1.0] * 4
    alike, _ = fit_svm(rows, np.ones((8, 1), np.float32), np.ones(8, np.float32), 1.0, groups)
    assert np.unique(alike.sparse).tolist() == [0.0]
    assert alike.intercepts.tolist() == [1.0]
    assert len(np.unique(fitted.score(rows))) > 1


def test_what_columns_contribute_to_a_linear_score_adds_up() -> None:
    rows = make_rows(5)
    draw = np.random.default_rng(1)
    sparse, dense = draw.normal(size=(12, 2)), draw.normal(size=(3, 2))
    scorer = LinearScorer(
        sparse.astype(np.float32), dense.astype(np.float32), np.array([0.5, -2], np.float32)
    )
    mix, one = np.array([0.7, -0.4], np.float32), rows.take(np.array([3]))
    first, second = scorer.attribute(one, mix)
    table = one.sparse.to_scipy().toarray()[0]
    assert first == pytest.approx(table * (sparse @ mix), abs=1e-5)
    assert second == pytest.approx(one.dense[0] * (dense @ mix), abs=1e-5)
    assert first.dtype == second.dtype == np.float32
    whole = float(scorer.score(one)[0] @ mix)
    bare = float(np.array([0.5, -2]) @ mix)
    assert float(first.sum() + second.sum()) == pytest.approx(whole - bare, abs=1e-5)
    plain = LinearScorer(scorer.sparse, np.zeros((0, 2), np.float32), scorer.intercepts)
    bare_row = Rows(one.sparse, np.zeros((1, 0), np.float32))
    assert plain.score(bare_row)[0] == pytest.approx(table @ sparse + [0.5, -2], abs=1e-5)


def test_the_threshold_parts_two_clear_groups() -> None:
    truth = np.array([0] * 30 + [1] * 10)
    for low, high in ((0.1, 0.6), (0.3, 0.5), (0.5, 0.95)):
        chances = np.where(truth == 1, high, low)
        assert low < calibration.choose_threshold(chances, truth) < high
        shuffled = np.random.default_rng(0).permutation(40)
        again = calibration.choose_threshold(chances[shuffled], truth[shuffled])
        assert again == calibration.choose_threshold(chances, truth)


def test_the_threshold_weighs_both_classes_alike() -> None:
    # At 0.1 all are harmless, at 0.5 four of five, at 0.9 none: the middle counts as harmless.
    truth = np.array([0] * 20 + [0] * 8 + [1] * 2 + [1] * 10)
    chances = np.array([0.1] * 20 + [0.5] * 10 + [0.9] * 10)
    assert 0.5 <= calibration.choose_threshold(chances, truth) < 0.9
    turned = calibration.choose_threshold(1 - chances, 1 - truth)
    assert 0.1 <= turned < 0.5


def test_large_logits_become_chances_row_by_row() -> None:
    logits = np.array([[1000.0, 1001.0], [0.0, 0.0], [-1000.0, -1002.0]])
    found = calibration.normalise(logits)
    assert found.sum(axis=1) == pytest.approx([1, 1, 1])
    assert found[:, 1] == pytest.approx([0.731059, 0.5, 0.119203], abs=1e-5)
