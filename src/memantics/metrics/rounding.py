"""Round computed values before decisions, so that every processor decides the same.

Processors add floats in different orders, and their libraries round differently, so equal values
may differ in the last bit. Compare, rank and group computed floats only after ``settle``.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AnyFloats = NDArray[np.floating[Any]]

SUMS = 9  # decimals that are kept for values computed in double precision
VECTORS = 5  # decimals that are kept for values computed from single-precision encoder vectors


@overload
def settle(value: float, digits: int = SUMS) -> float: ...


@overload
def settle(value: AnyFloats, digits: int = SUMS) -> Floats: ...


def settle(value: float | AnyFloats, digits: int = SUMS) -> float | Floats:
    """Round a value or an array to the decimals that are the same on every processor.

    >>> 0.1 + 0.2 > 0.3, settle(0.1 + 0.2) > settle(0.3)
    (True, False)
    >>> np.argmax(np.array([0.3, 0.1 + 0.2])), np.argmax(settle(np.array([0.3, 0.1 + 0.2])))
    (np.int64(1), np.int64(0))
    """
    if isinstance(value, np.ndarray):
        wide: NDArray[np.float64] = np.asarray(value, np.float64)
        return wide.round(digits)
    return round(float(value), digits)
