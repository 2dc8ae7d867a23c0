"""Answers on which people disagree although they followed the rubric: the rubric leaves them open.

A person follows the rubric if their ratings of the other answers are near those of the others. A
disagreement of two such people is not an error of one of them. It is shown with the rubric's
sentences, so that its author can decide the case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from memantics.core.result import Table
from memantics.core.text import cut_off
from memantics.evaluation.judging.people import People
from memantics.evaluation.judging.rubrics import Dimension, Rubric
from memantics.metrics.rounding import settle

ENOUGH_SHARED = 5  # other answers that two people must both have rated
MOST_APART = 0.2  # largest mean distance on these answers, as a proportion of the scale


@dataclass(frozen=True, slots=True)
class OpenItem:
    """An answer that two people rated differently, with the sentences of the rubric they chose."""

    item: str
    quality: str
    low: int
    high: int
    people: int
    low_sentence: str
    high_sentence: str


def find_open_items(people: People, rubric: Rubric) -> tuple[OpenItem, ...]:
    """Find the answers that the rubric leaves open; the widest disagreement comes first."""
    found = [one for dimension in rubric.dimensions for one in _find(people, dimension)]
    return tuple(sorted(found, key=lambda one: (one.low - one.high, one.quality, one.item)))


def _find(people: People, dimension: Dimension) -> list[OpenItem]:
    said = people.by_person(dimension.id)
    width = dimension.high - dimension.low
    # On a graded scale, neighbouring levels are no disagreement.
    least = 1 if width < 3 else 2
    rated: dict[str, dict[str, float]] = {}
    for name, ratings in said.items():
        for item, value in ratings.items():
            rated.setdefault(item, {})[name] = value
    found = []
    for item, by_name in rated.items():
        pairs = [
            (one, other)
            for one, other in combinations(sorted(by_name), 2)
            if abs(by_name[one] - by_name[other]) >= least
            and _follow(said[one], said[other], item, width)
        ]
        if pairs:
            values = [by_name[name] for pair in pairs for name in pair]
            low, high = int(min(values)), int(max(values))
            names = {name for pair in pairs for name in pair}
            sentences = dimension.levels[low], dimension.levels[high]
            found.append(OpenItem(item, dimension.id, low, high, len(names), *sentences))
    return found


def _follow(one: Mapping[str, float], other: Mapping[str, float], but: str, width: int) -> bool:
    """Whether two people agree on the other answers, so that both apply the same rubric."""
    shared = [item for item in one.keys() & other.keys() if item != but]
    if len(shared) < ENOUGH_SHARED:
        return False
    apart = fsum(abs(one[item] - other[item]) for item in shared) / len(shared) / width
    return settle(apart) <= MOST_APART


def tabulate_open(found: Sequence[OpenItem], most: int = 10) -> Table:
    """List the open answers with the sentences between which people chose."""
    rows = tuple(
        (
            one.item,
            one.quality,
            f"{one.low}: {cut_off(one.low_sentence, 60)}",
            f"{one.high}: {cut_off(one.high_sentence, 60)}",
        )
        for one in found[:most]
    )
    title = f"{len(found)} answers on which people disagree although they followed the rubric"
    return Table(("item", "quality", "one reading", "another"), rows, title)
