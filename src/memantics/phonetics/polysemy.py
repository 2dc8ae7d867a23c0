"""Puns whose sound does not change: one word, two senses.

What a dictionary tells of the words of a caption: whether they have several senses, a figurative or
slang one, and things one can draw that the word's own meaning does not name (the egg in 混蛋, "a
scoundrel"). With a description of the picture the thing must be seen in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from memantics.phonetics.reading import SecondSense
from memantics.phonetics.senses import (
    has_style,
    is_informal,
    is_listed,
    list_glosses,
    list_senses,
    load_phrases,
    rate_drawable,
)

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
    """The first drawable character of a word whose meaning does not speak of it; else nothing.

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
    """The words of a text, each the longest that the dictionary has; what it has not alone.

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
    """The words of a caption that may be meant in two ways, with what the dictionary says."""
    found = []
    for word in dict.fromkeys(words):
        senses, hidden = list_senses(word), find_hidden_thing(word)
        marked = has_style(word, "figurative") or is_informal(word) or len(senses) >= _MANY
        if len(word) > 1 and senses and (marked or hidden):
            seen = (f"{hidden} alone is {list_glosses(hidden)[0]}",) if hidden else ()
            found.append(SecondSense(word, "; ".join((*senses[:_MANY], *seen))))
    return tuple(found)


def describe_senses(words: Sequence[str]) -> dict[str, float]:
    """Numbers for a detector, most of them shares of the words of two characters and more.

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
