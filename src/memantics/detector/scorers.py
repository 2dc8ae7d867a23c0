"""What a trained detector computes: scores of its heads, and what moved them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from memantics.detector.kernel import Kernel, Rows, Singles, score

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Ints = NDArray[np.int64]


class Scorer(Protocol):
    """Turns rows into one score per head."""

    def score(self, rows: Rows) -> Singles:
        """One row of scores per row."""
        ...

    def attribute(self, row: Rows, mix: Singles) -> tuple[Singles, Singles]:
        """Contributions of sparse and dense columns of one row to a weighted sum of heads."""
        ...


@dataclass(frozen=True, slots=True)
class LinearScorer:
    """One weight per column and head."""

    sparse: Singles
    dense: Singles
    intercepts: Singles

    def score(self, rows: Rows) -> Singles:
        """One row of scores per row."""
        found = np.asarray(rows.sparse @ self.sparse, np.float32)
        if self.dense.shape[0]:
            found += np.stack([own @ self.dense for own in rows.dense])
        found += self.intercepts
        return found

    def attribute(self, row: Rows, mix: Singles) -> tuple[Singles, Singles]:
        """Contributions of sparse and dense columns of one row to a weighted sum of heads."""
        sparse = row.sparse.multiply((self.sparse @ mix)[None]).toarray()[0]
        dense = row.dense[0] * (self.dense @ mix)
        return sparse.astype(np.float32), dense.astype(np.float32)


@dataclass(frozen=True, slots=True)
class KernelScorer:
    """All training rows with one dual weight per row and head."""

    known: Rows
    kernel: Kernel
    duals: Singles

    def score(self, rows: Rows) -> Singles:
        """One row of scores per row."""
        return score(rows, self.known, self.kernel, self.duals)

    def attribute(self, row: Rows, mix: Singles) -> tuple[Singles, Singles]:
        """Contributions of sparse and dense columns of one row to a weighted sum of heads."""
        products = np.asarray((self.known.sparse @ row.sparse.T).todense(), np.float32)[:, 0]
        if self.known.dense.shape[1]:
            products += self.known.dense @ row.dense[0]
        pull = self.kernel.slope(products) * (self.duals @ mix)
        sparse = row.sparse.multiply((self.known.sparse.T @ pull)[None]).toarray()[0]
        dense = row.dense[0] * (self.known.dense.T @ pull)
        return sparse.astype(np.float32), dense.astype(np.float32)


def unfold(known: Rows, duals: Singles, constant: float) -> LinearScorer:
    """The weights behind a kernel of degree 1."""
    return LinearScorer(
        np.asarray(known.sparse.T @ duals, np.float32),
        np.asarray(known.dense.T @ duals, np.float32),
        (constant * duals.sum(axis=0)).astype(np.float32),
    )


def fit_svm(
    rows: Rows, targets: Singles, weights: Singles, cost: float, groups: Ints
) -> tuple[LinearScorer, Singles]:
    """Linear support vector machines, one per target, with scores for held-out groups.

    For more examples than a kernel can hold; held-out groups are fitted again.
    """
    held_out = np.zeros_like(targets)
    for group in np.unique(groups):
        out = groups == group
        kept, own = np.flatnonzero(~out), np.flatnonzero(out)
        fitted = _fit_once(rows.take(kept), targets[kept], weights[kept], cost)
        held_out[own] = fitted.score(rows.take(own))
    return _fit_once(rows, targets, weights, cost), held_out


def _fit_once(rows: Rows, targets: Singles, weights: Singles, cost: float) -> LinearScorer:
    from scipy.sparse import csr_matrix, hstack
    from sklearn.svm import LinearSVC

    matrix = rows.sparse
    if rows.dense.shape[1]:
        matrix = hstack([matrix, csr_matrix(rows.dense)]).tocsr()
    columns, intercepts = [], []
    for signs in targets.T:
        if len(set(signs.tolist())) < 2:
            # A head whose class is absent from these groups says so for every meme.
            columns.append(np.zeros(matrix.shape[1]))
            intercepts.append(float(signs[0]))
            continue
        positive = (weights * (signs > 0)).sum()
        balance = np.where(signs > 0, 1 / positive, 1 / (weights.sum() - positive))
        machine = LinearSVC(C=cost, random_state=0)
        machine.fit(matrix, signs, sample_weight=weights * balance * len(weights) / 2)
        columns.append(machine.coef_[0])
        intercepts.append(float(machine.intercept_[0]))
    table = np.stack(columns, axis=1).astype(np.float32)
    width = rows.sparse.shape[1]
    return LinearScorer(
        np.ascontiguousarray(table[:width]),
        np.ascontiguousarray(table[width:]),
        np.array(intercepts, np.float32),
    )


def to_rows(matrix: csr_matrix, dense: Singles | None) -> Rows:
    """Rows with a dense part of no columns where there is none."""
    return Rows(matrix, np.zeros((matrix.shape[0], 0), np.float32) if dense is None else dense)
