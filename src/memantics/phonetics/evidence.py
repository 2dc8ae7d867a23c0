"""What the picture says: support for the literal reading, and words with two meanings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memantics.phonetics.caption import simplify
from memantics.phonetics.lattice import Lattice, Path
from memantics.phonetics.polysemy import cut_words
from memantics.phonetics.reading import DoubleMeaning
from memantics.phonetics.senses import list_glosses, rate_drawable

_MAX_DESCRIPTION = 4000
_QUOTED = re.compile(r"[“\"「『‘《][^”\"」』’》]{1,120}[”\"」』’》]")
_LATIN_WORD = re.compile(r"[a-z]+")
_TOO_COMMON = -3.4  # words this common are in any description


def clean_description(description: str, caption: str) -> str:
    """The description without what it quotes: the caption must not be its own evidence.

    >>> clean_description("一条鱼，写着“年年有鱼”。", "年年有鱼")
    '一条鱼，写着 。'
    """
    text = _QUOTED.sub(" ", description[:_MAX_DESCRIPTION])
    return text.replace(caption, " ") if len(caption) > 1 else text


def find_in_description(character: str, description: str) -> str:
    """The word of a description that names what a character names; empty where there is none.

    >>> find_in_description("鱼", "a steamer with a fish"), find_in_description("鱼", "一条鱼")
    ('fish', '鱼')
    >>> find_in_description("蒸", "steamed buns"), find_in_description("鱼", "一只猫")
    ('steamed', '')
    """
    if character in description:
        return character
    words = _LATIN_WORD.findall(description.lower())
    for gloss in list_glosses(character):
        for word in words:
            close = len(word) - len(gloss) <= 3 and len(gloss) >= 4 and word.startswith(gloss)
            if word == gloss or word == gloss + "s" or close:
                return str(word)
        if " " in gloss and gloss in description.lower():
            return gloss
    return ""


def find_evidence(caption: str, description: str, lattice: Lattice) -> dict[str, str]:
    """Characters of the caption that name things in the picture → the description's words."""
    text = clean_description(description, caption)
    found = {
        character: find_in_description(character, text)
        for character in map(simplify, dict.fromkeys(caption))
        if character.isalpha() and lattice.model.weigh(character) < _TOO_COMMON
    }
    return {character: word for character, word in found.items() if word}


PICTURE_FEATURES = (
    *("evidence", "shown_rarest", "shown_share", "shown_thing", "shown_word", "similar"),
)
_EVERYDAY = -3.0  # characters that are commoner say nothing, wherever they stand


def describe_picture(
    caption: str, description: str, changed: Sequence[str], lattice: Lattice
) -> dict[str, float]:
    """How much of the caption is seen: numbers for a detector, all but ``similar``.

    ``evidence`` counts characters that are heard as others (``changed``) and shown, two at most;
    the rest is about all characters and words: how rare the rarest one shown is, their sum by
    length, the rarest that can be drawn, and the longest word.
    """
    text, simple = clean_description(description, caption), "".join(map(simplify, caption))
    pictured = find_evidence(caption, description, lattice)
    letters = [name for name in dict.fromkeys(simple) if name.isalpha() and not name.isascii()]
    rare = {
        letter: max(0.0, _EVERYDAY - lattice.model.weigh(letter))
        for letter in letters
        if find_in_description(letter, text)
    }
    words = [w for w in cut_words(simple) if len(w) > 1 and not w.isascii()]
    shown = [len(word) for word in words if find_in_description(word, text)]
    return {
        "evidence": float(min(2, len({pictured[c] for c in changed if c in pictured}))),
        "shown_rarest": max(rare.values(), default=0.0),
        "shown_share": sum(rare.values()) / max(len(letters), 1),
        "shown_thing": max((r for c, r in rare.items() if rate_drawable(c)), default=0.0),
        "shown_word": float(max(shown, default=0)),
    }


def find_double_meanings(
    plain: Path, description: str, caption: str, lattice: Lattice
) -> tuple[DoubleMeaning, ...]:
    """Words that stand in the caption with one meaning and in the picture with another.

    Without knowledge of meanings this is only a hint: the word is in the picture, and the caption
    uses it, at best inside a longer expression.
    """
    text = clean_description(description, caption)
    found: dict[str, DoubleMeaning] = {}
    for piece in plain.pieces:
        whole = piece.word
        parts = [whole] if len(whole) == 1 else [whole, *whole]
        for part in parts:
            rarity = -lattice.model.weigh(part) if len(part) <= 6 else 0.0
            if rarity <= -_TOO_COMMON or not part.isalpha() or part.isascii():
                continue
            if len(part) == 1 and not rate_drawable(part):
                continue
            seen = part if part in text else find_in_description(part, text)
            if seen and part not in found:
                inside = whole if part != whole else ""
                strength = min(1.0, (rarity + _TOO_COMMON) / 3 + 0.2 * bool(inside))
                found[part] = DoubleMeaning(part, seen, round(strength, 3), inside)
                if part == whole:
                    break
    return tuple(sorted(found.values(), key=lambda d: -d.strength))
