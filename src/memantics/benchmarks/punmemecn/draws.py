"""Which items are asked, how often, and in which order: every draw of the authors, and ours.

All draws are made up front from ids alone, so a run that is resumed, limited, or made on part of
the release asks each item as the whole run does.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypeVar

from memantics.benchmarks.punmemecn.records import TARGETS, PunMeme

# The groups and the chat that the authors show as examples and leave out of evaluation.
DETECTION_EXAMPLES = frozenset({"CN00601"})
SENTIMENT_EXAMPLES = frozenset({"CN00601", "CN00603", "CN00604"})
CHAT_EXAMPLE = "chat_00100"
PER_TARGET = 400
PUNS = 653
CHATS = 2008
TRANSCRIBED = 200
_SEED = 2025
_EXAMPLE_SEED = 2024

Order = tuple[int, ...]
T = TypeVar("T")


def is_official(meme: str) -> bool:
    """Whether an id is one of the release's.

    >>> is_official("CN00653"), is_official("CN90001.similar_text")
    (True, False)
    """
    return 1 <= int(meme[2:7]) <= PUNS


def balance(memes: Iterable[PunMeme], per_target: int = PER_TARGET) -> list[tuple[PunMeme, int]]:
    """As many items for each target: whole repetitions, then a sample of the remainder.

    Each comes with the number of its repetition, from 1. Targets that no meme has stay empty.
    The order is that of the authors' ids as text (``CN00001.png@1``).
    """
    chance = random.Random(_SEED)
    pool = sorted(memes, key=lambda meme: meme.file)
    drawn: list[tuple[PunMeme, int]] = []
    for target in TARGETS:
        group = [meme for meme in pool if meme.target == target]
        if not group:
            continue
        whole, rest = divmod(per_target, len(group))
        drawn += [(meme, turn) for turn in range(1, whole + 1) for meme in group]
        if rest:
            drawn += [(meme, whole + 1) for meme in chance.sample(group, rest)]
    return sorted(drawn, key=lambda pair: f"{pair[0].file}@{pair[1]}")


def draw_transcribed() -> tuple[str, ...]:
    """The puns on which the authors tried transcription and pinyin, in their order.

    >>> len(set(draw_transcribed()))
    200
    """
    numbers = _shuffle_twice(list(range(1, PUNS + 1)), random.Random(_SEED))
    return tuple(f"CN{number:05d}" for number in numbers[:TRANSCRIBED])


@cache
def authors_orders() -> dict[str, Order]:
    """The authors' order of options, by chat: places in [the right one, its distractors].

    One generator shuffles the chats twice and then each chat's options twice, in that order of
    chats. A shuffle depends on the length of a list and not on what is in it, so this needs no
    data. Their own resumed runs skipped shuffles and got other orders.
    """
    chance = random.Random(_SEED)
    names = (f"chat_{number:05d}" for number in range(1, CHATS + 1))
    chats = _shuffle_twice([name for name in names if name != CHAT_EXAMPLE], chance)
    orders = {chat: tuple(_shuffle_twice([0, 1, 2, 3], chance)) for chat in chats}
    orders[CHAT_EXAMPLE] = tuple(_shuffle_twice([0, 1, 2, 3], random.Random(_EXAMPLE_SEED)))
    return orders


def seeded_order(chat: str, seed: int, options: int = 4) -> Order:
    """Our order of options: a draw that depends on the chat's id and the seed, on nothing else.

    >>> seeded_order("chat_00001", 2025) == seeded_order("chat_00001", 2025)
    True
    """
    order = list(range(options))
    random.Random(f"{seed}:{chat}").shuffle(order)
    return tuple(order)


def place(order: Order, things: Sequence[str]) -> list[str]:
    """The things in that order.

    >>> place((2, 0, 1), ["right", "wrong", "worse"])
    ['worse', 'right', 'wrong']
    """
    return [things[index] for index in order]


def _shuffle_twice(things: list[T], chance: random.Random) -> list[T]:
    chance.shuffle(things)
    chance.shuffle(things)
    return things
