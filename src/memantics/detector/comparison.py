"""Two detectors on the same memes: who is right where, and is it more than luck?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memantics.core.errors import InputError
from memantics.detector.calibration import macro_f1
from memantics.detector.examples import Example, need_labels
from memantics.detector.fast import Prediction
from memantics.metrics.comparison import mcnemar
from memantics.metrics.interval import Floats, bootstrap


@dataclass(frozen=True, slots=True)
class Comparison:
    """Macro-F1 of both, second minus first with its interval, and McNemar's test."""

    count: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    only_first: int
    only_second: int
    both: int
    neither: int
    p: float


def compare(
    examples: Sequence[Example], first: Sequence[Prediction], second: Sequence[Prediction]
) -> Comparison:
    """Compare harmful/harmless decisions, pair by pair; memes are resampled with both answers."""
    need_labels(examples, "the data")
    if not len(examples) == len(first) == len(second):
        raise InputError("both detectors must answer the same memes", hint="give the same --data")
    truth = np.array([int(e.label or 0) for e in examples], np.int64)
    one = np.array([p.label for p in first], np.int64)
    two = np.array([p.label for p in second], np.int64)
    cells = np.hstack([_cells(truth, one), _cells(truth, two)])

    def difference(sums: Floats) -> Floats:
        return _macro(sums[:, 4:]) - _macro(sums[:, :4])

    span = bootstrap(cells, difference)
    right_one, right_two = one == truth, two == truth
    only_first = int((right_one & ~right_two).sum())
    only_second = int((right_two & ~right_one).sum())
    before, after = macro_f1(truth, one, 2), macro_f1(truth, two, 2)
    return Comparison(
        count=len(examples),
        first=before,
        second=after,
        difference=after - before,
        low=span[0] if span else None,
        high=span[1] if span else None,
        only_first=only_first,
        only_second=only_second,
        both=int((right_one & right_two).sum()),
        neither=int((~right_one & ~right_two).sum()),
        p=mcnemar(only_first, only_second).p,
    )


def _cells(truth: NDArray[np.int64], said: NDArray[np.int64]) -> Floats:
    """One row a meme: harmful and found, missed, harmless and left alone, false alarm."""
    kinds = np.where(truth == 1, np.where(said == 1, 0, 1), np.where(said == 0, 2, 3))
    return np.eye(4)[kinds]


def _macro(sums: Floats) -> Floats:
    found, missed, left, alarms = sums.T
    harmful = 2 * found / (2 * found + missed + alarms)
    harmless = 2 * left / (2 * left + missed + alarms)
    value: Floats = (harmful + harmless) / 2
    return value
