"""Near-duplicates between texts, by the characters they share, without comparing every pair."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence


def count_near_duplicates(
    texts: Sequence[str], others: Iterable[str], threshold: float = 0.8
) -> int:
    """How many texts have a near-duplicate: Jaccard of the character sets at the threshold.

    >>> count_near_duplicates(["abcde", "xyz"], ["abcdef", "vw"], 0.8)
    1
    """
    known = {frozenset(other) for other in others}
    rarity = Counter(letter for letters in known for letter in letters)
    index: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for letters in known:
        for letter in _prefix(letters, rarity, threshold):
            index[letter].append(letters)
    return sum(_has_neighbour(frozenset(text), index, rarity, threshold) for text in texts)


def _prefix(letters: frozenset[str], rarity: Counter[str], threshold: float) -> list[str]:
    """The rarest characters of a set, enough that any set near it shares one of them.

    Two sets at the threshold share at least ``threshold * size`` characters, so they cannot
    differ on all of the first ``size - threshold * size + 1`` in one common order.
    """
    ordered = sorted(letters, key=lambda letter: (rarity[letter], letter))
    return ordered[: len(ordered) - math.ceil(threshold * len(ordered) - 1e-9) + 1]


def _has_neighbour(
    letters: frozenset[str],
    index: defaultdict[str, list[frozenset[str]]],
    rarity: Counter[str],
    threshold: float,
) -> bool:
    for letter in _prefix(letters, rarity, threshold):
        for other in index.get(letter, ()):
            small, large = sorted((len(letters), len(other)))
            if small < threshold * large - 1e-9:
                continue
            shared = len(letters & other)
            if shared >= threshold * (small + large - shared) - 1e-9:
                return True
    return False
