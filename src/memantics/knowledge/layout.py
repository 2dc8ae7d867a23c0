"""Where the cards of a drawing go: in columns, with few crossings, and lines between the cards.

The classic layered method: long lines get a place of their own in every column that they cross,
orders follow the neighbours' mean, and heights are the least-squares answer that keeps the order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

GAP = 16.0
_LANE = 9.0
_SWEEPS = 14
_STEPS = 14


@dataclass(frozen=True, slots=True)
class Box:
    """A card: its column, its height, and how far below its top each of its rows starts a line."""

    column: int
    height: float
    ports: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CardLine:
    """From a row of one card to another card."""

    source: int
    row: int
    target: int


@dataclass(frozen=True, slots=True)
class Route:
    """How a line runs: height at its start, in each column that it crosses, and at its end."""

    start: float
    lanes: tuple[tuple[int, float], ...]
    end: float


class LayoutPlan(NamedTuple):
    """Tops of cards, routes of lines, and the height of it all."""

    tops: tuple[float, ...]
    routes: tuple[Route, ...]
    height: float


def arrange(boxes: Sequence[Box], lines: Sequence[CardLine]) -> LayoutPlan:
    """Place cards and lines.

    >>> plan = arrange([Box(0, 40), Box(1, 40, (30.0,))], [CardLine(1, 0, 0)])
    >>> plan.tops, plan.routes[0].lanes
    ((10.0, 0.0), ())
    """
    return _Arrangement(list(boxes), list(lines)).make()


@dataclass
class _Arrangement:
    boxes: list[Box]
    lines: list[CardLine]
    chains: list[list[int]] = field(default_factory=list)
    near: dict[int, list[tuple[int, float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def make(self) -> LayoutPlan:
        self.cards = len(self.boxes)
        for line in self.lines:
            self.chains.append(self.chain(line))
        self.columns = self.order()
        tops = self.settle()
        return self.finish(tops)

    def chain(self, line: CardLine) -> list[int]:
        """The line's stops: its ends, and a lane in every column between them."""
        first, last = self.boxes[line.source].column, self.boxes[line.target].column
        step = 1 if last > first else -1
        stops = [line.source]
        for column in range(first + step, last, step):
            stops.append(len(self.boxes))
            self.boxes.append(Box(column, _LANE))
        stops.append(line.target)
        for place, (one, other) in enumerate(pairwise(stops)):
            leaves = self.boxes[one].ports[line.row] if place == 0 else self.boxes[one].height / 2
            arrives = self.boxes[other].height / 2
            if first != last:
                self.near[one].append((other, leaves, arrives))
                self.near[other].append((one, arrives, leaves))
        return stops

    def order(self) -> list[list[int]]:
        """The order in every column with the fewest crossings that sweeping finds."""
        width = 1 + max((box.column for box in self.boxes), default=0)
        columns: list[list[int]] = [[] for _ in range(width)]
        for place, box in enumerate(self.boxes):
            columns[box.column].append(place)
        best, fewest = [numbers[:] for numbers in columns], self.crossings(columns)
        for sweep in range(_SWEEPS):
            indexes = range(width) if sweep % 2 == 0 else range(width - 1, -1, -1)
            for index in indexes:
                spots = self.spots(columns)
                columns[index].sort(key=lambda number: self.mean(number, spots))
            count = self.crossings(columns)
            if count < fewest:
                best, fewest = [numbers[:] for numbers in columns], count
        return best

    @staticmethod
    def spots(columns: list[list[int]]) -> dict[int, float]:
        return {
            number: (place + 0.5) / len(column)
            for column in columns
            for place, number in enumerate(column)
        }

    def mean(self, place: int, spots: dict[int, float]) -> float:
        found = [spots[other] for other, _, _ in self.near.get(place, ())]
        return sum(found) / len(found) if found else spots[place]

    def crossings(self, columns: list[list[int]]) -> int:
        spots = {number: place for column in columns for place, number in enumerate(column)}
        gaps: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for stops in self.chains:
            for one, other in pairwise(stops):
                left, right = sorted((one, other), key=lambda number: self.boxes[number].column)
                if self.boxes[left].column != self.boxes[right].column:
                    gaps[self.boxes[left].column].append((spots[left], spots[right]))
        return sum(
            (a[0] - b[0]) * (a[1] - b[1]) < 0
            for pairs in gaps.values()
            for place, a in enumerate(pairs)
            for b in pairs[:place]
        )

    def settle(self) -> list[float]:
        """Heights: every card as near to its neighbours as the order lets it be."""
        tops = [0.0] * len(self.boxes)
        for column in self.columns:
            here = -self.extent(column) / 2
            for place in column:
                tops[place] = here
                here += self.boxes[place].height + GAP
        for step in range(_STEPS):
            for column in self.columns if step % 2 == 0 else self.columns[::-1]:
                wishes, weights = [], []
                for place in column:
                    near = self.near.get(place, ())
                    pull = [tops[other] + there - here for other, here, there in near]
                    wishes.append(sum(pull) / len(pull) if pull else tops[place])
                    lane = place >= self.cards
                    weights.append(3.0 if lane else 0.2 + len(near))
                for place, top in zip(column, self.spread(column, wishes, weights), strict=True):
                    tops[place] = top
        lowest = min((tops[place] for place in range(self.cards)), default=0.0)
        return [top - lowest for top in tops]

    def extent(self, column: list[int]) -> float:
        return sum(self.boxes[place].height + GAP for place in column) - GAP

    def spread(self, column: list[int], wishes: list[float], weights: list[float]) -> list[float]:
        """Tops nearest to the wishes that keep order and distance: isotonic regression."""
        offsets, here = [], 0.0
        for place in column:
            offsets.append(here)
            here += self.boxes[place].height + GAP
        blocks: list[tuple[float, float, int]] = []
        for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
            value, mass, count = wish - offset, weight, 1
            while blocks and blocks[-1][0] > value:
                former, former_mass, former_count = blocks.pop()
                total = mass + former_mass
                value = (value * mass + former * former_mass) / total
                mass, count = total, count + former_count
            blocks.append((value, mass, count))
        values = [value for value, _, count in blocks for _ in range(count)]
        return [value + offset for value, offset in zip(values, offsets, strict=True)]

    def finish(self, tops: list[float]) -> LayoutPlan:
        ends = self.share_sides(tops)
        routes = []
        for place, (line, stops) in enumerate(zip(self.lines, self.chains, strict=True)):
            start = tops[line.source] + self.boxes[line.source].ports[line.row]
            lanes = tuple((self.boxes[stop].column, tops[stop] + _LANE / 2) for stop in stops[1:-1])
            routes.append(Route(start, lanes, ends[place]))
        bottoms = [tops[number] + self.boxes[number].height for number in range(self.cards)]
        return LayoutPlan(tuple(tops[: self.cards]), tuple(routes), max(bottoms, default=0.0))

    def share_sides(self, tops: list[float]) -> dict[int, float]:
        """Lines that arrive at the same side of a card do so below one another, not in one spot."""
        arriving: dict[tuple[int, int], list[tuple[float, int]]] = defaultdict(list)
        for place, (line, stops) in enumerate(zip(self.lines, self.chains, strict=True)):
            before = stops[-2]
            port = self.boxes[before].ports[line.row] if before == line.source else _LANE / 2
            shift = self.boxes[before].column - self.boxes[line.target].column
            side = (shift > 0) - (shift < 0)
            arriving[line.target, side].append((tops[before] + port, place))
        ends = {}
        for (target, _), found in arriving.items():
            height = self.boxes[target].height
            distance = min(11.0, (height - 16) / max(1, len(found)))
            first = tops[target] + height / 2 - distance * (len(found) - 1) / 2
            for place, (_, line_place) in enumerate(sorted(found)):
                ends[line_place] = first + distance * place
        return ends


def assign_tracks(spans: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """A track for each span, so that spans of one track do not overlap; short ones innermost.

    >>> assign_tracks([(0, 10), (2, 3), (11, 12)])
    (1, 0, 0)
    """
    tracks: list[list[tuple[float, float]]] = []
    chosen = [0] * len(spans)
    for place in sorted(range(len(spans)), key=lambda value: spans[value][1] - spans[value][0]):
        low, high = spans[place]
        number = 0
        while number < len(tracks) and any(a <= high and low <= b for a, b in tracks[number]):
            number += 1
        if number == len(tracks):
            tracks.append([])
        tracks[number].append((low, high))
        chosen[place] = number
    return tuple(chosen)
