"""Annotations written as TOML, one table per meme, in a short notation.

``knowledge`` has one individual per line, ``T name | label | description``, where the letter is
the dimension (``LETTERS``). Links may follow, ``| relation X/name, relation X/name``; without them
the usual ones of the dimension are made. ``ask.DIMENSION`` is a list: the question, then options
marked ``+`` (key) or ``-``, ``!`` why, and perhaps ``@`` the individuals it rests on. Three ``-``
and no ``+`` make "None of the others" the key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from memantics.starter import DIMENSIONS, Dimension, Emotion, Harm, Individual, Pun
from starter.declare import HARMLESS, Ask, Meme, Notes, feel, know
from starter.draw import Canvas

HERE = Path(__file__).resolve().parent
LETTERS: dict[str, Dimension] = dict(zip("TVSBEAPIXC", DIMENSIONS, strict=True))
TARGETS = {"sad": "happy", "angry": "calm", "tense": "relaxed", "bored": "excited"}


class Feeling(BaseModel):
    """The emotion part of a table; the target emotion follows from the source."""

    model_config = ConfigDict(extra="forbid")
    source: str
    rewritten: str
    plan: str
    visual_type: str = "Cartoon_Anime"
    polarity: str = "Negative"


class Wordplay(BaseModel):
    """The pun part of a table."""

    model_config = ConfigDict(extra="forbid")
    kind: str
    caption: str
    reading: str
    note: str


class Table(BaseModel):
    """One meme's table."""

    model_config = ConfigDict(extra="forbid")
    description: str
    meaning: str
    literal: str
    knowledge: str
    ask: dict[str, list[str]]
    intents: list[str]
    votes: str
    background: list[str] = []
    harm: Harm = HARMLESS
    emotion: Feeling | None = None
    pun: Wordplay | None = None


def load(name: str, drawings: Mapping[str, Callable[[], Canvas]]) -> tuple[Meme, ...]:
    """The memes of ``NAME.toml`` with their drawings; both must have the same ids."""
    tables = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    if tables.keys() != drawings.keys():
        raise ValueError(
            f"{name}: annotated and drawn memes differ: {tables.keys() ^ drawings.keys()}"
        )
    return tuple(
        Meme(key, draw, read_notes(Table.model_validate(tables[key])))
        for key, draw in drawings.items()
    )


def read_notes(table: Table) -> Notes:
    """Unfold a table."""
    first, second = (read_ask(dimension, lines) for dimension, lines in table.ask.items())
    emotion = pun = None
    if table.emotion:
        facts = table.emotion.model_dump()
        target = TARGETS[table.emotion.source]
        emotion = Emotion(**facts, target=target, layout="SinglePanel")  # type: ignore[arg-type]
    if table.pun:
        pun = Pun(**table.pun.model_dump(), is_pun=True, group=None, role="pun")
    return Notes(
        description=table.description,
        meaning=table.meaning,
        knowledge=read_knowledge(table.knowledge),
        questions=(first, second),
        intents=tuple(table.intents),
        sentiment=feel(table.votes),
        explanation=f"{table.literal}\n{table.meaning}",
        background=tuple(table.background),
        harm=table.harm,
        emotion=emotion,
        pun=pun,
    )


def read_ask(dimension: str, lines: list[str]) -> Ask:
    """A question from its marked lines."""
    marked = {mark: [x[2:] for x in lines[1:] if x.startswith(mark)] for mark in "+-!@"}
    a, b, c = [*marked["+"], *marked["-"]]
    related = tuple(spell(word) for line in marked["@"] for word in line.split())
    right = 0 if marked["+"] else None
    (why,) = marked["!"]
    return Ask(dimension, lines[0], (a, b, c), right, why, related)  # type: ignore[arg-type]


def spell(short: str) -> str:
    """``T/caption`` in full: ``TextualMaterial/caption``."""
    letter, _, name = short.partition("/")
    return f"{LETTERS[letter]}/{name}"


def read_knowledge(text: str) -> tuple[Individual, ...]:
    """All individuals of a knowledge block, with given or usual links."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [[part.strip() for part in line.split("|")] for line in lines]
    names: dict[str, list[str]] = {letter: [] for letter in LETTERS}
    for row in rows:
        letter, name = row[0].split()
        names[letter].append(spell(f"{letter}/{name}"))
    found = []
    for row in rows:
        letter, name = row[0].split()
        if len(row) > 3:
            links = [(r, spell(t)) for r, t in (link.split() for link in row[3].split(","))]
        else:
            links = usual_links(letter, names)
        found.append(know(LETTERS[letter], name, row[1], row[2], *links))
    return tuple(found)


def usual_links(letter: str, names: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """What an individual of a dimension is usually linked to, by the dimension's letter."""
    text, seen = names["T"][0], names["V"][0]
    usual = {
        "S": [("hasParticipant", name) for name in names["V"]],
        "B": [("about", text)],
        "E": [("hasExpressor", seen), ("hasExpressor", text)],
        "A": [("hasMappedEntity", text), ("hasMappingEntity", seen)],
        "P": [("projectedOnto", seen)],
        "I": [("about", name) for name in names["S"][:1]],
        "X": [("hasToxicElement", text), *(("targets", name) for name in names["C"])],
    }
    return usual.get(letter, [])
