"""Ways to hold examples out. Ids order the blocks here, and here alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memantics.core.errors import InputError
from memantics.detector.examples import Example, natural_key

Split = Literal["blocks", "random"]
Folds = NDArray[np.int64]


def split_random(strata: Sequence[str], count: int, seed: int = 0) -> Folds:
    """Random folds in which every stratum is spread evenly.

    >>> folds = split_random(["a"] * 4 + ["b"] * 4, 2)
    >>> sorted(folds[:4].tolist()), sorted(folds[4:].tolist())
    ([0, 0, 1, 1], [0, 0, 1, 1])
    """
    _check(len(strata), count)
    rng = np.random.default_rng(seed)
    folds = np.zeros(len(strata), np.int64)
    known = np.array(strata)
    start = 0
    for stratum in sorted(set(strata)):
        places = np.flatnonzero(known == stratum)
        rng.shuffle(places)
        # The next stratum goes on where this one stopped: folds stay equally large.
        folds[places] = (np.arange(len(places)) + start) % count
        start += len(places)
    return folds


def split_blocks(ids: Sequence[str], count: int) -> Folds:
    """Contiguous blocks of the order in which memes were collected.

    >>> split_blocks(["10", "9", "1", "2"], 2).tolist()
    [1, 1, 0, 0]
    """
    _check(len(ids), count)
    order = sorted(range(len(ids)), key=lambda place: natural_key(ids[place]))
    folds = np.zeros(len(ids), np.int64)
    for number, places in enumerate(np.array_split(np.array(order), count)):
        folds[places] = number
    return folds


def split_examples(examples: Sequence[Example], split: Split, count: int, seed: int = 0) -> Folds:
    """Folds of labelled examples: random ones keep the shares of the types."""
    if split == "blocks":
        return split_blocks([example.id for example in examples], count)
    return split_random([f"{e.label}/{e.type}" for e in examples], count, seed)


def _check(size: int, count: int) -> None:
    if not 2 <= count <= size:
        raise InputError(
            f"{size} examples cannot be cut into {count} folds", hint="give more, or fewer folds"
        )
