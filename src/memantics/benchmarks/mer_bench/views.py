"""Which pairs of meme and editor are judged, and in which runs each takes part.

The draws repeat the authors': one generator per table, seeded once, runs drawn from it in turn.
A pair that is drawn several times is judged once and counted as often as it was drawn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from memantics.benchmarks.mer_bench.failures import Kept
from memantics.benchmarks.mer_bench.load import LAYOUTS, POLARITIES, VISUAL_TYPES, Row

View = Literal["all", "model", "category", "overall"]
VIEWS: tuple[View, ...] = get_args(View)
Factor = Literal["visual_type", "layout", "polarity"]
FACTORS: tuple[Factor, ...] = get_args(Factor)
LEVELS: dict[Factor, tuple[str, ...]] = {
    "visual_type": VISUAL_TYPES,
    "layout": LAYOUTS,
    "polarity": POLARITIES,
}
RUNS = 10
PER_MODEL = 100
PER_CATEGORY = 50
T = TypeVar("T")


@dataclass(slots=True)
class Pair:
    """One edit to judge; ``runs`` by table: "" for the whole, else a factor."""

    row: Row
    editor: str
    runs: dict[str, list[int]] = field(default_factory=dict)


def level_of(row: Row, factor: Factor) -> str:
    """The category of a meme."""
    return {"visual_type": row.visual_type, "layout": row.layout, "polarity": row.polarity}[factor]


def draw_pairs(kept: Kept, view: View, seed: int) -> tuple[Pair, ...]:
    """The pairs of a view, in the order of editors and index."""
    pairs = {(row.id, name): Pair(row, name) for name in kept.editors for row in kept.rows}
    if view == "all":
        for pair in pairs.values():
            pair.runs[""] = [0]
        return tuple(pairs.values())
    for table, run, editor, row in _draw(kept, view, seed):
        pairs[row.id, editor].runs.setdefault(table, []).append(run)
    return tuple(pair for pair in pairs.values() if pair.runs)


def _draw(kept: Kept, view: View, seed: int) -> Iterator[tuple[str, int, str, Row]]:
    if view == "model":
        chance = random.Random(seed)
        for run in range(RUNS):
            for row in draw_some(kept.rows, PER_MODEL, chance):
                yield from (("", run, editor, row) for editor in kept.editors)
    elif view == "overall":
        # The paper's figure over everything: 700 a run for its 14 editors.
        yield from _draw_table("", kept.rows, kept.editors, PER_CATEGORY * len(kept.editors), seed)
    else:
        for factor in FACTORS:
            for level in LEVELS[factor]:
                rows = [row for row in kept.rows if level_of(row, factor) == level]
                if rows:
                    yield from _draw_table(factor, rows, kept.editors, PER_CATEGORY, seed)


def _draw_table(
    table: str, rows: Sequence[Row], editors: Sequence[str], size: int, seed: int
) -> Iterator[tuple[str, int, str, Row]]:
    chance = random.Random(seed)
    for run in range(RUNS):
        shares = share_out(size, len(editors), chance)
        for editor, share in zip(editors, shares, strict=True):
            yield from ((table, run, editor, row) for row in draw_some(rows, share, chance))


def share_out(total: int, parts: int, chance: random.Random) -> list[int]:
    """Even shares of a total; what is left over goes to parts drawn by a shuffle.

    >>> sorted(share_out(50, 14, random.Random(42)))
    [3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    base, rest = divmod(total, parts)
    shares = [base] * parts
    if rest:
        order = list(range(parts))
        chance.shuffle(order)
        for place in order[:rest]:
            shares[place] += 1
    return shares


def draw_some(rows: Sequence[T], count: int, chance: random.Random) -> list[T]:
    """Some of the rows without repetition; with it only where there are fewer than wanted.

    >>> sorted(draw_some("abc", 3, random.Random(42))), len(draw_some("abc", 5, random.Random(42)))
    (['a', 'b', 'c'], 5)
    """
    if len(rows) >= count:
        return chance.sample(list(rows), k=count)
    return [chance.choice(rows) for _ in range(count)]
