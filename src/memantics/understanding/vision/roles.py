"""Roles of text lines in an image: caption, scene, watermark or interface.

A small additive model estimates the probability that a line is a caption, from its size, position,
colours and neighbours; no feature depends on the script. ``research/roles.py`` fits it (results:
docs/research/roles.md). Site names, accounts, clock times and battery levels are recognised by
patterns.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image

from memantics.core.images import decode
from memantics.core.lines import ImageReading, Ocr, TextLine, TextRole
from memantics.metrics.rounding import Floats
from memantics.understanding.vision.regions import belong, is_signature, measure_thickness
from memantics.understanding.vision.spacing import part_known_words

WEIGHTS = Path(__file__).parent / "roles.json"
FEATURES = (
    "size beside the tallest line", "size beside the main line", "size beside the picture",
    "width of letters beside the main line",
    "certainty of the OCR", "length", "share of letters", "width beside the picture",
    "distance from the middle", "distance from the upper or lower edge", "height of its place",
    "share of all text", "lines in the picture", "neighbours of its size", "said again", "tilt",
    "contrast", "unevenness of letters", "unevenness of ground", "lightness of letters",
    "colourfulness of letters", "colour unlike the main line",
)  # fmt: skip
_DIGITS = 5  # number of decimals to which results are equal on all processors
_SAMPLE = 80  # sampled pixels per line, vertical and horizontal
_SURE = 0.9  # probability of the role of a line if a text pattern determines it
# position of a status bar relative to the image; size relative to the tallest line
_TOP, _LOW = 0.09, 0.6
_WIDE = 0x2E7F  # characters above this code point are as wide as high
# Minimum distance of letters on tiles or keys in a row: in line heights, and relative to the most
# probable caption.
_APART, _FARTHER, _ROW = 1.15, 1.4, 4
# Widths of Latin characters relative to a letter such as "n", for letters on tiles; the height of a
# line without long letters ("summer") is this proportion of that of other lines.
_WIDTHS = dict.fromkeys("mwMW", 1.6) | dict.fromkeys("fijlrtI.,:;!'|", 0.6)
_CAPITAL, _SPACE, _FLAT = 1.35, 0.55, 0.72
_WORD_GAP = re.compile(r"(?<=\w\w) (?=\w\w)")
_SHORT_LETTERS = re.compile(r"[acemnorsuvwxz .,]+")
_LETTER = re.compile(r"[^\W\d_]")
# Pattern of number plates: short runs of letters with digits, but no year at the end.
_PLATE = re.compile(
    r"[\u4e00-\u9fff]{0,2}(?=.*[A-Z])(?!.*[A-Z]{4})(?!.*(?:19|20)\d\d$)"
    r"(?:(?=(?:.*\d){3})|(?=.*\d.*\d.*[A-Z]))[A-Z0-9]{5,8}"
)
_TIME = r"(?:上午|下午|昨天|今天|星期.|周.|yesterday|today)? ?\d{1,2}[:：]\d{2}(?: ?[AP]M)?"
_STATUS = re.compile(
    rf"{_TIME}|\d{{1,3}} ?%|[2-5]G\+?|LTE|Wi-?Fi|(?:中国)?(?:移动|联通|电信)"
    r"|\d+(?:\.\d+)? ?[KM]B?/s"
    rf"|(?:delivered|read|sent|seen)(?: {_TIME})?|type a message|发送|按住 ?说话|已读"
    r"|[\d.,]+[KM万]? ?(?:likes?|replies|views|shares|comments|赞|评论|转发)"
    r"|(?:\S+ ){0,2}\d{1,3} ?%|(?:LTE|[2-5]G\S*) +\S+",
    re.IGNORECASE,
)


def measure_lines(lines: Sequence[TextLine], pixels: NDArray[np.uint8]) -> Floats:
    """Compute one row of :data:`FEATURES` for each text line of an RGB image."""
    if not lines:
        return np.zeros((0, len(FEATURES)))
    high, wide = pixels.shape[:2]
    sizes = [max(1.0, float(measure_thickness(line))) for line in lines]
    texts = ["".join(line.text.split()) for line in lines]
    letters = [len(_LETTER.findall(text)) for text in texts]
    weights = [(count + 0.2) * size for count, size in zip(letters, sizes, strict=True)]
    pitches = [_measure_pitch(line) for line in lines]
    main = max(range(len(lines)), key=lambda place: (weights[place], -place))
    tallest, total = max(sizes), sum(weights)
    said = Counter(text.casefold() for text in texts)
    inks = [_look_at_ink(line, pixels) for line in lines]
    rows = []
    for place, line in enumerate(lines):
        left, top, right, bottom = line.box
        near = sum(belong(line, other) for other in lines if other is not line)
        middle = (top + bottom) / 2 / high
        contrast, letters_vary, ground_varies, colour = inks[place]
        rows.append(
            (
                math.log(sizes[place] / tallest),
                math.log(sizes[place] / sizes[main]),
                math.log(sizes[place] / high),
                math.log(pitches[place] / pitches[main]),
                -math.log(1.005 - min(1.0, line.score)),
                math.log(1 + len(texts[place])),
                letters[place] / max(1, len(texts[place])),
                (right - left) / wide,
                abs((left + right) / 2 / wide - 0.5),
                min(middle, 1 - middle),
                middle,
                weights[place] / total,
                math.log(len(lines)),
                min(near, 2),
                math.log(said[texts[place].casefold()]),
                min(abs(line.tilt), 20) / 20,
                contrast,
                letters_vary,
                ground_varies,
                sum(colour) / 3,
                max(colour) - min(colour),
                max(abs(a - b) for a, b in zip(colour, inks[main][3], strict=True)),
            )
        )
    return np.asarray(rows, np.float64)


def _measure_pitch(line: TextLine) -> float:
    """Measure the mean width per letter of a line; a wide (Chinese) letter counts as two."""
    units = sum(2 if ord(char) > _WIDE else 1 for char in line.text if not char.isspace())
    long = max(line.box[2] - line.box[0], line.height)
    return max(1, long) / max(1, units)


def _look_at_ink(
    line: TextLine, pixels: NDArray[np.uint8]
) -> tuple[float, float, float, tuple[float, float, float]]:
    """Measure contrast, unevenness of letters and background, and letter colour, from 0 to 1."""
    high, wide = pixels.shape[:2]
    left, top, right, bottom = line.box
    rows = slice(max(0, top), min(high, bottom), max(1, (bottom - top) // _SAMPLE))
    columns = slice(max(0, left), min(wide, right), max(1, (right - left) // (4 * _SAMPLE)))
    part = pixels[rows, columns].astype(np.int64)
    if part.shape[0] < 3 or part.shape[1] < 3:
        return 0.0, 0.0, 0.0, (0.0, 0.0, 0.0)
    grey = (299 * part[..., 0] + 587 * part[..., 1] + 114 * part[..., 2]) // 1000
    light = grey > _split(grey)
    edge = np.concatenate((light[0], light[-1], light[:, 0], light[:, -1]))
    ink = ~light if 2 * int(edge.sum()) >= edge.size else light
    if not ink.any() or ink.all():
        return 0.0, 0.0, 0.0, (0.0, 0.0, 0.0)
    contrast = abs(float(grey[ink].mean()) - float(grey[~ink].mean())) / 255
    red, green, blue = (float(value) / 255 for value in np.median(part[ink], axis=0))
    uneven = float(grey[ink].std()) / 255, float(grey[~ink].std()) / 255
    return contrast, *uneven, (red, green, blue)


def _split(grey: NDArray[np.int64]) -> int:
    """Return Otsu's threshold between dark and light."""
    counts = np.bincount(grey.ravel(), minlength=256)
    below, sums = np.cumsum(counts), np.cumsum(counts * np.arange(256))
    above = below[-1] - below
    gap = sums * (below[-1] / np.maximum(1, below)) - sums[-1]
    between = np.where(above > 0, below * gap**2 / np.maximum(1, above), 0.0)
    return int(np.argmax(np.round(between / max(1.0, float(between.max())), 9)))


def rate_lines(table: Floats, model: Mapping[str, Any] | None = None) -> list[float]:
    """Estimate each line's probability to be a caption with piecewise-linear feature curves."""
    model = model or load_model()
    total = np.full(len(table), float(model["bias"]))
    for place, name in enumerate(FEATURES):
        if name in model["curves"]:
            total += np.interp(table[:, place], *model["curves"][name])
    return [round(1 / (1 + math.exp(-value)), _DIGITS) for value in total.tolist()]


@cache
def load_model() -> dict[str, Any]:
    """Load the feature curves and the threshold of the model for text roles."""
    found: dict[str, Any] = orjson.loads(WEIGHTS.read_bytes())
    return found


def assign_roles(lines: Sequence[TextLine], image: Image.Image) -> tuple[TextLine, ...]:
    """Assign a role to each line; the likeliest caption is always a caption."""
    chances = rate_lines(measure_lines(lines, np.asarray(image.convert("RGB"))))
    return choose_roles(lines, chances, image.height, load_model()["threshold"])


def choose_roles(
    lines: Sequence[TextLine], chances: Sequence[float], height: int, threshold: float
) -> tuple[TextLine, ...]:
    """Derive roles from caption probabilities, in an image of that height."""
    tallest = max((measure_thickness(line) for line in lines), default=0)
    likeliest = max(range(len(lines)), key=lambda at: (chances[at], -at), default=0)
    gap = max(_APART, _FARTHER * _measure_gap(lines[likeliest])) if lines else 0.0
    worded = [_tell_at_once(line, tallest, height, gap) for line in lines]
    free = [place for place, role in enumerate(worded) if role is None]
    best = max(free or range(len(lines)), key=lambda at: (chances[at], -at), default=None)
    other: TextRole = "interface" if "interface" in worded else "scene"
    found = []
    for place, (line, chance, role) in enumerate(zip(lines, chances, worded, strict=True)):
        if place == best or (role is None and chance >= threshold):
            found.append(replace(line, role="caption", probability=chance))
        elif role is None:
            found.append(replace(line, role=other, probability=round(1 - chance, _DIGITS)))
        else:
            found.append(replace(line, role=role, probability=_SURE))
    return tuple(found)


def _measure_gap(line: TextLine) -> float:
    """Return the distance of a wide letter to the next one, in line heights.

    Latin characters count by their usual width, so that capitals and "m" are not far apart.
    """
    units = _SPACE * len(_WORD_GAP.findall(line.text))
    for char in line.text:
        if ord(char) > _WIDE:
            units += 2
        elif not char.isspace():
            units += _WIDTHS.get(char, _CAPITAL if char.isupper() else 1)
    high = float(max(1, measure_thickness(line)))
    if _SHORT_LETTERS.fullmatch(line.text):
        high /= _FLAT
    long = max(line.box[2] - line.box[0], line.height)
    return 2 * max(1, long) / max(1, units) / high


def _tell_at_once(line: TextLine, tallest: int, height: int, gap: float) -> TextRole | None:
    """Return a role that is determined by a pattern: site, account, status bar, plate or tiles."""
    size = measure_thickness(line)
    if is_signature(line.text, size, height):
        return "watermark"
    text = line.text.strip()
    small = size <= _LOW * tallest or line.box[3] <= _TOP * height
    if small and _STATUS.fullmatch(text):
        return "interface"
    letters = re.sub(r"[\s·•.-]", "", text)
    apart = len(letters) >= _ROW and _measure_gap(line) > gap
    return "scene" if apart or _PLATE.fullmatch(letters) else None


def _part_words(line: TextLine) -> TextLine:
    text = part_known_words(line.text)
    # Alternatives have offsets into the text that OCR read.
    return line if text == line.text else replace(line, text=text, alternatives=())


def read_image_text(
    ocr: Ocr, data: bytes, name: str, *, image: Image.Image | None = None
) -> ImageReading:
    """Read the text of an image, with a role for each line unless all lines are used.

    Missing spaces between English words are restored.
    """
    found = ocr.read(data, name)
    lines = tuple(map(_part_words, found.lines))
    if found.taken == "caption":
        lines = assign_roles(lines, image or decode(data, name))
    return replace(found, lines=lines)
