"""What one image file shows: read once, within bounds, and remembered by content."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from memantics.core.errors import ImageError
from memantics.core.images import decode, read_bytes
from memantics.core.lines import Ocr, TextLine
from memantics.vision.hashes import hash_image
from memantics.vision.roles import read_image_text

VERSION = "looks-5"
_SIDE = 128  # of the small copy in which the picture around the text is judged
_MARGIN = 0.12  # of a line's height: outlines and shadows of letters belong to the text
# A box of which each letter takes more of the image than this is a drawing misread as a letter.
_LARGEST_LETTER = 0.06


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a file.

    ``hash`` is perceptual, 16 hexadecimal digits. ``certainty`` is the OCR's, weighted by letters;
    ``height`` of the largest line in pixels; ``covered`` the share of the image under text;
    ``variety`` the share of the picture around the text that is not of its one commonest colour.
    ``error`` says why there is no more than that; ``watermark`` is a small line that names a site
    or an account. ``text`` are the captions, ``left_out`` is all other text.
    """

    sha256: str
    version: str
    width: int = 0
    height: int = 0
    hash: str = ""
    text: str = ""
    certainty: float = 0.0
    line_height: int = 0
    covered: float = 0.0
    variety: float = 0.0
    error: str = ""
    watermark: str = ""
    left_out: str = ""


def digest_file(path: Path) -> str:
    """The SHA-256 of a file that may be no image at all; empty where it cannot be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except ImageError:
        return ""


def look_at(path: Path, reader: Ocr) -> Look:
    """Decode within bounds, read, hash and measure; what is wrong with a file is a result."""
    version = f"{VERSION}/{reader.version}"
    try:
        data = read_bytes(path)
    except ImageError as error:
        return Look("", version, error=f"{error.reason}")
    digest = hashlib.sha256(data).hexdigest()
    try:
        image = decode(data, path.name)
        printed = read_image_text(reader, data, path.name, image=image)
    except ImageError as error:
        return Look(digest, version, error=error.reason)
    lines = [line for line in printed.lines if line.text.strip()]
    covered, variety = _measure_picture(image, _find_boxes(image, lines))
    return Look(
        sha256=digest,
        version=version,
        width=image.width,
        height=image.height,
        hash=f"{hash_image(image):016x}",
        text=printed.caption,
        certainty=round(_weigh(lines), 4),
        line_height=max((line.box[3] - line.box[1] for line in lines), default=0),
        covered=round(covered, 4),
        variety=round(variety, 4),
        watermark=next((line.text for line in lines if line.role == "watermark"), ""),
        left_out=printed.left_out,
    )


def _weigh(lines: Sequence[TextLine]) -> float:
    letters = sum(len(line.text) for line in lines)
    return sum(line.score * len(line.text) for line in lines) / letters if letters else 0.0


def _find_boxes(image: Pillow.Image, lines: Sequence[TextLine]) -> list[tuple[int, int, int, int]]:
    """Where text stands, without the drawings that were taken for it."""
    found = []
    for line in lines:
        left, top, right, bottom = line.box
        share = (right - left) * (bottom - top) / (image.width * image.height)
        if share <= _LARGEST_LETTER * len(line.text.strip()):
            found.append(line.box)
    return found


def _measure_picture(
    image: Pillow.Image, boxes: Sequence[tuple[int, int, int, int]]
) -> tuple[float, float]:
    """The share of the image under text, and how much is going on in the rest."""
    small = np.asarray(image.resize((_SIDE, _SIDE), Pillow.Resampling.BILINEAR))
    text = np.zeros((_SIDE, _SIDE), dtype=bool)
    across, down = _SIDE / image.width, _SIDE / image.height
    for left, top, right, bottom in boxes:
        margin = _MARGIN * min(bottom - top, right - left)
        rows = slice(
            max(0, int((top - margin) * down)), max(0, int(np.ceil((bottom + margin) * down)))
        )
        columns = slice(
            max(0, int((left - margin) * across)), max(0, int(np.ceil((right + margin) * across)))
        )
        text[rows, columns] = True
    covered = float(text.mean())
    rest = small[~text]
    if len(rest) == 0:
        return covered, 0.0
    # 16 steps per channel: noise of compression does not count as colour.
    colours = (rest >> 4).astype(np.uint32)
    keys = colours[:, 0] << 8 | colours[:, 1] << 4 | colours[:, 2]
    commonest = Counter(keys.tolist()).most_common(1)[0][1]
    return covered, 1.0 - commonest / len(rest)
