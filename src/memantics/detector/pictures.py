"""Pictures through a vision model of this machine (CLIP, SigLIP, …), beside meanings of texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memantics.core.errors import ImageError
from memantics.detector.features import Embedder
from memantics.detector.kernel import Singles
from memantics.models.embedders import LocalImageEncoder


class SeeingEmbedder:
    """Meanings of texts by one encoder and of pictures by another, under one version.

    Pictures are asked one by one, so that no neighbour changes a digit, and each is kept.
    """

    def __init__(self, texts: Embedder | None, pictures: LocalImageEncoder) -> None:
        self.version = "+".join([*([texts.version] if texts else []), pictures.version])
        self._texts, self._pictures = texts, pictures
        self._known: dict[Path, Singles] = {}
        self.width = pictures.width

    def encode(self, texts: Sequence[str]) -> Singles:
        """One row per text; without an encoder of texts, no meanings."""
        if self._texts is None:
            return np.zeros((len(texts), 1), np.float32)
        return self._texts.encode(texts)

    def see(self, images: Sequence[Path | None]) -> Singles:
        """One row per image; zeros where an image is missing or cannot be decoded."""
        rows = np.zeros((len(images), self.width), np.float32)
        for row, image in zip(rows, images, strict=True):
            if image is not None:
                row[:] = self._look(image)
        return rows

    def _look(self, image: Path) -> Singles:
        if image not in self._known:
            try:
                self._known[image] = self._pictures.encode_files([image])[0]
            except ImageError:
                self._known[image] = np.zeros(self.width, np.float32)
        return self._known[image]
