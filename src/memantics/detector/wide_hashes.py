"""Hashes of 256 bits that differ in few bits, found fast among a million.

Of 31 different bits at most one lies in some of the sixteen parts of 16 bits: looking up each part,
and each part with one bit changed, finds all. The arrays are mapped, not loaded.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memantics.core.journal import replace_file
from memantics.models.embedded.encoder import SentenceEncoder

WIDE_BITS = 256
MOST_APART = 31  # bits: more would need another look-up
_PARTS = 16
_FLIPS = np.array([0, *(1 << bit for bit in range(16))], np.uint16)
Wide = NDArray[np.uint64]


class WideIndex:
    """Sorted parts of hashes in one file of a folder; ``lines`` are their places."""

    def __init__(self, folder: Path, name: str) -> None:
        # A plain array over the mapped file: slices of a memmap cost microseconds each.
        table: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)
        size, flat = table.shape[1], table.reshape(-1)
        self.bits = flat[: 4 * size].reshape(size, 4)
        self._heads = flat[4 * size : 8 * size].view(np.uint16).reshape(_PARTS, size)
        self._order = flat[8 * size : 16 * size].view(np.uint32)
        self.lines = flat[16 * size :].view(np.int64)

    @staticmethod
    def write(folder: Path, name: str, bits: Wide, lines: NDArray[np.int64]) -> None:
        """Write the index of some hashes (four numbers each)."""
        parts = np.ascontiguousarray(bits.view(np.uint16).reshape(-1, _PARTS).T)
        order = np.argsort(parts, axis=1, kind="stable").astype(np.uint32)
        heads = np.take_along_axis(parts, order, axis=1)
        # All in one file: whoever reads meanwhile never sees parts of two states.
        flat = [array.reshape(-1).view(np.uint64) for array in (bits, heads, order, lines)]
        save_array(folder / f"{name}.npy", np.concatenate(flat).reshape(17, len(lines)))

    def find(self, wanted: str, most: int) -> list[int]:
        """Lines of hashes that differ from one in at most so many bits, the nearest first."""
        hashed = read_wide([wanted])
        parts = hashed.view(np.uint16).ravel()
        starts, sizes = [], []
        for number, (part, head) in enumerate(zip(parts, self._heads, strict=True)):
            probes = part ^ _FLIPS
            first = np.searchsorted(head, probes, "left")
            starts.append(first + number * len(self.lines))
            sizes.append(np.searchsorted(head, probes, "right") - first)
        start, size = np.concatenate(starts), np.concatenate(sizes)
        steps = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        places = np.unique(self._order[np.repeat(start, size) + steps])
        apart = np.bitwise_count(self.bits[places] ^ hashed).sum(axis=1)
        near = np.flatnonzero(apart <= min(most, MOST_APART))
        ordered = near[np.argsort(apart[near], kind="stable")]
        return [int(line) for line in self.lines[places[ordered]]]


def read_wide(hashes: Sequence[str]) -> Wide:
    """Hexadecimal hashes as rows of four numbers.

    >>> read_wide(["0" * 63 + "1"]).shape
    (1, 4)
    """
    data = b"".join(bytes.fromhex(text) for text in hashes)
    return np.frombuffer(data, np.uint64).reshape(-1, WIDE_BITS // 64)


@cache
def _open_encoder() -> SentenceEncoder:
    return SentenceEncoder()


@cache
def _draw_planes(width: int) -> NDArray[np.float64]:
    return np.random.default_rng(7).standard_normal((width, WIDE_BITS))


def hash_meaning(text: str) -> str:
    """On which side of 256 random planes the sentence encoder's vector of a text lies.

    Vectors at an angle of a degrees differ in about 256 a / 180 bits.
    """
    (vector,) = _open_encoder().encode([text])
    sides = np.asarray(vector, float) @ _draw_planes(len(vector)) > 0
    return np.packbits(sides).tobytes().hex()


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Write an array in one step."""
    file = io.BytesIO()
    np.save(file, values)
    replace_file(path, file.getvalue(), "precedents", "--detector")
