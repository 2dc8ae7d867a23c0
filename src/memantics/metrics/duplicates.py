"""Near-duplicates between texts, by what they are made of, without comparing every pair."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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


def list_near_pairs(
    texts: Sequence[str], threshold: float = 0.8, pieces: Pieces = iter
) -> Iterator[tuple[int, int]]:
    """Places of texts that are nearly the same, each with one before it.

    Equal sets of pieces are compared once; texts without a piece are like no other.

    >>> list(list_near_pairs(["abcde", "xyz", "edcba", "abcdef", ""]))
    [(0, 2), (0, 3)]
    """
    first: dict[frozenset[str], int] = {}
    for place, text in enumerate(texts):
        names = frozenset(pieces(text))
        if not names:
            continue
        if names in first:
            yield first[names], place
        else:
            first[names] = place
    places = list(first.values())
    index = _Index(list(first), threshold)
    for number, names in enumerate(first):
        for near in index.list_near(names):
            if near < number:
                yield places[near], places[number]


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
        return next(filter(keep, self.list_near(names)), None)

    def list_near(self, names: frozenset[str]) -> Iterator[int]:
        """Places of all sets at the threshold; one may come twice."""
        for piece in self._prefix(names):
            for place in self._places.get(piece, ()):
                if self._near(names, self._sets[place]):
                    yield place

    def _near(self, names: frozenset[str], other: frozenset[str]) -> bool:
        small, large = sorted((len(names), len(other)))
        if small < self._threshold * large - 1e-9:
            return False
        shared = len(names & other)
        return shared >= self._threshold * (small + large - shared) - 1e-9

    def _prefix(self, names: frozenset[str]) -> list[str]:
        ordered = sorted(names, key=lambda piece: (self._rarity[piece], piece))
        return ordered[: len(ordered) - math.ceil(self._threshold * len(ordered) - 1e-9) + 1]
