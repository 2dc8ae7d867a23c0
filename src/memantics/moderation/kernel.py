"""Kernel ridge regression with several targets and a low-degree kernel, on sparse rows.

One factorisation of the kernel matrix A serves all targets. Its inverse gives exact predictions for
held-out groups without refitting: for a group g with targets y_g they are y_g minus (A⁻¹)_gg⁻¹ (A⁻¹
y)_g. Prediction needs only numpy; training needs scipy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memantics.core.errors import InputError
from memantics.metrics.rounding import Ints
from memantics.moderation.examples import TYPES, Example

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Singles = NDArray[np.float32]
_SHARE = 8
MOST = 20_000
_CONSTANT = np.float32(0.2)
HARMFUL = "harmful"
_FEWEST = 5


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix in CSR form: row ``i`` has the cells ``ends[i]`` to ``ends[i + 1]``."""

    values: Singles
    columns: NDArray[np.int32]
    ends: NDArray[np.int32]
    width: int

    @classmethod
    def from_dense(cls, table: NDArray[np.float32]) -> SparseRows:
        """Make sparse rows of the non-zero cells of a table.

        >>> SparseRows.from_dense(np.array([[0, 2], [0, 0], [3, 0]], np.float32)).columns.tolist()
        [1, 0]
        """
        rows, columns = np.nonzero(table)
        ends = np.searchsorted(rows, np.arange(len(table) + 1))
        values = table[rows, columns].astype(np.float32)
        return cls(values, columns.astype(np.int32), ends.astype(np.int32), table.shape[1])

    def __len__(self) -> int:
        return len(self.ends) - 1

    def check(self) -> None:
        """Raise ValueError if indices are out of range or inconsistent."""
        cells = len(self.values)
        if self.ends.ndim != 1 or not self.values.shape == self.columns.shape == (cells,):
            raise ValueError("the number of cells and of column indices differ")
        if self.ends[0] != 0 or self.ends[-1] != cells or (np.diff(self.ends) < 0).any():
            raise ValueError("row offsets are not increasing")
        if cells and not 0 <= self.columns.min() <= self.columns.max() < self.width:
            raise ValueError("a column index is outside the vocabulary")

    def take(self, rows: NDArray[np.integer]) -> SparseRows:
        """Select rows in the given order."""
        cells, sizes = self._find_cells(rows)
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return SparseRows(self.values[cells], self.columns[cells], ends, self.width)

    def row(self, place: int) -> tuple[NDArray[np.int32], Singles]:
        """Return the columns and values of one row."""
        cells = slice(self.ends[place], self.ends[place + 1])
        return self.columns[cells], self.values[cells]

    @cached_property
    def turned(self) -> SparseRows:
        """The transpose; cached, since sorting all cells takes longer than scoring a meme."""
        # numpy sorts 16-bit integers in linear time, so columns are sorted in two halves.
        order = np.argsort((self.columns & 0xFFFF).astype(np.uint16), kind="stable")
        high = (self.columns[order] >> 16).astype(np.uint16)
        order = order[np.argsort(high, kind="stable")]
        rows = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.ends))
        counts = np.bincount(self.columns, minlength=self.width)
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return SparseRows(self.values[order], rows[order], ends, len(self))

    def multiply_row(self, others: SparseRows, place: int) -> Singles:
        """Compute the inner products of all rows with one row of ``others``."""
        columns, values = others.row(place)
        places, table = self._often
        table_rows = places[columns]
        rare = table_rows < 0
        cells, sizes = self.turned._find_cells(columns[rare])
        parts = self.turned.values[cells] * np.repeat(values[rare], sizes)
        sums = np.bincount(self.turned.columns[cells], weights=parts, minlength=len(self))
        found: Singles = sums.astype(np.float32) + values[~rare] @ table[table_rows[~rare]]
        return found

    @cached_property
    def _often(self) -> tuple[Ints, Singles]:
        """Columns that occur in more than 1/8 of the rows, as a dense table, and their positions.

        These columns are few but hold most of the non-zero cells; multiplying them as a dense table
        is several times faster.
        """
        columns = np.flatnonzero(np.diff(self.turned.ends) * _SHARE > len(self))
        places = np.full(self.width, -1)
        places[columns] = np.arange(len(columns))
        table = np.zeros((len(columns), len(self)), np.float32)
        for line, column in zip(table, columns.tolist(), strict=True):
            rows, values = self.turned.row(column)
            line[rows] = values
        return places, table

    def multiply(self, table: Singles) -> Singles:
        """Multiply by a dense table of weights with one column per head."""
        if len(table) != self.width:
            raise ValueError(f"{len(table)} rows of weights do not fit {self.width} columns")
        found = np.zeros((len(self), table.shape[1]), np.float32)
        for place in range(len(self)):
            columns, values = self.row(place)
            found[place] = values @ table[columns]
        return found

    def spread(self, place: int, factors: Singles) -> Singles:
        """Return one row as a dense array, each cell multiplied by its column's factor."""
        columns, values = self.row(place)
        found = np.zeros(self.width, np.float32)
        found[columns] = values * factors
        return found

    def to_scipy(self) -> csr_matrix:
        """Convert to a scipy CSR matrix."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.values, self.columns, self.ends), shape=(len(self), self.width))

    def _find_cells(self, rows: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Return the positions of all cells of the given rows, and the cell count per row."""
        starts = self.ends[rows].astype(np.int64)
        sizes = self.ends[np.asarray(rows) + 1] - starts
        before = np.cumsum(sizes) - sizes
        return np.repeat(starts - before, sizes) + np.arange(sizes.sum()), sizes


@dataclass(frozen=True, slots=True)
class Kernel:
    """The polynomial kernel (offset + x·y)^degree plus a constant for the intercept."""

    degree: int = 2
    offset: float = 0.3

    def shape(self, products: Singles) -> Singles:
        """Compute kernel values from inner products, in place.

        >>> Kernel(2, 0.5).shape(np.array([0.5], np.float32)).tolist()
        [1.2000000476837158]
        """
        if self.degree > 1:
            products += np.float32(self.offset)
            np.power(products, self.degree, out=products)
        products += _CONSTANT
        return products

    def slope(self, products: Singles) -> Singles:
        """Compute the derivative of the kernel halfway between the empty meme and this one.

        For degrees 1 and 2 this makes attributions exact: they add up to the score.
        """
        if self.degree == 1:
            return np.ones_like(products)
        half = np.float32(self.offset) + products / 2
        return np.asarray(self.degree * half ** (self.degree - 1), np.float32)


@dataclass(frozen=True, slots=True)
class Rows:
    """Feature rows: a sparse part, and a dense part that may have no columns."""

    sparse: SparseRows
    dense: Singles

    def __len__(self) -> int:
        return len(self.sparse)

    def take(self, places: NDArray[np.int64]) -> Rows:
        """Select rows by position."""
        return Rows(self.sparse.take(places), self.dense[places])


def multiply(first: Rows, second: Rows) -> Singles:
    """Compute the inner products of all pairs of rows."""
    matrix = first.sparse.to_scipy() @ second.sparse.to_scipy().T
    products = np.asarray(matrix.todense(), np.float32)
    if first.dense.shape[1]:
        products += first.dense @ second.dense.T
    return products


def make_gram(rows: Rows, kernel: Kernel) -> Singles:
    """Compute the kernel matrix of all rows, in chunks of bounded size."""
    size = len(rows)
    if size > MOST:
        raise InputError(
            f"{size:,} examples are too many for a kernel preset, which stores all pairs",
            hint=f"use --preset linear, or at most {MOST:,} examples",
        )
    gram = np.empty((size, size), np.float32)
    for start in range(0, size, 1024):
        part = rows.take(np.arange(start, min(size, start + 1024)))
        gram[start : start + len(part)] = kernel.shape(multiply(part, rows))
    return gram


def invert(
    gram: Singles, targets: Singles, weights: Singles, ridge: float
) -> tuple[Singles, Singles]:
    """Compute the inverse of the regularised kernel matrix (lower half), and the dual weights.

    ``gram`` is overwritten. One inverse serves any number of fold assignments.
    """
    from scipy.linalg import lapack

    places = np.arange(len(gram))
    gram[places, places] += np.float32(ridge) / weights
    # The transpose is the same symmetric matrix in column order, so LAPACK works in place.
    factor, failed = lapack.spotrf(gram.T, lower=1, clean=0, overwrite_a=1)
    if not failed:
        duals, failed = lapack.spotrs(factor, targets, lower=1)
    if not failed:
        inverse, failed = lapack.spotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise InputError(
            "the detector cannot be trained: the examples are too similar (singular kernel matrix)",
            hint="give more examples",
        )
    return inverse, np.ascontiguousarray(duals, np.float32)


def hold_out(inverse: Singles, duals: Singles, targets: Singles, groups: Ints) -> Singles:
    """Compute the score of each example without its group, from the fit with all groups."""
    held_out = np.empty_like(targets)
    for group in np.unique(groups):
        values = np.flatnonzero(groups == group)
        square = np.tril(inverse[np.ix_(values, values)])
        square += np.tril(square, -1).T
        held_out[values] = targets[values] - np.linalg.solve(square, duals[values])
    return held_out


def score(rows: Rows, known: Rows, kernel: Kernel, duals: Singles) -> Singles:
    """Score new rows one at a time, so that a result does not depend on the batch."""
    scores = np.empty((len(rows), duals.shape[1]), np.float32)
    for place, values in enumerate(_kernel_rows(rows, known, kernel)):
        scores[place] = values @ duals
    return scores


def _kernel_rows(rows: Rows, known: Rows, kernel: Kernel) -> Iterator[Singles]:
    for place, vector in enumerate(rows.dense):
        products = known.sparse.multiply_row(rows.sparse, place)
        if known.dense.shape[1]:
            products += known.dense @ vector
        yield kernel.shape(products)


@dataclass(frozen=True, slots=True)
class LinearScorer:
    """A linear model with one weight per column and head."""

    sparse: Singles
    dense: Singles
    intercepts: Singles

    def score(self, rows: Rows) -> Singles:
        """Compute one row of head scores per row."""
        found = rows.sparse.multiply(self.sparse)
        if self.dense.shape[0]:
            found += np.stack([vector @ self.dense for vector in rows.dense])
        found += self.intercepts
        return found

    def attribute(self, row: Rows, mix: Singles) -> tuple[Singles, Singles]:
        """Attribute a weighted sum of heads to the sparse and dense columns of one row."""
        columns, _ = row.sparse.row(0)
        sparse = row.sparse.spread(0, self.sparse[columns] @ mix)
        dense = row.dense[0] * (self.dense @ mix)
        return sparse, dense.astype(np.float32)


@dataclass(frozen=True, slots=True)
class KernelScorer:
    """A kernel model: all training rows with one dual weight per row and head."""

    known: Rows
    kernel: Kernel
    duals: Singles

    def score(self, rows: Rows) -> Singles:
        """Compute one row of head scores per row."""
        return score(rows, self.known, self.kernel, self.duals)

    def attribute(self, row: Rows, mix: Singles) -> tuple[Singles, Singles]:
        """Attribute a weighted sum of heads to the sparse and dense columns of one row."""
        products = self.known.sparse.multiply_row(row.sparse, 0)
        if self.known.dense.shape[1]:
            products += self.known.dense @ row.dense[0]
        pull = self.kernel.slope(products) * (self.duals @ mix)
        columns, _ = row.sparse.row(0)
        pulls = self.known.sparse.turned.take(columns).multiply(pull[:, None])
        sparse = row.sparse.spread(0, pulls[:, 0])
        dense = row.dense[0] * (self.known.dense.T @ pull)
        return sparse, dense.astype(np.float32)


MarginScorer = LinearScorer | KernelScorer


def unfold(known: Rows, duals: Singles, constant: float) -> LinearScorer:
    """Convert a kernel model of degree 1 to linear weights."""
    return LinearScorer(
        np.asarray(known.sparse.to_scipy().T @ duals, np.float32),
        np.asarray(known.dense.T @ duals, np.float32),
        (constant * duals.sum(axis=0)).astype(np.float32),
    )


def fit_svm(
    rows: Rows, targets: Singles, weights: Singles, cost: float, groups: Ints
) -> tuple[LinearScorer, Singles]:
    """Fit a linear SVM per target, with scores for held-out groups.

    It is used for data with too many examples for a kernel matrix in memory, and refits the SVM for
    each held-out group.
    """
    held_out = np.zeros_like(targets)
    for group in np.unique(groups):
        out = groups == group
        kept, fold_rows = np.flatnonzero(~out), np.flatnonzero(out)
        fitted = _fit_once(rows.take(kept), targets[kept], weights[kept], cost)
        held_out[fold_rows] = fitted.score(rows.take(fold_rows))
    return _fit_once(rows, targets, weights, cost), held_out


def _fit_once(rows: Rows, targets: Singles, weights: Singles, cost: float) -> LinearScorer:
    from scipy.sparse import csr_matrix, hstack
    from sklearn.svm import LinearSVC

    matrix = rows.sparse.to_scipy()
    if rows.dense.shape[1]:
        matrix = hstack([matrix, csr_matrix(rows.dense)]).tocsr()
    columns, intercepts = [], []
    for signs in targets.T:
        if len(set(signs.tolist())) < 2:
            # If a class is absent from the training groups, its head always scores negative.
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
    width = rows.sparse.width
    return LinearScorer(
        np.ascontiguousarray(table[:width]),
        np.ascontiguousarray(table[width:]),
        np.array(intercepts, np.float32),
    )


def to_rows(sparse: SparseRows, dense: Singles | None) -> Rows:
    """Make feature rows; a missing dense part gets zero columns."""
    return Rows(sparse, np.zeros((len(sparse), 0), np.float32) if dense is None else dense)


@dataclass(frozen=True, slots=True)
class Targets:
    """Training targets: one column of signs per head, and a weight per example."""

    heads: tuple[str, ...]
    signs: Singles
    weights: Singles


def make_targets(examples: Sequence[Example]) -> Targets:
    """Make training targets for the classes that have examples; rare types get higher weights.

    A proportion of annotators p becomes the target 2p − 1, between the signs of both labels.
    """
    columns: dict[str, list[bool]] = {HARMFUL: [e.label == 1 for e in examples]}
    for kind in TYPES:
        columns[f"type/{kind}"] = [e.type == kind for e in examples]
    kept = {
        name: column
        for name, column in columns.items()
        if name == HARMFUL or _FEWEST <= sum(column) <= len(column) - _FEWEST
    }
    signs = np.where(np.array(list(kept.values())).T, 1.0, -1.0).astype(np.float32)
    for row, example in zip(signs, examples, strict=True):
        if example.proportion is not None:
            row[0] = 2 * example.proportion - 1
    return Targets(
        tuple(kept), np.ascontiguousarray(signs), weigh([f"{e.label}/{e.type}" for e in examples])
    )


def weigh(strata: Sequence[str]) -> Singles:
    """Weight examples by the inverse square root of their label's frequency."""
    counts = Counter(strata)
    weights = np.array([counts[key] ** -0.5 for key in strata])
    return np.asarray(weights / weights.mean(), np.float32)


def list_types(heads: Sequence[str]) -> tuple[str, ...]:
    """List the harm types that the model predicts, in the order of the ToxiCN MM paper.

    >>> list_types(["harmful", "type/none", "type/sexual", "type/offence"])
    ('none', 'offence', 'sexual')
    """
    found = tuple(kind for kind in TYPES if f"type/{kind}" in heads)
    return found if "none" in found and len(found) > 2 else ()


def add_margin(
    heads: Sequence[str], scores: Singles
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Append the margin of the best harmful type over the type none, if there are types."""
    table = np.asarray(scores, np.float64)
    places = margin_places(heads)
    if places is None:
        return table
    none, others = places
    margin = table[:, others].max(axis=1) - table[:, none]
    return np.column_stack([table, margin])


def margin_places(heads: Sequence[str]) -> tuple[int, list[int]] | None:
    """Return the columns of the type none and of the harmful types."""
    types = list_types(heads)
    if not types:
        return None
    columns = [list(heads).index(f"type/{kind}") for kind in types]
    return columns[0], columns[1:]
