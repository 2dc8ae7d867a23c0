"""A text encoder that needs no weights."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from memantics.models.embedded.encoder import Vectors, clean


class GramEncoder:
    """Hashed counts of character n-grams: no semantics, but any language and no extra package."""

    version = "grams-1"
    _width = 2048

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text."""
        rows = np.zeros((len(texts), self._width), dtype=np.float32)
        for number, text in enumerate(texts):
            padded = f" {clean(text).casefold()} "
            for size in (1, 2, 3):
                for start in range(len(padded) - size + 1):
                    gram = padded[start : start + size]
                    rows[number, zlib.crc32(gram.encode()) % self._width] += size
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, 1e-9), dtype=np.float32)
