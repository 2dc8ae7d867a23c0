"""Memes to tune on, and how they are split: groups stay together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.core.errors import InputError

# The paper's split of its 653 groups; other numbers are cut in the same proportion.
TRAIN_GROUPS, ALL_GROUPS = 500, 653


@dataclass(frozen=True, slots=True)
class Case:
    """One meme with its label. ``reason`` is what a good answer says before its verdict.

    A pun and the two memes made from it share a ``group``: they share their words, too, so a
    split that parts them would ask about what was trained on.
    """

    id: str
    group: str
    label: bool
    caption: str = ""
    reason: str = ""
    image: Path | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Cases by use."""

    train: tuple[Case, ...]
    valid: tuple[Case, ...]


def split_groups(cases: Sequence[Case], seed: int = 0, train_groups: int | None = None) -> Split:
    """Put whole groups aside at random: 153 of 653, or as large a share.

    >>> cases = [Case(f"{n}{part}", str(n), part == "a") for n in range(653) for part in "abc"]
    >>> split = split_groups(cases)
    >>> len(split.train), len(split.valid)
    (1500, 459)
    """
    groups = sorted({case.group for case in cases})
    count = train_groups or round(len(groups) * TRAIN_GROUPS / ALL_GROUPS)
    if not 0 < count < len(groups):
        raise InputError(
            f"{len(groups)} groups cannot be split into {count} to train on and some to test on",
            hint="give more memes, or another --train-groups",
        )
    random.Random(seed).shuffle(groups)
    chosen = set(groups[:count])
    split = Split(
        tuple(case for case in cases if case.group in chosen),
        tuple(case for case in cases if case.group not in chosen),
    )
    for name, part in (("training", split.train), ("validation", split.valid)):
        if len({case.label for case in part}) < 2:
            raise InputError(
                f"the {name} part of {len(part)} memes holds one class only",
                hint="give more memes of both classes, or another seed",
            )
    return split
