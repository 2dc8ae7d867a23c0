"""Groups of dependent items: joining, group-disjoint folds, label leakage and near-duplicate texts.

Near-duplicates are found with an index over the tokens of texts, without comparing every pair.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np

from memantics.metrics.interval import bootstrap, sum_by_cluster
from memantics.metrics.rounding import Floats, Ints, settle


def join_pairs(size: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each index the smallest index it is connected to, directly or through other pairs.

    >>> join_pairs(5, [(0, 3), (4, 3)])
    [0, 1, 2, 0, 0]
    """
    parents = list(range(size))
    for one, other in pairs:
        first, second = _root(parents, one), _root(parents, other)
        parents[max(first, second)] = min(first, second)
    return [_root(parents, place) for place in range(size)]


def _root(parents: list[int], member: int) -> int:
    while parents[member] != member:
        parents[member] = parents[parents[member]]
        member = parents[member]
    return member


def deal_groups(strata: Sequence[str], groups: Sequence[Hashable], count: int) -> Ints:
    """Make group-disjoint folds with balanced strata, starting with the largest groups.

    Each group goes to the fold in which the counts of all strata stay most even (as in
    scikit-learn's ``StratifiedGroupKFold``). Groups of equal size are ordered by a hash, so that
    the order of the items has no influence.

    >>> deal_groups(["a", "a", "b", "b"], [1, 2, 3, 3], 2).tolist()
    [1, 0, 0, 0]
    """
    names = {name: place for place, name in enumerate(sorted(set(strata)))}
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    totals = np.bincount([names[name] for name in strata], minlength=len(names)).astype(float)
    held = np.zeros((count, len(names)))
    folds = np.zeros(len(strata), np.int64)

    def rank(item: tuple[Hashable, list[int]]) -> tuple[int, bytes]:
        return -len(item[1]), hashlib.sha256(str(item[0]).encode()).digest()

    for _, places in sorted(members.items(), key=rank):
        more = np.bincount([names[strata[place]] for place in places], minlength=len(names))
        # Increase of the squared stratum sizes of each fold; the smallest is the best fold.
        growth = settle((((held + more) / totals) ** 2 - (held / totals) ** 2).sum(axis=1))
        fold = min(range(count), key=lambda n: (growth[n], held[n].sum(), n))
        held[fold] += more
        folds[places] = fold
    return folds


def vote_in_groups(labels: Ints, groups: Sequence[Hashable], classes: int) -> Ints:
    """Predict the label that is most over-represented among other items of the group; -1 for none.

    >>> vote_in_groups(np.array([0, 0, 1, 1, 1, 0]), list("aaabbc"), 2).tolist()
    [0, 0, 0, 1, 1, -1]
    """
    order: dict[Hashable, int] = {}
    places = np.array([order.setdefault(group, len(order)) for group in groups], np.int64)
    counts = np.bincount(places * classes + labels, minlength=len(order) * classes)
    others = counts.reshape(len(order), classes)[places].astype(float)
    others[np.arange(len(labels)), labels] -= 1
    return _choose(others, labels, classes)


def vote_beside(labels: Ints, classes: int, near: int = 10) -> Ints:
    """Predict the label that is most frequent among ``near`` neighbours on each side in file order.

    >>> vote_beside(np.array([0, 0, 0, 1, 1, 1]), 2, 1).tolist()
    [0, 0, 0, 0, 1, 1]
    """
    marks = np.eye(classes)[labels]
    sums = np.vstack([np.zeros(classes), np.cumsum(marks, axis=0)])
    places = np.arange(len(labels))
    low, high = np.maximum(0, places - near), np.minimum(len(labels), places + near + 1)
    return _choose(sums[high] - sums[low] - marks, labels, classes)


def _choose(others: Floats, labels: Ints, classes: int) -> Ints:
    """Return the class with the largest proportion of its items among the given neighbours.

    Class sizes include the predicted item itself; otherwise its own class would be smaller and win
    every tie.
    """
    sizes = np.maximum(np.bincount(labels, minlength=classes), 1)
    said: Ints = np.asarray(settle(others / sizes).argmax(axis=1), np.int64)
    said[others.sum(axis=1) == 0] = -1
    return said


@dataclass(frozen=True, slots=True)
class GroupVote:
    """Balanced accuracy of predictions from groups, with interval, shuffled-label value and p."""

    value: float
    low: float
    high: float
    shuffled: float
    p: float
    voted: int


def rate_recalls(labels: Ints, said: Ints, classes: int) -> float:
    """Balanced accuracy: the mean recall of the classes that occur.

    >>> rate_recalls(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    0.75
    """
    hits = np.bincount(labels[said == labels], minlength=classes)
    sizes = np.bincount(labels, minlength=classes)
    known = sizes > 0
    return float((hits[known] / sizes[known]).mean())


def weigh_vote(
    labels: Ints,
    groups: Sequence[Hashable],
    classes: int,
    *,
    beside: int = 0,
    resamples: int = 200,
    seed: int = 0,
) -> GroupVote | None:
    """Measure how well groups predict the label; None if every group has one item only.

    With ``beside`` the items form a sequence, the neighbours in it predict the label, and
    ``groups`` are used for the interval only. The p-value compares the result with shuffled labels
    through a normal approximation, since 200 shuffles cannot give a p-value below 0.005.
    """

    def vote(given: Ints) -> Ints:
        if beside:
            return vote_beside(given, classes, beside)
        return vote_in_groups(given, groups, classes)

    said = vote(labels)
    voted = said >= 0
    if voted.sum() < 2 or len(set(labels[voted].tolist())) < 2:
        return None
    value = rate_recalls(labels[voted], said[voted], classes)
    rng = np.random.default_rng(seed)
    null = []
    for _ in range(resamples):
        dealt = rng.permutation(labels)
        null.append(rate_recalls(dealt[voted], vote(dealt)[voted], classes))
    spread = max(float(np.std(null)), 1e-9)
    centre = float(np.mean(null))
    p = 1 - NormalDist().cdf((value - centre) / spread)
    kept = [group for group, flag in zip(groups, voted.tolist(), strict=True) if flag]
    marks = np.eye(classes)[labels[voted]]
    right = marks * (said[voted] == labels[voted])[:, None]
    sums = sum_by_cluster(np.hstack([right, marks]), kept)
    low, high = bootstrap(sums, lambda table: _recall(table, classes)) or (0.0, 1.0)
    return GroupVote(value, low, high, centre, p if math.isfinite(p) else 1.0, int(voted.sum()))


def _recall(table: Floats, classes: int) -> Floats:
    """Mean recall of each bootstrap resample, over the classes that it contains."""
    recalls = table[:, :classes] / table[:, classes:]
    return np.asarray(np.nanmean(recalls, axis=1))


Pieces = Callable[[str], Iterable[str]]


def find_near_duplicates(
    texts: Sequence[str],
    others: Sequence[str],
    threshold: float = 0.8,
    pieces: Pieces = iter,
) -> list[int | None]:
    """Return for each text the index of another text that is nearly equal, or None.

    Nearly equal means that the Jaccard similarity of their sets of tokens (characters by default)
    reaches the threshold.

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
    """Whether each text has a near-duplicate text in another group.

    >>> find_twins(["abcd", "abcd", "abcde", "xyz"], [1, 1, 2, 3], 0.8)
    [True, True, True, False]
    """
    sets = [frozenset(pieces(text)) for text in texts]
    index = _Index(sets, threshold)

    def is_stranger(place: int, group: Hashable) -> bool:
        return groups[place] != group

    return [
        index.find(own_pieces, partial(is_stranger, group=group)) is not None
        for own_pieces, group in zip(sets, groups, strict=True)
    ]


def list_near_pairs(
    texts: Sequence[str], threshold: float = 0.8, pieces: Pieces = iter
) -> Iterator[tuple[int, int]]:
    """List pairs of indices of nearly equal texts, with the earlier text first.

    Equal token sets are compared once; texts without a token match no other.

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
    """An index of token sets by their rarest tokens.

    Two sets whose similarity reaches the threshold share at least ``threshold * size`` tokens. They
    therefore share one of the first ``size - threshold * size + 1`` tokens in a common order. With
    the rarest tokens first, few sets have to be compared.
    """

    def __init__(self, sets: Sequence[frozenset[str]], threshold: float) -> None:
        self._sets = sets
        self._threshold = threshold
        self._rarity = Counter(piece for pieces in sets for piece in pieces)
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, pieces in enumerate(sets):
            for piece in self._prefix(pieces):
                self._places[piece].append(place)

    def find(
        self, pieces: frozenset[str], keep: Callable[[int], bool] = lambda _: True
    ) -> int | None:
        return next(filter(keep, self.list_near(pieces)), None)

    def list_near(self, names: frozenset[str]) -> Iterator[int]:
        """List indices of all sets that reach the similarity threshold, perhaps repeatedly."""
        for piece in self._prefix(names):
            for place in self._places.get(piece, ()):
                if self._near(names, self._sets[place]):
                    yield place

    def _near(self, pieces: frozenset[str], other: frozenset[str]) -> bool:
        small, large = sorted((len(pieces), len(other)))
        if small < self._threshold * large - 1e-9:
            return False
        shared = len(pieces & other)
        return shared >= self._threshold * (small + large - shared) - 1e-9

    def _prefix(self, pieces: frozenset[str]) -> list[str]:
        ordered = sorted(pieces, key=lambda piece: (self._rarity[piece], piece))
        return ordered[: len(ordered) - math.ceil(self._threshold * len(ordered) - 1e-9) + 1]
