"""Layout of knowledge graphs: choose the cards, and place them in columns with few crossings.

It is the layered (Sugiyama) method. A long line gets a free lane in every column that it crosses.
Cards are ordered by the mean position of their neighbours. Vertical positions are a least-squares
solution that keeps this order.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from memantics.core.meaning import Dimension
from memantics.core.text import drop_unseen, repair_surrogates
from memantics.understanding.knowledge.ontology.vocabulary import (
    DIMENSION_TERMS,
    RELATIONS,
    name_dimension,
)
from memantics.understanding.knowledge.records import Individual, Knowledge, Relation

_NARROW = frozenset("ijlftrI.,;:'’‘|!()[]{}·- ")
_BROAD = frozenset("mwMW@%—…")
_PIECES = re.compile(r"\s+|[^\s\u2e80-\uffef]+|[\u2e80-\uffef]")
# Card dimensions in pixels at full size.
PAD, HEAD, STEP, ROW = 12.0, 25.0, 17.0, 19.0
TEXT, SMALL = 13.5, 11.5
_BOLD = TEXT * 1.07
_MOST, _MOST_OF_ONE, _CROWD = 90, 30, 7
_OWN = "a custom dimension of this build"
GAP = 16.0
_LANE = 9.0
_SWEEPS = 14
_STEPS = 14


def tame(text: str) -> str:
    """Clean a text to one line without control characters and direction marks.

    >>> tame("a" + chr(0x202E) + "b" + chr(10) + "c" + chr(0))
    'ab c'
    """
    folded = repair_surrogates(" ".join(text.split()))
    return drop_unseen(folded, ("Cc", "Cf", "Cn", "Co"), keep="\u200d")


def measure_text(text: str, size: float) -> float:
    """Estimate the width of a text; overestimate rather than underestimate it.

    >>> measure_text("鱼鱼", 10) > measure_text("fish", 10)
    True
    """
    return size * sum(map(_width, text))


def _width(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.04
    if char in _NARROW:
        return 0.4
    if char in _BROAD:
        return 1.0
    return 0.76 if char.isupper() else 0.63


def wrap(text: str, width: float, size: float, most: int) -> tuple[str, ...]:
    """Break a text into a maximum number of lines; an ellipsis marks omitted text.

    >>> wrap("a caption under the keyboard", 90, 13, 2)
    ('a caption', 'under the…')
    """
    lines: list[str] = []
    line = ""
    for piece in _pieces(tame(text), width, size):
        if measure_text((line + piece).rstrip(), size) <= width:
            line += piece if line else piece.lstrip()
            continue
        lines.append(line.rstrip())
        line = piece.lstrip()
        if len(lines) == most:
            lines[-1] = _cut(lines[-1], width, size)
            return tuple(lines)
    return (*lines, line.rstrip()) if line.strip() or not lines else tuple(lines)


def _pieces(text: str, width: float, size: float) -> list[str]:
    """Split into words, spaces and Chinese characters; long words are broken anywhere."""
    found = []
    for piece in _PIECES.findall(text):
        rest = piece
        while measure_text(rest, size) > width and len(rest) > 1:
            cut = len(rest)
            while cut > 1 and measure_text(rest[:cut], size) > width:
                cut -= 1
            found.append(rest[:cut])
            rest = rest[cut:]
        found.append(rest)
    return found


def _cut(line: str, width: float, size: float) -> str:
    while line and measure_text(line + "…", size) > width:
        line = line[:-1]
    return line.rstrip() + "…"


@dataclass(frozen=True, slots=True)
class CardRow:
    """A relation in a card: its target cards, and unresolved targets."""

    text: str
    targets: tuple[int, ...]
    lost: tuple[str, ...] = ()
    free: bool = False


@dataclass(frozen=True, slots=True)
class IndividualCard:
    """A card of the drawing: one fact (individual), or several with the same relations.

    ``numbers`` are their positions among the facts about the meme.
    """

    numbers: tuple[int, ...]
    individual: Individual
    rows: tuple[CardRow, ...]
    titles: tuple[str, ...]

    @property
    def number(self) -> int:
        """The position of the card's first fact, which identifies the card."""
        return self.numbers[0]

    @property
    def kicker(self) -> str:
        """The small line above the title of a card."""
        label = name_dimension(self.individual.dimension)
        if len(self.numbers) > 1:
            return f"{label} × {len(self.numbers)}"
        return f"{label} · {tame(self.individual.kind).lower()}" if self.individual.kind else label

    def lines(self, width: float) -> tuple[str, ...]:
        """The title, or one short title per individual, broken into lines."""
        if len(self.titles) == 1:
            return wrap(self.titles[0], width - 2 * PAD, _BOLD, 3)
        return tuple(
            line for title in self.titles for line in wrap(f"• {title}", width - 2 * PAD, TEXT, 2)
        )

    def height(self, width: float) -> float:
        """The height of the card at a given width."""
        return HEAD + STEP * len(self.lines(width)) + ROW * len(self.rows) + 9

    def ports(self, width: float) -> tuple[float, ...]:
        """The vertical offsets of the rows."""
        first = HEAD + STEP * len(self.lines(width)) + ROW / 2 + 2
        return tuple(first + ROW * place for place in range(len(self.rows)))


def choose_cards(knowledge: Knowledge) -> tuple[IndividualCard, ...]:
    """Choose the facts (individuals) to draw: all, unless there are too many."""
    chosen: dict[str, int] = {}
    counts: dict[str, int] = {}
    for number, individual in enumerate(knowledge.individuals):
        counts[individual.dimension] = counts.get(individual.dimension, 0) + 1
        if counts[individual.dimension] <= _MOST_OF_ONE and len(chosen) < _MOST:
            chosen[individual.key] = number
    cards = [
        IndividualCard(
            (number,),
            knowledge.individuals[number],
            _make_rows(knowledge, key, chosen),
            (_title(knowledge.individuals[number]),),
        )
        for key, number in chosen.items()
    ]
    crowded = {name for name, count in counts.items() if count > _CROWD}
    return tuple(_join_alike(cards, crowded))


def _join_alike(cards: Sequence[IndividualCard], crowded: Set[str]) -> Iterator[IndividualCard]:
    """In a dimension with many facts, show facts with the same links on one card.

    A fact that other facts refer to keeps its own card, so that arrows stay exact.
    """
    aimed = {target for card in cards for row in card.rows for target in row.targets}
    groups: dict[object, list[IndividualCard]] = {}
    for card in cards:
        alike = card.individual.dimension in crowded and card.number not in aimed
        key = (card.individual.dimension, card.rows) if alike else card.number
        groups.setdefault(key, []).append(card)
    for first, *others in groups.values():
        yield replace(
            first,
            numbers=(first.number, *(card.number for card in others)),
            titles=(*first.titles, *(title for card in others for title in card.titles)),
        )


def read_fields(description: str) -> dict[str, str]:
    """Split a description of the form ``name: text; name: text``.

    >>> read_fields("hasOverallIntent: Humour; overall-intent-description: It is silly; and kind.")
    {'hasOverallIntent': 'Humour', 'overall-intent-description': 'It is silly; and kind.'}
    >>> read_fields("A man said: no.")
    {}
    """
    parts = re.split(r"(?:^|; )([A-Za-z]+(?:-[a-z]+)+|has[A-Z]\w+): ", description)
    return dict(zip(parts[1::2], parts[2::2], strict=True)) if not parts[0] else {}


def _title(individual: Individual) -> str:
    """Return the title of a card: the label, or the text itself for a short text in the meme."""
    words = tame(individual.description)
    if individual.dimension == "OverallIntent" and (
        told := read_fields(words).get("hasOverallIntent")
    ):
        # M-QUEST's official extraction uses the same label for every intent.
        return told.replace("_", " ")
    if individual.dimension == "TextualMaterial" and words and measure_text(words, 1.0) < 34:
        return words if words[0] in "\"“'‘「" else f"“{words}”"
    return tame(individual.label.replace("_", " ")) or tame(individual.name.replace("_", " "))


def _make_rows(knowledge: Knowledge, key: str, chosen: dict[str, int]) -> tuple[CardRow, ...]:
    """Build the rows of a card, one per relation; ontology relations come first."""
    grouped: dict[str, list[Relation]] = {}
    for link in knowledge.by_key[key].relations:
        grouped.setdefault(link.relation, []).append(link)
    rows = []
    for name, links in grouped.items():
        term = RELATIONS.get(name)
        text = term.label if term else tame(name.replace("_", " "))
        targets = tuple(chosen[link.target] for link in links if link.target in chosen)
        lost = tuple(
            tame(link.target.replace("_", " "))
            for link in links
            if link.target not in knowledge.by_key
        )
        rows.append(CardRow(text, targets, lost, term is None))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Legend:
    """A legend entry: a dimension, its label and its count."""

    dimension: Dimension
    label: str
    definition: str
    count: int


def make_legend(knowledge: Knowledge) -> tuple[Legend, ...]:
    """List all ten dimensions with counts, then custom ones."""
    return tuple(
        Legend(
            name,
            name_dimension(name),
            DIMENSION_TERMS[name].definition if name in DIMENSION_TERMS else _OWN,
            count,
        )
        for name, count in knowledge.counts().items()
    )


@dataclass(frozen=True, slots=True)
class Box:
    """A card in the layout: its column, its height, and the vertical offsets of its rows."""

    column: int
    height: float
    ports: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CardLine:
    """A line from a row of one card to another card."""

    source: int
    row: int
    target: int


@dataclass(frozen=True, slots=True)
class Route:
    """The course of a line: heights at its start, in each crossed column, and at its end."""

    start: float
    lanes: tuple[tuple[int, float], ...]
    end: float


class LayoutPlan(NamedTuple):
    """Card tops, line routes and the total height."""

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
        """Return the points of a line: its ends, and a free lane in every column between them."""
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
        """Order the cards of each column so that few lines cross, by repeated sweeps."""
        width = 1 + max((box.column for box in self.boxes), default=0)
        columns: list[list[int]] = [[] for _ in range(width)]
        for place, box in enumerate(self.boxes):
            columns[box.column].append(place)
        best, fewest = [column[:] for column in columns], self.crossings(columns)
        for sweep in range(_SWEEPS):
            indexes = range(width) if sweep % 2 == 0 else range(width - 1, -1, -1)
            for index in indexes:
                spots = self.spots(columns)
                columns[index].sort(key=lambda node: self.mean(node, spots))
            count = self.crossings(columns)
            if count < fewest:
                best, fewest = [column[:] for column in columns], count
        return best

    @staticmethod
    def spots(columns: list[list[int]]) -> dict[int, float]:
        return {
            node: (place + 0.5) / len(column)
            for column in columns
            for place, node in enumerate(column)
        }

    def mean(self, node: int, spots: dict[int, float]) -> float:
        found = [spots[other] for other, _, _ in self.near.get(node, ())]
        return sum(found) / len(found) if found else spots[node]

    def crossings(self, columns: list[list[int]]) -> int:
        spots = {node: place for column in columns for place, node in enumerate(column)}
        gaps: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for stops in self.chains:
            for one, other in pairwise(stops):
                left, right = sorted((one, other), key=lambda node: self.boxes[node].column)
                if self.boxes[left].column != self.boxes[right].column:
                    gaps[self.boxes[left].column].append((spots[left], spots[right]))
        return sum(
            (a[0] - b[0]) * (a[1] - b[1]) < 0
            for pairs in gaps.values()
            for place, a in enumerate(pairs)
            for b in pairs[:place]
        )

    def settle(self) -> list[float]:
        """Compute vertical positions: cards as near to their neighbours as the order allows."""
        tops = [0.0] * len(self.boxes)
        for column in self.columns:
            here = -self.extent(column) / 2
            for node in column:
                tops[node] = here
                here += self.boxes[node].height + GAP
        for step in range(_STEPS):
            for column in self.columns if step % 2 == 0 else self.columns[::-1]:
                wishes, weights = [], []
                for node in column:
                    near = self.near.get(node, ())
                    pull = [tops[other] + there - here for other, here, there in near]
                    wishes.append(sum(pull) / len(pull) if pull else tops[node])
                    lane = node >= self.cards
                    weights.append(3.0 if lane else 0.2 + len(near))
                for node, top in zip(column, self.spread(column, wishes, weights), strict=True):
                    tops[node] = top
        lowest = min((tops[node] for node in range(self.cards)), default=0.0)
        return [top - lowest for top in tops]

    def extent(self, column: list[int]) -> float:
        return sum(self.boxes[node].height + GAP for node in column) - GAP

    def spread(self, column: list[int], wishes: list[float], weights: list[float]) -> list[float]:
        """Find card tops near the desired ones that keep order and distance.

        The method is isotonic regression.
        """
        offsets, here = [], 0.0
        for node in column:
            offsets.append(here)
            here += self.boxes[node].height + GAP
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
        bottoms = [tops[card] + self.boxes[card].height for card in range(self.cards)]
        return LayoutPlan(tuple(tops[: self.cards]), tuple(routes), max(bottoms, default=0.0))

    def share_sides(self, tops: list[float]) -> dict[int, float]:
        """Distribute the ends of lines that arrive at the same side of a card."""
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
    """Assign spans of lines to tracks without overlap; short spans get the innermost tracks.

    >>> assign_tracks([(0, 10), (2, 3), (11, 12)])
    (1, 0, 0)
    """
    tracks: list[list[tuple[float, float]]] = []
    chosen = [0] * len(spans)
    for place in sorted(range(len(spans)), key=lambda place: spans[place][1] - spans[place][0]):
        low, high = spans[place]
        number = 0
        while number < len(tracks) and any(a <= high and low <= b for a, b in tracks[number]):
            number += 1
        if number == len(tracks):
            tracks.append([])
        tracks[number].append((low, high))
        chosen[place] = number
    return tuple(chosen)
