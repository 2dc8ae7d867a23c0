"""PDQ: Meta's perceptual hash of 256 bits, which hash lists of many platforms contain.

The hash compares 16 by 16 frequencies of the image with their median. All sums are in single
precision and in the order of the published program, so that hashes are equal to those of other
programs, and on all processors. Images under 64 pixels a side may differ from other programs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PDQ_QUALITY = 50  # minimum quality (0 to 100); hashes of lower quality hardly separate images
_LUMA = (0.299, 0.587, 0.114)
_GRID, _LEAST_SIDE = 64, 5
Vector = NDArray[np.float32]


def hash_pdq(image: Image.Image) -> str:
    """Compute the PDQ hash in hexadecimal; empty if the image has too little structure.

    >>> hash_pdq(Image.new("RGB", (64, 64), "white"))
    ''
    """
    hashed, quality = measure_pdq(image)
    return hashed if quality >= PDQ_QUALITY else ""


def measure_pdq(image: Image.Image) -> tuple[str, int]:
    """Compute the PDQ hash of an image in hexadecimal, and its quality from 0 to 100."""
    pixels = np.asarray(image.convert("RGB")).astype(np.float32)
    red, green, blue = (np.float32(weight) for weight in _LUMA)
    grey = red * pixels[..., 0] + green * pixels[..., 1] + blue * pixels[..., 2]
    if min(grey.shape) < _LEAST_SIDE:
        return "0" * 64, 0
    if grey.shape != (_GRID, _GRID):
        for _ in range(2):
            grey = np.ascontiguousarray(_average(np.ascontiguousarray(grey.T)).T)
            grey = _average(grey)
        rows, columns = (_find_centres(size) for size in grey.shape)
        grey = grey[rows[:, None], columns]
    steps = [np.diff(grey, axis=axis) * np.float32(100) / np.float32(255) for axis in (0, 1)]
    slopes = sum(int(np.abs(step.astype(np.int32)).sum()) for step in steps)
    waves = _pdq_waves()
    half = _add_up(waves[:, :, None] * grey[None, :, :], 1)
    values = _add_up(half[:, None, :] * waves[None, :, :], 2).ravel()
    bits = values > np.sort(values)[127]  # the lower median of 256
    return np.packbits(bits[::-1]).tobytes().hex(), min(100, slopes // 90)


def _average(grey: Vector) -> Vector:
    """Average each pixel with its neighbours in the column, by running sums."""
    size = len(grey)
    window = (size + 2 * _GRID - 1) // (2 * _GRID)
    ahead = (window + 2) // 2
    right = np.arange(size) + ahead
    left = np.arange(size) - (window - ahead + 1)
    # Each step adds the next pixel of the window and subtracts the last one.
    flow = np.zeros((2 * size + 1, grey.shape[1]), np.float32)
    if ahead > 1:
        flow[0] = np.add.accumulate(grey[: ahead - 1])[-1]
    inside, gone = int((right <= size).sum()), int((left < 0).sum())
    flow[1 : 2 * inside : 2] = grey[right[:inside] - 1]
    flow[2 + 2 * gone :: 2] = -grey[left[gone:]]
    for step in range(1, len(flow)):  # whole rows: twenty times as fast as accumulate
        flow[step] += flow[step - 1]
    counts = np.minimum(right, size) - np.maximum(left + 1, 0)
    return np.asarray(flow[2::2] / counts.astype(np.float32)[:, None], np.float32)


def _find_centres(size: int) -> NDArray[np.int64]:
    return ((np.arange(_GRID) + 0.5) * size / _GRID).astype(np.int64)


def _add_up(values: Vector, axis: int) -> Vector:
    return np.asarray(np.take(np.add.accumulate(values, axis=axis), -1, axis=axis), np.float32)


@cache
def _pdq_waves() -> Vector:
    places = np.arange(1, 17)[:, None] * (2 * np.arange(_GRID) + 1)
    waves = np.cos(np.pi / 2 / _GRID * places)
    return np.asarray(np.float32(np.sqrt(2 / _GRID)) * waves, np.float32)
