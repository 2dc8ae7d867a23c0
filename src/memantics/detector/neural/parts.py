"""Which examples are trained on and which are held out: never one by one from a neighbourhood."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memantics.core.errors import InputError
from memantics.detector.examples import Example
from memantics.detector.folds import split_blocks
from memantics.detector.neural.encoding import Places, gold_places
from memantics.detector.neural.settings import HoldOut, Target

BLOCKS = 30


@dataclass(frozen=True, slots=True)
class Parts:
    """Rows of the examples, by use. ``test`` may be empty; ``shared`` counts held-out examples

    whose inline text, letter by letter, also stands in the training part.
    """

    train: tuple[int, ...]
    valid: tuple[int, ...]
    test: tuple[int, ...] = ()
    shared: int = 0


def hold_out(
    examples: Sequence[Example], target: Target, how: HoldOut, share: float, seed: int = 0
) -> Parts:
    """Set a share of the examples aside for validation.

    ``blocks``: ids follow the crawl and leak the label (neighbours look alike), so whole runs of
    neighbouring ids are held out. ``random``: by class; equal inline texts stay together.
    """
    gold = gold_places(examples, target)
    places = _blocks(examples, share, seed) if how == "blocks" else None
    chosen = _at_random(examples, gold, share, seed) if places is None else places
    parts = split_rows(examples, sorted(chosen))
    check_parts(parts, gold)
    return parts


def split_rows(
    examples: Sequence[Example], valid: Sequence[int], test: Sequence[int] = ()
) -> Parts:
    """The parts that follow from the rows held out; all others are trained on."""
    out = {*valid, *test}
    train = tuple(row for row in range(len(examples)) if row not in out)
    known = {fold_text(examples[row].text) for row in train}
    shared = sum(fold_text(examples[row].text) in known for row in out)
    return Parts(train, tuple(valid), tuple(test), shared)


def check_parts(parts: Parts, gold: Places) -> None:
    """Refuse a part in which a comparison of classes would mean nothing."""
    for name, rows in (("training", parts.train), ("validation", parts.valid)):
        if len(rows) < 2 or len(set(gold[list(rows)].tolist())) < 2:
            raise InputError(
                f"the {name} part of {len(rows)} examples holds one class only",
                hint="give more examples of every class, or another share or way of holding out",
            )


def _blocks(examples: Sequence[Example], share: float, seed: int) -> list[int]:
    """Blocks spread over the whole range: one alone may hold a single kind of meme."""
    count = min(BLOCKS, max(2, len(examples) // 2))
    folds = split_blocks([example.id for example in examples], count)
    wanted = max(1, round(share * count))
    shift = random.Random(seed).randrange(count)
    chosen = {(shift + round(step * count / wanted)) % count for step in range(wanted)}
    return np.flatnonzero(np.isin(folds, sorted(chosen))).tolist()


def _at_random(examples: Sequence[Example], gold: Places, share: float, seed: int) -> list[int]:
    groups: dict[str, list[int]] = {}
    for row in range(len(examples)):
        text = fold_text(examples[row].text)
        groups.setdefault(text or f"\0{row}", []).append(row)
    chance, chosen = random.Random(seed), list[int]()
    for place in sorted(set(gold.tolist())):
        own = [rows for rows in groups.values() if gold[rows[0]] == place]
        chance.shuffle(own)
        wanted, taken = share * sum(map(len, own)), 0
        for rows in own:
            if taken >= wanted:
                break
            chosen.extend(rows)
            taken += len(rows)
    return chosen


def fold_text(text: str) -> str:
    """A text without case and white space, to find its doubles.

    >>> fold_text("Not  Today ") == fold_text("nottoday")
    True
    """
    return "".join(text.split()).casefold()
