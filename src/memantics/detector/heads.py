"""What is learnt at once: harmful or not, and each type.

Types are more alike inside than "harmful" is: heads for them carry over to other topics, and a
combination of all heads decides better than the head for "harmful" alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memantics.detector.examples import TYPES, Example
from memantics.detector.kernel import Singles

HARMFUL = "harmful"
_FEWEST = 5


@dataclass(frozen=True, slots=True)
class Targets:
    """One column of signs per head, and a weight per example."""

    heads: tuple[str, ...]
    signs: Singles
    weights: Singles


def make_targets(examples: Sequence[Example]) -> Targets:
    """Heads for which there are examples; rarer types weigh more."""
    columns: dict[str, list[bool]] = {HARMFUL: [e.label == 1 for e in examples]}
    for kind in TYPES:
        columns[f"type/{kind}"] = [e.type == kind for e in examples]
    kept = {
        name: own
        for name, own in columns.items()
        if name == HARMFUL or _FEWEST <= sum(own) <= len(own) - _FEWEST
    }
    signs = np.where(np.array(list(kept.values())).T, 1.0, -1.0).astype(np.float32)
    return Targets(tuple(kept), np.ascontiguousarray(signs), _weigh(examples))


def _weigh(examples: Sequence[Example]) -> Singles:
    strata = [f"{e.label}/{e.type}" for e in examples]
    counts = Counter(strata)
    weights = np.array([counts[own] ** -0.5 for own in strata])
    return np.asarray(weights / weights.mean(), np.float32)


def list_types(heads: Sequence[str]) -> tuple[str, ...]:
    """The types that have a head, in the order of the paper; empty where the data has no types.

    >>> list_types(["harmful", "type/none", "type/sexual", "type/offence"])
    ('none', 'offence', 'sexual')
    """
    found = tuple(kind for kind in TYPES if f"type/{kind}" in heads)
    return found if "none" in found and len(found) > 2 else ()


def add_margin(
    heads: Sequence[str], scores: Singles
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """All scores and, where there are types, how far the best harmful one is above none."""
    table = np.asarray(scores, np.float64)
    places = margin_places(heads)
    if places is None:
        return table
    none, others = places
    margin = table[:, others].max(axis=1) - table[:, none]
    return np.column_stack([table, margin])


def margin_places(heads: Sequence[str]) -> tuple[int, list[int]] | None:
    """The columns of the type none and of the harmful types."""
    types = list_types(heads)
    if not types:
        return None
    columns = [list(heads).index(f"type/{kind}") for kind in types]
    return columns[0], columns[1:]
