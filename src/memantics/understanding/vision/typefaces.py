"""Fonts: included fonts, system fonts for missing characters, font matching, and drawn emoji.

Emoji that replace letters or syllables are drawn here, since the fonts do not contain them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from memantics.core.data import toml_beside
from memantics.core.errors import InputError
from memantics.core.fonts import FOLDER
from memantics.understanding.vision.regions import has_chinese

SIGNS = "⭕❤👁⛵"
_APART = re.compile(f"([{SIGNS}])")
_FINE = 4  # factor by which a sign is drawn larger and then scaled down


def split_signs(line: str) -> list[str]:
    """Split a line into runs of letters and single signs.

    >>> split_signs("ann⭕ying"), split_signs("so am I")
    (['ann', '⭕', 'ying'], ['so am I'])
    """
    return [part for part in _APART.split(line) if part]


def draw_sign(sign: str, side: int, edge: float) -> Image.Image:
    """Draw a sign as a mask of a given side, with an outline in pixels."""
    pad = round(edge) * _FINE
    whole = side * _FINE + 2 * pad
    mask = Image.new("L", (whole, whole))
    pen = ImageDraw.Draw(mask)
    for shape, ink, numbers in toml_beside(__file__, "signs.toml")[sign]:
        places = [pad + number * side * _FINE / 100 for number in numbers]
        getattr(pen, shape)(places, fill=255 * ink)
    if pad:
        mask = mask.filter(ImageFilter.MaxFilter(2 * pad + 1))
    small = side + 2 * round(edge)
    return mask.resize((small, small), Image.Resampling.LANCZOS)


_PROBE = 120  # font size in pixels for measurements


@dataclass(frozen=True, slots=True)
class Typeface:
    """A font file; ``pitch`` is the line distance relative to the size."""

    file: str
    chinese: bool
    pitch: float = 1.16

    def at(self, size: float) -> ImageFont.FreeTypeFont:
        """Return the font at a size in pixels."""
        return _load(self.file, round(size, 1))

    def covers(self, text: str) -> bool:
        """Tell whether the font has a glyph for every character."""
        return not find_missing(self, text)


ANTON = Typeface("Anton-Regular.ttf", chinese=False)
BALOO = Typeface("Baloo2-Bold.ttf", chinese=False, pitch=1.08)
REGULAR = Typeface("NotoSansSC-Regular-subset.otf", chinese=True)
BLACK = Typeface("NotoSansSC-Black-subset.otf", chinese=True)
FACES = (ANTON, BALOO, REGULAR, BLACK)


@lru_cache(maxsize=512)
def _load(file: str, size: float) -> ImageFont.FreeTypeFont:
    path = Path(file) if Path(file).is_absolute() else FOLDER / file
    try:
        return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
    except OSError as error:
        raise InputError(f"cannot read the font {path.name}", hint="reinstall memantics") from error


def find_missing(face: Typeface, text: str) -> str:
    """List the characters that neither a font nor ``SIGNS`` can draw.

    >>> find_missing(ANTON, "so 好")
    '好'
    """
    seen = dict.fromkeys(text)
    return "".join(c for c in seen if not (c.isspace() or c in SIGNS or _draws(face, c)))


@lru_cache(maxsize=16384)
def _draws(face: Typeface, character: str) -> bool:
    """Tell whether a glyph differs from the placeholder box."""
    font = face.at(40)
    return bytes(font.getmask(character)) != _draw_missing(face)


@cache
def _draw_missing(face: Typeface) -> bytes:
    return bytes(face.at(40).getmask("\U0010fffe"))


def find_face(text: str, wanted: Typeface) -> Typeface:
    """Find a font for a whole text: the wanted one, an included one, or a system font."""
    ours = (wanted, *sorted(FACES, key=lambda face: face.chinese != wanted.chinese))
    if has_chinese(text):
        ours = tuple(face for face in ours if face.chinese)
    for face in ours:
        if face.covers(text):
            return face
    missing = find_missing(BLACK, text)
    found = _ask_system(missing)
    if found is None or not found.covers(text):
        raise InputError(
            f"no font contains the characters {missing[:12]!r}",
            hint="remove these characters, or install a font such as fonts-noto-cjk",
        )
    return found


@lru_cache(maxsize=64)
def _ask_system(characters: str) -> Typeface | None:
    """Return fontconfig's font for some characters, if fontconfig is installed."""
    program = shutil.which("fc-match")
    if program is None:
        return None
    codes = " ".join(f"{ord(c):x}" for c in characters[:64])
    try:
        done = subprocess.run(  # noqa: S603 - hexadecimal numbers only
            [program, "--format=%{file}", f"sans:bold:charset={codes}"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    path = Path(done.stdout.strip())
    return Typeface(str(path), chinese=True) if done.returncode == 0 and path.is_file() else None


def measure_line(
    face: Typeface, size: float, text: str, tracking: float = 0.0
) -> tuple[float, float, float, float]:
    """Return the ink box of a line, with extra letter spacing in pixels."""
    left, top, right, bottom = face.at(size).getbbox(text)
    return left, top, right + tracking * max(0, len(text) - 1), bottom


@dataclass(frozen=True, slots=True)
class Shape:
    """Width and stroke of a text in a font, relative to its ink height."""

    width: float
    stroke: float


@lru_cache(maxsize=4096)
def measure_shape(face: Typeface, text: str) -> Shape:
    """Draw a text and measure its shape."""
    font = face.at(_PROBE)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("L", (int(right - left) + 8, int(bottom - top) + 8))
    ImageDraw.Draw(image).text((4 - left, 4 - top), text, font=font, fill=255)
    box = image.getbbox()
    if box is None:
        return Shape(0.0, 0.0)
    height = box[3] - box[1]
    return Shape((box[2] - box[0]) / height, measure_stroke(np.asarray(image) > 127) / height)


def measure_stroke(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    """Measure the mean stroke width: in a band of width w, the mean distance to its edge is w/4.

    >>> bar = np.zeros((60, 200), bool)
    >>> bar[20:40] = True
    >>> 18 < measure_stroke(bar) < 23
    True
    """
    import cv2

    if not mask.any():
        return 0.0
    padded = np.pad(mask.astype(np.uint8), 1)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, 3)
    return float(4 * (distance[padded > 0] - 0.5).mean())


def match_face(texts: Sequence[str], shapes: Sequence[Shape]) -> Typeface:
    """Find the font whose rendering of the lines is most similar to the measured shapes.

    >>> line = "STRAIGHT AS A RULER"
    >>> match_face([line], [measure_shape(ANTON, line)]).file
    'Anton-Regular.ttf'
    """
    chinese = any(has_chinese(text) for text in texts)
    candidates = [face for face in FACES if face.chinese or not chinese]

    def differ(face: Typeface) -> float:
        total = 0.0
        for text, shape in zip(texts, shapes, strict=True):
            candidate = measure_shape(face, text)
            total += abs(np.log((candidate.width + 0.1) / (shape.width + 0.1)))
            total += 0.5 * abs(np.log((candidate.stroke + 0.01) / (shape.stroke + 0.01)))
        return total

    return min(candidates, key=differ)
