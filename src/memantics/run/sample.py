"""Seeded samples: some memes with all their items, the same ones for every task and model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from memantics.core.records import Item


def draw_memes(items: Iterable[Item], count: int, seed: int) -> tuple[frozenset[str], int]:
    """Memes drawn until they hold ``count`` items, and how many items they hold.

    Memes are kept whole, since figures over pairs and triples need all of a meme; the last one
    may therefore bring more items than asked. The draw goes by the hash of seed and meme, so that
    tasks about the same memes get the same ones, whatever else the data hold.

    >>> from memantics.core.records import Form
    >>> items = [Item(str(n), f"meme-{n // 2}", "", Form("", ())) for n in range(20)]
    >>> memes, held = draw_memes(items, 5, seed=1)
    >>> len(memes), held
    (3, 6)
    """
    sizes = Counter(item.group for item in items)
    drawn: set[str] = set()
    held = 0
    for meme in sorted(sizes, key=lambda meme: _rank(meme, seed)):
        if held >= count:
            break
        drawn.add(meme)
        held += sizes[meme]
    return frozenset(drawn), held


def _rank(meme: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{meme}".encode("utf-8", "surrogatepass")).digest()
