"""Perceptual hashes: images that look alike, found without comparing every pair in Python."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from memantics.core.lines import ImageReading
from memantics.understanding.vision.colours import Mask

_SAME = 8  # channels that differ by less are the same: rounding, not a change


def compare_pictures(before: Image.Image, after: Image.Image) -> int:
    """The number of bits in which two perceptual hashes differ, from 0 (alike) to 64."""
    return measure_distance(hash_image(before), hash_image(after))


def measure_change(before: Image.Image, after: Image.Image, where: Mask) -> float:
    """The share of the pixels in ``where`` that differ visibly; 0 where there are none.

    >>> black, white = Image.new("RGB", (2, 1)), Image.new("RGB", (2, 1), "white")
    >>> measure_change(black, white, np.array([[True, False]]))
    1.0
    """
    if before.size != after.size:
        return 1.0
    one, other = np.asarray(before.convert("RGB")), np.asarray(after.convert("RGB"))
    changed = (np.maximum(one, other) - np.minimum(one, other)).max(axis=2) > _SAME
    return float(changed[where].mean()) if where.any() else 0.0


PDQ_QUALITY = 50  # of 100; below, the hash tells pictures hardly apart
_SIDE = 32
_KEPT = 8
_BLOCK = 2_000_000  # pairs compared at once: some 16 MB for each step of counting
Bits = NDArray[np.uint64]
Vector = NDArray[np.float32]


def hash_image(image: Image.Image) -> int:
    """64 bits by the low frequencies of the image in grey: recompression moves very few of them.

    >>> hash_image(Image.new("RGB", (64, 64), "white")) == hash_image(Image.new("L", (9, 9), 255))
    True
    """
    low = _transform(image.convert("L"))[:_KEPT, :_KEPT].ravel()
    bits = low > np.median(low[1:])  # the first is the mean brightness, far from all others
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def hash_pdq(image: Image.Image) -> str:
    """PDQ in hexadecimal, where the package pdqhash is installed and the picture has structure.

    It has no wheels for Linux, so it is no dependency: ``pip install pdqhash`` needs a compiler.
    """
    if find_spec("pdqhash") is None:
        return ""
    compute = importlib.import_module("pdqhash").compute
    bits, quality = compute(np.asarray(image.convert("RGB")))
    return "" if quality < PDQ_QUALITY else np.packbits(np.asarray(bits, bool)).tobytes().hex()


def describe_image(image: Image.Image) -> Vector:
    """A unit vector of coarse layout and colour: near vectors look alike from far away."""
    parts = []
    for weight, channel in zip((1.0, 0.6, 0.6), image.convert("YCbCr").split(), strict=True):
        low = _transform(channel)[:_KEPT, :_KEPT].ravel()
        # Tone of the whole picture and its shapes differ in size by orders of magnitude.
        low[0] = (low[0] / _SIDE - 128.0) * 4
        parts.append(weight * np.sign(low) * np.sqrt(np.abs(low)))
    made = np.concatenate(parts)
    length = float(np.linalg.norm(made))
    return np.asarray(made / length if length > 0 else made, dtype=np.float32)


def measure_distance(one: int, other: int) -> int:
    """How many bits differ.

    >>> measure_distance(0b1010, 0b0110)
    2
    """
    return (one ^ other).bit_count()


def find_pairs(hashes: Sequence[int], within: int) -> Iterator[tuple[int, int, int]]:
    """Places of all pairs at most ``within`` bits apart, with their distance.

    Blocks of rows are compared in one operation: ten thousand images take seconds, and memory
    stays bounded.

    >>> list(find_pairs([0b0000, 0b1111, 0b0001], 1))
    [(0, 2, 1)]
    """
    values: Bits = np.array(hashes, dtype=np.uint64)
    rows_at_once = max(1, _BLOCK // max(1, len(values)))
    for start in range(0, len(values), rows_at_once):
        block = values[start : start + rows_at_once, None]
        # Only what comes later: each pair is met once.
        distances = count_bits(block ^ values[None, start:])
        rows, columns = np.nonzero(distances <= within)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            if column > row:
                yield start + row, start + column, int(distances[row, column])


def pack_hashes(hashes: Sequence[int]) -> Bits:
    """Hashes as an array, to be searched again and again."""
    return np.array(hashes, dtype=np.uint64)


def find_nearest(image_hash: int, hashes: Bits, within: int) -> int | None:
    """The place of the nearest hash, the first of several; None where none is near enough.

    >>> [find_nearest(0b111, pack_hashes([0b1, 0b11, 0b110]), bits) for bits in (0, 1)]
    [None, 1]
    """
    distances = count_bits(hashes ^ np.uint64(image_hash))
    place = int(distances.argmin()) if distances.size else 0
    return place if distances.size and distances[place] <= within else None


def count_bits(values: Bits) -> NDArray[np.uint8]:
    """Set bits of each number, by adding neighbours of 1, 2, 4 … bits where numpy is before 2."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(values), dtype=np.uint8)
    count = values - ((values >> np.uint64(1)) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    count = (count & pairs) + ((count >> np.uint64(2)) & pairs)
    count = (count + (count >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    total = (count * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return np.asarray(total, dtype=np.uint8)


def _transform(channel: Image.Image) -> NDArray[np.float64]:
    """The cosine transform of one channel at a fixed small size."""
    small = channel.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
    pixels = np.asarray(small, dtype=np.float64)
    waves = _waves()
    return np.asarray(waves @ pixels @ waves.T, dtype=np.float64)


@cache
def _waves() -> NDArray[np.float64]:
    steps = np.arange(_SIDE)
    waves = np.cos(np.pi * steps[:, None] * (2 * steps[None, :] + 1) / (2 * _SIDE))
    waves *= np.sqrt(2 / _SIDE)
    waves[0] *= np.sqrt(0.5)
    return np.asarray(waves, dtype=np.float64)


# Near copies: the same picture with the same words, saved again. A hash alone cannot tell that.
#
# One other character may change no bit of a perceptual hash, so the blocks of both pictures are
# compared as well. The bound lies below what one other character of 14 pixels does to a picture of
# 720 (docs/research/ocr-reuse.md): what passes was saved again with next to no loss.

Thumb = NDArray[np.uint8]
COPY_BITS = 2
COPY_BLOCK = 0.75  # of 255: mean difference of the block that differs most
_THUMB, _PATCH = 256, 8
_LAST = 256  # pictures that are looked back at, 64 KB each


def make_thumb(image: Image.Image) -> Thumb:
    """A small grey copy, to be compared with others."""
    grey = image.convert("L").resize((_THUMB, _THUMB), Image.Resampling.BOX)
    return np.asarray(grey, np.uint8)


def measure_blocks(one: Thumb, other: Thumb) -> float:
    """The mean difference of the block that differs most.

    >>> black = np.zeros((256, 256), np.uint8)
    >>> spot = black.copy()
    >>> spot[3, 3] = 64
    >>> measure_blocks(black, spot)
    1.0
    """
    count = _THUMB // _PATCH
    apart = np.abs(one.astype(np.int16) - other).reshape(count, _PATCH, count, _PATCH)
    return float(apart.mean(axis=(1, 3)).max())


class SeenPictures:
    """What was read in the last pictures, for copies of them."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, tuple[int, int], Thumb, ImageReading]] = deque(maxlen=_LAST)

    def find(self, look: int, image: Image.Image) -> ImageReading | None:
        """What was read in a picture of which this one is a copy."""
        near = [
            (thumb, said)
            for known, size, thumb, said in self._seen
            if size == image.size and measure_distance(known, look) <= COPY_BITS
        ]
        own_thumb = make_thumb(image) if near else None
        return next(
            (said for thumb, said in near if own_thumb is not None and _same(thumb, own_thumb)),
            None,
        )

    def add(self, look: int, image: Image.Image, said: ImageReading) -> None:
        """Remember what a picture says."""
        self._seen.append((look, image.size, make_thumb(image), said))


def _same(one: Thumb, other: Thumb) -> bool:
    return measure_blocks(one, other) <= COPY_BLOCK
