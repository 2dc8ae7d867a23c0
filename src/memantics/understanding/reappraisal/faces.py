"""Faces: where they are, and an editor that lets a generative one repaint them alone.

No detector of faces ships: OpenCV 5 has no cascades any more. A place comes from the user, from a
model that sees, or from a detector file of the user's (YuNet, ONNX).
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
_MOST = 8  # faces of a meme that are repainted, the largest first
_AROUND = 0.5  # of a face: how much of its surroundings an editor sees on each side
_SOFT = 0.06  # of a face: the rim in which old and new are mixed
_GRID = 1000  # coordinates in which a model names a place
_PLACE = re.compile(r"\s*,\s*".join([r"(\d+(?:\.\d+)?)"] * 4))
_LOOKS = {
    "happy": "smiling happily, with bright eyes",
    "calm": "calm, with smooth brows and a closed mouth",
    "relaxed": "relaxed, with half-closed eyes and an easy smile",
    "excited": "excited, with wide eyes and an open, laughing mouth",
}


class FaceFinder(Protocol):
    """Whoever knows where faces are; ``name`` tells one finder from another."""

    @property
    def name(self) -> str:
        """What results depend on."""
        ...

    async def find(self, meme: str, path: Path, image: Image.Image) -> tuple[PixelBox, ...]:
        """The faces of a meme: boxes in the pixels of ``image``."""
        ...


@dataclass(frozen=True, slots=True)
class GivenFaces:
    """Places that a user gave: left, top, width, height, in pixels of the source."""

    places: tuple[tuple[float, float, float, float], ...]

    @property
    def name(self) -> str:
        """The places."""
        return f"given: {self.places}"

    async def find(self, meme: str, path: Path, image: Image.Image) -> tuple[PixelBox, ...]:
        """The places, as far as they lie in the picture."""
        source = decode(await asyncio.to_thread(path.read_bytes), path.name).size
        scale = (image.width / source[0], image.height / source[1])  # large pictures are reduced
        found = []
        for left, top, width, height in self.places:
            box = clip((left, top, left + width, top + height), image.size, scale)
            if box is None:
                said = ",".join(f"{length:g}" for length in (left, top, width, height))
                raise InputError(
                    f"--face {said} lies outside of {meme}, which has {source[0]} x {source[1]}",
                    hint="X,Y,W,H in pixels, from the upper left corner",
                )
            found.append(box)
        return tuple(found)


def clip(
    box: tuple[float, float, float, float],
    size: tuple[int, int],
    scale: tuple[float, float] = (1.0, 1.0),
) -> PixelBox | None:
    """A box in whole pixels inside of a picture; None where less than a pixel is left.

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
    """A detector file of the user's, see :class:`.vision.appearance.YuNet`."""

    def __init__(self, path: Path) -> None:
        self._network = YuNet(path)
        self.name = self._network.name

    async def find(self, meme: str, path: Path, image: Image.Image) -> tuple[PixelBox, ...]:
        """The faces that it is sure of, the largest first."""
        del path
        boxes = await asyncio.to_thread(self._network.find, image, meme)
        found = [
            clipped for clipped in (clip(box, image.size) for box in boxes) if clipped is not None
        ]
        return tuple(sorted(found, key=_area, reverse=True)[:_MOST])


def _area(box: PixelBox) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


class Faces(Lenient):
    """Where a model sees faces, in thousandths of the picture."""

    faces: list[list[int]]


class ModelFaces:
    """Asks a model that sees; where it gives no usable reply, there are no faces."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self.name = f"model: {asker.model}"

    async def find(self, meme: str, path: Path, image: Image.Image) -> tuple[PixelBox, ...]:
        """The faces that it names, the largest first."""
        taken = await self._asker.take(Step(f"{meme}/faces", ask_faces(path), read_faces))
        scale = (image.width / _GRID, image.height / _GRID)
        named = taken.value.faces if taken.value else []
        boxes = (clip((a, b, c, d), image.size, scale) for a, b, c, d in named)
        found = [box for box in boxes if box is not None]
        return tuple(sorted(found, key=_area, reverse=True)[:_MOST])


def ask_faces(image: Path) -> Request:
    """The request for the places of faces."""
    number: dict[str, JsonValue] = {"type": "integer", "minimum": 0, "maximum": _GRID}
    box: dict[str, JsonValue] = {"type": "array", "items": number, "minItems": 4, "maxItems": 4}
    fields, schema = describe_reply(Faces, faces={"type": "array", "items": box, "maxItems": _MOST})
    form = Form("", fields, "en", "json")
    sampling = Sampling(temperature=0.0, max_tokens=400)
    text = find_prompts()["faces"].fill()
    return Request((Message("user", (Picture(image), text)),), form, sampling, schema)


def read_faces(text: str) -> Faces:
    """The places in a reply; a box that is none is named."""
    found = read_object(text, Faces)
    for box in found.faces:
        sides = len(box) == 4 and 0 <= box[0] < box[2] <= _GRID and 0 <= box[1] < box[3] <= _GRID
        if not sides:
            raise Unparsed(
                f"{box} is not a valid box: [left, top, right, bottom], each from 0 to {_GRID}"
            )
    return found


def open_faces(said: Sequence[str], asker: Asker | None, memes: int) -> FaceFinder | None:
    """The finder that a user means: places, ``model``, or the file of a detector."""
    if not said:
        return None
    places = [_PLACE.fullmatch(face.strip()) for face in said]
    if all(places):
        if memes > 1:
            raise InputError(
                f"--face with a place is for one meme, not for {memes}",
                hint="give --face model, or the file of a detector",
            )
        given = [tuple(map(float, match.groups())) for match in places if match]
        return GivenFaces(tuple((x, y, w, h) for x, y, w, h in given))
    if len(said) > 1:
        raise InputError("--face is given in several ways", hint="places only, or one of the rest")
    [word] = said
    if word == BY_MODEL:
        if asker is None:
            raise InputError("--face model needs a model that sees", hint="name it with --model")
        return ModelFaces(asker)
    if not Path(word).is_file():
        raise InputError(
            f"--face {word}: neither a place, nor 'model', nor a file",
            hint="X,Y,W,H in pixels, model, or a YuNet detector (.onnx)",
        )
    return YuNetFaces(Path(word))


class FaceEditor:
    """Light and colours by the embedded editor; each face by a generative one, in its own crop."""

    note = ""

    def __init__(self, painter: Editor, *, sticker: bool = False) -> None:
        self.name = f"{painter.name}, faces only"
        self._painter, self._sticker = painter, sticker

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """Both editors."""
        rest = dict(EmbeddedEditor(sticker=self._sticker).identity)
        return {"name": self.name, "faces": dict(self._painter.identity), "rest": rest}

    async def edit(self, request: EditRequest) -> bytes:
        """Grade the picture, then repaint its faces one by one."""
        rest = EmbeddedEditor(sticker=self._sticker)
        made = decode(await rest.edit(request), "picture")
        for number, face in enumerate(request.faces):
            made = await self._paint(made, face, request, number)
        return encode_png(made)

    async def _paint(
        self, image: Image.Image, face: PixelBox, request: EditRequest, number: int
    ) -> Image.Image:
        """The picture with one face repainted: inside of an ellipse with a soft rim."""
        width, height = face[2] - face[0], face[3] - face[1]
        wide, high = _AROUND * width, _AROUND * height
        around = (face[0] - wide, face[1] - high, face[2] + wide, face[3] + high)
        crop = clip(around, image.size)
        assert crop is not None  # the face lies in the picture
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
