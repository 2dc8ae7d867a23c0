"""Removal of captions from images, and changed images for perturbation tests.

Letters on a plain background are filled with its colour, others are inpainted. The perturbations
are a white image of the same size, and an image whose text is painted over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageStat

from memantics.core.credentials import EditStep, Original
from memantics.core.files import replace_file
from memantics.core.images import encode_png, load, probe, read_bytes
from memantics.core.stamping import ImageStamp, Making
from memantics.understanding.vision.colours import Mask, Pixels
from memantics.understanding.vision.ink import Ink
from memantics.understanding.vision.regions import PixelBox

# maximum difference of a colour channel (0 to 255) between a letter and its compression artefacts
_HALO = 80
_FINE = 9.0  # stroke width in pixels; wider strokes are inpainted in a smaller copy


def remove_ink(pixels: Pixels, ink: Ink) -> None:
    """Remove the letters of one caption from an image; no pixel outside its zone changes."""
    import cv2

    left, top, right, bottom = ink.zone
    thickness = max(1, round(ink.outline_width / 3)) + 1
    kernel = np.ones((2 * thickness + 1, 2 * thickness + 1), np.uint8)
    # Anti-aliased edges and compression halos are just outside the mask.
    mask: Mask = (cv2.dilate(ink.mask.astype(np.uint8), kernel) > 0) & ~_widen(ink.borders)
    if not mask.any():
        return
    crop = pixels[top:bottom, left:right]
    if ink.ground.flat:
        crop[mask] = ink.ground.colour
        return
    crop[mask] = _paint_over(pixels, ink, mask)[mask]


def _widen(borders: Mask) -> Mask:
    """Extend the mask of border lines by their anti-aliased edges."""
    import cv2

    wide: Mask = cv2.dilate(borders.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    return wide


def _paint_over(pixels: Pixels, ink: Ink, mask: Mask) -> Pixels:
    """Inpaint the letters from the surrounding pixels."""
    import cv2

    left, top, right, bottom = ink.zone
    reach = 12
    y, x = max(0, top - reach), max(0, left - reach)
    crop = np.ascontiguousarray(pixels[y : bottom + reach, x : right + reach])
    holes = np.zeros(crop.shape[:2], np.uint8)
    holes[top - y : bottom - y, left - x : right - x] = mask
    holes |= _find_halo(crop, holes, ink)
    wide = max(ink.stroke + 2 * ink.outline_width, 1.0)
    scale = min(1.0, _FINE / wide)
    if scale < 1.0:
        # Inpainting large holes smears and is slow; a smaller copy has smaller holes.
        size = (max(8, round(crop.shape[1] * scale)), max(8, round(crop.shape[0] * scale)))
        gaps = cv2.resize(holes.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.02
        small = _shrink(crop, holes, size)
        painted = cv2.inpaint(small, gaps.astype(np.uint8), 3, cv2.INPAINT_TELEA)
        whole = cv2.resize(painted, crop.shape[1::-1], interpolation=cv2.INTER_CUBIC)
    else:
        whole = cv2.inpaint(crop, holes, 3, cv2.INPAINT_TELEA)
    found: Pixels = np.asarray(whole, np.uint8)[top - y : bottom - y, left - x : right - x]
    return found


def _find_halo(crop: Pixels, holes: Pixels, ink: Ink) -> Pixels:
    """Find pixels just outside the letters that have the letters' colours."""
    import cv2

    wide = 2 * max(3, round(0.4 * ink.stroke)) + 1
    band = (cv2.dilate(holes, np.ones((wide, wide), np.uint8)) > 0) & (holes == 0)
    colours = [ink.fill] + [ink.outline] * (ink.outline_width > 0)
    gaps = [np.abs(crop.astype(np.int16) - np.array(colour)).max(axis=2) for colour in colours]
    alike = np.min(gaps, axis=0) <= _HALO
    ground = np.abs(crop.astype(np.int16) - np.array(ink.ground.colour)).max(axis=2) <= _HALO
    return np.asarray(band & alike & ~ground, np.uint8)


def _shrink(crop: Pixels, holes: Pixels, size: tuple[int, int]) -> Pixels:
    """Scale down without mixing letter colours into the surroundings."""
    import cv2

    known = (holes == 0).astype(np.float32)
    weight = cv2.resize(known, size, interpolation=cv2.INTER_AREA)
    total = cv2.resize(
        crop.astype(np.float32) * known[..., None], size, interpolation=cv2.INTER_AREA
    )
    return np.asarray(np.clip(total / np.maximum(weight, 0.01)[..., None], 0, 255), np.uint8)


# margin around a text box relative to the line height, since strokes and outlines exceed the box
_MARGIN = 0.15


class PictureShelf:
    """Changed images in a folder, each made once; the same image always gets the same file."""

    def __init__(
        self, folder: Path, find_lines: Callable[[bytes, str], Sequence[PixelBox]]
    ) -> None:
        self._folder = folder
        self._find_lines = find_lines

    def blank(self, path: Path) -> Path:
        """Make a white image of the same size."""
        facts = probe(read_bytes(path), path.name)
        made = self._folder / f"blank-{facts.width}x{facts.height}.png"
        if not made.is_file():
            white = Image.new("RGB", (facts.width, facts.height), "white")
            _save(white, made, Making("algorithmicMedia"))
        return made

    def erase(self, path: Path) -> Path:
        """Paint over the text lines of an image with the surrounding colour."""
        data = read_bytes(path)
        made = self._folder / f"erased-{hashlib.sha256(data).hexdigest()[:24]}.png"
        if not made.is_file():
            picture = load(path).convert("RGB")
            for box in self._find_lines(data, path.name):
                paint_over(picture, box)
            steps = (EditStep("c2pa.removed", "text painted over"),)
            _save(picture, made, Making("composite", steps, original=Original(path.name, data)))
        return made


def paint_over(picture: Image.Image, box: PixelBox) -> None:
    """Fill a slightly enlarged box with the median colour of the ring around it."""
    margin = max(2, round((box[3] - box[1]) * _MARGIN))
    inner = _grow(picture, box, margin)
    outer = _grow(picture, box, 2 * margin + 1)
    ring = Image.new("L", picture.size, 0)
    draw = ImageDraw.Draw(ring)
    draw.rectangle(outer, fill=255)
    draw.rectangle(inner, fill=0)
    # Text at the image edge may leave no ring; then the box itself gives the colour.
    mask = ring if ring.getextrema() != (0, 0) else None
    colour = tuple(int(value) for value in ImageStat.Stat(picture, mask).median)
    ImageDraw.Draw(picture).rectangle(inner, fill=colour)


def _grow(picture: Image.Image, box: PixelBox, by: int) -> PixelBox:
    left, top, right, bottom = box
    return (
        max(0, left - by),
        max(0, top - by),
        min(picture.width - 1, right + by),
        min(picture.height - 1, bottom + by),
    )


def _save(picture: Image.Image, path: Path, making: Making) -> None:
    data = ImageStamp().apply(encode_png(picture, 6), making)
    replace_file(path, data, "picture", "MEMANTICS_HOME")
