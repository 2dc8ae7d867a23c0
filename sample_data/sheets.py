"""Memes written as TOML, one table each in ``content/*.toml``, in a short notation.

``scene`` names the drawing. ``knowledge`` has one individual per line, ``T name | label |
description``, where the letter is the dimension (``LETTERS``); ``share`` puts a block of the file
before it. Links may follow, ``| relation X/name, relation X/name``; without them the usual ones of
the dimension are made. ``ask.DIMENSION`` is a list: the question, then options marked ``+`` (key)
or ``-``, ``!`` why, and perhaps ``@`` the individuals it rests on. Three ``-`` and no ``+`` make
"None of the others" the key. ``captions`` are printed over the scene: the last below, one before it
above, or in a ``bar``. File, language, panels, captions and text are taken from the id and the
drawing, so that they cannot differ from what is seen.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from memantics.core.meaning import DIMENSIONS, Dimension
from memantics.core.samples import (
    Candidates,
    Caption,
    HardOptions,
    HarmLabel,
    Pun,
    SampleChat,
    SampleEmotion,
    SampleIndividual,
    SampleMeme,
    SampleQuestion,
    SampleRelation,
    Sentiment,
)
from sample_data.draw.canvas import Canvas
from sample_data.draw.letters import add_bar, overlay
from sample_data.scenes import draw_scene

CONTENT = Path(__file__).resolve().parent / "content"
LETTERS: dict[str, Dimension] = dict(zip("TVSBEAPIXC", DIMENSIONS, strict=True))
TARGETS = {"sad": "happy", "angry": "calm", "tense": "relaxed", "bored": "excited"}
EDGES: tuple[Literal["top", "bottom"], ...] = ("top", "bottom")
HARMLESS = HarmLabel(harmful=False, type="none", text=False, image=False, fusion=False, target=0)
NONE = "None of the others"
# Of many seeds, one that spreads the keys evenly over the four places in both languages.
SEED = 35
POOL = 6


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Feeling(_Closed):
    """The emotion part of a table; the target emotion follows from the source."""

    source: str
    rewritten: str
    plan: str
    visual_type: str = "Cartoon_Anime"
    polarity: str = "Negative"


class Wordplay(_Closed):
    """The pun part of a table: the intended reading (None: no pun) and one line why."""

    note: str
    reading: str | None = None
    kind: str = "homophone"
    caption: str = ""


class Talk(_Closed):
    """A chat that the meme answers; ``easy`` and ``hard`` name three other puns by number.

    ``hard`` fills the places text, image and sentiment, in this order. All are chosen by hand so
    that none of them would be a fitting answer: only the sentiment one is held to share the type,
    text and image neighbours are not measured, and the rest of their pools is drawn with a seed.
    """

    topic: str
    turns: tuple[str, ...]
    speaker: str
    easy: str
    hard: str


class Table(_Closed):
    """One meme's table. ``point`` (default: the meaning) ends the explanation."""

    scene: str
    description: str
    meaning: str
    knowledge: str
    ask: dict[str, tuple[str, ...]]
    intents: tuple[str, ...]
    votes: str
    literal: str = ""
    point: str = ""
    share: str = ""
    captions: tuple[str, ...] = ()
    bar: bool = False
    background: tuple[str, ...] = ()
    harm: HarmLabel = HARMLESS
    emotion: Feeling | None = None
    pun: Wordplay | None = None
    chats: tuple[Talk, ...] = ()


@dataclass(frozen=True, slots=True)
class Meme:
    """One meme: id (= file name without ``.png``), its table, and the types of all puns."""

    id: str
    table: Table
    types: Mapping[str, str]

    def draw(self) -> Canvas:
        """The scene with its captions."""
        canvas, captions = draw_scene(self.table.scene), self.table.captions
        if self.table.bar:
            (text,) = captions
            return add_bar(canvas, text, 110)
        for edge, text in (
            zip(EDGES[2 - len(captions) :], captions, strict=True) if captions else ()
        ):
            overlay(canvas, text, edge)
        return canvas

    def record(self, canvas: Canvas) -> SampleMeme:
        """The full record, of a picture that has been drawn."""
        table, captions = self.table, canvas.printed
        words = "".join(f"“{text}”" for text in table.captions)
        told = f"{table.description}配文{words}。" if words else table.description
        return SampleMeme(
            id=self.id,
            file=f"{self.id}.png",
            language="en" if self.id.startswith("en-") else "zh",
            panels=canvas.panels,  # type: ignore[arg-type]
            text=" ".join(own.text for own in captions),
            captions=tuple(
                Caption(text=p.text, panel=p.panel, style=p.style)  # type: ignore[arg-type]
                for p in captions
            ),
            description=table.description,
            meaning=table.meaning,
            knowledge=read_knowledge(table.knowledge),
            questions=tuple(read_ask(self.id, name, lines) for name, lines in table.ask.items()),
            intents=table.intents,
            background=table.background,
            harm=table.harm,
            emotion=self._make_emotion(canvas.panels),
            pun=self._make_pun(),
            sentiment=feel(table.votes),
            explanation=f"{table.literal or told}\n{table.point or table.meaning}",
            chats=tuple(self._make_chat(chat) for chat in table.chats),
        )

    def _make_emotion(self, panels: int) -> SampleEmotion | None:
        feeling = self.table.emotion
        if feeling is None:
            return None
        layout = "SinglePanel" if panels == 1 else "MultiPanel"
        target = TARGETS[feeling.source]
        return SampleEmotion(**feeling.model_dump(), target=target, layout=layout)  # type: ignore[arg-type]

    def _make_pun(self) -> Pun | None:
        pun = self.table.pun
        if pun is None:
            return None
        group, _, role = self.id.partition(".")
        return Pun(
            is_pun=pun.reading is not None,
            kind=pun.kind if pun.reading else "none",  # type: ignore[arg-type]
            caption=pun.caption or self.table.captions[-1],
            reading=pun.reading,
            group=None if self.id.startswith("en-") else group,
            role=role or "pun",  # type: ignore[arg-type]
            note=pun.note,
        )

    def _make_chat(self, chat: Talk) -> SampleChat:
        """A chat with full ids and the pools from which its hard distractors come."""
        text, image, mood = (f"CN900{number}" for number in chat.hard.split())
        a, b, c = (f"CN900{number}" for number in chat.easy.split())
        mine = self.types[self.id]
        kin = tuple(
            sorted(key for key, kind in self.types.items() if kind == mine and key != self.id)
        )
        if mood not in kin:
            raise ValueError(f"{self.id}: {mood} does not share its sentiment type")
        seed = "\n".join(["", *chat.turns, ""])
        pools = Candidates(
            text=self._make_pool(text, seed),
            image=self._make_pool(image, seed[::-1]),
            sentiment=kin,
        )
        return SampleChat(
            topic=chat.topic,  # type: ignore[arg-type]
            turns=chat.turns,
            speaker=chat.speaker,  # type: ignore[arg-type]
            easy=(a, b, c),
            hard=HardOptions(text=text, image=image, sentiment=mood, candidates=pools),
        )

    def _make_pool(self, chosen: str, seed: str) -> tuple[str, ...]:
        """The chosen pun among others, in the order of their ids."""
        others = sorted(self.types.keys() - {self.id, chosen})
        return tuple(sorted([chosen, *random.Random(seed).sample(others, POOL - 1)]))


def find_memes() -> tuple[Meme, ...]:
    """All memes of ``content/``, sorted by id; an id that occurs twice is refused."""
    tables: dict[str, Table] = {}
    for path in sorted(CONTENT.glob("*_*.toml")):
        written = tomllib.loads(path.read_text(encoding="utf-8"))
        blocks = written.pop("blocks", {})
        for key, value in written.items():
            if key in tables:
                raise ValueError(f"{path.name}: the id {key} is used twice")
            if "share" in value:
                value["knowledge"] = blocks[value["share"]] + value["knowledge"]
            tables[key] = Table.model_validate(value)
    types = {
        key: feel(table.votes).type
        for key, table in sorted(tables.items())
        if key.startswith("CN9") and "." not in key
    }
    return tuple(Meme(key, tables[key], types) for key in sorted(tables))


def feel(votes: str) -> Sentiment:
    """A sentiment from its three votes: ``feel("self-negative self-negative self-neutral")``.

    One vote given alone counts three times. The label is the majority (the first vote if none).
    """
    given = votes.split()
    first, second, third = given if len(given) == 3 else given * 3
    target, kind = (second if second == third else first).split("-")
    return Sentiment(target=target, type=kind, votes=(first, second, third))  # type: ignore[arg-type]


def read_ask(meme: str, dimension: str, lines: tuple[str, ...]) -> SampleQuestion:
    """A question from its marked lines; the same question is always shuffled the same way."""
    question = lines[0]
    marked = {mark: [x[2:] for x in lines[1:] if x.startswith(mark)] for mark in "+-!@"}
    options = [*marked["+"], *marked["-"], NONE]
    key = options[0] if marked["+"] else NONE
    random.Random(f"{SEED}/{meme}/{dimension}/{question}").shuffle(options)
    a, b, c, d = options
    (why,) = marked["!"]
    related = tuple(spell(word) for line in marked["@"] for word in line.split())
    return SampleQuestion(
        dimension=dimension,
        question=question,
        options=(a, b, c, d),
        answer=options.index(key),
        explanation=why,
        related=related,
    )


def spell(short: str) -> str:
    """``T/caption`` in full: ``TextualMaterial/caption``."""
    letter, _, name = short.partition("/")
    return f"{LETTERS[letter]}/{name}"


def read_knowledge(text: str) -> tuple[SampleIndividual, ...]:
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
        relations = tuple(SampleRelation(relation=r, target=t) for r, t in links)  # type: ignore[arg-type]
        found.append(
            SampleIndividual(
                dimension=LETTERS[letter],
                name=name,
                label=row[1],
                description=row[2],
                relations=relations,
            )
        )
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
