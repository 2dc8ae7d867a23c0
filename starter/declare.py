"""How a meme is declared: a drawing function and its annotations.

A content module (``starter/content/en_*.py`` or ``zh_*.py``) exposes ``MEMES: tuple[Meme, ...]``.
File, language, number of panels, captions and text are taken from the id and the drawing, so that
they cannot differ from what is seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from memantics.starter import (
    Caption,
    Chat,
    Dimension,
    Emotion,
    Harm,
    Individual,
    Pun,
    Question,
    Relation,
    Sentiment,
    StarterMeme,
)
from starter.draw import Canvas

Layout = Literal["SinglePanel", "MultiPanel"]
# Of many seeds, one that spreads the keys evenly over the four places in both languages.
SEED = 35
NONE = "None of the others"
HARMLESS = Harm(False, "none", False, False, False, 0)


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as its author writes it.

    ``right`` is the key's index among three options, or None when the key is "None of the
    others". The order is shuffled per meme.
    """

    dimension: Dimension
    question: str
    options: tuple[str, str, str]
    right: int | None
    explanation: str
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notes:
    """All annotations of a meme that the drawing does not give."""

    description: str
    meaning: str
    knowledge: tuple[Individual, ...]
    questions: tuple[Ask, Ask]
    intents: tuple[str, ...]
    sentiment: Sentiment
    explanation: str
    background: tuple[str, ...] = ()
    harm: Harm = HARMLESS
    emotion: Emotion | None = None
    pun: Pun | None = None
    chats: tuple[Chat, ...] = ()


@dataclass(frozen=True, slots=True)
class Meme:
    """One meme: id (= file name without ``.png``), drawing, annotations."""

    id: str
    draw: Callable[[], Canvas]
    notes: Notes


def know(
    dimension: Dimension, name: str, label: str, description: str, *links: tuple[str, str] | str
) -> Individual:
    """An individual of the knowledge base.

    A link is "relation Dimension/name" or the pair of both:
    ``know("Scene", "waiting", "…", "…", "hasParticipant VisualMaterial/cat")``.
    """
    pairs = (link.split(" ") if isinstance(link, str) else link for link in links)
    relations = tuple(Relation(r, t) for r, t in pairs)  # type: ignore[arg-type]
    return Individual(dimension, name, label, description, relations)


def feel(votes: str) -> Sentiment:
    """A sentiment from its three votes: ``feel("self-negative self-negative self-neutral")``.

    One vote given alone counts three times. The label is the majority (the first vote if none).
    """
    given = votes.split()
    first, second, third = given if len(given) == 3 else given * 3
    target, kind = (second if second == third else first).split("-")
    return Sentiment(target, kind, (first, second, third))  # type: ignore[arg-type]


def settle(meme: str, ask: Ask) -> Question:
    """Add "None of the others" and shuffle, always the same way for the same question."""
    key = NONE if ask.right is None else ask.options[ask.right]
    options = [*ask.options, NONE]
    random.Random(f"{SEED}/{meme}/{ask.dimension}/{ask.question}").shuffle(options)
    a, b, c, d = options
    return Question(
        ask.dimension, ask.question, (a, b, c, d), options.index(key), ask.explanation, ask.related
    )


def make_record(meme: Meme, canvas: Canvas) -> StarterMeme:
    """The full record of a meme whose picture has been drawn."""
    captions = tuple(Caption(p.text, p.panel, p.style) for p in canvas.printed)  # type: ignore[arg-type]
    n = meme.notes
    layout: Layout = "SinglePanel" if canvas.panels == 1 else "MultiPanel"
    return StarterMeme(
        id=meme.id,
        file=f"{meme.id}.png",
        language="en" if meme.id.startswith("en-") else "zh",
        panels=canvas.panels,  # type: ignore[arg-type]
        text=" ".join(c.text for c in captions),
        captions=captions,
        description=n.description,
        meaning=n.meaning,
        knowledge=n.knowledge,
        questions=tuple(settle(meme.id, ask) for ask in n.questions),
        intents=n.intents,
        background=n.background,
        harm=n.harm,
        emotion=n.emotion and replace(n.emotion, layout=layout),
        pun=n.pun,
        sentiment=n.sentiment,
        explanation=n.explanation,
        chats=n.chats,
    )
