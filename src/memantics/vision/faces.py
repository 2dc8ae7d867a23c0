"""Faces by YuNet, whose ONNX file the user brings: OpenCV 5 ships no detector of faces any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from memantics.core.errors import DataError, InputError

_SURE = 0.6  # score from which a find counts
FaceBox = tuple[float, float, float, float]


class YuNet:
    """OpenCV's detector with a file of the user's; made for photographs, weak on drawings."""

    def __init__(self, path: Path) -> None:
        import cv2

        self.name = f"yunet: {path.name}"
        make: Any = cv2.FaceDetectorYN.create
        try:
            self._network = make(str(path), "", (320, 320), _SURE)
        except cv2.error as error:
            first = " ".join(str(error).split())[:200]
            raise DataError(
                path, f"is no YuNet detector: {first}", hint="face_detection_yunet_*.onnx"
            ) from error

    def find(self, image: Image.Image, name: str) -> list[FaceBox]:
        """Boxes (left, top, right, bottom) of faces that it is sure of; ``name`` is for errors."""
        import cv2

        pixels = np.ascontiguousarray(np.asarray(image.convert("RGB"))[..., ::-1])
        self._network.setInputSize(image.size)
        try:
            rows = self._network.detect(pixels)[1]
        except cv2.error as error:
            first = " ".join(str(error).split())[:200]
            raise InputError(
                f"{self.name} fails on {name}: {first}", hint="give the file of another YuNet"
            ) from error
        found = [] if rows is None else rows.tolist()
        return [(x, y, x + w, y + h) for x, y, w, h, *_ in found]
