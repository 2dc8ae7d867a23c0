"""Bounded reading and decoding of images from untrusted files.

File names, sizes and headers of images are never trusted. The cost of decoding is estimated from
the bytes before a decoder reads them, for two reasons. Pillow parses header blocks in Python one by
one. A progressive JPEG decodes all pixels once per scan, and a scan needs only 59 bytes.
"""

from __future__ import annotations

import errno
import io
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image as Pillow
from PIL import UnidentifiedImageError
from PIL.JpegImagePlugin import MARKER

from memantics.core.errors import ImageError
from memantics.core.files import read_regular
from memantics.core.members import read_member
from memantics.core.records import Image, LoadedImage, Message, MessagePart, Request

MOST_STEPS = 200_000  # parsing steps of an image header; each takes about a microsecond
# pixels decoded over all scans of a JPEG; an image of 40 megapixels may have 25 scans
MOST_SCANNED = 1_000_000_000
# Parsing steps charged for each block of EXIF or colour data; 20 blocks are allowed. Pillow copies
# each block together with all earlier ones, or inflates it to 1 MB.
_DEAR = 9_600  # 20 blocks stay below the limit of all steps, 21 exceed it
_MARKER = re.compile(rb"\xff[^\xff\x00]")
_GIF_BLOCK = re.compile(rb"[!,;]")
_PNG_START = b"\x89PNG\r\n\x1a\n"
_SCAN = 0xFFDA
Reason = Literal[
    "missing",
    "unreadable",
    "too many bytes",
    "format",
    "too many pixels",
    "too much work",
    "truncated",
]
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
MIME = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
}
_MAKERS = {
    "make": 271,
    "model": 272,
    "software": 305,
    "date": 306,
    "artist": 315,
    "copyright": 33432,
}
_ORIENTATION = 0x0112
_TURNS: Mapping[object, Pillow.Transpose] = {
    2: Pillow.Transpose.FLIP_LEFT_RIGHT,
    3: Pillow.Transpose.ROTATE_180,
    4: Pillow.Transpose.FLIP_TOP_BOTTOM,
    5: Pillow.Transpose.TRANSPOSE,
    6: Pillow.Transpose.ROTATE_270,
    7: Pillow.Transpose.TRANSVERSE,
    8: Pillow.Transpose.ROTATE_90,
}


def count_scans(data: bytes) -> int:
    """Return an upper bound on the number of times the pixels of an image are decoded.

    In compressed JPEG data the byte 0xFF is followed by 0, so only markers are counted. A scan of
    an embedded thumbnail counts too.
    """
    return data.count(b"\xff\xda") if data[:2] == b"\xff\xd8" else 1


def costs_too_much(data: bytes) -> bool:
    """Return whether Pillow would need more than a fraction of a second to parse the header.

    >>> costs_too_much(b"GIF89a" + bytes(7) + b"x" * 10), costs_too_much(b"GIF" + bytes(300_000))
    (False, True)
    """
    if data[:2] == b"\xff\xd8":
        steps = _walk_jpeg(data)
    elif data[:8] == _PNG_START:
        steps = _walk_png(data)
    elif data[:3] == b"GIF":
        steps = _walk_gif(data)
    # Pillow decodes these runs in pure Python.
    elif data[:2] == b"BM" and data[30:34] in (b"\1\0\0\0", b"\2\0\0\0"):
        size = [abs(int.from_bytes(data[at : at + 4], "little", signed=True)) for at in (18, 22)]
        return len(data) // 2 + size[0] * size[1] // 20 > MOST_STEPS
    else:
        return False
    done = 0
    for step in steps:
        done += step
        if done > MOST_STEPS:
            return True
    return False


def _walk_jpeg(data: bytes) -> Iterator[int]:
    """Yield the header segments of a JPEG up to its first scan, using Pillow's table of markers."""
    place = 2
    while found := _MARKER.search(data, place):
        yield found.end() - place
        place, kind = found.end(), 0xFF00 | data[found.end() - 1]
        if kind == _SCAN or kind not in MARKER:
            return
        if MARKER[kind][2] is not None:
            if data.startswith(b"Exif\0\0", place + 2):
                yield _DEAR
            place += max(2, int.from_bytes(data[place : place + 2], "big"))
    yield len(data) - place


def _walk_png(data: bytes) -> Iterator[int]:
    place = len(_PNG_START)
    while place < len(data):
        yield _DEAR if data.startswith(b"iCCP", place + 4) else 5
        place += 12 + int.from_bytes(data[place : place + 4], "big")


def _walk_gif(data: bytes) -> Iterator[int]:
    """Yield the blocks of a GIF file up to its first image."""
    place = 13 + (3 << (data[10] & 7) + 1 if len(data) > 10 and data[10] & 128 else 0)
    while found := _GIF_BLOCK.search(data, place):
        yield found.end() - place
        place = found.end() + 1
        if found[0] != b"!":
            return
        while place < len(data) and data[place]:
            yield 1
            place += 1 + data[place]
        place += 1
    yield len(data) - place


# Pillow only warns about decompression bombs; the limits here are lower. Its warnings about damaged
# metadata are not useful to users.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
warnings.simplefilter("ignore", Pillow.DecompressionBombWarning)


@dataclass(frozen=True, slots=True)
class ImageBounds:
    """Limits on the images that are read."""

    max_bytes: int = 20 * 1024 * 1024
    max_pixels: int = 40_000_000
    max_side: int = 20_000


DEFAULT_BOUNDS = ImageBounds()


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Format and size from the header of an image."""

    format: str
    width: int
    height: int

    @property
    def mime(self) -> str:
        """The media type of the file."""
        return MIME[self.format]


_REMEDIES: Mapping[str, str] = {
    "unreadable": "give an image file that you may read",
    "too many bytes": "save it smaller",
    "format": "save it as PNG or JPEG",
    "too many pixels": "make it smaller",
    "too much work": "save it anew, as a plain PNG or JPEG",
    "truncated": "get the file again",
}


def _refuse(name: str, reason: Reason, detail: str) -> ImageError:
    return ImageError(name, reason, detail, hint=_REMEDIES[reason])


def read_bytes(path: Path, bounds: ImageBounds = DEFAULT_BOUNDS) -> bytes:
    """Read an image file, also one in a Parquet file or tar archive, within the limit."""
    try:
        try:
            return read_regular(path, bounds.max_bytes)
        except NotADirectoryError:
            if (data := read_member(path, bounds.max_bytes)) is None:
                raise
            return data
    except FileNotFoundError:
        raise ImageError(
            path.name, "missing", "no such file", hint=f"expected in {path.parent}"
        ) from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise _refuse(path.name, "too many bytes", f"more than {bounds.max_bytes:,}") from error
        raise _refuse(path.name, "unreadable", error.strerror or str(error)) from error


def read_image(image: Image, bounds: ImageBounds = DEFAULT_BOUNDS) -> bytes:
    """Return the bytes of an image in a request; read the file only if it is not loaded yet."""
    return image.data if isinstance(image, LoadedImage) else read_bytes(image.path, bounds)


def load_images(request: Request) -> Request:
    """Return the request with its images loaded, so that the hashed bytes are the sent ones."""
    return Request(
        tuple(
            Message(message.role, tuple(map(_load_part, message.parts)))
            for message in request.messages
        ),
        request.form,
        request.sampling,
        request.schema,
    )


def _load_part(part: MessagePart) -> MessagePart:
    return part if isinstance(part, str) else LoadedImage(part.path, read_image(part))


def probe(data: bytes, name: str, bounds: ImageBounds = DEFAULT_BOUNDS) -> ImageFacts:
    """Check format and size from the header alone; no pixel is decoded.

    >>> probe(b"GIF but not really", "x.gif")
    Traceback (most recent call last):
    memantics.core.errors.ImageError: image x.gif: format: not one of PNG, JPEG, WEBP, GIF, BMP; ...
    """
    _check_steps(data, name)
    found = _read_header(data)
    if found is None:
        with _open(data, name) as image:
            found = _facts(image)
    return _bounded(data, found, name, bounds)


def _check_steps(data: bytes, name: str) -> None:
    if costs_too_much(data):
        raise _refuse(name, "too much work", "its header blocks would take too long to read")


def _read_header(data: bytes) -> ImageFacts | None:
    """Parse the header of a simple PNG or JPEG, faster than Pillow; None for other files."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR" and len(data) > 57:
        width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        return ImageFacts("PNG", width, height) if width and height else None
    if data[:3] == b"\xff\xd8\xff":
        return _read_jpeg_header(data)
    return None


def _read_jpeg_header(data: bytes) -> ImageFacts | None:
    place = 2
    while place + 9 < len(data) and data[place] == 0xFF:
        kind = data[place + 1]
        if 0xC0 <= kind <= 0xC2:  # JPEG frame header: baseline, extended or progressive
            height = int.from_bytes(data[place + 5 : place + 7], "big")
            width = int.from_bytes(data[place + 7 : place + 9], "big")
            return ImageFacts("JPEG", width, height) if width and height else None
        if not (0xE0 <= kind <= 0xEF or kind in (0xDB, 0xC4, 0xDD, 0xFE)):
            return None
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def decode(data: bytes, name: str, bounds: ImageBounds = DEFAULT_BOUNDS) -> Pillow.Image:
    """Decode the first frame to upright RGB within bounds; transparent areas become white."""
    _check_steps(data, name)
    with _open(data, name) as image:
        _bounded(data, _facts(image), name, bounds)
        try:
            turn = _TURNS.get(_read_orientation(image))
            image.load()
            if image.has_transparency_data:
                backdrop = Pillow.new("RGBA", image.size, "white")
                made = Pillow.alpha_composite(backdrop, image.convert("RGBA")).convert("RGB")
            else:
                made = image.convert("RGB")
            return made if turn is None else made.transpose(turn)
        except Exception as error:
            raise _refuse_damaged(name, error) from error


def _read_orientation(image: Pillow.Image) -> object:
    """Return the EXIF orientation; an image with damaged EXIF is used as stored."""
    try:
        return image.getexif().get(_ORIENTATION)
    except Exception:  # noqa: BLE001 - Pillow's parsers raise whatever a damaged block leads to
        return None


def read_exif(data: bytes, name: str) -> dict[str, str]:
    """Return who or what made an image, from its EXIF block; empty without one, or if damaged.

    The values come from the file and may hold anything; each is cut at 60 characters.
    """
    _check_steps(data, name)
    with _open(data, name) as image:
        try:
            found = image.getexif()
            given = {label: found.get(tag) for label, tag in _MAKERS.items()}
        except Exception:  # noqa: BLE001 - as above
            return {}
    return {label: str(value)[:60] for label, value in given.items() if value}


def turn_upright(data: bytes, name: str, bounds: ImageBounds = DEFAULT_BOUNDS) -> bytes | None:
    """Return a rotated image (by EXIF) upright as PNG; None if it is upright already."""
    _check_steps(data, name)
    with _open(data, name) as image:
        turned = _read_orientation(image) in _TURNS
    return encode_png(decode(data, name, bounds)) if turned else None


def encode_png(image: Pillow.Image, level: int = 1) -> bytes:
    """Encode an image as PNG; low compression levels are faster and files only slightly larger."""
    data = io.BytesIO()
    image.save(data, "PNG", compress_level=level)
    return data.getvalue()


def load(path: Path, bounds: ImageBounds = DEFAULT_BOUNDS) -> Pillow.Image:
    """Read and decode an image file within size limits."""
    return decode(read_bytes(path, bounds), path.name, bounds)


def shrink(image: Pillow.Image, pixels: int) -> Pillow.Image:
    """Scale an image down to at most ``pixels`` pixels, keeping its aspect ratio; 0: no change.

    >>> shrink(Pillow.new("RGB", (400, 100)), 10_000).size
    (200, 50)
    """
    width, height = image.size
    if not pixels or width * height <= pixels:
        return image
    factor = (pixels / (width * height)) ** 0.5
    size = max(1, int(width * factor)), max(1, int(height * factor))
    return image.resize(size, Pillow.Resampling.LANCZOS)


def _open(data: bytes, name: str) -> Pillow.Image:
    try:
        return Pillow.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        raise _refuse(name, "format", f"not one of {', '.join(FORMATS)}") from None
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning) as error:
        raise _refuse(name, "too many pixels", str(error)) from error
    except Exception as error:
        raise _refuse_damaged(name, error) from error


def _refuse_damaged(name: str, error: Exception) -> ImageError:
    """Convert a decoder exception into an ``ImageError``; some raise AssertionError or KeyError."""
    return _refuse(name, "truncated", " ".join(str(error).split())[:200] or type(error).__name__)


def _facts(image: Pillow.Image) -> ImageFacts:
    # An MPO file is a JPEG with further images after the first one.
    form = "JPEG" if image.format == "MPO" else image.format or ""
    return ImageFacts(form, *image.size)


def _bounded(data: bytes, facts: ImageFacts, name: str, bounds: ImageBounds) -> ImageFacts:
    width, height = facts.width, facts.height
    if width * height > bounds.max_pixels or max(width, height) > bounds.max_side:
        raise _refuse(
            name,
            "too many pixels",
            f"{width}x{height}; the limit is {bounds.max_pixels:,} and {bounds.max_side:,} a side",
        )
    scans = count_scans(data)
    if scans * width * height > MOST_SCANNED:
        raise _refuse(name, "too much work", f"{scans:,} scans of {width}x{height}")
    return facts
