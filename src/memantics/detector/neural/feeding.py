"""Batches on their way to a device: which rows, in which order, and how much each one counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memantics.detector.neural.encoding import Encoded, Places, fit
from memantics.detector.neural.packages import get_torch
from memantics.detector.neural.settings import Weighting

_AHEAD = 4
_WINDOW = 128


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows that pass the network together. Those behind the first ``live`` fill up and weigh 0.

    ``total`` is the weight of the whole step that the portion is a part of.
    """

    rows: Places
    live: int
    total: float


@dataclass(frozen=True, slots=True)
class Fed:
    """A portion on its device."""

    inputs: tuple[Any, Any, Any]
    gold: Any
    weights: Any


def draw_order(rows: tuple[int, ...], seed: int, epoch: int) -> Places:
    """The training rows in an order of its own for each seed and epoch."""
    return np.random.default_rng([seed, epoch]).permutation(np.array(rows, np.int64))


def mix_seed(seed: int, step: int, rank: int) -> int:
    """The random generators' seed for one step of one process.

    >>> len({mix_seed(seed, step, rank) for seed in (0, 1) for step in (0, 1) for rank in (0, 1)})
    8
    """
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0] >> 1)


def rate_at(step: int, steps: int, highest: float, warmup: float) -> float:
    """The learning rate of a step: up in a line, then down in a line to nothing.

    >>> [round(rate_at(step, 10, 1.0, 0.2), 3) for step in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.125]
    """
    warm = round(warmup * steps)
    if step < warm:
        return highest * (step + 1) / warm
    return highest * (steps - step) / max(1, steps - warm)


def weigh_classes(gold: Places, classes: int, how: Weighting) -> NDArray[np.float64]:
    """A weight per class from the training part: the rarer, the heavier; 1 on average.

    >>> weigh_classes(np.array([0, 0, 0, 1]), 2, "balanced").round(3).tolist()
    [0.667, 2.0]
    """
    counts = np.bincount(gold, minlength=classes).astype(np.float64)
    if how == "none":
        return np.ones(classes)
    present = counts > 0
    weights = np.zeros(classes)
    weights[present] = 1 / counts[present] if how == "balanced" else counts[present] ** -0.5
    scaled: NDArray[np.float64] = weights * (counts.sum() / (weights * counts).sum())
    return scaled


def cut_portions(batch: Places, weights: NDArray[np.float64], count: int) -> list[Portion]:
    """Cut a step's rows into ``count`` portions of one size.

    The last batch of an epoch may not fall into equal parts; its first row fills up, unweighed.
    """
    size = -(-len(batch) // count)
    filled = np.concatenate([batch, np.repeat(batch[:1], size * count - len(batch))])
    total = float(weights[batch].sum())
    return [
        Portion(
            filled[start : start + size],
            int(np.clip(len(batch) - start, 0, size)),
            total,
        )
        for start in range(0, size * count, size)
    ]


class Feeder:
    """Puts portions onto a device, many at once: a small network waits for nothing else.

    Texts are small and lie on the device; a window of portions is gathered there in one go, and
    each portion is a view of it. Pixels are read from disk ahead of their turn.
    """

    def __init__(
        self, encoded: Encoded, gold: Places, weights: NDArray[np.float64], device: Any
    ) -> None:
        torch = get_torch()
        self._torch, self._encoded, self._device = torch, encoded, device
        self._gold, self._weights = torch.from_numpy(gold).to(device), weights
        self._ids = self._mask = None
        if encoded.ids is not None and encoded.lengths is not None:
            self._ids = torch.from_numpy(encoded.ids).to(device)
            lengths = torch.from_numpy(encoded.lengths).to(device)
            columns = torch.arange(encoded.ids.shape[-1], device=device)
            self._mask = columns < lengths[..., None]

    def feed(self, portions: Iterable[Portion]) -> Iterator[Fed]:
        """Portions in their order."""
        waiting = iter(portions)
        while window := list(islice(waiting, _WINDOW)):
            yield from self._feed_window(window)

    def _feed_window(self, window: list[Portion]) -> Iterator[Fed]:
        rows = self._torch.from_numpy(np.concatenate([p.rows for p in window])).to(self._device)
        weights = self._torch.from_numpy(self._weigh(window)).to(self._device)
        gold = self._gold[rows]
        ids = mask = None
        if self._ids is not None and self._mask is not None:
            ids, mask = self._ids[rows].long(), self._mask[rows]
        start = 0
        for portion, pixels in self._look_ahead(window):
            part = slice(start, start + len(portion.rows))
            start = part.stop
            texts = (None, None)
            if ids is not None and mask is not None:
                longest = fit(self._encoded, portion.rows)
                texts = ids[part, :, :longest], mask[part, :, :longest]
            yield Fed((*texts, pixels), gold[part], weights[part])

    def _weigh(self, window: list[Portion]) -> NDArray[np.float32]:
        """Each row's share of its step's loss; rows that only fill up have none."""
        shares = []
        for portion in window:
            share = self._weights[portion.rows] / portion.total
            share[portion.live :] = 0
            shares.append(share)
        return np.concatenate(shares).astype(np.float32)

    def _look_ahead(self, window: list[Portion]) -> Iterator[tuple[Portion, Any]]:
        if self._encoded.pixels is None:
            yield from ((portion, None) for portion in window)
            return
        waiting: deque[tuple[Portion, Future[Any]]] = deque()
        with ThreadPoolExecutor(2) as pool:
            for portion in window:
                waiting.append((portion, pool.submit(self._fetch, portion.rows)))
                if len(waiting) > _AHEAD:
                    yield self._arrive(*waiting.popleft())
            while waiting:
                yield self._arrive(*waiting.popleft())

    def _fetch(self, rows: Places) -> Any:
        assert self._encoded.pixels is not None
        found = self._torch.from_numpy(np.array(self._encoded.pixels[rows]))
        return found.pin_memory() if self._device.type == "cuda" else found

    def _arrive(self, portion: Portion, pixels: Future[Any]) -> tuple[Portion, Any]:
        return portion, pixels.result().to(self._device, non_blocking=True)
