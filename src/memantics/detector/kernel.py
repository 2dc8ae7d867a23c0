"""Ridge regression of several targets at once under a low-degree kernel.

One factorisation serves every target, and the inverse gives exact predictions for held-out
groups without fitting again: for a group g they are y_g minus (A⁻¹)_gg⁻¹ (A⁻¹ y)_g.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memantics.core.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Singles = NDArray[np.float32]
MOST = 20_000
_CHUNK = 256
_CONSTANT = np.float32(0.2)


@dataclass(frozen=True, slots=True)
class Kernel:
    """(offset + x·y) to a degree, plus a constant that stands for the intercept."""

    degree: int = 2
    offset: float = 0.3

    def shape(self, products: Singles) -> Singles:
        """Values of the kernel from inner products, in place.

        >>> Kernel(2, 0.5).shape(np.array([0.5], np.float32)).tolist()
        [1.2000000476837158]
        """
        if self.degree > 1:
            products += np.float32(self.offset)
            np.power(products, self.degree, out=products)
        products += _CONSTANT
        return products

    def slope(self, products: Singles) -> Singles:
        """What the kernel grows by with each inner product, halfway from the empty meme.

        For degrees 1 and 2 that makes contributions exact: they add up to the score.
        """
        if self.degree == 1:
            return np.ones_like(products)
        half = np.float32(self.offset) + products / 2
        return np.asarray(self.degree * half ** (self.degree - 1), np.float32)


@dataclass(frozen=True, slots=True)
class Rows:
    """Examples as numbers: a sparse part, and a dense one that may have no columns."""

    sparse: csr_matrix
    dense: Singles

    def __len__(self) -> int:
        return int(self.sparse.shape[0])

    def take(self, places: NDArray[np.int64]) -> Rows:
        """Some of the rows."""
        return Rows(self.sparse[places], self.dense[places])


def multiply(first: Rows, second: Rows) -> Singles:
    """Inner products of all pairs."""
    products = np.asarray((first.sparse @ second.sparse.T).todense(), np.float32)
    if first.dense.shape[1]:
        products += first.dense @ second.dense.T
    return products


def make_gram(rows: Rows, kernel: Kernel) -> Singles:
    """The kernel between all rows, in pieces of bounded size."""
    size = len(rows)
    if size > MOST:
        raise InputError(
            f"{size:,} examples are too many for a kernel, which holds all pairs in memory",
            hint=f"use --preset linear, or at most {MOST:,} examples",
        )
    gram = np.empty((size, size), np.float32)
    for start in range(0, size, 1024):
        part = rows.take(np.arange(start, min(size, start + 1024)))
        gram[start : start + len(part)] = kernel.shape(multiply(part, rows))
    return gram


@dataclass(frozen=True, slots=True)
class Solved:
    """Dual weights of each target, and scores of each example from all groups but its own."""

    duals: Singles
    held_out: Singles


def solve(
    gram: Singles,
    targets: Singles,
    weights: Singles,
    ridge: float,
    groups: NDArray[np.int64],
) -> Solved:
    """Fit all targets; ``gram`` is overwritten. Heavier examples are fitted more closely.

    >>> gram = np.eye(4, dtype=np.float32) + 1
    >>> signs = np.array([[1], [1], [-1], [1]], np.float32)
    >>> solved = solve(gram, signs, np.ones(4, np.float32), 1.0, np.arange(4))
    >>> [round(float(value), 3) for value in solved.held_out.ravel()]
    [0.2, 0.2, 0.6, 0.2]
    """
    from scipy.linalg import lapack

    places = np.arange(len(gram))
    gram[places, places] += np.float32(ridge) / weights
    # The transpose is the same matrix in the column order that LAPACK overwrites in place.
    factor, failed = lapack.spotrf(gram.T, lower=1, clean=0, overwrite_a=1)
    if not failed:
        duals, failed = lapack.spotrs(factor, targets, lower=1)
    if not failed:
        inverse, failed = lapack.spotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise InputError("the examples cannot be told apart", hint="give more of them")
    held_out = np.empty_like(targets)
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        square = np.tril(inverse[np.ix_(own, own)])
        square += np.tril(square, -1).T
        held_out[own] = targets[own] - np.linalg.solve(square, duals[own])
    return Solved(np.ascontiguousarray(duals, np.float32), held_out)


def score(rows: Rows, known: Rows, kernel: Kernel, duals: Singles) -> Singles:
    """Scores of new rows. Each row is multiplied alone: no neighbour can change its digits."""
    scores = np.empty((len(rows), duals.shape[1]), np.float32)
    for place, values in enumerate(_kernel_rows(rows, known, kernel)):
        scores[place] = values @ duals
    return scores


def _kernel_rows(rows: Rows, known: Rows, kernel: Kernel) -> Iterator[Singles]:
    turned = known.sparse.T.tocsr()
    for start in range(0, len(rows), _CHUNK):
        part = rows.take(np.arange(start, min(len(rows), start + _CHUNK)))
        products = np.asarray((part.sparse @ turned).todense(), np.float32)
        for place, own in enumerate(part.dense):
            if known.dense.shape[1]:
                products[place] += known.dense @ own
            yield kernel.shape(products[place])
