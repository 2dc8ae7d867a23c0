"""Decisions on rounded values, so that every processor takes the same ones.

Processors add the same floats in another order, and their libraries round a root otherwise: what is
equal in theory differs in a last bit. Whoever compares, ranks or groups computed floats does so on
what ``settle`` gives.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AnyFloats = NDArray[np.floating[Any]]

SUMS = 9  # decimals of what is computed in double precision
VECTORS = 5  # decimals of what stands on an encoder's vectors, which are in single precision


@overload
def settle(value: float, digits: int = SUMS) -> float: ...


@overload
def settle(value: AnyFloats, digits: int = SUMS) -> Floats: ...


def settle(value: float | AnyFloats, digits: int = SUMS) -> float | Floats:
    """A value, or each of an array, as far as every processor computes it alike.

    >>> 0.1 + 0.2 > 0.3, settle(0.1 + 0.2) > settle(0.3)
    (True, False)
    >>> np.argmax(np.array([0.3, 0.1 + 0.2])), np.argmax(settle(np.array([0.3, 0.1 + 0.2])))
    (np.int64(1), np.int64(0))
    """
    if isinstance(value, np.ndarray):
        wide: NDArray[np.float64] = np.asarray(value, np.float64)
        return wide.round(digits)
    return round(float(value), digits)
