"""Perceptual hashes, to find similar images without comparing every pair in Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from memantics.core.lines import ImageReading
from memantics.understanding.vision.colours import Mask

_SAME = 8  # maximum difference of a colour channel in equal pixels (rounding)


def compare_pictures(before: Image.Image, after: Image.Image) -> int:
    """Return the number of differing bits of two perceptual hashes, from 0 (equal) to 64."""
    return measure_distance(hash_image(before), hash_image(after))


def measure_change(before: Image.Image, after: Image.Image, where: Mask) -> float:
    """Return the proportion of visibly different pixels in ``where``; 0 if it is empty.

    >>> black, white = Image.new("RGB", (2, 1)), Image.new("RGB", (2, 1), "white")
    >>> measure_change(black, white, np.array([[True, False]]))
    1.0
    """
    if before.size != after.size:
        return 1.0
    one, other = np.asarray(before.convert("RGB")), np.asarray(after.convert("RGB"))
    changed = (np.maximum(one, other) - np.minimum(one, other)).max(axis=2) > _SAME
    return float(changed[where].mean()) if where.any() else 0.0


_SIDE = 32
_KEPT = 8
_BLOCK = 2_000_000  # pairs compared at once, about 16 MB per step
Bits = NDArray[np.uint64]
Vector = NDArray[np.float32]


def hash_image(image: Image.Image) -> int:
    """Compute a 64-bit hash from low frequencies in grey; recompression changes few bits.

    >>> hash_image(Image.new("RGB", (64, 64), "white")) == hash_image(Image.new("L", (9, 9), 255))
    True
    """
    low = _transform(image.convert("L"))[:_KEPT, :_KEPT].ravel()
    # the first coefficient is the mean brightness, far from all others
    bits = low > np.median(low[1:])
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def describe_image(image: Image.Image) -> Vector:
    """Compute a unit vector of coarse layout and colour; similar images have near vectors."""
    parts = []
    for weight, channel in zip((1.0, 0.6, 0.6), image.convert("YCbCr").split(), strict=True):
        low = _transform(channel)[:_KEPT, :_KEPT].ravel()
        # Values for overall tone and for shapes differ by orders of magnitude, so both are
        # normalised.
        low[0] = (low[0] / _SIDE - 128.0) * 4
        parts.append(weight * np.sign(low) * np.sqrt(np.abs(low)))
    made = np.concatenate(parts)
    length = float(np.linalg.norm(made))
    return np.asarray(made / length if length > 0 else made, dtype=np.float32)


def measure_distance(one: int, other: int) -> int:
    """Return the number of differing bits of two hashes.

    >>> measure_distance(0b1010, 0b0110)
    2
    """
    return (one ^ other).bit_count()


def find_pairs(hashes: Sequence[int], within: int) -> Iterator[tuple[int, int, int]]:
    """Find all pairs at most ``within`` bits apart, with their distance.

    Rows are compared in blocks: ten thousand images take seconds, and memory use is bounded.

    >>> list(find_pairs([0b0000, 0b1111, 0b0001], 1))
    [(0, 2, 1)]
    """
    values: Bits = np.array(hashes, dtype=np.uint64)
    rows_at_once = max(1, _BLOCK // max(1, len(values)))
    for start in range(0, len(values), rows_at_once):
        block = values[start : start + rows_at_once, None]
        # Each row is compared only with later rows, so that each pair occurs once.
        distances = count_bits(block ^ values[None, start:])
        rows, columns = np.nonzero(distances <= within)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            if column > row:
                yield start + row, start + column, int(distances[row, column])


def pack_hashes(hashes: Sequence[int]) -> Bits:
    """Pack hashes into an array for repeated searches."""
    return np.array(hashes, dtype=np.uint64)


def find_nearest(image_hash: int, hashes: Bits, within: int) -> int | None:
    """Return the index of the nearest hash, the first of several; None if none is near enough.

    >>> [find_nearest(0b111, pack_hashes([0b1, 0b11, 0b110]), bits) for bits in (0, 1)]
    [None, 1]
    """
    distances = count_bits(hashes ^ np.uint64(image_hash))
    place = int(distances.argmin()) if distances.size else 0
    return place if distances.size and distances[place] <= within else None


def count_bits(values: Bits) -> NDArray[np.uint8]:
    """Count the set bits of each number; numpy before version 2 has no function for it."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(values), dtype=np.uint8)
    count = values - ((values >> np.uint64(1)) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    count = (count & pairs) + ((count >> np.uint64(2)) & pairs)
    count = (count + (count >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    total = (count * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return np.asarray(total, dtype=np.uint8)


def _transform(channel: Image.Image) -> NDArray[np.float64]:
    """Compute the cosine transform of one channel at a fixed small size."""
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


# Near copies are recompressed versions of the same image and text. A perceptual hash may not change
# with one character, so image blocks are compared, too. The limit is below the difference of one
# 14-pixel character in an image of 720 pixels (docs/research/ocr-reuse.md).

Thumb = NDArray[np.uint8]
COPY_BITS = 2
COPY_BLOCK = 0.75  # maximum mean difference (0 to 255) of the most different block of two copies
_THUMB, _PATCH = 256, 8
_LAST = 256  # number of remembered images, 64 KB each


def make_thumb(image: Image.Image) -> Thumb:
    """Make a small grey copy for comparisons."""
    grey = image.convert("L").resize((_THUMB, _THUMB), Image.Resampling.BOX)
    return np.asarray(grey, np.uint8)


def measure_blocks(one: Thumb, other: Thumb) -> float:
    """Return the mean difference of the most different block of two grey images.

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
    """A cache of OCR results for near copies of recent images."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, tuple[int, int], Thumb, ImageReading]] = deque(maxlen=_LAST)

    def find(self, look: int, image: Image.Image) -> ImageReading | None:
        """Return the OCR result of an image that this one is a copy of."""
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
        """Store the OCR result of an image."""
        self._seen.append((look, image.size, make_thumb(image), said))


def _same(one: Thumb, other: Thumb) -> bool:
    return measure_blocks(one, other) <= COPY_BLOCK
