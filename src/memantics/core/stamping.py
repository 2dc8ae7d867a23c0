"""The one place through which every command that makes images writes them: label, mark, signature.

``tests/repository/test_image_writers.py`` lists the functions that encode images and fails if one
bypasses :meth:`ImageStamp.apply`.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from memantics.core.credentials import (
    EditStep,
    ImageSigner,
    Original,
    open_signer,
    read_credentials,
    sign_image,
)
from memantics.core.fonts import CHINESE
from memantics.core.images import decode, probe
from memantics.core.marks import (
    COMPOSITE_WITH_AI,
    TOOL,
    TRAINED,
    DigitalSource,
    ImageMark,
    read_mark,
    write_mark,
)
from memantics.core.parameters import Flag

LabelLanguage = Literal["en", "zh"]
VERSION = 1  # version of marks and labels; increase it when the same image gets other ones
_LABELS: dict[tuple[LabelLanguage, bool], str] = {
    ("en", True): "Edited with AI · Memantics",
    ("en", False): "Edited by a program · Memantics",
    ("zh", True): "由人工智能编辑 · Memantics",
    ("zh", False): "由程序自动编辑 · Memantics",
}
_PAPER, _INK = (245, 245, 245), (40, 40, 40)


@dataclass(frozen=True, slots=True)
class MarkSettings:
    """How new images are marked; the digital source type and the program are always written.

    Attributes:
        sign: Certificate chain and private key (PEM): sign new images with content credentials
            (C2PA).
        label: Add a visible label below new images.
    """

    sign: Annotated[
        tuple[Path | str, Path | str] | None,
        Flag(
            "Sign new images with content credentials (C2PA): certificate chain and key, PEM.",
            metavar="CERT KEY",
            kind=tuple[Path, Path],
        ),
    ] = None
    label: Annotated[bool, Flag("Add a visible label below new images.")] = False


@dataclass(frozen=True, slots=True)
class Making:
    """How a new image came about.

    ``steps`` are the actions for its manifest, ``system`` is the model that wrote captions or
    painted, and ``original`` the image that was edited.
    """

    source: DigitalSource
    steps: tuple[EditStep, ...] = ()
    system: str = ""
    original: Original | None = None

    @property
    def mark(self) -> ImageMark:
        """The mark of the image; an original that a model generated is not hidden."""
        data = self.original.data if self.original is not None else b""
        before, signed = read_mark(data), read_credentials(data)
        trained = (before is not None and before.trained) or (
            signed is not None and signed.source in TRAINED
        )
        system = self.system or (before.system if before else "")
        made_by_ai = trained and self.source not in TRAINED
        return ImageMark(COMPOSITE_WITH_AI if made_by_ai else self.source, TOOL, system)


@dataclass(frozen=True, slots=True)
class ImageStamp:
    """Marks new images; with a signer also signs them, with ``label`` also labels them."""

    signer: ImageSigner | None = None
    label: bool = False
    language: LabelLanguage = "en"

    @property
    def identity(self) -> str:
        """The settings of this stamp, as a part of the hash of an image's inputs."""
        signed = "" if self.signer is None else self.signer.fingerprint
        return f"{VERSION} {self.language if self.label else ''} {signed}"

    def apply(self, data: bytes, making: Making) -> bytes:
        """Return an encoded PNG, JPEG or WebP image with its mark."""
        mark = making.mark
        if self.label:
            data = _add_label(data, _LABELS[self.language, mark.trained])
        data = write_mark(data, mark)
        if self.signer is None:
            return data
        source: DigitalSource = COMPOSITE_WITH_AI if mark.trained else making.source
        return sign_image(data, self.signer, source, making.steps, making.original)


def open_stamp(settings: MarkSettings) -> ImageStamp:
    """Open the stamp of these settings; read and try the certificate if images are signed."""
    signer = None if settings.sign is None else open_signer(*settings.sign)
    return ImageStamp(signer, settings.label)


def name_system(name: str) -> str:
    """Return the name of a model without folders, which may tell about their user.

    >>> name_system("diffusers//home/me/painter, faces only"), name_system("embedded")
    ('diffusers/painter', '')
    """
    kind, slash, rest = name.partition("/")
    return f"{kind}/{rest.rpartition('/')[2].partition(',')[0]}" if slash else ""


def _add_label(data: bytes, text: str) -> bytes:
    """Add a strip with a text below an image, so that nothing of the image is covered."""
    image = decode(data, "the image")
    width, height = image.size
    size = max(10, round(0.028 * max(width, height)))
    font = ImageFont.truetype(str(CHINESE), size)
    length = font.getlength(text)
    if length > 0.94 * width:  # a narrow image
        font = ImageFont.truetype(str(CHINESE), max(6, int(size * 0.94 * width / length)))
    strip = round(1.7 * font.size)
    made = Pillow.new("RGB", (width, height + strip), _PAPER)
    made.paste(image, (0, 0))
    place = width / 2, height + strip / 2
    ImageDraw.Draw(made).text(place, text, fill=_INK, font=font, anchor="mm")
    out = io.BytesIO()
    made.save(out, probe(data, "the image").format, quality=92)
    return out.getvalue()


def describe_marks(data: bytes) -> str:
    """Describe the marks and credentials of an image in one line; empty if there are none."""
    return "; ".join(f"{part}: {text}" for part, text, _ in tell_marks(data))


def tell_marks(data: bytes) -> tuple[tuple[str, str, str], ...]:
    """Describe the marks and credentials of an image: part, text, and how far it is verified."""
    mark, credentials = read_mark(data), read_credentials(data)
    told = []
    if mark is not None:
        told.append(("mark", mark.describe(), "XMP, not verified"))
    if credentials is not None:
        told.append(("content credentials", credentials.describe(), "C2PA"))
    return tuple(told)
