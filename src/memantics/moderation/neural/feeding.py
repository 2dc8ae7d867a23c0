"""Training batches: splits, order, example weights and transfer to a device."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memantics.core.errors import InputError
from memantics.metrics.rounding import Ints
from memantics.moderation.examples import Example, split_blocks
from memantics.moderation.neural.encoding import Encoded, fit, gold_places
from memantics.moderation.neural.machine import get_torch
from memantics.moderation.neural.settings import HoldOut, TrainingTarget, Weighting

BLOCKS = 30


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Row indices of the training, validation and test sets; ``test`` may be empty.

    ``shared`` counts held-out examples whose printed text is also in the training set.
    """

    train: tuple[int, ...]
    valid: tuple[int, ...]
    test: tuple[int, ...] = ()
    shared: int = 0


def hold_out(
    examples: Sequence[Example], target: TrainingTarget, how: HoldOut, share: float, seed: int = 0
) -> SplitRows:
    """Hold out a proportion of the examples for validation.

    ``blocks`` holds out runs of neighbouring ids, because ids follow the order of collection and
    neighbours often have the same label. ``random`` is stratified by class and keeps equal printed
    texts together.
    """
    gold = gold_places(examples, target)
    places = _blocks(examples, share, seed) if how == "blocks" else None
    chosen = _at_random(examples, gold, share, seed) if places is None else places
    parts = split_rows(examples, sorted(chosen))
    check_parts(parts, gold)
    return parts


def split_rows(
    examples: Sequence[Example], valid: Sequence[int], test: Sequence[int] = ()
) -> SplitRows:
    """Make the split from held-out rows; all other rows are for training."""
    out = {*valid, *test}
    train = tuple(row for row in range(len(examples)) if row not in out)
    known = {fold_text(examples[row].text) for row in train}
    shared = sum(fold_text(examples[row].text) in known for row in out)
    return SplitRows(train, tuple(valid), tuple(test), shared)


def check_parts(parts: SplitRows, gold: Ints) -> None:
    """Raise InputError if a set has only one class."""
    for name, rows in (("training", parts.train), ("validation", parts.valid)):
        if len(rows) < 2 or len(set(gold[list(rows)].tolist())) < 2:
            raise InputError(
                f"the {name} set of {len(rows)} examples has only one class",
                hint="give more examples of every class, or change --share or --hold-out",
            )


def _blocks(examples: Sequence[Example], share: float, seed: int) -> list[int]:
    """Choose several blocks over the whole range, since one block may have only one class."""
    count = min(BLOCKS, max(2, len(examples) // 2))
    folds = split_blocks([example.id for example in examples], count)
    wanted = max(1, round(share * count))
    shift = random.Random(seed).randrange(count)
    chosen = {(shift + round(step * count / wanted)) % count for step in range(wanted)}
    return np.flatnonzero(np.isin(folds, sorted(chosen))).tolist()


def _at_random(examples: Sequence[Example], gold: Ints, share: float, seed: int) -> list[int]:
    groups: dict[str, list[int]] = {}
    for row in range(len(examples)):
        text = fold_text(examples[row].text)
        groups.setdefault(text or f"\0{row}", []).append(row)
    chance, chosen = random.Random(seed), list[int]()
    for place in sorted(set(gold.tolist())):
        class_groups = [rows for rows in groups.values() if gold[rows[0]] == place]
        chance.shuffle(class_groups)
        wanted, taken = share * sum(map(len, class_groups)), 0
        for rows in class_groups:
            if taken >= wanted:
                break
            chosen.extend(rows)
            taken += len(rows)
    return chosen


def fold_text(text: str) -> str:
    """Remove case and white space from a text, to find duplicates.

    >>> fold_text("Not  Today ") == fold_text("nottoday")
    True
    """
    return "".join(text.split()).casefold()


_AHEAD = 4
_WINDOW = 128


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows of one forward pass; rows after the first ``live`` are padding with weight 0.

    ``total`` is the weight of the whole optimizer step.
    """

    rows: Ints
    live: int
    total: float


@dataclass(frozen=True, slots=True)
class DevicePortion:
    """The rows of one forward pass, moved to the device that computes it."""

    inputs: tuple[Any, Any, Any]
    gold: Any
    weights: Any
    rows: Ints


def draw_order(rows: tuple[int, ...], seed: int, epoch: int) -> Ints:
    """Shuffle the training rows by seed and epoch."""
    return np.random.default_rng([seed, epoch]).permutation(np.array(rows, np.int64))


def mix_seed(seed: int, step: int, rank: int) -> int:
    """Compute the random seed of one step of one process.

    >>> len({mix_seed(seed, step, rank) for seed in (0, 1) for step in (0, 1) for rank in (0, 1)})
    8
    """
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0] >> 1)


def rate_at(step: int, steps: int, highest: float, warmup: float) -> float:
    """Compute the learning rate of a step: linear warm-up, then linear decay to zero.

    >>> [round(rate_at(step, 10, 1.0, 0.2), 3) for step in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.125]
    """
    warm = round(warmup * steps)
    if step < warm:
        return highest * (step + 1) / warm
    return highest * (steps - step) / max(1, steps - warm)


def weigh_classes(gold: Ints, classes: int, how: Weighting) -> NDArray[np.float64]:
    """Compute class weights from the training set; rare classes weigh more, the mean is 1.

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


def cut_portions(batch: Ints, weights: NDArray[np.float64], count: int) -> list[Portion]:
    """Divide the rows of a training step into ``count`` forward passes of equal size.

    If the last batch of an epoch is too small, its first row is repeated with weight 0.
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
    """Moves parts of batches to a device, many at once, since small networks wait for transfers.

    Texts stay on the device; the rows of several forward passes are gathered there at once. Pixels
    are read ahead from disk.
    """

    def __init__(
        self, encoded: Encoded, gold: Ints, weights: NDArray[np.float64], device: Any
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

    def feed(self, portions: Iterable[Portion]) -> Iterator[DevicePortion]:
        """Yield the rows of each forward pass on the device, in order."""
        waiting = iter(portions)
        while window := list(islice(waiting, _WINDOW)):
            yield from self._feed_window(window)

    def _feed_window(self, window: list[Portion]) -> Iterator[DevicePortion]:
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
            yield DevicePortion((*texts, pixels), gold[part], weights[part], portion.rows)

    def _weigh(self, window: list[Portion]) -> NDArray[np.float32]:
        """Compute each row's weight in the loss of its step; 0 for padding rows."""
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

    def _fetch(self, rows: Ints) -> Any:
        assert self._encoded.pixels is not None
        found = self._torch.from_numpy(np.array(self._encoded.pixels[rows]))
        return found.pin_memory() if self._device.type == "cuda" else found

    def _arrive(self, portion: Portion, pixels: Future[Any]) -> tuple[Portion, Any]:
        return portion, pixels.result().to(self._device, non_blocking=True)
