"""Near-duplicates between texts, by what they are made of, without comparing every pair."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

Pieces = Callable[[str], Iterable[str]]


def find_near_duplicates(
    texts: Sequence[str],
    others: Sequence[str],
    threshold: float = 0.8,
    pieces: Pieces = iter,
) -> list[int | None]:
    """For each text the place of one of the others that is nearly the same; None: there is none.

    Nearly the same means: the Jaccard index of their sets of pieces (characters, unless told
    otherwise) reaches the threshold.

    >>> find_near_duplicates(["abcde", "xyz"], ["vw", "abcdef"], 0.8)
    [1, None]
    >>> find_near_duplicates(["a cat sat"], ["sat a cat"], 1.0, str.split)
    [0]
    """
    index = _Index([frozenset(pieces(other)) for other in others], threshold)
    return [index.find(frozenset(pieces(text))) for text in texts]


def find_twins(
    texts: Sequence[str],
    groups: Sequence[Hashable],
    threshold: float = 0.8,
    pieces: Pieces = iter,
) -> list[bool]:
    """Whether each text has a near-duplicate in another group.

    >>> find_twins(["abcd", "abcd", "abcde", "xyz"], [1, 1, 2, 3], 0.8)
    [True, True, True, False]
    """
    sets = [frozenset(pieces(text)) for text in texts]
    index = _Index(sets, threshold)

    def is_stranger(place: int, group: Hashable) -> bool:
        return groups[place] != group

    return [
        index.find(names, partial(is_stranger, group=group)) is not None
        for names, group in zip(sets, groups, strict=True)
    ]


class _Index:
    """Sets by their rarest members.

    Two sets at the threshold share at least ``threshold * size`` members, so they cannot differ
    on all of the first ``size - threshold * size + 1`` in one common order; with the rarest first
    hardly any other set is looked at.
    """

    def __init__(self, sets: Sequence[frozenset[str]], threshold: float) -> None:
        self._sets = sets
        self._threshold = threshold
        self._rarity = Counter(piece for names in sets for piece in names)
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, names in enumerate(sets):
            for piece in self._prefix(names):
                self._places[piece].append(place)

    def find(
        self, names: frozenset[str], keep: Callable[[int], bool] = lambda _: True
    ) -> int | None:
        for piece in self._prefix(names):
            for place in self._places.get(piece, ()):
                if self._near(names, self._sets[place]) and keep(place):
                    return place
        return None

    def _near(self, names: frozenset[str], other: frozenset[str]) -> bool:
        small, large = sorted((len(names), len(other)))
        if small < self._threshold * large - 1e-9:
            return False
        shared = len(names & other)
        return shared >= self._threshold * (small + large - shared) - 1e-9

    def _prefix(self, names: frozenset[str]) -> list[str]:
        ordered = sorted(names, key=lambda piece: (self._rarity[piece], piece))
        return ordered[: len(ordered) - math.ceil(self._threshold * len(ordered) - 1e-9) + 1]
