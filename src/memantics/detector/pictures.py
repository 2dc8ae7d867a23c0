"""Pictures through a vision model of this machine (CLIP, SigLIP, …), beside meanings of texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memantics.core.errors import ImageError
from memantics.core.images import load
from memantics.detector.features import IMAGE_WIDTH, Embedder
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


# Statistics of a picture's pixels: shape, light, colour and edges.

_SIDE = 64


def measure_images(images: Sequence[Path | None]) -> Singles:
    """One row of length 1 per image; zeros where an image is missing or cannot be decoded."""
    rows = np.zeros((len(images), IMAGE_WIDTH), np.float32)
    for row, image in zip(rows, images, strict=True):
        if image is not None:
            try:
                row[:] = measure_image(image)
            except ImageError:
                continue
    return rows


def measure_image(path: Path) -> Singles:
    """Shape, brightness, colour, colour histogram and edges, each between 0 and 1."""
    picture = load(path).convert("RGB")
    width, height = picture.size
    pixels = np.asarray(picture.resize((_SIDE, _SIDE)), np.float32) / 255
    grey = pixels.mean(axis=2)
    spread = pixels.max(axis=2) - pixels.min(axis=2)
    across, down = np.abs(np.diff(grey, axis=1)), np.abs(np.diff(grey, axis=0))
    light, _ = np.histogram(grey, bins=8, range=(0, 1))
    values = [
        width / (width + height),
        min(1.0, np.log10(width * height) / 8),
        *pixels.mean(axis=(0, 1)),
        *pixels.std(axis=(0, 1)),
        float(spread.mean()),
        float(spread.std()),
        float(across.mean()),
        float(down.mean()),
        float((across > 0.2).mean()),
        float((down > 0.2).mean()),
        float(grey[: _SIDE // 4].mean()),
        float(grey[-_SIDE // 4 :].mean()),
        *(light / grey.size),
    ]
    row = np.array(values, np.float32)
    return row / np.float32(np.linalg.norm(row))
