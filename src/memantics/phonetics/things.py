"""Things one can draw: characters that name them, with English words for them.

Puns in memes write the character of what the picture shows. The list is our own: everyday food,
plants, animals, things, weather, places and elements. Characters beyond it are judged by their
radical, which the order of the Unicode block gives.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources

# Blocks of the Unicode table whose radical means a plant, an animal, food, a tool, stone, rain…
_RADICALS = (
    *((0x6728, 0x6B1F), (0x706B, 0x7229), (0x725B, 0x738A), (0x74DC, 0x74E5), (0x77F3, 0x7939)),
    *((0x79BE, 0x7A73), (0x7AF9, 0x7CF7), (0x7F8A, 0x7FBC), (0x8278, 0x883F), (0x8C46, 0x8C9C)),
    *((0x9149, 0x91C5), (0x91D1, 0x9576), (0x96E8, 0x9751), (0x98DF, 0x9995), (0x99AC, 0x9AD7)),
    *((0x9B5A, 0x9E75), (0x9E7F, 0x9EBA), (0x9F20, 0x9F3A), (0x9F9C, 0x9F9F)),
)


@cache
def _glosses() -> dict[str, tuple[str, ...]]:
    file = resources.files("memantics.phonetics") / "things.txt"
    entries = file.read_text(encoding="utf-8").replace("\n", "|").split("|")
    pairs = (entry.split(" ", 1) for entry in entries if entry)
    return {character: tuple(words.split(",")) for character, words in pairs}


def list_glosses(character: str) -> tuple[str, ...]:
    """English words for a thing; nothing where the character is not in our list.

    >>> list_glosses("鱼"), list_glosses("的")
    (('fish',), ())
    """
    return _glosses().get(character, ())


@lru_cache(maxsize=16384)
def rate_drawable(character: str) -> float:
    """How likely a character names something one can draw: 1 listed, 0.5 by its radical, else 0.

    >>> rate_drawable("鱼"), rate_drawable("蟮"), rate_drawable("的")
    (1.0, 0.5, 0.0)
    """
    if character in _glosses():
        return 1.0
    code = ord(character)
    return 0.5 if any(low <= code <= high for low, high in _RADICALS) else 0.0
