"""The cards of a drawing: which individuals are shown, and what stands on each card."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from memantics.core.text import drop_unseen, mend_surrogates
from memantics.knowledge.ontology.vocabulary import (
    DIMENSION_TERMS,
    RELATIONS,
    Dimension,
    name_dimension,
)
from memantics.knowledge.records import Individual, Knowledge, Relation

_NARROW = frozenset("ijlftrI.,;:'’‘|!()[]{}·- ")
_BROAD = frozenset("mwMW@%—…")
_PIECES = re.compile(r"\s+|[^\s\u2e80-\uffef]+|[\u2e80-\uffef]")


def tame(text: str) -> str:
    """Text that cannot steer what stands around it: one line, no controls, no direction marks.

    >>> tame("a" + chr(0x202E) + "b" + chr(10) + "c" + chr(0))
    'ab c'
    """
    folded = mend_surrogates(" ".join(text.split()))
    return drop_unseen(folded, ("Cc", "Cf", "Cn", "Co"), keep="\u200d")


def measure_text(text: str, size: float) -> float:
    """About how wide a text is, rather too wide than too narrow.

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
    """Break a text into at most so many lines; what does not fit ends in an ellipsis.

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
    """Words, spaces and Chinese characters; a word wider than a line is broken anywhere."""
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


# A card's measures, in pixels at full size.
PAD, HEAD, STEP, ROW = 12.0, 25.0, 17.0, 19.0
TEXT, SMALL = 13.5, 11.5
_BOLD = TEXT * 1.07
_MOST, _MOST_OF_ONE, _CROWD = 90, 30, 7


@dataclass(frozen=True, slots=True)
class CardRow:
    """A relation in a card: where it leads, by the numbers of cards, and what leads nowhere."""

    text: str
    targets: tuple[int, ...]
    lost: tuple[str, ...] = ()
    free: bool = False


@dataclass(frozen=True, slots=True)
class IndividualCard:
    """An individual as it is drawn, or several that say the same of the same things.

    ``numbers`` are their places among the meme's individuals.
    """

    numbers: tuple[int, ...]
    individual: Individual
    rows: tuple[CardRow, ...]
    titles: tuple[str, ...]

    @property
    def number(self) -> int:
        """The first individual's place, which stands for the card."""
        return self.numbers[0]

    @property
    def kicker(self) -> str:
        """The small line above the title."""
        label = name_dimension(self.individual.dimension)
        if len(self.numbers) > 1:
            return f"{label} × {len(self.numbers)}"
        return f"{label} · {tame(self.individual.kind).lower()}" if self.individual.kind else label

    def lines(self, width: float) -> tuple[str, ...]:
        """The title, or one short title for each individual, broken into lines."""
        if len(self.titles) == 1:
            return wrap(self.titles[0], width - 2 * PAD, _BOLD, 3)
        return tuple(
            line for title in self.titles for line in wrap(f"• {title}", width - 2 * PAD, TEXT, 2)
        )

    def height(self, width: float) -> float:
        """How high the card is when it is so wide."""
        return HEAD + STEP * len(self.lines(width)) + ROW * len(self.rows) + 9

    def ports(self, width: float) -> tuple[float, ...]:
        """How far below its top the rows are."""
        first = HEAD + STEP * len(self.lines(width)) + ROW / 2 + 2
        return tuple(first + ROW * place for place in range(len(self.rows)))


def choose_cards(knowledge: Knowledge) -> tuple[IndividualCard, ...]:
    """The individuals that are drawn: all, unless there are too many to look at."""
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
    """In a crowded dimension, individuals with the same links share a card.

    Those that others point to keep their own, so that arrows stay exact.
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
    """The parts of a description that was glued together as ``name: text; name: text``.

    >>> read_fields("hasOverallIntent: Humour; overall-intent-description: It is silly; and kind.")
    {'hasOverallIntent': 'Humour', 'overall-intent-description': 'It is silly; and kind.'}
    >>> read_fields("A man said: no.")
    {}
    """
    parts = re.split(r"(?:^|; )([A-Za-z]+(?:-[a-z]+)+|has[A-Z]\w+): ", description)
    return dict(zip(parts[1::2], parts[2::2], strict=True)) if not parts[0] else {}


def _title(individual: Individual) -> str:
    """The label; for text in the meme the text itself, where it is short enough to read."""
    words = tame(individual.description)
    if individual.dimension == "OverallIntent" and (
        told := read_fields(words).get("hasOverallIntent")
    ):
        # The official extraction gives every intent the same label.
        return told.replace("_", " ")
    if individual.dimension == "TextualMaterial" and words and measure_text(words, 1.0) < 34:
        return words if words[0] in "\"“'‘「" else f"“{words}”"
    return tame(individual.label.replace("_", " ")) or tame(individual.name.replace("_", " "))


def _make_rows(knowledge: Knowledge, key: str, chosen: dict[str, int]) -> tuple[CardRow, ...]:
    """One row per relation; rows in the ontology's words come first."""
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
    """An entry of the legend: a dimension, how people call it, and how many there are."""

    dimension: Dimension
    label: str
    definition: str
    count: int


def make_legend(knowledge: Knowledge) -> tuple[Legend, ...]:
    """All ten dimensions, those without individuals included; then those of the user's own."""
    return tuple(
        Legend(
            name,
            name_dimension(name),
            DIMENSION_TERMS[name].definition if name in DIMENSION_TERMS else _OWN,
            count,
        )
        for name, count in knowledge.counts().items()
    )


_OWN = "a dimension of this build's own"
