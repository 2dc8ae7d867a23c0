"""Decoding by row: in one batch, each request keeps its own temperature, seed and length.

``generate`` is run greedily. A row with a temperature gets Gumbel noise on its logits, whose
largest entry is then a draw from the softmax; the noise comes from the row's own generator, so
that a seed gives the same draws whatever else is in the batch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Draw:
    """How one row decodes; a temperature of 0 takes the likeliest token."""

    temperature: float
    seed: int


class RowSampler:
    """A logits processor: temperature, top-k, top-p and the draw itself, row by row."""

    def __init__(
        self, rows: Sequence[Draw], device: Any, top_k: int = 0, top_p: float = 1.0
    ) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._rows = rows
        self._top_k = top_k
        self._top_p = top_p
        self._chances = [
            self._torch.Generator(device=device).manual_seed(row.seed) if row.temperature else None
            for row in rows
        ]

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ARG002 - transformers' seam
        """The scores with noise where a row is drawn."""
        if not any(self._chances):
            return scores
        drawn = scores.float().clone()
        for place, (row, chance) in enumerate(zip(self._rows, self._chances, strict=True)):
            if chance is not None:
                logits = self._cut(drawn[place] / row.temperature)
                noise = self._torch.empty_like(logits).exponential_(generator=chance)
                drawn[place] = logits - noise.log()
        return drawn

    def _cut(self, logits: Any) -> Any:
        """Leave the k likeliest tokens, and of these the fewest that hold a share of p."""
        torch, lowest = self._torch, float("-inf")
        if 0 < self._top_k < logits.numel():
            edge = torch.topk(logits, self._top_k).values[-1]
            logits = logits.masked_fill(logits < edge, lowest)
        if self._top_p < 1.0:
            ordered, places = torch.sort(logits, descending=True)
            shares = torch.softmax(ordered, -1)
            # A token goes when those before it hold the share already; the first always stays.
            gone = places[shares.cumsum(-1) - shares >= self._top_p]
            logits = logits.index_fill(0, gone, lowest)
        return logits


class RowLimits:
    """A stopping criterion: each row ends at its own length, all of them when told to stop."""

    def __init__(
        self, prompt: int, limits: Sequence[int], stop: Callable[[], bool], device: Any
    ) -> None:
        torch: Any = importlib.import_module("torch")
        self._prompt = prompt
        self._limits = torch.tensor(limits, device=device)
        self._stop = stop

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:  # noqa: ARG002 - as above
        """Which rows are done."""
        length = input_ids.shape[1] - self._prompt
        return self._limits <= (self._limits.max() if self._stop() else length)


def cut_row(tokens: Sequence[int], limit: int, ends: frozenset[int]) -> tuple[list[int], str, int]:
    """A row's own tokens, why it ended, and how many it took (the end mark counts).

    Behind its end a row is filled up, often with the end mark itself.

    >>> cut_row([7, 8, 2, 2, 2], 5, frozenset({2}))
    ([7, 8], 'stop', 3)
    >>> cut_row([7, 8, 9, 2, 2], 3, frozenset({2}))
    ([7, 8, 9], 'length', 3)
    """
    kept = list(tokens[:limit])
    for place, token in enumerate(kept):
        if token in ends:
            return kept[:place], "stop", place + 1
    return kept, "length", len(kept)
