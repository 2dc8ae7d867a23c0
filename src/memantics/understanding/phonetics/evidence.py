"""Evidence from the image description: support for the literal reading, and double meanings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from memantics.understanding.phonetics.caption import simplify
from memantics.understanding.phonetics.lattice import Lattice, Path
from memantics.understanding.phonetics.reading import DoubleMeaning, SecondSense
from memantics.understanding.phonetics.senses import (
    has_style,
    is_informal,
    is_listed,
    list_glosses,
    list_senses,
    load_phrases,
    rate_drawable,
)

# Polysemy puns have one word with two senses. The features describe the caption's words: several
# senses, figurative or slang senses, and drawable things that the word's meaning does not name (the
# egg in 混蛋, "a scoundrel"). With a description, the thing must be visible in the image.

SENSE_FEATURES = (
    "many_senses",
    "figurative",
    "slang",
    "set_phrase",
    "hidden_thing",
    "single",
)
_MANY, _LONGEST = 3, 8


@lru_cache(maxsize=8192)
def find_hidden_thing(word: str) -> str:
    """Find the first drawable character in a word whose meaning does not mention it; else empty.

    >>> find_hidden_thing("混蛋"), find_hidden_thing("鸡蛋"), find_hidden_thing("我们")
    ('蛋', '', '')
    """
    senses = " ".join(list_senses(word)).lower()
    if len(word) < 2 or not senses:
        return ""
    for character in word:
        glosses = list_glosses(character) if rate_drawable(character) == 1.0 else ()
        if glosses and not any(gloss.split()[-1] in senses for gloss in glosses):
            return character
    return ""


def cut_words(text: str) -> list[str]:
    """Split a text into the longest dictionary words; other characters stay alone.

    >>> cut_words("我在打酱油")
    ['我', '在', '打酱油']
    """
    found, start = [], 0
    while start < len(text):
        sizes = range(min(_LONGEST, len(text) - start), 1, -1)
        size = next((n for n in sizes if is_listed(text[start : start + n])), 1)
        found.append(text[start : start + size])
        start += size
    return found


def list_second_senses(words: Sequence[str]) -> tuple[SecondSense, ...]:
    """List the words of a caption with two possible senses, with their dictionary entries."""
    found = []
    for word in dict.fromkeys(words):
        senses, hidden = list_senses(word), find_hidden_thing(word)
        marked = has_style(word, "figurative") or is_informal(word) or len(senses) >= _MANY
        if len(word) > 1 and senses and (marked or hidden):
            seen = (f"{hidden} alone means {list_glosses(hidden)[0]}",) if hidden else ()
            found.append(SecondSense(word, "; ".join((*senses[:_MANY], *seen))))
    return tuple(found)


def describe_senses(words: Sequence[str]) -> dict[str, float]:
    """Compute sense features, mostly proportions of the words with two or more characters.

    >>> describe_senses(["我", "摸鱼"])["figurative"], describe_senses([])["figurative"]
    (1.0, 0.0)
    """
    long = [word for word in words if len(word) > 1 and not word.isascii()]
    count = max(len(long), 1)
    phrases = load_phrases()
    text = "".join(words)
    covered = any(text[i : i + n] in phrases for n in range(4, 9) for i in range(len(text) - n + 1))
    return {
        "many_senses": sum(len(list_senses(word)) >= _MANY for word in long) / count,
        "figurative": sum(has_style(word, "figurative") for word in long) / count,
        "slang": sum(map(is_informal, long)) / count,
        "set_phrase": float(covered),
        "hidden_thing": sum(bool(find_hidden_thing(word)) for word in long) / count,
        "single": sum(len(word) == 1 for word in words) / max(len(words), 1),
    }


_MAX_DESCRIPTION = 4000
_QUOTED = re.compile(r"[“\"「『‘《][^”\"」』’》]{1,120}[”\"」』’》]")
_LATIN_WORD = re.compile(r"[a-z]+")
# maximum log10 probability of a word; more frequent words occur in any description
_TOO_COMMON = -3.4


def clean_description(description: str, caption: str) -> str:
    """Remove quoted text from a description: the caption must not count as evidence for itself.

    >>> clean_description("一条鱼，写着“年年有鱼”。", "年年有鱼")
    '一条鱼，写着 。'
    """
    text = _QUOTED.sub(" ", description[:_MAX_DESCRIPTION])
    return text.replace(caption, " ") if len(caption) > 1 else text


def find_in_description(character: str, description: str) -> str:
    """Find the word of a description that has a character's meaning; empty if there is none.

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
    """Map characters of a caption to words of the image description with the same meaning."""
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
_EVERYDAY = -3.0  # maximum log10 probability; more frequent characters are not evidence


def describe_picture(
    caption: str, description: str, changed: Sequence[str], lattice: Lattice
) -> dict[str, float]:
    """Compute features of how many words of the caption are visible in the image.

    The feature ``similar`` is computed elsewhere.

    ``evidence`` counts replaced characters (``changed``) that are visible, at most two. The other
    features cover all characters and words: the rarity of the rarest visible one, their sum by
    length, the rarest drawable one and the longest word.
    """
    text, simple = clean_description(description, caption), "".join(map(simplify, caption))
    pictured = find_evidence(caption, description, lattice)
    letters = [
        letter for letter in dict.fromkeys(simple) if letter.isalpha() and not letter.isascii()
    ]
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
    """Find caption words that are visible in the image, with possibly another meaning.

    This is a weak signal: the function does not compare meanings. It checks that a word is visible
    and that the caption uses it, perhaps inside a longer expression.
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
