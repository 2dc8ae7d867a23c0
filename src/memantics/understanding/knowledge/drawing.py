"""Draw the facts about a meme as SVG: one card per fact, in columns, and a line per relation.

A relation's name is inside the card of its source, so that names never overlap. Colours come from
``drawing.css``. There is one drawing for wide screens and one for phones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from memantics.core.meaning import Dimension
from memantics.core.prompt import draw as draw_macro
from memantics.understanding.knowledge.layout import (
    HEAD,
    PAD,
    ROW,
    SMALL,
    STEP,
    Box,
    CardLine,
    IndividualCard,
    Route,
    arrange,
    assign_tracks,
    choose_cards,
    tame,
    wrap,
)
from memantics.understanding.knowledge.records import Knowledge

COLUMNS: tuple[tuple[str, tuple[Dimension, ...]], ...] = (
    ("background", ("BackgroundKnowledge",)),
    ("content", ("TextualMaterial", "VisualMaterial")),
    ("mechanism", ("Scene", "AnalogicalMapping", "SemioticProjection", "Emotion")),
    ("purpose", ("OverallIntent", "Toxicity", "TargetCommunity")),
)
_OWN = 2  # dimensions that users define are drawn in the column "mechanism"
_COLUMN_OF = {name: place for place, (_, members) in enumerate(COLUMNS) for name in members}
WIDTH = 196.0
draw_part = partial(draw_macro, Path(__file__).with_name("drawing.svg"))
_GAP, _NARROW = 72.0, 360.0
_SHORT = 6


def read_style() -> str:
    """Return the style sheet of drawings, for light and dark mode."""
    return (files("memantics.understanding.knowledge") / "static" / "drawing.css").read_text(
        encoding="utf-8"
    )


def draw(knowledge: Knowledge, linked: bool = True) -> Markup:
    """Draw the graph for wide screens; with ``linked``, cards link to entries of the page."""
    return _Wide(choose_cards(knowledge), "w", knowledge.meme, linked).draw()


def draw_narrow(knowledge: Knowledge, linked: bool = True) -> Markup:
    """Draw the graph for phones: one column with lines in the margin."""
    return _Narrow(choose_cards(knowledge), "n", knowledge.meme, linked).draw()


@dataclass
class _Drawing:
    cards: Sequence[IndividualCard]
    prefix: str
    meme: str
    linked: bool
    parts: list[Markup] = field(default_factory=list)

    @cached_property
    def places(self) -> dict[int, int]:
        """Card positions by the number of the fact that a card shows."""
        return {
            individual: place
            for place, card in enumerate(self.cards)
            for individual in card.numbers
        }

    def links(self) -> Iterator[tuple[int, int, int]]:
        """Lines of the drawing: card, row in the card, and target card."""
        for place, card in enumerate(self.cards):
            for row_place, row in enumerate(card.rows):
                for target in row.targets:
                    yield place, row_place, self.places[target]

    def close(self, width: float, height: float) -> Markup:
        name = f"Knowledge graph of meme {tame(self.meme)}"
        return draw_part("sheet", name, width, height, self.parts)

    def add(self, name: str, *values: object) -> None:
        """Add an SVG element from the template of that name in ``drawing.svg``."""
        self.parts.append(draw_part(name, *values))

    def line(
        self,
        path: str,
        tip: tuple[float, float, int],
        source: IndividualCard,
        target: IndividualCard,
    ) -> None:
        """Draw a line with its arrow; ``tip`` is its end and direction."""
        self.add("line", path, *tip, source, target)

    def card(self, card: IndividualCard, x: float, y: float, width: float) -> None:
        hint = " – ".join(filter(None, (*card.titles, tame(card.individual.description))))
        kicker = wrap(card.kicker, width - 2 * PAD, SMALL, 1)[0]
        lines = enumerate(card.lines(width))
        texts = [("name", y + HEAD + STEP * place + 11, line) for place, line in lines]
        for row, port in zip(card.rows, card.ports(width), strict=True):
            text = row.text + (f" → {', '.join(row.lost)} ?" if row.lost else "")
            kind = f"row{' free' * row.free}{'' if row.targets else ' lost'}"
            texts.append((kind, y + port + 4, wrap(text, width - 2 * PAD, SMALL, 1)[0]))
        place = (x, y, width, card.height(width), x + PAD)
        self.add("card", card, place, self.prefix * self.linked, hint, kicker, texts)


class _Wide(_Drawing):
    @cached_property
    def columns(self) -> dict[int, tuple[int, ...]]:
        """The columns that have cards, from left to right.

        Cards without lines fill short columns; the others are placed below the drawing.
        """
        linked = {place for start, _, end in self.links() for place in (start, end)}
        found = {}
        for place in range(len(COLUMNS)):
            cards = [at for at, card in enumerate(self.cards) if _find_column(card) == place]
            room = max(0, _SHORT - sum(at in linked for at in cards))
            alone = [at for at in cards if at not in linked][:room]
            found[place] = tuple(at for at in cards if at in linked or at in alone)
        return {place: cards for place, cards in found.items() if cards}

    def draw(self) -> Markup:
        used = list(self.columns)
        column_of = {
            card: used.index(place) for place, cards in self.columns.items() for card in cards
        }
        order = sorted(column_of)
        spot = {place: number for number, place in enumerate(order)}
        boxes = [
            Box(column_of[at], self.cards[at].height(WIDTH), self.cards[at].ports(WIDTH))
            for at in order
        ]
        links = list(self.links())
        plan = arrange(boxes, [CardLine(spot[a], row, spot[b]) for a, row, b in links])
        top = 40.0
        edges = [column * (WIDTH + _GAP) + 8 for column in range(len(used))]
        for place, column in enumerate(used):
            self.add("heading", COLUMNS[column][0], edges[place] + WIDTH / 2, 16, "middle")
        ports: dict[tuple[int, float, float], None] = {}
        for (a, row, b), route in zip(links, plan.routes, strict=True):
            line, ends = CardLine(a, row, b), (column_of[a], column_of[b])
            ports[(a, *self.draw_line(line, route, ends, edges, top))] = None
        for at in order:
            self.card(self.cards[at], edges[column_of[at]], plan.tops[spot[at]] + top, WIDTH)
        for at, x, y in ports:
            self.add("port", self.cards[at], x, y)
        # A line may pass above the first card of a column or below the last.
        reach = [y for route in plan.routes for _, y in route.lanes]
        height = max([plan.height, *reach]) + top + 12
        rest = [at for at in range(len(self.cards)) if at not in column_of]
        return self.close(
            edges[-1] + WIDTH + 8 if edges else WIDTH, self.stack(rest, edges, height)
        )

    def stack(self, rest: Sequence[int], edges: Sequence[float], height: float) -> float:
        """Place cards without lines below the others; return the new height."""
        if not rest:
            return height
        middle = (edges[0] + edges[-1] + WIDTH) / 2
        self.add("heading", "without a link", middle, height + 26, "middle")
        bottoms = [height + 44.0] * len(edges)
        for at in rest:
            column = bottoms.index(min(bottoms))
            self.card(self.cards[at], edges[column], bottoms[column], WIDTH)
            bottoms[column] += self.cards[at].height(WIDTH) + 12
        return max(bottoms)

    def draw_line(
        self, line: CardLine, route: Route, ends: tuple[int, int], edges: list[float], top: float
    ) -> tuple[float, float]:
        """Draw one line; return its start."""
        source, target = self.cards[line.source], self.cards[line.target]
        first, last = ends
        start, end = route.start + top, route.end + top
        if first == last:
            # Within a column the line bends through the gap beside it.
            right = first == 0 or first < len(edges) - 1
            x = edges[first] + (WIDTH if right else 0)
            bend = min(_GAP * 0.8, 20 + abs(end - start) * 0.16) * (1 if right else -1)
            stop = x + (6 if right else -6)
            path = (
                f"M{x:.1f},{start:.1f} C{x + bend:.1f},{start:.1f} "
                f"{x + bend:.1f},{end:.1f} {stop:.1f},{end:.1f}"
            )
            self.line(path, (x, end, -1 if right else 1), source, target)
            return x, start
        right = last > first
        x = edges[first] + (WIDTH if right else 0)
        path, here, level = f"M{x:.1f},{start:.1f}", x, start
        for column, lane in route.lanes:
            enter = edges[column] + (0 if right else WIDTH)
            leave = edges[column] + (WIDTH if right else 0)
            path += _curve(here, level, enter, lane + top) + f" H{leave:.1f}"
            here, level = leave, lane + top
        goal = edges[last] + (0 if right else WIDTH)
        way = 1 if right else -1
        path += _curve(here, level, goal - 6 * way, end)
        self.line(path, (goal, end, way), source, target)
        return x, start


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (to_x - x) * 0.5
    return f" C{x + middle:.1f},{y:.1f} {to_x - middle:.1f},{to_y:.1f} {to_x:.1f},{to_y:.1f}"


class _Narrow(_Drawing):
    def draw(self) -> Markup:
        order = [place for column in _READING for place in self.members(column)]
        links = list(self.links())
        margin = 16.0 + min(74.0, 7.0 * max(1, len(links)))
        width = _NARROW - margin - 2
        tops, here, titles = {}, 0.0, []
        for column in _READING:
            if not (found := self.members(column)):
                continue
            titles.append((COLUMNS[column][0], here + 16))
            here += 28
            for place in found:
                tops[place] = here
                here += self.cards[place].height(width) + 12
            here += 8
        ends = self.share(links, tops, width)
        starts = [tops[a] + self.cards[a].ports(width)[row] for a, row, _ in links]
        spans = [(min(pair) - 3, max(pair) + 3) for pair in zip(starts, ends, strict=True)]
        tracks = assign_tracks(spans)
        step = (margin - 16) / (max(tracks, default=0) + 1)
        for title, y in titles:
            self.add("heading", title, margin, y, "")
        for (a, _, b), start, end, track in zip(links, starts, ends, tracks, strict=True):
            x = margin - 12 - step * track
            bend = min(6.0, abs(end - start) / 2) * (1 if end > start else -1)
            path = (
                f"M{margin:.1f},{start:.1f} H{x + 6:.1f} Q{x:.1f},{start:.1f} {x:.1f},"
                f"{start + bend:.1f} V{end - bend:.1f} Q{x:.1f},{end:.1f} {x + 6:.1f},{end:.1f} "
                f"H{margin - 6:.1f}"
            )
            self.line(path, (margin, end, 1), self.cards[a], self.cards[b])
        for place in order:
            self.card(self.cards[place], margin, tops[place], width)
        for (a, _, _), start in dict.fromkeys(zip(links, starts, strict=True)):
            self.add("port", self.cards[a], margin, start)
        return self.close(_NARROW, here)

    def members(self, column: int) -> list[int]:
        """List the cards of one column of the drawing, by dimension."""
        found = [place for place, card in enumerate(self.cards) if _find_column(card) == column]
        return sorted(found, key=lambda at: _rank(column, self.cards[at]))

    def share(
        self, links: Sequence[tuple[int, int, int]], tops: dict[int, float], width: float
    ) -> list[float]:
        """Distribute the ends of lines along the upper part of a card."""
        arriving: dict[int, list[int]] = {}
        for place, (_, _, target) in enumerate(links):
            arriving.setdefault(target, []).append(place)
        ends = [0.0] * len(links)
        for target, places in arriving.items():
            card = self.cards[target]
            room = card.height(width) - ROW * len(card.rows) - 18
            distance = min(9.0, room / max(1, len(places)))
            places.sort(key=lambda place: tops[links[place][0]])
            for number, place in enumerate(places):
                ends[place] = tops[target] + 12 + distance * number
        return ends


def _rank(column: int, card: IndividualCard) -> int:
    members = COLUMNS[column][1]
    name = card.individual.dimension
    return members.index(name) if name in members else len(members)


def _find_column(card: IndividualCard) -> int:
    return _COLUMN_OF.get(card.individual.dimension, _OWN)


_READING = (1, 2, 0, 3)
