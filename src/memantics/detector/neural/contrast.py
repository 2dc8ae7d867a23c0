"""Retrieval-guided contrastive learning (Mei et al. 2024): like memes of one class lie together.

When an epoch begins, the vectors of all training memes are looked up. The nearest meme of the same
class is drawn closer, the nearest of another class and those of the batch are pushed away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memantics.detector.neural.encoding import Encoded, Places
from memantics.detector.neural.machine import get_torch
from memantics.detector.neural.network import to_tensors

_BATCH = 128
_DIGITS = 5  # decimals of likenesses that every processor computes alike


@dataclass(frozen=True, slots=True)
class VectorBank:
    """Vectors of the training memes as an epoch found them, and each meme's two neighbours.

    ``places`` says where a row of the examples lies in it; the others are indices into ``vectors``.
    """

    vectors: Any
    places: Any
    positive: Any
    negative: Any

    def compare(self, vectors: Any, gold: Any, rows: Places) -> Any:
        """The loss of each meme: minus the log share of its positive among all it is held against.

        Vectors of the batch keep their gradients, those of the bank have none.
        """
        torch = get_torch()
        near = self.places[torch.from_numpy(rows).to(self.places.device)]
        anchors = torch.nn.functional.normalize(vectors.float(), dim=-1)
        others = torch.stack([self.vectors[self.positive[near]], self.vectors[self.negative[near]]])
        drawn, pushed = (anchors * others).sum(-1)
        within = (anchors @ anchors.T).masked_fill(gold[:, None] == gold[None], float("-inf"))
        against = torch.cat([drawn[:, None], pushed[:, None], within], -1)
        return torch.logsumexp(against, -1) - drawn


def make_bank(
    network: Any, encoded: Encoded, rows: Sequence[int], gold: Places, device: Any
) -> VectorBank:
    """Look up the vectors of the training rows, and find the neighbours of each."""
    torch = get_torch()
    order = np.array(rows, np.int64)
    was_training = network.training
    network.eval()
    found = []
    with torch.no_grad():
        for start in range(0, len(order), _BATCH):
            network(*to_tensors(encoded, order[start : start + _BATCH], device))
            found.append(torch.nn.functional.normalize(network.vectors.float(), dim=-1))
    network.train(was_training)
    vectors = torch.cat(found)
    classes = torch.from_numpy(gold[order]).to(device)
    places = torch.full((len(gold),), -1, dtype=torch.long, device=device)
    places[torch.from_numpy(order).to(device)] = torch.arange(len(order), device=device)
    return VectorBank(vectors, places, *find_neighbours(vectors, classes))


def find_neighbours(vectors: Any, classes: Any) -> tuple[Any, Any]:
    """The nearest other meme of the same class, and the nearest of another class.

    A meme that is alone in its class is its own neighbour.
    """
    torch = get_torch()
    same, other = [], []
    for start in range(0, len(vectors), 1024):
        part = slice(start, start + 1024)
        likeness = torch.round(vectors[part] @ vectors.T, decimals=_DIGITS)
        alike = classes[part, None] == classes[None]
        itself = torch.arange(start, start + len(likeness), device=vectors.device)
        # Below every other meme of its class, and above those of other classes.
        held = likeness.masked_fill(~alike, -9.0)
        held[torch.arange(len(held)), itself] = -5.0
        same.append(held.argmax(-1))
        other.append(likeness.masked_fill(alike, -9.0).argmax(-1))
    return torch.cat(same), torch.cat(other)
