"""Texts in disguise: written another way so that people still read them, and learnt that way."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memantics.detector.examples import Example
from memantics.detector.features import clean, sound_of

MOST_TARGETS = 4
_EMOJI = ("😀", "🌶", "✨", "🐟", "🍵", "👀")
_Alike = Mapping[str, Sequence[str]]


def space_out(text: str, targets: Sequence[str], seed: int) -> str:
    """Put spaces between the characters of the targets and around them.

    >>> space_out("你真笨", ["笨"], 0)
    '你真 笨 '
    """
    del seed
    for target in targets:
        text = text.replace(target, " " + " ".join(target) + " ")
    return text


def add_emoji(text: str, targets: Sequence[str], seed: int) -> str:
    """Put an emoji before each character of the targets."""
    pick = random.Random(f"{seed}:{text}")
    for target in targets:
        text = text.replace(target, "".join(pick.choice(_EMOJI) + name for name in target))
    return text


def spell_out(text: str, targets: Sequence[str], seed: int) -> str:
    """Write the targets in Latin letters.

    >>> spell_out("你真笨", ["笨"], 0)
    '你真ben'
    """
    del seed
    for target in targets:
        text = text.replace(target, "".join(map(sound_of, target)))
    return text


@dataclass(frozen=True, slots=True)
class Augmented:
    """Examples with copies behind them; ``origins`` has the place of each one's original."""

    examples: tuple[Example, ...]
    origins: tuple[int, ...]


def augment(examples: Sequence[Example], share: float = 0.3, seed: int = 0) -> Augmented:
    """The examples, and disguised copies of a share of them, with their labels.

    Homophones come from the characters of the data itself: quick, and no other package. Copies
    get ids of their own; random characters are disguised, since no detector exists yet.
    """
    pick = random.Random(seed)
    chosen = pick.sample(range(len(examples)), int(share * len(examples)))
    alike = _group_sounds(examples) if chosen else {}
    copies = []
    for number, place in enumerate(chosen):
        example = examples[place]
        text = clean(example.text)
        targets = _draw(text, pick)
        disguised = _AUGMENTERS[number % len(_AUGMENTERS)](text, targets, pick, alike)
        copies.append(replace(example, id=f"{example.id}~{number}", text=disguised))
    return Augmented((*examples, *copies), (*range(len(examples)), *chosen))


def add_copies(
    examples: Sequence[Example], origins: Sequence[int], share: float, seed: int
) -> Augmented:
    """The examples, and copies of a share of them: the text alone, some characters misspelt.

    Characters are swapped for others of the data that sound alike. A copy has no captions: whoever
    learns it must hear the text, and learns to judge by the text alone. ``origins`` says which
    example each one was made from; only those that were made from none are copied.
    """
    numbers = [place for place, origin in enumerate(origins) if place == origin]
    pick = random.Random(f"copies:{seed}")
    chosen = pick.sample(numbers, int(share * len(numbers)))
    alike = _group_sounds(examples) if chosen else {}
    copies = [
        replace(
            examples[place],
            id=f"{examples[place].id}~heard",
            text=_swap(text, _draw(text, pick), pick, alike),
            text_caption="",
            image_caption="",
            ocr="",
            image=None,
        )
        for place in chosen
        if (text := clean(examples[place].text))
    ]
    kept = [place for place in chosen if clean(examples[place].text)]
    return Augmented((*examples, *copies), (*origins, *kept))


def _draw(text: str, pick: random.Random) -> list[str]:
    letters = sorted({name for name in text if name.isalpha()})
    return pick.sample(letters, min(len(letters), MOST_TARGETS))


def _group_sounds(examples: Sequence[Example]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text in sorted({letter for e in examples for letter in e.text if letter >= "\u3400"}):
        groups.setdefault(sound_of(text), []).append(text)
    return groups


def _swap(text: str, targets: Sequence[str], pick: random.Random, alike: _Alike) -> str:
    for target in targets:
        others = [name for name in alike.get(sound_of(target), ()) if name != target]
        if others:
            text = text.replace(target, pick.choice(others))
    return text


_AUGMENTERS: tuple[Callable[[str, Sequence[str], random.Random, _Alike], str], ...] = (
    _swap,
    lambda text, targets, pick, _: add_emoji(text, targets, pick.randrange(10**6)),
    lambda text, targets, _pick, _: space_out(text, targets, 0),
    lambda text, targets, _pick, _: spell_out(text, targets, 0),
)
