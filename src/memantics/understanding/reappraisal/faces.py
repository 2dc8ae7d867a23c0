"""Find faces, and repaint only them with a generative editor.

The package contains no face detector, since OpenCV 5 no longer ships one. Positions come from the
user, from a vision-language model, or from the user's detector file (YuNet, ONNX).
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from PIL import Image, ImageDraw, ImageFilter
from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.images import decode, encode_png
from memantics.core.model import Asker, Editor, EditRequest, Step
from memantics.core.records import Form, Lenient, Message, Request, Sampling
from memantics.core.records import Image as Picture
from memantics.core.reply import describe_reply, read_object
from memantics.core.task import Unparsed
from memantics.understanding.reappraisal.grading import EmbeddedEditor
from memantics.understanding.reappraisal.stages import find_prompts
from memantics.understanding.vision.appearance import YuNet
from memantics.understanding.vision.regions import PixelBox

BY_MODEL = "model"
_MOST = 8  # maximum faces to repaint per meme, the largest first
_AROUND = 0.5  # context around a face on each side, relative to its size
_SOFT = 0.06  # width of the blended rim, relative to the face
_GRID = 1000  # size of the coordinate grid in model replies
_PLACE = re.compile(r"\s*,\s*".join([r"(\d+(?:\.\d+)?)"] * 4))
_LOOKS = {
    "happy": "smiling happily, with bright eyes",
    "calm": "calm, with smooth brows and a closed mouth",
    "relaxed": "relaxed, with half-closed eyes and an easy smile",
    "excited": "excited, with wide eyes and an open, laughing mouth",
}


class FaceFinder(Protocol):
    """Protocol of a face finder; ``name`` identifies it in results."""

    @property
    def name(self) -> str:
        """The name and version of the face finder, on which results depend."""
        ...

    async def find(self, meme: str, path: Path, image: Image.Image) -> tuple[PixelBox, ...]:
        """Find the faces of a meme: boxes in the pixels of ``image``."""
        ...


@dataclass(frozen=True, slots=True)
class GivenFaces:
    """Face boxes given by the user: left, top, width, height in pixels of the source."""

    places: tuple[tuple[float, float, float, float], ...]

    @property
    def name(self) -> str:
        """The given face boxes as text, which identifies them in results."""
        return f"given: {self.places}"

    async def find(self, meme: str, path: Path, image: Image.Image) -> tuple[PixelBox, ...]:
        """Return the given boxes, clipped to the image."""
        source = decode(await asyncio.to_thread(path.read_bytes), path.name).size
        scale = (image.width / source[0], image.height / source[1])  # large images are scaled down
        found = []
        for left, top, width, height in self.places:
            box = clip((left, top, left + width, top + height), image.size, scale)
            if box is None:
                said = ",".join(f"{length:g}" for length in (left, top, width, height))
                raise InputError(
                    f"--face {said} is outside {meme}, which has {source[0]} x {source[1]} pixels",
                    hint="use X,Y,W,H in pixels from the upper left corner",
                )
            found.append(box)
        return tuple(found)


def clip(
    box: tuple[float, float, float, float],
    size: tuple[int, int],
    scale: tuple[float, float] = (1.0, 1.0),
) -> PixelBox | None:
    """Clip a box to the image in whole pixels; None if less than a pixel remains.

    >>> clip((-4, 2, 10, 90), (20, 30)), clip((40, 0, 50, 9), (20, 30))
    ((0, 2, 10, 30), None)
    """
    left, top, right, bottom = box
    made = (
        max(0, math.floor(left * scale[0])),
        max(0, math.floor(top * scale[1])),
        min(size[0], math.ceil(right * scale[0])),
        min(size[1], math.ceil(bottom * scale[1])),
    )
    return made if made[0] < made[2] and made[1] < made[3] else None


class YuNetFaces:
    """The user's YuNet detector file; see :class:`.vision.appearance.YuNet`."""

    def __init__(self, path: Path) -> None:
        self._network = YuNet(path)
        self.name = self._network.name

    async def find(self, meme: str, path: Path, image: Image.Image) -> tuple[PixelBox, ...]:
        """Find confident faces, the largest first."""
        del path
        boxes = await asyncio.to_thread(self._network.find, image, meme)
        found = [
            clipped for clipped in (clip(box, image.size) for box in boxes) if clipped is not None
        ]
        return tuple(sorted(found, key=_area, reverse=True)[:_MOST])


def _area(box: PixelBox) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


class Faces(Lenient):
    """Faces in a model reply, in thousandths of the image size."""

    faces: list[list[int]]


class ModelFaces:
    """Ask a vision-language model for faces; an unusable reply means no faces."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self.name = f"model: {asker.model}"

    async def find(self, meme: str, path: Path, image: Image.Image) -> tuple[PixelBox, ...]:
        """Return the faces that the model names, the largest first."""
        taken = await self._asker.take(Step(f"{meme}/faces", ask_faces(path), read_faces))
        scale = (image.width / _GRID, image.height / _GRID)
        named = taken.value.faces if taken.value else []
        boxes = (clip((a, b, c, d), image.size, scale) for a, b, c, d in named)
        found = [box for box in boxes if box is not None]
        return tuple(sorted(found, key=_area, reverse=True)[:_MOST])


def ask_faces(image: Path) -> Request:
    """Build the request for the positions of faces."""
    number: dict[str, JsonValue] = {"type": "integer", "minimum": 0, "maximum": _GRID}
    box: dict[str, JsonValue] = {"type": "array", "items": number, "minItems": 4, "maxItems": 4}
    fields, schema = describe_reply(Faces, faces={"type": "array", "items": box, "maxItems": _MOST})
    form = Form("", fields, "en", "json")
    sampling = Sampling(temperature=0.0, max_tokens=400)
    text = find_prompts()["faces"].fill()
    return Request((Message("user", (Picture(image), text)),), form, sampling, schema)


def read_faces(text: str) -> Faces:
    """Parse the boxes of a reply; an invalid box is an error that names it."""
    found = read_object(text, Faces)
    for box in found.faces:
        sides = len(box) == 4 and 0 <= box[0] < box[2] <= _GRID and 0 <= box[1] < box[3] <= _GRID
        if not sides:
            raise Unparsed(
                f"{box} is not a valid box: [left, top, right, bottom], each from 0 to {_GRID}"
            )
    return found


def open_faces(said: Sequence[str], asker: Asker | None, memes: int) -> FaceFinder | None:
    """Open the face finder that the user chose: boxes, ``model`` or a detector file."""
    if not said:
        return None
    places = [_PLACE.fullmatch(face.strip()) for face in said]
    if all(places):
        if memes > 1:
            raise InputError(
                f"--face X,Y,W,H works with one meme, not with {memes}",
                hint="use --face model or a detector file (.onnx)",
            )
        given = [tuple(map(float, match.groups())) for match in places if match]
        return GivenFaces(tuple((x, y, w, h) for x, y, w, h in given))
    if len(said) > 1:
        raise InputError(
            "--face mixes boxes with 'model' or a detector file",
            hint="give only boxes, only 'model', or only one detector file",
        )
    [word] = said
    if word == BY_MODEL:
        if asker is None:
            raise InputError(
                "--face model needs a vision-language model", hint="name it with --model"
            )
        return ModelFaces(asker)
    if not Path(word).is_file():
        raise InputError(
            f"--face {word!r} is not a box, 'model' or an existing file",
            hint="use X,Y,W,H in pixels, 'model', or a YuNet detector file (.onnx)",
        )
    return YuNetFaces(Path(word))


class FaceEditor:
    """Change light and colours with the package's own editor, and faces with a generative one."""

    note = ""

    def __init__(self, painter: Editor, *, sticker: bool = False) -> None:
        self.name = f"{painter.name}, faces only"
        self._painter, self._sticker = painter, sticker

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The names and versions of the colour editor and the face editor."""
        rest = dict(EmbeddedEditor(sticker=self._sticker).identity)
        return {"name": self.name, "faces": dict(self._painter.identity), "rest": rest}

    async def edit(self, request: EditRequest) -> bytes:
        """Change light and colours of the image, then repaint its faces one by one."""
        rest = EmbeddedEditor(sticker=self._sticker)
        made = decode(await rest.edit(request), "picture")
        for number, face in enumerate(request.faces):
            made = await self._paint(made, face, request, number)
        return encode_png(made)

    async def _paint(
        self, image: Image.Image, face: PixelBox, request: EditRequest, number: int
    ) -> Image.Image:
        """Repaint one face inside an ellipse with a soft rim."""
        width, height = face[2] - face[0], face[3] - face[1]
        wide, high = _AROUND * width, _AROUND * height
        around = (face[0] - wide, face[1] - high, face[2] + wide, face[3] + high)
        crop = clip(around, image.size)
        assert crop is not None  # never None, since the face is inside the image
        left, top = crop[:2]
        part = image.crop(crop)
        mask = Image.new("L", part.size)
        ImageDraw.Draw(mask).ellipse(
            (face[0] - left, face[1] - top, face[2] - left - 1, face[3] - top - 1), fill=255
        )
        asked = EditRequest(
            encode_png(part),
            encode_png(mask),
            f"The same face in the same style, now {_LOOKS[request.target]}. Add no text.",
            request.target,
            request.seed + number,
        )
        painted = decode(await self._painter.edit(asked), f"{self.name} output").convert("RGB")
        if painted.size != part.size:
            painted = painted.resize(part.size, Image.Resampling.LANCZOS)
        soft = mask.filter(ImageFilter.GaussianBlur(_SOFT * min(width, height)))
        made = image.convert("RGB")
        made.paste(painted, (left, top), soft)
        return made

    async def close(self) -> None:
        """Close the generative editor."""
        await self._painter.close()
