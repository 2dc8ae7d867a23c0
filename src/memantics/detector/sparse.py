"""Sparse rows in plain numpy: what judging a meme needs. Training hands them to scipy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Singles = NDArray[np.float32]
Places = NDArray[np.int64]
_SHARE = 8


@dataclass(frozen=True)
class SparseRows:
    """Compressed rows (CSR): row ``i`` has the cells from ``ends[i]`` up to ``ends[i + 1]``."""

    values: Singles
    columns: NDArray[np.int32]
    ends: NDArray[np.int32]
    width: int

    @classmethod
    def from_dense(cls, table: NDArray[np.float32]) -> SparseRows:
        """The cells of a table that are not zero.

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
        """Refuse places that lie outside, or do not fit together (ValueError)."""
        cells = len(self.values)
        if self.ends.ndim != 1 or not self.values.shape == self.columns.shape == (cells,):
            raise ValueError("cells and their columns differ in number")
        if self.ends[0] != 0 or self.ends[-1] != cells or (np.diff(self.ends) < 0).any():
            raise ValueError("rows do not follow each other")
        if cells and not 0 <= self.columns.min() <= self.columns.max() < self.width:
            raise ValueError("a column lies outside the vocabulary")

    def take(self, rows: NDArray[np.integer]) -> SparseRows:
        """Some of the rows, in that order."""
        cells, sizes = self._find_cells(rows)
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return SparseRows(self.values[cells], self.columns[cells], ends, self.width)

    def row(self, place: int) -> tuple[NDArray[np.int32], Singles]:
        """Columns and values of one row."""
        cells = slice(self.ends[place], self.ends[place + 1])
        return self.columns[cells], self.values[cells]

    @cached_property
    def turned(self) -> SparseRows:
        """Columns as rows; made once, since sorting all cells takes longer than judging a meme."""
        # Numpy sorts 16 bits in linear time, so that columns are sorted in two halves.
        order = np.argsort((self.columns & 0xFFFF).astype(np.uint16), kind="stable")
        high = (self.columns[order] >> 16).astype(np.uint16)
        order = order[np.argsort(high, kind="stable")]
        rows = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.ends))
        counts = np.bincount(self.columns, minlength=self.width)
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return SparseRows(self.values[order], rows[order], ends, len(self))

    def multiply_row(self, others: SparseRows, place: int) -> Singles:
        """Inner products of all rows with one row of others."""
        columns, values = others.row(place)
        places, table = self._often
        array = places[columns]
        rare = array < 0
        cells, sizes = self.turned._find_cells(columns[rare])
        parts = self.turned.values[cells] * np.repeat(values[rare], sizes)
        sums = np.bincount(self.turned.columns[cells], weights=parts, minlength=len(self))
        found: Singles = sums.astype(np.float32) + values[~rare] @ table[array[~rare]]
        return found

    @cached_property
    def _often(self) -> tuple[Places, Singles]:
        """Columns that more than one row in eight has, as a dense table, and their places in it.

        They are few, hold most of the cells, and are multiplied several times faster like this.
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
        """The product with a dense table, of which each column is a head."""
        if len(table) != self.width:
            raise ValueError(f"{len(table)} rows of weights for {self.width} columns")
        found = np.zeros((len(self), table.shape[1]), np.float32)
        for place in range(len(self)):
            columns, values = self.row(place)
            found[place] = values @ table[columns]
        return found

    def spread(self, place: int, factors: Singles) -> Singles:
        """One row as wide as the vocabulary, each of its cells times a factor."""
        columns, values = self.row(place)
        found = np.zeros(self.width, np.float32)
        found[columns] = values * factors
        return found

    def to_scipy(self) -> csr_matrix:
        """The same cells as a matrix of scipy."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.values, self.columns, self.ends), shape=(len(self), self.width))

    def _find_cells(self, rows: NDArray[np.integer]) -> tuple[Places, Places]:
        """The places of all cells of some rows, and how many each row has."""
        starts = self.ends[rows].astype(np.int64)
        sizes = self.ends[np.asarray(rows) + 1] - starts
        before = np.cumsum(sizes) - sizes
        return np.repeat(starts - before, sizes) + np.arange(sizes.sum()), sizes
