"""Sparse rows against scipy's matrices, at their edges too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from memantics.moderation.kernel import (
    Kernel,
    KernelScorer,
    LinearScorer,
    Rows,
    Singles,
    SparseRows,
)


def draw(rows: int, width: int, seed: int = 0, density: float = 0.1) -> tuple[SparseRows, Singles]:
    """Random rows, some of them empty, and the same as a table."""
    found = random_array((rows, width), density=density, rng=np.random.default_rng(seed))
    table = found.toarray().astype(np.float32)
    table[::5] = 0
    return SparseRows.from_dense(table), table


@given(st.integers(0, 9999), st.integers(1, 30), st.integers(1, 40))
@settings(deadline=None, max_examples=50)
def test_products_are_those_of_scipy(seed: int, rows: int, width: int) -> None:
    ours, table = draw(rows, width, seed)
    asked, other = draw(3, width, seed + 1, 0.4)
    weights = np.random.default_rng(seed).normal(size=(width, 2)).astype(np.float32)
    assert np.array_equal(ours.to_scipy().toarray(), table)
    assert np.array_equal(ours.turned.to_scipy().toarray(), table.T)
    for place in range(3):
        assert ours.multiply_row(asked, place) == pytest.approx(table @ other[place], abs=1e-6)
    assert ours.multiply(weights) == pytest.approx(csr_matrix(table) @ weights, abs=1e-6)
    places = np.random.default_rng(seed).integers(0, rows, 7)
    assert np.array_equal(ours.take(places).to_scipy().toarray(), table[places])
    columns, values = ours.row(rows - 1)
    assert np.array_equal(columns, np.flatnonzero(table[-1]))
    spread = ours.spread(rows - 1, np.full(len(values), 2, np.float32))
    assert np.array_equal(spread, 2 * table[-1])


def test_columns_beyond_sixteen_bits_are_sorted_too() -> None:
    columns = np.array([70_000, 3, 65_536, 65_535, 3, 131_073, 70_000], np.int32)
    values = np.arange(1, 8, dtype=np.float32)
    ours = SparseRows(values, columns, np.array([0, 4, 4, 7], np.int32), 140_000)
    matrix = csr_matrix((values, columns, [0, 4, 4, 7]), shape=(3, 140_000)).T.tocsr()
    assert np.array_equal(ours.turned.columns, matrix.indices)
    assert np.array_equal(ours.turned.values, matrix.data)
    assert np.array_equal(ours.turned.ends, matrix.indptr)


def test_no_rows_and_no_cells_are_fine() -> None:
    nothing = SparseRows.from_dense(np.zeros((0, 4), np.float32))
    nothing.check()
    assert nothing.multiply(np.ones((4, 2), np.float32)).shape == (0, 2)
    empty = SparseRows.from_dense(np.zeros((2, 0), np.float32))
    empty.check()
    assert empty.multiply_row(empty, 1).tolist() == [0, 0]
    assert empty.take(np.array([], np.int64)).ends.tolist() == [0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": np.array([0, 2, 1], np.int32)}, ""),
        ({"columns": np.array([0, 3, 1], np.int32)}, "outside the vocabulary"),
        ({"columns": np.array([0, -1, 1], np.int32)}, "outside the vocabulary"),
        ({"columns": np.array([0, 1], np.int32)}, "indices differ"),
        ({"columns": np.zeros((3, 1), np.int32)}, "indices differ"),
        ({"ends": np.array([[0, 3]], np.int32)}, "indices differ"),
        ({"ends": np.array([0, 3, 3], np.int32)}, ""),
        ({"ends": np.array([0, 2, 2], np.int32)}, "not increasing"),
        ({"ends": np.array([1, 2, 3], np.int32)}, "not increasing"),
        ({"ends": np.array([0, 4, 3], np.int32)}, "not increasing"),
    ],
)
def test_places_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    sound = SparseRows(
        np.ones(3, np.float32), np.array([0, 2, 1], np.int32), np.array([0, 2, 3], np.int32), 3
    )
    bent = replace(sound, **change)  # type: ignore[arg-type]
    if not message:
        return bent.check()
    with pytest.raises(ValueError, match=message):
        bent.check()
    return None


def test_weights_for_another_vocabulary_are_refused() -> None:
    rows, _ = draw(2, 6)
    assert rows.multiply(np.ones((6, 1), np.float32)).shape == (2, 1)
    for count in (5, 7):
        with pytest.raises(ValueError, match=f"{count} rows of weights do not fit 6 columns"):
            rows.multiply(np.ones((count, 1), np.float32))


def test_scores_are_those_of_scipy() -> None:
    """To the last digit but one: scipy adds in 32 bits, this in 64."""
    known, table = draw(400, 3000, density=0.02)
    asked, other = draw(40, 3000, seed=1, density=0.02)
    normal = np.random.default_rng(2).normal
    duals = (normal(size=(400, 3)) / 20).astype(np.float32)
    scorer = KernelScorer(Rows(known, np.zeros((400, 0), np.float32)), Kernel(2), duals)
    rows = Rows(asked, np.zeros((40, 0), np.float32))
    products = (csr_matrix(other) @ csr_matrix(table).T).toarray()
    expected = (((products + np.float32(0.3)) ** 2 + np.float32(0.2)) @ duals).astype(np.float32)
    assert scorer.score(rows) == pytest.approx(expected, abs=1e-4)
    exact = (((other.astype(float) @ table.astype(float).T + 0.3) ** 2) + 0.2) @ duals
    assert np.abs(scorer.score(rows) - exact).max() <= 1.5 * np.abs(expected - exact).max() + 1e-6
    linear = LinearScorer(
        normal(size=(3000, 2)).astype(np.float32),
        np.zeros((0, 2), np.float32),
        np.zeros(2, np.float32),
    )
    assert linear.score(rows) == pytest.approx(csr_matrix(other) @ linear.sparse, abs=1e-5)
