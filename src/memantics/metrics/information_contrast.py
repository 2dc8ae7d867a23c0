"""Information contrast model (ICM) of hard and soft labels, with hierarchies and several labels.

ICM rewards the information that prediction and annotation share (Amigó and Delgado 2022). A rare
label has more information than a frequent one, and labels with a common ancestor share that of the
ancestor. ICM-Soft compares the proportions of annotators. The results equal those of PyEvALL.

A hierarchy is a tree: a mapping from labels to subtrees, or a list of leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import TypeAlias

Hierarchy: TypeAlias = "Mapping[str, Hierarchy] | Sequence[str]"
Soft: TypeAlias = Mapping[str, float]
_PREDICTED, _GOLD, _BOTH = 2.0, 2.0, 3.0


def list_paths(tree: Hierarchy) -> Iterator[tuple[str, ...]]:
    """Yield the path from the root to every label of a hierarchy, parents first.

    >>> list(list_paths({"no": [], "yes": ["mild", "strong"]}))
    [('no',), ('yes',), ('yes', 'mild'), ('yes', 'strong')]
    """
    for name in tree:
        yield (name,)
        below = tree[name] if isinstance(tree, Mapping) else ()
        yield from ((name, *path) for path in list_paths(below))


@dataclass(frozen=True)
class InformationContrast:
    """ICM of hard labels against gold labels.

    ``gold`` are the labels of each item. ``hierarchy`` may be empty; gold labels that it lacks are
    labels without parents.

    >>> icm = InformationContrast([("yes",), ("no",), ("no",), ("no",)])
    >>> round(icm.score([("yes",), ("no",), ("no",), ("no",)]), 6)
    0.811278
    >>> round(icm.normalise(icm.score([("no",), ("no",), ("no",), ("no",)])), 6)
    0.31974
    """

    gold: Sequence[Sequence[str]]
    hierarchy: Hierarchy = field(default_factory=dict)

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """The path to each label; a label in several branches keeps its first place."""
        found: dict[str, tuple[str, ...]] = {}
        for path in list_paths(self.hierarchy):
            found.setdefault(path[-1], path)
        return found

    @cached_property
    def _information(self) -> Mapping[str, float]:
        """The information of each label, in bits: that of its rate, labels below it included."""
        counts: dict[str, int] = dict.fromkeys(self.paths, 0)
        for labels in self.gold:
            for name in {step for label in labels for step in self.paths.get(label, (label,))}:
                counts[name] = counts.get(name, 0) + 1
        return {name: -math.log2((count or 1) / len(self.gold)) for name, count in counts.items()}

    def weigh(self, labels: Iterable[str]) -> float:
        """Return the information of a set of labels."""
        first, *rest = sorted(set(labels)) or [""]
        if not first:
            return 0.0
        known = self._information.get(first)
        own = math.log2(len(self.gold)) if known is None else known
        return own + self.weigh(rest) - self.weigh(self._join(first, rest))

    def _join(self, name: str, others: Iterable[str]) -> set[str]:
        """Return the deepest common ancestor of a label with each other label."""
        found = set()
        for other in others:
            common = _meet(self.paths.get(name, ()), self.paths.get(other, ()))
            if common:
                found.add(common)
        return found

    def values(self, predicted: Sequence[Sequence[str]]) -> list[float]:
        """Return the ICM of each item; an invalid answer is an empty set of labels."""
        return [
            _PREDICTED * self.weigh(said)
            + _GOLD * self.weigh(gold)
            - _BOTH * self.weigh({*said, *gold})
            for said, gold in zip(predicted, self.gold, strict=True)
        ]

    def score(self, predicted: Sequence[Sequence[str]]) -> float:
        """Return the mean ICM."""
        return sum(self.values(predicted)) / len(self.gold)

    def normalise(self, score: float) -> float | None:
        """Return a score between 0 (or below: 0) and 1, which is the score of the gold labels."""
        return _normalise(score, self.score(self.gold))


@dataclass(frozen=True)
class SoftInformationContrast:
    """ICM of soft labels: predicted probabilities against proportions of annotators.

    The information of a label with weight w is that of a weight of at least w, under a normal
    distribution with the mean and the mean absolute deviation of the gold weights.

    >>> gold = [{"yes": 0.75, "no": 0.25}, {"yes": 0.0, "no": 1.0}, {"yes": 0.5, "no": 0.5}]
    >>> icm = SoftInformationContrast(gold)
    >>> round(icm.score([{"yes": 0.5, "no": 0.5}] * 3), 6)
    -0.835149
    """

    gold: Sequence[Soft]
    hierarchy: Hierarchy = field(default_factory=dict)

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """The path to each label; labels outside of the hierarchy have no parents."""
        found: dict[str, tuple[str, ...]] = {}
        for path in list_paths(self.hierarchy):
            found.setdefault(path[-1], path)
        if self.hierarchy:
            for row in self.gold:
                for name in row:
                    found.setdefault(name, (name,))
        return found

    @cached_property
    def _normals(self) -> Mapping[str, tuple[float, float]]:
        rows = [self._raise(row) for row in self.gold]
        names = {name for row in rows for name in row} | set(self.paths)
        size = len(rows)
        found = {}
        for name in sorted(names):
            weights = [row.get(name, 0.0) for row in rows]
            mean = sum(weights) / size
            found[name] = mean, sum(abs(weight - mean) for weight in weights) / size
        return found

    def _raise(self, row: Soft) -> dict[str, float]:
        """Give every ancestor at least the weight of its heaviest label."""
        raised = dict(row)
        for path in sorted(self.paths.values(), key=len, reverse=True):
            name, parents = path[-1], path[:-1]
            weight = raised.setdefault(name, 0.0) if parents else raised.get(name, 0.0)
            for parent in parents[-1:]:
                raised[parent] = max(raised.get(parent, weight), weight)
        return raised

    def weigh(self, labels: Sequence[tuple[str, float]]) -> float:
        """Return the information of labels with weights."""
        if not labels:
            return 0.0
        (name, weight), rest = labels[0], labels[1:]
        joined = self._join(name, weight, rest)
        return self._inform(name, weight) + self.weigh(rest) - self.weigh(joined)

    def _inform(self, name: str, weight: float) -> float:
        least = math.log2(len(self.gold))
        if name not in self._normals:
            return least
        if weight == 0.0:
            return 0.0
        mean, deviation = self._normals[name]
        if deviation == 0.0:  # the gold weights are all equal
            return 0.0 if weight <= mean else least
        tail = 1 - NormalDist(mean, deviation).cdf(weight)
        return least if tail == 0.0 else -math.log2(tail)

    def _join(
        self, name: str, weight: float, others: Sequence[tuple[str, float]]
    ) -> list[tuple[str, float]]:
        found: dict[str, float] = {}
        for other, given in others:
            common = _meet(self.paths.get(name, ()), self.paths.get(other, ()))
            if common:
                found[common] = max(found.get(common, 0.0), min(weight, given))
        return list(found.items())

    def values(self, predicted: Sequence[Soft]) -> list[float]:
        """Return the ICM-Soft of each item; an invalid answer is an empty mapping."""
        found = []
        for said, gold in zip(predicted, self.gold, strict=True):
            both = dict(gold)
            for name, weight in said.items():
                both[name] = max(both.get(name, weight), weight)
            parts = [self.weigh(list(each.items())) for each in (said, gold, both)]
            found.append(_PREDICTED * parts[0] + _GOLD * parts[1] - _BOTH * parts[2])
        return found

    def score(self, predicted: Sequence[Soft]) -> float:
        """Return the mean ICM-Soft."""
        return sum(self.values(predicted)) / len(self.gold)

    def normalise(self, score: float) -> float | None:
        """Return a score between 0 (or below: 0) and 1, which is the score of the gold weights."""
        return _normalise(score, self.score(self.gold))


def _meet(first: Sequence[str], second: Sequence[str]) -> str:
    """Return the deepest label on both paths; empty if there is none."""
    return next((name for name in reversed(first) if name in second), "")


def _normalise(score: float, best: float) -> float | None:
    return max(0.0, (score + best) / (2 * best)) if best else None


def hierarchical_f1(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], tree: Hierarchy
) -> float | None:
    """F1 over labels and all their ancestors, pooled over items (hierarchical F1).

    A label in several branches of the hierarchy has the ancestors of all of them.

    >>> tree = {"appeal": ["fear", "pride"], "logic": ["straw man"]}
    >>> round(hierarchical_f1([("fear",)], [("pride",)], tree), 3)
    0.5
    """
    above: dict[str, set[str]] = {}
    for path in list_paths(tree):
        above.setdefault(path[-1], set()).update(path)
    common = said = known = 0
    for true, found in zip(gold, predicted, strict=True):
        first = {step for name in true for step in above.get(name, {name})}
        second = {step for name in found for step in above.get(name, {name})}
        common += len(first & second)
        said, known = said + len(second), known + len(first)
    return 2 * common / (said + known) if said + known else None
