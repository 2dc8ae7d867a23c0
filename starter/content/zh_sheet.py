"""Chinese memes in a short notation, unfolded into declarations.

Knowledge and questions use the notation of ``sheets``; a line that begins with blanks continues
the one before. Knowledge and questions are in English, as in the benchmarks they feed; description,
meaning, explanation and chats are Chinese.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from memantics.starter import Candidates, Emotion, HardOptions, Harm
from memantics.starter import Chat as FullChat
from memantics.starter import Pun as FullPun
from starter.content.sheets import TARGETS, read_ask, read_knowledge
from starter.declare import HARMLESS, Ask, Meme, Notes, feel
from starter.draw import Canvas, add_bar, overlay

Topic = Literal["sports", "entertainment", "technology", "games", "work", "daily"]
Visual = Literal["Template_StylizedMeme", "Object_Animal_Dominant", "Cartoon_Anime"]
Role = Literal["pun", "similar_image", "similar_text"]

# Distractors need every pun's sentiment type; a pun that contradicts this table is refused.
TYPES = {
    "CN90001": "negative",
    "CN90002": "negative",
    "CN90003": "neutral",
    "CN90004": "positive",
    "CN90005": "neutral",
    "CN90006": "positive",
    "CN90007": "positive",
    "CN90008": "negative",
    "CN90009": "negative",
    "CN90010": "neutral",
}
POOL = 6
EDGES: tuple[Literal["top", "bottom"], ...] = ("top", "bottom")


@dataclass(frozen=True, slots=True)
class Pun:
    """The intended reading of the caption (None: no pun) and one line why."""

    reading: str | None
    note: str
    kind: Literal["homophone", "polysemy"] = "homophone"


@dataclass(frozen=True, slots=True)
class Shift:
    """The emotion to turn round, the new caption and what to change in the picture."""

    source: Literal["sad", "angry", "tense", "bored"]
    rewritten: str
    plan: str
    visual: Visual = "Object_Animal_Dominant"
    polarity: Literal["Negative", "Neutral", "Positive"] = "Negative"


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat that the meme answers; ``easy`` and ``hard`` name three other puns by number.

    ``hard`` fills the places text, image and sentiment, in this order. All are chosen by hand so
    that none of them would be a fitting answer: only the sentiment one is held to share the type,
    text and image neighbours are not measured, and the rest of their pools is drawn with a seed.
    """

    topic: Topic
    turns: str
    speaker: Literal["甲", "乙"]
    easy: str
    hard: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """One meme as its author writes it."""

    id: str
    scene: Callable[[], Canvas]
    description: str
    meaning: str
    point: str
    knowledge: str
    questions: str
    intents: str
    votes: tuple[str, str, str]
    captions: tuple[str, ...] = ()
    bar: bool = False
    background: str = ""
    harm: str = "none"
    emotion: Shift | None = None
    pun: Pun | None = None
    chats: tuple[Chat, ...] = ()


def unfold(sheets: tuple[Sheet, ...]) -> tuple[Meme, ...]:
    """Declarations of all sheets of a module."""
    return tuple(Meme(sheet.id, make_draw(sheet), make_notes(sheet)) for sheet in sheets)


def make_draw(sheet: Sheet) -> Callable[[], Canvas]:
    """The scene with its captions: the last below, one before it above."""

    def draw() -> Canvas:
        canvas = sheet.scene()
        if sheet.bar:
            (text,) = sheet.captions
            return add_bar(canvas, text, 110)
        for edge, text in zip(EDGES[2 - len(sheet.captions) :], sheet.captions, strict=True):
            overlay(canvas, text, edge)
        return canvas

    return draw


def make_notes(sheet: Sheet) -> Notes:
    """All annotations of one sheet."""
    group, _, role = sheet.id.partition(".")
    sentiment = feel(" ".join(sheet.votes))
    if sheet.pun and not role and TYPES[group] != sentiment.type:
        raise ValueError(f"{sheet.id}: sentiment {sentiment.type} is not that of the table")
    words = "".join(f"“{text}”" for text in sheet.captions)
    literal = f"{sheet.description}配文{words}。" if words else sheet.description
    return Notes(
        description=sheet.description,
        meaning=sheet.meaning,
        knowledge=read_knowledge(join_lines(sheet.knowledge)),
        questions=read_questions(sheet.questions),
        intents=tuple(sheet.intents.strip().splitlines()),
        sentiment=sentiment,
        explanation=f"{literal}\n{sheet.point}",
        background=tuple(sheet.background.strip().splitlines()),
        harm=read_harm(sheet.harm),
        emotion=make_emotion(sheet.emotion) if sheet.emotion else None,
        pun=make_pun(sheet, group, role or "pun") if sheet.pun else None,
        chats=tuple(make_chat(group, chat) for chat in sheet.chats),
    )


def join_lines(text: str) -> str:
    r"""Join continued lines.

    >>> join_lines("T a | b | c\n  d")
    'T a | b | c d'
    """
    return text.strip().replace("\n  ", " ")


def read_questions(text: str) -> tuple[Ask, Ask]:
    """The two questions of a block; ``? Dimension | question`` begins each."""
    blocks = [block.strip() for block in join_lines(text).split("? ", 1)[1].split("\n? ")]
    asks = []
    for block in blocks:
        heading, *lines = block.splitlines()
        dimension, question = (part.strip() for part in heading.split("|"))
        asks.append(read_ask(dimension, [question, *lines]))
    first, second = asks
    return first, second


def read_harm(text: str) -> Harm:
    """``"offence text"``, ``"offence fusion"``, ``"targeted text 3"`` (3: the target's code).

    >>> read_harm("dispirited text").harmful
    True
    """
    kind, *rest = text.split()
    if kind == "none":
        return HARMLESS
    target = sum(int(part) for part in rest if part.isdigit())
    facts = {name: name in rest for name in ("text", "image", "fusion")}
    return Harm(harmful=True, type=kind, target=target, **facts)  # type: ignore[arg-type]


def make_emotion(shift: Shift) -> Emotion:
    """The full emotion; the layout is set when the picture is drawn."""
    return Emotion(
        source=shift.source,
        target=TARGETS[shift.source],  # type: ignore[arg-type]
        rewritten=shift.rewritten,
        plan=shift.plan,
        visual_type=shift.visual,
        polarity=shift.polarity,
        layout="SinglePanel",
    )


def make_pun(sheet: Sheet, group: str, role: str) -> FullPun:
    """The full pun part of a sheet."""
    if sheet.pun is None or role not in get_args(Role):
        raise ValueError(f"{sheet.id}: not a member of a pun group")
    reading = sheet.pun.reading
    full = FullPun(
        is_pun=reading is not None,
        kind=sheet.pun.kind,
        caption=sheet.captions[-1],
        reading=reading,
        group=group,
        role=role,  # type: ignore[arg-type]
        note=sheet.pun.note,
    )
    return full if reading else replace(full, kind="none")


def make_chat(meme: str, chat: Chat) -> FullChat:
    """A chat with full ids and the pools from which its hard distractors come."""
    text, image, mood = (f"CN900{number}" for number in chat.hard.split())
    a, b, c = (f"CN900{number}" for number in chat.easy.split())
    kin = [key for key, kind in TYPES.items() if kind == TYPES[meme] and key != meme]
    if mood not in kin:
        raise ValueError(f"{meme}: {mood} does not share its sentiment type")
    return FullChat(
        topic=chat.topic,
        turns=tuple(chat.turns.strip().splitlines()),
        speaker=chat.speaker,
        easy=(a, b, c),
        hard=HardOptions(
            text=text,
            image=image,
            sentiment=mood,
            candidates=Candidates(
                text=make_pool(meme, text, chat.turns),
                image=make_pool(meme, image, chat.turns[::-1]),
                sentiment=tuple(sorted(kin)),
            ),
        ),
    )


def make_pool(meme: str, chosen: str, seed: str) -> tuple[str, ...]:
    """The chosen pun among others, in the order of their ids."""
    others = sorted(TYPES.keys() - {meme, chosen})
    return tuple(sorted([chosen, *random.Random(seed).sample(others, POOL - 1)]))
