"""Keys by which match lists compare memes: normalized texts and hashes of embeddings."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from memantics.models.embedded.encoder import open_encoder
from memantics.moderation.features import clean
from memantics.moderation.obfuscation import unmask

WIDE_BITS = 256


@cache
def _draw_planes(width: int) -> NDArray[np.float64]:
    return np.random.default_rng(7).standard_normal((width, WIDE_BITS))


def hash_embedding(text: str) -> str:
    """Hash the sentence embedding of a text to 256 bits by random hyperplanes.

    Embeddings at an angle of ``a`` degrees differ in about ``256 * a / 180`` bits.
    """
    (vector,) = open_encoder().encode([text])
    sides = np.asarray(vector, float) @ _draw_planes(len(vector)) > 0
    return np.packbits(sides).tobytes().hex()


def count_apart(first: str, second: str) -> int:
    """Count the different bits of two hexadecimal hashes.

    >>> count_apart("0f", "00")
    4
    """
    return (int(first, 16) ^ int(second, 16)).bit_count()


def normalize_text(text: str) -> str:
    """Normalize a text for comparison: undo obfuscations, drop punctuation and white space."""
    return "".join(sign for sign in clean(unmask(text).text) if sign.isalnum())
